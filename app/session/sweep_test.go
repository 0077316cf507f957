package session_test

import (
	"crypto/sha256"
	"errors"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/store"
)

// TestSweep: a sweep deletes expired sessions, more than fit into one batch, and no others.
func TestSweep(t *testing.T) {
	clock := apptest.NewStoppedClock()
	f := apptest.New(t, apptest.SQLite, apptest.NoLimits, clock.Now)
	_, owner := f.Tenant()
	add := func(n int) (last string) {
		f.NoError(f.Node(0).Access.Upkeep(f.Context(), func(tx *store.Tx) error {
			for range n {
				s := doorward.Session{ID: doorward.NewID(doorward.PrefixSession), UserID: owner.Caller.ID, TenantID: owner.Caller.TenantID, CreatedAt: tx.Now, LastSeenAt: tx.Now}
				hash := sha256.Sum256([]byte(s.ID))
				if err := tx.InsertSession(f.Context(), s, hash[:]); err != nil {
					return err
				}
				last = s.ID
			}
			return nil
		}))
		return last
	}
	old := add(501)
	clock.Move(400 * 24 * time.Hour)
	young := add(1)
	f.NoError(f.Node(0).Sessions.SweepExpired(f.Context()))
	if _, err := f.DB.Read().Session(f.Context(), old); !errors.Is(err, store.ErrNone) {
		t.Errorf("an expired session is left: %v", err)
	}
	if _, err := f.DB.Read().Session(f.Context(), young); err != nil {
		t.Errorf("a session that has not expired: %v", err)
	}
	if n := f.CountRows("sessions"); n != 1 {
		t.Errorf("%d sessions are left", n)
	}
}
