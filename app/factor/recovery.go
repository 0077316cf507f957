package factor

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"strconv"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

// A recovery code has 120 random bits, so it can be stored as a plain SHA-256: nobody can guess it.
// People type it in groups of four characters.
const (
	recoveryBytes = 15
	recoveryChars = recoveryBytes * 8 / 5
	recoveryGroup = 4
)

// newRecoveryCodes returns codes in the form that people get, and their hashes.
func newRecoveryCodes() (codes []string, hashes [][]byte) {
	for range doorward.RecoveryCodes {
		random := make([]byte, recoveryBytes)
		_, _ = rand.Read(random) // never fails
		text := base32.StdEncoding.EncodeToString(random)
		hash := sha256.Sum256([]byte(text))
		codes, hashes = append(codes, grouped(text)), append(hashes, hash[:])
	}
	return codes, hashes
}

// grouped separates groups of characters with hyphens.
func grouped(text string) string {
	var groups []string
	for ; text != ""; text = text[recoveryGroup:] {
		groups = append(groups, text[:recoveryGroup])
	}
	return strings.Join(groups, "-")
}

// NewRecoveryCodes replaces the caller's recovery codes and returns the new ones, which are
// not shown again. Errors: step_up_required, too_many_attempts, not_found without a factor.
func (f *Factors) NewRecoveryCodes(ctx context.Context, by doorward.Caller) ([]string, error) {
	var codes []string
	_, err := f.writer.Do(ctx, by, doorward.MFAEnrol, userObject(by.ID, by.TenantID), func(tx *access.Tx) error {
		if _, err := tx.LockAccount(ctx, by.ID); err != nil {
			return err
		}
		if err := tx.CountChange(ctx); err != nil {
			return err
		}
		factors, err := f.afterChange(ctx, tx, by.ID) // also ends challenges and remembered browsers
		if err != nil {
			return err
		}
		if factors == 0 {
			return doorward.Fail(doorward.CodeNotFound, "There is no second factor yet. The first one makes recovery codes.")
		}
		if codes, err = replaceCodes(ctx, tx, by.ID); err != nil {
			return err
		}
		tx.Changed(doorward.FieldRecoveryCodes, "", strconv.Itoa(len(codes)))
		return notify(ctx, tx, store.MailRecoveryCodes, by.Email)
	})
	return codes, err
}

func replaceCodes(ctx context.Context, tx *access.Tx, userID string) ([]string, error) {
	codes, hashes := newRecoveryCodes()
	return codes, tx.SetRecoveryCodes(ctx, userID, hashes)
}

// recordRecovery records that a recovery code was used, and notifies the person.
func recordRecovery(ctx context.Context, tx *access.Tx, userID, tenantID string) error {
	account, err := tx.Account(ctx, userID)
	if err != nil {
		return err
	}
	remaining, err := tx.CountRecoveryCodes(ctx, userID)
	if err != nil {
		return err
	}
	return notifyAlso(ctx, tx, store.MailRecoveryUsed, account, doorward.MFARecover, tenantID,
		doorward.Change{Field: doorward.FieldRecoveryCodes, From: strconv.Itoa(remaining + 1), To: strconv.Itoa(remaining)})
}
