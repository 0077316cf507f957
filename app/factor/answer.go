package factor

import (
	"context"
	"crypto/sha256"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/internal/totp"
	"github.com/doorward/doorward/store"
)

// Answer is the answer to a challenge. Exactly one field is set.
type Answer struct {
	Code         string // of an authenticator app; as typed, or as Typed returns it
	RecoveryCode string // likewise
	Passkey      []byte // WebAuthn's AuthenticationResponseJSON
}

// Method returns the method of the answer.
func (a Answer) Method() string {
	switch {
	case a.RecoveryCode != "":
		return doorward.ByRecovery
	case a.Passkey != nil:
		return doorward.ByPasskey
	}
	return doorward.ByCode
}

// Passed returns the counter of a sign-in or an acceptance that the answer has completed.
func (a Answer) Passed() Metric {
	if a.Method() == doorward.ByRecovery {
		return Recovered
	}
	return Passed
}

// Match is an answer that was right when it was checked; a recovery code is checked by Use.
// Call Use in the transaction of the permitted action.
type Match struct {
	Methods []string // for Assurance.AMR
	userID  string
	use     useFunc
}

// useFunc makes an answer invalid for later use, and may record that in the trail of the tenant.
type useFunc func(ctx context.Context, tx *access.Tx, tenantID string) error

// Use makes the answer invalid for later use. It records the use of a recovery code in the trail of
// the tenant. Errors: invalid_code if another request has used the answer first, unavailable.
func (m Match) Use(ctx context.Context, tx *access.Tx, tenantID string) error {
	if err := m.use(ctx, tx, tenantID); err != nil {
		return err
	}
	return proof.ClearCodes(ctx, tx.Tx, m.userID)
}

// wrongAnswer returns the error invalid_code.
func wrongAnswer() *doorward.Error { return doorward.Fail(doorward.CodeInvalidCode, "") }

// Try counts a try of the challenge and checks the answer, which Typed has returned. It disables a passkey
// that turns out to be copied. Errors: challenge_over, invalid_code, too_many_attempts, unavailable.
func (f *Factors) Try(ctx context.Context, by doorward.Caller, c Challenge, a Answer) (Match, error) {
	err := f.writer.Upkeep(ctx, func(tx *store.Tx) error {
		err := f.countTry(ctx, tx, c)
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
		return recovery(c.UserID, a.RecoveryCode), nil
	case doorward.ByPasskey:
		return f.checkPasskey(ctx, by, c, a.Passkey)
	}
	return f.checkCode(ctx, c.UserID, a.Code)
}

// Refuse ends an attempt at answering the challenge that ended in err, and returns the error for the
// caller. A wrong answer counts as a failure and is recorded in the challenge's tenant. After
// too_many_attempts, when the answer was not checked, the attempt doesn't count.
func (f *Factors) Refuse(ctx context.Context, c Challenge, proved proof.Proof, err error) error {
	var reason *doorward.Error
	if doorward.HasCode(err, doorward.CodeTooManyAttempts) {
		proved.Release(ctx)
		return err
	}
	if errors.As(err, &reason) && reason.Code == doorward.CodeInvalidCode {
		f.Tally(Refused)
		return proved.Refuse(ctx, doorward.MFARefuse, userObject(c.UserID, c.TenantID), reason)
	}
	return proved.FailIfRefused(ctx, err)
}

// checkCode compares the code with each authenticator app of the account.
func (f *Factors) checkCode(ctx context.Context, userID, code string) (Match, error) {
	all, err := f.db.Read().Factors(ctx, userID)
	if err != nil {
		return Match{}, err
	}
	for _, stored := range all {
		if stored.Kind != doorward.TOTP || !stored.Usable() {
			continue
		}
		seed, err := f.seed(ctx, stored)
		if err != nil {
			return Match{}, err
		}
		if step, ok := totp.Match(seed, code, f.db.Now(), stored.LastStep); ok {
			return Match{[]string{doorward.MethodCode}, userID, useCode(stored, step)}, nil
		}
	}
	return Match{}, wrongAnswer()
}

func useCode(stored store.Factor, step int64) useFunc {
	return func(ctx context.Context, tx *access.Tx, _ string) error {
		return wrongAnswerUnless(tx.UseCode(ctx, stored.ID, step))
	}
}

// recovery returns the match of a recovery code. Match.Use checks whether the account has it.
func recovery(userID, code string) Match {
	hash := sha256.Sum256([]byte(code))
	return Match{[]string{doorward.MethodCode}, userID, func(ctx context.Context, tx *access.Tx, tenantID string) error {
		if err := wrongAnswerUnless(tx.UseRecoveryCode(ctx, userID, hash[:])); err != nil {
			return err
		}
		return recordRecovery(ctx, tx, userID, tenantID)
	}}
}

// wrongAnswerUnless returns err, or invalid_code if right is false.
func wrongAnswerUnless(right bool, err error) error {
	if err == nil && !right {
		err = wrongAnswer()
	}
	return err
}

// isUnavailable reports whether the error is a fault of the server.
func isUnavailable(err error) bool {
	var e *doorward.Error
	return !errors.As(err, &e) || e.Kind() == doorward.KindUnavailable
}
