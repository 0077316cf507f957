package login

import (
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/credential"
	"github.com/doorward/doorward/app/session"
	"github.com/doorward/doorward/internal/secret"
)

// WithPassword opens a session for an address and its password, in the tenant
// named or, when that is empty, the one used last, or else that of the oldest
// membership that can be used. Errors: invalid_credentials, too_many_attempts,
// and only after a correct password membership_suspended, tenant_frozen,
// tenant_closing.
func (l *Login) WithPassword(ctx context.Context, by doorward.Caller, email, password, tenantID string) (Result, error) {
	proof, err := l.verifier.Check(ctx, by, email, password)
	if err != nil {
		return Result{}, err
	}
	tenantID, err = l.chooseTenant(ctx, proof, tenantID)
	if err != nil {
		return Result{}, err
	}
	result, err := l.open(ctx, by, proof, tenantID)
	result.Allowance = proof.Allowance()
	return result, proof.End(ctx, err)
}

// open opens the session, settles the attempt and remembers the browser, as one: a
// password that opens nothing is a failed attempt, and nobody is remembered who
// hasn't signed in.
func (l *Login) open(ctx context.Context, by doorward.Caller, proof credential.Proof, tenantID string) (Result, error) {
	token, remembered := secret.New(), false
	opened, err := l.sessions.Open(ctx, by, proof.Account, tenantID, func(tx *access.Tx) (err error) {
		if err := proof.Settle(ctx, tx.Tx); err != nil {
			return err
		}
		remembered, err = welcome(ctx, tx, by, proof.Account, token.Hash())
		return err
	})
	switch {
	case err != nil:
		return Result{}, err
	case remembered:
		return Result{Opened: opened, Device: &token}, nil
	}
	return Result{Opened: opened}, nil
}

// chooseTenant ends the attempt where it returns an error.
func (l *Login) chooseTenant(ctx context.Context, proof credential.Proof, tenantID string) (string, error) {
	memberships, err := l.db.Read().Memberships(ctx, proof.Account.ID)
	if err != nil {
		return "", proof.End(ctx, err)
	}
	user, reason := choose(memberships, tenantID)
	if reason == nil {
		return user.TenantID, nil
	}
	return "", proof.Refuse(ctx, doorward.Object{Type: "user", ID: proof.Account.ID, TenantID: user.TenantID}, reason)
}

// choose picks the membership to sign in to, or says why none can be.
func choose(memberships []doorward.User, tenantID string) (doorward.User, *doorward.Error) {
	var first *doorward.User
	for _, m := range preferred(memberships, tenantID) {
		if session.Usable(m) == nil {
			return m, nil
		}
		if first == nil {
			first = &m
		}
	}
	if first == nil {
		return doorward.User{}, invalid()
	}
	var reason *doorward.Error
	errors.As(session.Usable(*first), &reason)
	return *first, reason
}

// preferred orders the memberships by which to try first: the tenant named
// alone, else the one used last and then the oldest.
func preferred(memberships []doorward.User, tenantID string) []doorward.User {
	var last *doorward.User
	var all []doorward.User
	for _, m := range memberships {
		if tenantID != "" && m.TenantID != tenantID {
			continue
		}
		all = append(all, m)
		if m.LastLoginAt != nil && (last == nil || m.LastLoginAt.After(*last.LastLoginAt)) {
			last = &m
		}
	}
	if last != nil {
		all = append([]doorward.User{*last}, all...)
	}
	return all
}

// devicesPerUser bounds what one account can fill the table with.
const devicesPerUser = 20

// welcome notes the use of a browser that is known, and reports whether one that
// isn't is known from now on, by the hash. Its owner hears of that one.
func welcome(ctx context.Context, tx *access.Tx, by doorward.Caller, account doorward.Account, hash secret.Hash) (bool, error) {
	known, err := credential.KnownDevices(ctx, tx.Reader, by, account.Email, tx.Now)
	if err != nil {
		return false, err
	}
	if len(known) > 0 {
		return false, tx.UseDevice(ctx, known[0].Hash)
	}
	if err := notifyNewBrowser(ctx, tx, account); err != nil {
		return false, err
	}
	return tx.InsertDevice(ctx, hash[:], account.ID, devicesPerUser, tx.Now.Add(-doorward.DeviceLife))
}
