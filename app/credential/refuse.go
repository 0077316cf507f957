package credential

import (
	"cmp"
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// refuse has the refusal recorded where the administrators of the person see it:
// in the tenant that the caller is in or, for somebody who isn't signed in, the
// one the person used last. Attempts at addresses without an account are of the
// installation. Which it is finds out the worker, so that this does the same for
// every address. What was typed is not recorded: people type passwords where
// addresses belong.
func (d *Desk) refuse(ctx context.Context, by doorward.Caller, email string, reason *doorward.Error) error {
	return d.door.RefuseAccount(ctx, by, doorward.SessionRefuse, email, "", reason)
}

// limited is refuse for attempts that are refused for the limits. They cost
// whoever makes them nothing, so they are counted together for each counter,
// wherever they come from.
func (d *Desk) limited(ctx context.Context, by doorward.Caller, email string, a attempt, err error) error {
	var reason *doorward.Error
	if !errors.As(err, &reason) || reason.Code != doorward.CodeTooManyAttempts {
		return err
	}
	return d.door.RefuseAccount(ctx, by, doorward.SessionRefuse, email, cmp.Or(a.own, a.ip), reason)
}

// Home returns the tenant in whose trail the user's own acts and failures belong:
// the preferred one if the user is in it, or else the one used last, or else the
// oldest; none for who is in none.
func Home(ctx context.Context, read store.Reader, userID, preferred string) (string, error) {
	memberships, err := read.Memberships(ctx, userID)
	var home doorward.User
	for _, m := range memberships {
		if m.TenantID == preferred {
			return preferred, err
		}
		later := m.LastLoginAt != nil && (home.LastLoginAt == nil || m.LastLoginAt.After(*home.LastLoginAt))
		if home.TenantID == "" || later {
			home = m
		}
	}
	return home.TenantID, err
}
