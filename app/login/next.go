package login

import (
	"context"
	"errors"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/decide"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/store"
)

// Step is what comes after a proof of identity.
type Step uint8

// The steps. A refusal is an error instead.
const (
	Open   Step = iota // nothing is missing
	Second             // the account's second factor
	Enrol              // the first factor of the account, which the tenant demands
)

// Admission is what Next has decided, and what it has read for that.
type Admission struct {
	Step     Step
	User     doorward.User // as a member of the tenant
	Settings doorward.TenantSettings
	// Assurance is that of the proof; Remembered reports that the browser stands in for a factor.
	Assurance doorward.Assurance
	// Bypasses reports that an OWNER uses a way back: the tenant demands another sign-on.
	Bypasses bool
}

// Next decides what comes after a proof of identity of a user, for a session in the tenant. It is the
// one place that knows: each way to sign in or to switch asks it, in the transaction and before the
// session is written. The account must be locked (proof.Proof.Lock): whatever ends a membership
// or changes a factor takes that lock, too. Next writes nothing. Errors: sign_in_required for an
// issuer that doesn't speak for the tenant, or for an account that has to set up a factor, unless the tenant
// manages it or its password was just proved; invalid_credentials if there is no membership; sso_required,
// managed_account and guests_refused where the tenant demands its own sign-on; membership_suspended,
// tenant_frozen, tenant_closing; unavailable.
func Next(ctx context.Context, tx *access.Tx, userID, tenantID string, a doorward.Assurance) (next Admission, err error) {
	next.Assurance = a
	next.Assurance.Remembered = false
	if err := decide.May(&tx.By.Principal, &decide.Question{Action: doorward.SessionOpen, On: doorward.Object{TenantID: tenantID}}).Err(); err != nil { // before whether there is such a tenant
		return next, err
	}
	if next.User, err = tx.User(ctx, tenantID, userID); errors.Is(err, store.ErrNone) {
		return next, doorward.Fail(doorward.CodeInvalidCredentials, "")
	}
	if err == nil {
		err = decide.SignIn(next.User).Err()
	}
	if err != nil {
		return next, err
	}
	if a.Issuer == doorward.OwnIssuer {
		if err := access.RequireOwnSession(ctx, tx.Reader, next.User); err != nil {
			return next, err
		}
	}
	tenant, err := tx.Tenant(ctx, tenantID)
	if err != nil {
		return next, err
	}
	next.Settings = tenant.Settings
	if err := next.missing(ctx, tx); err != nil {
		return next, err
	}
	if err := next.signOn(ctx, tx); err != nil {
		return next, err
	}
	isOurs := a.Issuer == doorward.OwnIssuer || next.User.ManagedBy == tenantID || !a.PasswordAt.IsZero()
	if next.Step == Enrol && !isOurs { // a factor belongs to the account
		return next, doorward.Fail(doorward.CodeSignInRequired, "")
	}
	return next, nil
}

// missing sets the step. Where the account has a second factor, that is asked for, unless a browser in
// which it was proved stands in for it, for as long as the tenant allows. Where it has none, the tenant
// may demand one, after the days of grace. To the word of a connection that is asked for only where the
// tenant demands it.
func (next *Admission) missing(ctx context.Context, tx *access.Tx) (err error) {
	demand := next.Settings.SecondFactor
	deadline, demanded := demand.DueFrom(next.User.Role, next.User.CreatedAt)
	switch {
	case next.Assurance.Issuer != doorward.OwnIssuer && !demanded:
		return nil
	case next.Assurance.LacksFactor(next.User.Factors > 0):
		next.Assurance.Remembered, err = next.isRemembered(ctx, tx)
		if err == nil && !next.Assurance.Remembered {
			next.Step = Second
		}
		return err
	case next.Assurance.AAL > 1:
		return nil
	}
	if demanded && !tx.Now.Before(deadline) {
		next.Step = Enrol
	}
	return nil
}

// isRemembered reports whether the caller's browser stands in for the second factor in the tenant.
func (next *Admission) isRemembered(ctx context.Context, tx *access.Tx) (bool, error) {
	demand := next.Settings.SecondFactor
	// Of several cookies another host has set one, and can't have the right one decide. What a browser has
	// proved belongs to the account, not to a connection.
	if demand.RememberDays == 0 || len(tx.By.Devices) != 1 || next.Assurance.Issuer != doorward.OwnIssuer {
		return false, nil
	}
	known, err := proof.KnownDevices(ctx, tx.Reader, tx.By, next.User.Email, tx.Now)
	if err != nil {
		return false, err
	}
	forgotten, err := tx.BrowsersForgotten(ctx, next.User.TenantID, next.User.ID)
	return slices.ContainsFunc(known, func(d store.KnownDevice) bool {
		return d.SecondAt.After(forgotten) && demand.Remembers(d.SecondAt, tx.Now)
	}), err
}
