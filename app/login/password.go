package login

import (
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/session"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/internal/trace"
	"github.com/doorward/doorward/store"
)

// WithPassword opens a session for an address and its password, in the tenant
// named or, when that is empty, the one used last, or else that of the oldest
// membership that can be used. Errors: invalid_credentials, too_many_attempts,
// and only after a correct password membership_suspended, tenant_frozen,
// tenant_closing.
func (l *Login) WithPassword(ctx context.Context, by doorward.Caller, email, password, tenantID string) (Result, error) {
	account, err := l.desk.Check(ctx, by, email, password)
	if err != nil {
		return Result{}, err
	}
	tenantID, err = l.chooseTenant(ctx, by, account, tenantID)
	if err != nil {
		return Result{}, err
	}
	known, err := l.known(ctx, by, account)
	if err != nil {
		return Result{}, err
	}
	opened, err := l.sessions.Open(ctx, by, account, tenantID, func(tx *access.Tx) error {
		if known {
			return nil
		}
		return tell(ctx, tx, account)
	})
	if err != nil {
		return Result{}, err
	}
	if known {
		return Result{Opened: opened}, nil
	}
	device, err := l.remember(ctx, account)
	return Result{opened, device}, err
}

// chooseTenant records a refusal as one: the password was right.
func (l *Login) chooseTenant(ctx context.Context, by doorward.Caller, account doorward.Account, tenantID string) (string, error) {
	memberships, err := l.db.Read().Memberships(ctx, account.ID)
	if err != nil {
		return "", err
	}
	user, reason := choose(memberships, tenantID)
	if reason == nil {
		return user.TenantID, nil
	}
	on := doorward.Object{Type: "user", ID: account.ID, TenantID: user.TenantID}
	return "", l.door.Refuse(ctx, by, doorward.SessionRefuse, on, reason)
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

// remember makes the browser a known device.
func (l *Login) remember(ctx context.Context, account doorward.Account) (*secret.Token, error) {
	ctx, span := trace.Start(ctx, "browser.remember")
	defer span.End()
	token := secret.New()
	hash := token.Hash()
	err := l.door.Upkeep(ctx, func(tx *store.Tx) error {
		if err := tx.InsertDevice(ctx, hash[:], account.ID); err != nil {
			return err
		}
		return tx.DeleteOldestDevices(ctx, account.ID, devicesPerUser)
	})
	return &token, err
}

func (l *Login) known(ctx context.Context, by doorward.Caller, account doorward.Account) (bool, error) {
	if by.Device == nil {
		return false, nil
	}
	return l.db.Read().DeviceKnown(ctx, by.Device, account.Email, l.db.Now().Add(-doorward.DeviceLife))
}
