package store_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/store"
)

// heardOf is what a watch has noticed, by kind, and of other nodes by their ids.
type heardOf struct {
	mu  sync.Mutex
	all []store.Notice
}

func (h *heardOf) note(n store.Notice) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, n)
}

func (h *heardOf) kinds() (all []store.NoticeKind) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, n := range h.all {
		all = append(all, n.Kind)
	}
	return all
}

func (h *heardOf) of(kind store.NoticeKind, node string) (n store.Notice, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.IndexFunc(h.all, func(n store.Notice) bool { return n.Kind == kind && n.Node == node })
	if i < 0 {
		return n, false
	}
	return h.all[i], true
}

// listening is a watch that runs, and what it notices.
func listening(t *testing.T, db *store.DB, lease time.Duration) (*store.Watch, *heardOf, func()) {
	t.Helper()
	w, heard := db.Watch(lease), &heardOf{}
	w.Report(heard.note)
	return w, heard, watch(t, w)
}

// TestADatabaseThatIsLost is told of once, and so is the lease, and both when they
// are back, with how long it was.
func TestADatabaseThatIsLost(t *testing.T) {
	onEngines(t, func(t *testing.T, open func() *store.DB) {
		_, heard, stop := listening(t, open(), lease)
		blocked := time.Now()
		other := open()
		tx, err := writer(other).BeginTx(t.Context(), nil) // of SQLite that is the lock on writing
		ok(t, err)
		if other.Engine() == "postgres" {
			_, err := tx.ExecContext(t.Context(), `LOCK TABLE nodes IN ACCESS EXCLUSIVE MODE`)
			ok(t, err)
		}
		until(t, "the end of the lease", func() bool { return len(heard.kinds()) >= 2 })
		ok(t, tx.Rollback())
		until(t, "the return of both", func() bool { return len(heard.kinds()) >= 4 })
		whole := time.Since(blocked)
		stop() // which is nobody's loss
		want := []store.NoticeKind{store.DatabaseBack, store.DatabaseLost, store.LeaseLost, store.LeaseRegained}
		if got := slices.Sorted(slices.Values(heard.kinds())); !slices.Equal(got, want) {
			t.Errorf("noticed %q, want each of %q once", heard.kinds(), want)
		}
		if lost, _ := heard.of(store.DatabaseLost, ""); lost.Err == nil {
			t.Error("lost without a cause")
		}
		for _, kind := range []store.NoticeKind{store.DatabaseBack, store.LeaseRegained} {
			if back, _ := heard.of(kind, ""); back.Lasted <= 0 || back.Lasted > whole {
				t.Errorf("%s after %v of %v", kind, back.Lasted, whole)
			}
		}
	})
}

// TestOtherNodesAreNoticed: who comes, who leaves, and who is gone without a word.
func TestOtherNodesAreNoticed(t *testing.T) {
	onEngines(t, func(t *testing.T, open func() *store.DB) {
		w, heard, _ := listening(t, open(), lease)
		_, read := store.Pools(open())
		beat := func() int64 { return ask[int64](t, read, `SELECT beat FROM nodes WHERE id = $1`, w.ID()) }
		for range 2 { // whoever is there at its first look is no news
			last := beat()
			until(t, "a beat", func() bool { return beat() != last })
		}
		polite, _, leave := listening(t, open(), lease)
		has := func(kind store.NoticeKind, id string) func() bool {
			return func() bool { _, is := heard.of(kind, id); return is }
		}
		until(t, "a node that joins", has(store.NodeJoined, polite.ID()))
		leave()
		until(t, "a node that leaves", has(store.NodeLeft, polite.ID()))

		db := open()
		run(t, writer(db), `INSERT INTO nodes (id, lease, applied, beat) VALUES ('nod_killed', 400000, 0, 1)`)
		until(t, "a node that beats no more", has(store.NodeJoined, "nod_killed"))
		until(t, "that it is gone", has(store.NodeGone, "nod_killed"))
		if _, wrong := heard.of(store.NodeLeft, "nod_killed"); wrong {
			t.Error("a node that was killed is said to have left")
		}
	})
}
