package proof

import (
	"cmp"
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/refusal"
	"github.com/doorward/doorward/store"
)

// refuse counts the attempt as a failure and records the refusal, in one transaction. The worker
// of the inbox looks up the account later, so refuse does the same work for every address. The text
// typed as the address doesn't get into the trail, since people type passwords into that field.
func (v *Verifier) refuse(ctx context.Context, by doorward.Caller, email string, a attempt) error {
	reason := doorward.Fail(doorward.CodeInvalidCredentials, "")
	reason.Allowance = a.allowance
	return v.writer.RefuseAccountWith(by, doorward.SessionRefuse, email, reason, func(record refusal.RecordFunc) error {
		return v.fail(ctx, a, record)
	})
}

// Refuse counts the attempt as a failure and records a refusal of the action. It is for a wrong
// second factor, or a correct password of somebody who may not sign in. It uses one transaction, as
// for a wrong password, so that the response time doesn't show that the password is correct. It
// returns the reason, or the error if the attempt could not be counted. Call it instead of FailIfRefused.
func (p Proof) Refuse(ctx context.Context, action doorward.Action, on doorward.Object, reason *doorward.Error) error {
	failed := *reason
	failed.Allowance = p.attempt.allowance
	return p.verifier.writer.RefuseWith(p.by, action, on, &failed, func(record refusal.RecordFunc) error {
		return p.verifier.fail(ctx, p.attempt, record)
	})
}

// RefuseUnknown is Refuse for the answer of a passkey that belongs to no account. The refusal names
// no address.
func (p Proof) RefuseUnknown(ctx context.Context, action doorward.Action, reason *doorward.Error) error {
	return p.verifier.writer.RefuseAccountWith(p.by, action, "", reason, func(record refusal.RecordFunc) error {
		return p.verifier.fail(ctx, p.attempt, record)
	})
}

// refuseBeyondLimits records the refusal if err is too_many_attempts, and returns err. Attempts
// beyond the limits are cheap and may be many, so their refusals are grouped by known device, else
// by the account that they were for, else by client network.
func (v *Verifier) refuseBeyondLimits(ctx context.Context, by doorward.Caller, email string, a attempt, err error) error {
	var reason *doorward.Error
	if !errors.As(err, &reason) || reason.Code != doorward.CodeTooManyAttempts {
		return err
	}
	return v.writer.RefuseAccount(ctx, by, doorward.SessionRefuse, email, cmp.Or(a.ownBucket, a.widerBucket()), reason)
}

// HomeTenant returns the tenant whose trail records the user's own actions and failures: the preferred
// tenant if the user is in it; else the one with the latest login, or the oldest, of those in which the
// user is active, if there are any. It is empty for a user in no tenant.
func HomeTenant(ctx context.Context, read store.Reader, userID, preferred string) (string, error) {
	memberships, err := read.Memberships(ctx, userID)
	var home doorward.User
	for _, m := range memberships {
		if m.TenantID == preferred {
			return preferred, err
		}
		later := m.LastLoginAt != nil && (home.LastLoginAt == nil || m.LastLoginAt.After(*home.LastLoginAt))
		if home.TenantID == "" || m.IsActive() && !home.IsActive() || later && m.IsActive() == home.IsActive() {
			home = m
		}
	}
	return home.TenantID, err
}
