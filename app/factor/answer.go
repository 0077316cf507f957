package factor

import (
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/credential"
	"github.com/doorward/doorward/internal/totp"
	"github.com/doorward/doorward/store"
)

// Answer is what a person proves a factor with: one of these.
type Answer struct {
	Code         string // of an authenticator app
	RecoveryCode string
	Passkey      []byte // WebAuthn's AuthenticationResponseJSON
}

// Method is the method of the answer.
func (a Answer) Method() string {
	switch {
	case a.RecoveryCode != "":
		return doorward.ByRecovery
	case a.Passkey != nil:
		return doorward.ByPasskey
	}
	return doorward.ByCode
}

// Match is an answer that was right when it was checked. Use it in the transaction of what
// it permits.
type Match struct {
	Methods []string // for Assurance.AMR
	userID  string
	use     useFunc
}

// useFunc makes an answer invalid for later use. The trail of the tenant records the use.
type useFunc func(ctx context.Context, tx *access.Tx, tenantID string) error

// Use makes the answer invalid for later use. The trail of the tenant records that a
// recovery code was used. Errors: invalid_code when another request was quicker,
// unavailable.
func (m Match) Use(ctx context.Context, tx *access.Tx, tenantID string) error {
	if err := m.use(ctx, tx, tenantID); err != nil {
		return err
	}
	return credential.ClearCodes(ctx, tx.Tx, m.userID)
}

func wrongAnswer() *doorward.Error { return doorward.Fail(doorward.CodeInvalidCode, "") }

// Try counts a try of the challenge and checks the answer. A passkey that turns out to be
// a copy is disabled. Errors: challenge_over, invalid_code, too_many_attempts, unavailable.
func (f *Factors) Try(ctx context.Context, by doorward.Caller, c Challenge, a Answer) (Match, error) {
	err := f.writer.Upkeep(ctx, func(tx *store.Tx) error {
		err := f.count(ctx, tx, c)
		if err == nil && a.Method() == doorward.ByCode {
			err = f.verifier.CountCode(ctx, tx, c.UserID)
		}
		return err
	})
	if err != nil {
		return Match{}, err
	}
	switch a.Method() {
	case doorward.ByRecovery:
		return checkRecovery(c.UserID, a.RecoveryCode)
	case doorward.ByPasskey:
		return f.checkPasskey(ctx, by, c, a.Passkey)
	}
	return f.checkCode(ctx, c.UserID, a.Code)
}

// checkCode compares the code with each authenticator app of the account.
func (f *Factors) checkCode(ctx context.Context, userID, code string) (Match, error) {
	all, err := f.db.Read().Factors(ctx, userID)
	if err != nil {
		return Match{}, err
	}
	for _, one := range all {
		if one.Kind != doorward.TOTP || !one.Usable() {
			continue
		}
		seed, err := f.seed(ctx, one)
		if err != nil {
			return Match{}, err
		}
		if step, ok := totp.Match(seed, code, f.db.Now(), one.LastStep); ok {
			return Match{[]string{doorward.MethodCode}, userID, useCode(one, step)}, nil
		}
	}
	return Match{}, wrongAnswer()
}

func useCode(one store.Factor, step int64) useFunc {
	return func(ctx context.Context, tx *access.Tx, _ string) error {
		return wrongUnless(tx.UseCode(ctx, one.ID, step))
	}
}

// checkRecovery checks only the form of the code: Use finds out whether the account has it.
func checkRecovery(userID, code string) (Match, error) {
	hash, ok := hashOfRecovery(code)
	if !ok {
		return Match{}, wrongAnswer()
	}
	return Match{[]string{doorward.MethodCode}, userID, func(ctx context.Context, tx *access.Tx, tenantID string) error {
		if err := wrongUnless(tx.UseRecoveryCode(ctx, userID, hash)); err != nil {
			return err
		}
		return recordRecovery(ctx, tx, userID, tenantID)
	}}, nil
}

func wrongUnless(right bool, err error) error {
	if err == nil && !right {
		err = wrongAnswer()
	}
	return err
}

// isUnavailable reports whether the error is a fault of the server's.
func isUnavailable(err error) bool {
	var e *doorward.Error
	return !errors.As(err, &e) || e.Kind() == doorward.KindUnavailable
}
