package apikey_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apikey"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// TestReportedAfterItsEnd: the report of a key that another caller has just ended returns
// only once the key has ended on every node.
func TestReportedAfterItsEnd(t *testing.T) {
	t.Parallel()
	e := apptest.SQLite
	e.Nodes = 2
	f := apptest.New(t, e, apptest.NoLimits, time.Now)
	for range apptest.Rounds(5, 25) {
		c := newKey(f)
		// Puts the key into the memory of every node.
		outcomesOf(f, c, doorward.Caller{})
		// Commits the end without waiting for the nodes.
		_, err := f.DB.Write(f.Context(), func(tx *store.Tx) error {
			_, err := tx.RevokeAPIKey(f.Context(), c.key.ID)
			return err
		})
		f.NoError(err)
		f.NoError(f.Node(1).Leaks.Report(f.Context(), anonymousAt(serverAddress), c.secret.Reveal()))
		for n, a := range f.Nodes {
			if _, ok := a.APIKeys.Remembered(c.secret, netip.MustParseAddr(serverAddress)); ok {
				t.Errorf("node %d accepts the key after the answer", n)
			}
		}
	}
}

// TestRaceReportedDuringRotation: all secrets of a key end with a report, also one that a
// rotation makes at the same time.
func TestRaceReportedDuringRotation(t *testing.T) {
	t.Parallel()
	f := apptest.New(t, apptest.Postgres, apptest.NoLimits, time.Now)
	c, fresh := newKey(f), secret.NewKey(apikey.Prefix)
	hash, done := fresh.Hash(), make(chan struct{})
	f.WhileLocked(func(tx *store.Tx) error {
		if err := tx.LockTenant(f.Context(), c.key.TenantID); err != nil {
			return err
		}
		_, err := tx.RotateAPIKey(f.Context(), c.key.ID, hash[:], fresh.Hint(), tx.Now.Add(time.Hour))
		return err
	}, func(waitFor func(int, <-chan struct{})) {
		go func() {
			defer close(done)
			if err := f.Node(0).Leaks.Report(f.Context(), anonymousAt(serverAddress), c.secret.Reveal()); err != nil {
				t.Error(err)
			}
		}()
		waitFor(1, done)
	})
	<-done
	if n := f.Int(`SELECT count(*) FROM changes WHERE subject = $1`, store.SessionSubject(hash[:])); n != 1 {
		t.Errorf("the end of the new secret is announced %d times", n)
	}
}
