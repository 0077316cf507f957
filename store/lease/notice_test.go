package lease_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/lease"
	"github.com/doorward/doorward/store/storetest"
)

// recorder collects the notices of a lease.
type recorder struct {
	mu  sync.Mutex
	all []lease.Notice
}

func (r *recorder) record(n lease.Notice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, n)
}

func (r *recorder) kinds() (all []lease.NoticeKind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.all {
		all = append(all, n.Kind)
	}
	return all
}

// has returns a condition for Until: there is a notice of each kind.
func (r *recorder) has(kinds ...lease.NoticeKind) func() bool {
	return func() bool {
		all := r.kinds()
		return !slices.ContainsFunc(kinds, func(k lease.NoticeKind) bool { return !slices.Contains(all, k) })
	}
}

func (r *recorder) find(kind lease.NoticeKind, node string) (n lease.Notice, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.all, func(n lease.Notice) bool { return n.Kind == kind && n.Node == node })
	if i < 0 {
		return n, false
	}
	return r.all[i], true
}

// observe runs a lease and records its notices. The returned function stops the lease.
func observe(t *testing.T, db *store.DB, length time.Duration) (*lease.Lease, *recorder, func()) {
	t.Helper()
	l, notices := lease.New(db, length), &recorder{}
	l.OnNotice(notices.record)
	return l, notices, run(t, l)
}

// TestLostDatabaseIsNoticed: the loss of the database and of the lease is reported
// once, as is their return with the duration.
func TestLostDatabaseIsNoticed(t *testing.T) {
	onEngines(t, func(t *testing.T, d database) {
		db := d.open()
		_, notices, stop := observe(t, db, longest) // a shorter one would end on a busy machine, too
		blocked := time.Now()
		tx, err := d.raw.BeginTx(t.Context(), nil) // in SQLite this takes the write lock
		ok(t, err)
		if db.Engine() == "postgres" {
			_, err := tx.ExecContext(t.Context(), `LOCK TABLE nodes IN ACCESS EXCLUSIVE MODE`)
			ok(t, err)
		}
		storetest.Until(t, "the loss of both", notices.has(lease.DatabaseLost, lease.LeaseLost))
		ok(t, tx.Rollback())
		storetest.Until(t, "the return of both", notices.has(lease.DatabaseBack, lease.LeaseRegained))
		outage := time.Since(blocked)
		stop() // a shutdown is no loss
		want := []lease.NoticeKind{lease.DatabaseBack, lease.DatabaseLost, lease.LeaseLost, lease.LeaseRegained}
		if got := slices.Sorted(slices.Values(notices.kinds())); !slices.Equal(got, want) {
			t.Errorf("the notices are %q, want each of %q once", notices.kinds(), want)
		}
		if lost, _ := notices.find(lease.DatabaseLost, ""); lost.Err == nil {
			t.Error("the loss was reported without a cause")
		}
		for _, kind := range []lease.NoticeKind{lease.DatabaseBack, lease.LeaseRegained} {
			if back, _ := notices.find(kind, ""); back.Lasted <= 0 || back.Lasted > outage {
				t.Errorf("%s reports %v, the outage took %v", kind, back.Lasted, outage)
			}
		}
	})
}

// TestOtherNodesAreNoticed: one that joins, one that leaves, and one that is killed.
func TestOtherNodesAreNoticed(t *testing.T) {
	onEngines(t, func(t *testing.T, d database) {
		l, notices, _ := observe(t, d.open(), longest) // after a lapse it would report none
		heartbeat := func() int64 {
			return storetest.Query[int64](t, d.raw, `SELECT beat FROM nodes WHERE id = $1`, l.ID())
		}
		for range 2 { // nodes present at its first read are not reported
			last := heartbeat()
			storetest.Until(t, "a heartbeat", func() bool { return heartbeat() != last })
		}
		other, _, leave := observe(t, d.open(), longest)
		has := func(kind lease.NoticeKind, id string) func() bool {
			return func() bool { _, found := notices.find(kind, id); return found }
		}
		storetest.Until(t, "a node that joins", has(lease.NodeJoined, other.ID()))
		leave()
		storetest.Until(t, "a node that leaves", has(lease.NodeLeft, other.ID()))

		d.exec(`INSERT INTO nodes (id, lease, applied, beat) VALUES ('nod_longer', 60000000, 0, 1)`)
		storetest.Until(t, "a node with a longer lease", has(lease.NodeJoined, "nod_longer"))
		d.exec(`INSERT INTO nodes (id, lease, applied, beat) VALUES ('nod_killed', 400000, 0, 1)`)
		storetest.Until(t, "a node without further heartbeats", has(lease.NodeJoined, "nod_killed"))
		storetest.Until(t, "that it is gone", has(lease.NodeGone, "nod_killed"))
		if _, wrong := notices.find(lease.NodeLeft, "nod_killed"); wrong {
			t.Error("a killed node was reported as having left")
		}
		// Meanwhile nod_longer, whose heartbeats are further apart, had none.
		d.exec(`DELETE FROM nodes WHERE id = 'nod_longer'`)
		storetest.Until(t, "that it has left", has(lease.NodeLeft, "nod_longer"))
	})
}
