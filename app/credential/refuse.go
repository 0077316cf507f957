package credential

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// refuse records the refusal where the administrators of the person see it: in
// the tenant that the caller is in or, for somebody who isn't signed in, the one
// the person used last. Attempts at addresses without an account are of the
// installation. What was typed is not recorded: people type passwords where
// addresses belong. An absent account takes the same statements as one that is
// there.
func (d *Desk) refuse(ctx context.Context, by doorward.Caller, account doorward.Account, reason *doorward.Error) error {
	own := ""
	if by.User.ID == account.ID {
		own = by.User.TenantID
	}
	tenantID, err := Home(ctx, d.db.Read(), account.ID, own)
	if err != nil {
		return err
	}
	on := doorward.Object{Type: "user", ID: account.ID, TenantID: tenantID}
	return d.door.Refuse(ctx, by, doorward.SessionRefuse, on, reason)
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

// noteEvery: an attempt that is refused for the limits costs whoever makes it
// nothing, so a flood of them would fill the trail if each were recorded.
const noteEvery = time.Minute

// limited records that attempts are refused for the limits, once a minute for
// each counter.
func (d *Desk) limited(ctx context.Context, by doorward.Caller, email string, a attempt, err error) error {
	var reason *doorward.Error
	if !errors.As(err, &reason) || reason.Code != doorward.CodeTooManyAttempts {
		return err
	}
	err = d.door.Upkeep(ctx, func(tx *store.Tx) error {
		t, err := tx.HitThrottle(ctx, "noted:"+cmp.Or(a.own, a.ip), noteEvery)
		if err == nil && t.Hits > 1 {
			err = errNoted
		}
		return err
	})
	if errors.Is(err, errNoted) {
		return reason
	}
	account, lookup := d.db.Read().AccountByEmail(ctx, email)
	if errors.Is(lookup, store.ErrNone) {
		lookup = nil
	}
	if err := cmp.Or(err, lookup); err != nil {
		return err
	}
	return d.refuse(ctx, by, account, reason)
}

// errNoted keeps a flood from writing: nothing of its transaction stays.
var errNoted = errors.New("credential: noted already")
