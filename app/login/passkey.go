package login

import (
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/store"
)

// BeginPasskey makes a challenge for a login with a passkey alone. It belongs to no
// account: the passkey names the account. Errors: passkeys_unavailable, too_many_attempts.
func (l *Login) BeginPasskey(ctx context.Context, by doorward.Caller) (begun factor.NewChallenge, err error) {
	err = l.writer.Upkeep(ctx, func(tx *store.Tx) (err error) {
		if err := l.verifier.CountPasskeyBegin(ctx, tx, by); err != nil {
			return err
		}
		begun, err = l.factors.BeginUsernameless(ctx, tx)
		return err
	})
	if err == nil {
		l.factors.Tally(factor.Asked)
	}
	return begun, err
}

// WithPasskey signs in with a passkey alone, to the tenant that WithPassword would choose. The
// session has assurance level 2, since a passkey has verified its user. Errors:
// challenge_over, invalid_code, too_many_attempts; only after a valid passkey the errors of
// WithPassword about the membership and the tenant.
func (l *Login) WithPasskey(ctx context.Context, by doorward.Caller, token string, response []byte, tenantID string) (Outcome, error) {
	c, err := l.factors.OpenUsernameless(ctx, token)
	if err != nil {
		return nil, err
	}
	proved, err := l.verifier.BeginUsernameless(ctx, by)
	if err != nil {
		return nil, err
	}
	a := challengedAttempt{factors: l.factors, by: by, proof: proved}
	c, account, match, err := l.factors.TryUsernameless(ctx, by, c, response)
	a.challenge, a.proof.Account = c, account
	if err != nil {
		return nil, l.refusePasskey(ctx, a, err)
	}
	choice, err := l.chooseTenant(ctx, a.proof, tenantID)
	if err != nil {
		return nil, err
	}
	a.challenge.TenantID, a.memberships = choice.tenantID, choice.memberships
	return l.finish(ctx, a, match.Methods, func(tx *access.Tx) error { return match.Use(ctx, tx, choice.tenantID) })
}

// refusePasskey does what refuse does, for an answer that may not belong to any account.
func (l *Login) refusePasskey(ctx context.Context, a challengedAttempt, err error) error {
	var reason *doorward.Error
	if !errors.As(err, &reason) || reason.Code != doorward.CodeInvalidCode {
		return a.proof.FailIfRefused(ctx, err)
	}
	if a.challenge.UserID == "" {
		l.factors.Tally(factor.Refused)
		return a.proof.RefuseUnknown(ctx, doorward.MFARefuse, reason)
	}
	home, homeErr := proof.HomeTenant(ctx, l.db.Read(), a.challenge.UserID, "")
	if homeErr != nil {
		return a.proof.FailIfRefused(ctx, homeErr)
	}
	a.challenge.TenantID = home
	return a.refuse(ctx, err)
}
