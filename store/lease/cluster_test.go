package lease_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/pgtest"
	"github.com/doorward/doorward/internal/waittest"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/internal/rows"
	"github.com/doorward/doorward/store/lease"
	"github.com/doorward/doorward/store/storetest"
)

// port returns the port of the server that answers a query.
func port(ctx context.Context, db *store.DB) (int, error) {
	return rows.One(ctx, db.Read().Conn, func(n *int) []any { return []any{n} }, `SELECT inet_server_port()`)
}

// readPort is port, again while the server may not be read: without CPU, too, no commit shows in time
// that it is the primary.
func readPort(t *testing.T, db *store.DB) (n int) {
	t.Helper()
	storetest.Until(t, "the primary to be read", func() bool {
		var err error
		n, err = port(t.Context(), db)
		return err == nil
	})
	return n
}

// allPorts queries through many connections, including all idle ones, and returns the
// servers that answered.
func allPorts(t *testing.T, db *store.DB) map[int]bool {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	ports := map[int]bool{}
	for range 12 {
		wg.Go(func() {
			current, err := rows.One(t.Context(), db.Read().Conn, func(n *int) []any { return []any{n} }, `SELECT inet_server_port() FROM pg_sleep(0.1)`)
			mu.Lock()
			defer mu.Unlock()
			ports[current] = true
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	return ports
}

// occupy keeps three connections in use until release is called.
func occupy(t *testing.T, db *store.DB) (release func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var ready, wg sync.WaitGroup
	for range 3 {
		ready.Add(1)
		wg.Go(func() {
			begun := sync.OnceFunc(ready.Done)
			defer begun()
			err := db.Snapshot(t.Context(), func(read store.Reader) (err error) {
				for err == nil && ctx.Err() == nil {
					_, err = rows.Exec(t.Context(), read.Conn, `SELECT pg_sleep(0.1)`)
					begun()
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	ready.Wait()
	return func() { stop(); wg.Wait() }
}

// A primary that was replaced and still runs comes first in the DSN, has
// connections in the pool, and reports that it accepts writes. The node reads
// nothing from it once the leases it renewed are over, and finds the new primary
// by itself.
func TestReplacedPrimaryIsAbandoned(t *testing.T) {
	t.Parallel()
	pair := pgtest.StartPair(t)
	db := migrated(t, pair.DSN(t)).open()
	f := follow(t, db, longest)
	before := readPort(t, db)
	release := occupy(t, db)
	pair.Standby.Promote(t)
	promoted := time.Now()
	storetest.Until(t, "the new primary to be read", func() bool {
		began := time.Now()
		ctx, cancel := waittest.Interrupt(t.Context(), time.Second)
		defer cancel()
		current, err := port(ctx, db)
		if err == nil && current == before && began.After(promoted.Add(longest)) {
			t.Fatalf("the old primary is read %v after it was replaced, when the lease is over", began.Sub(promoted))
		}
		return err == nil && current != before
	})
	storetest.Until(t, "the lease", f.Valid)
	release()
	if allPorts(t, db)[before] {
		t.Error("the old primary is read after the new one")
	}
	applied := f.all()
	commit(t, db, "tnt_new")
	storetest.Until(t, "a change on the new primary", func() bool { return len(f.all()) > len(applied) })
}

// A server that was just promoted is not used, even by a process that has just started:
// other nodes may still read from the old primary.
func TestNewPrimaryWaitsForLeases(t *testing.T) {
	t.Parallel()
	pair := pgtest.StartPair(t)
	dsn := pair.DSN(t)
	writes := migrated(t, dsn).open()
	commit(t, writes, "tnt_last")
	pair.Primary.Stop(t, pgtest.Fast)
	pair.Standby.Promote(t)
	conn, err := pgx.Connect(t.Context(), dsn)
	ok(t, err)
	defer conn.Close(t.Context()) //nolint:errcheck // it only read
	db := storetest.Open(t, dsn, time.Now)
	storetest.Until(t, "the new primary to be read", func() bool {
		if _, err := port(t.Context(), db); err != nil {
			return false
		}
		var since float64
		ok(t, conn.QueryRow(t.Context(), `SELECT extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())`).Scan(&since))
		if since < lease.MaxLease.Seconds() {
			t.Fatalf("it was read at most %.3f s after the last commit of the old primary", since)
		}
		return true
	})
}

// As TestNewPrimaryWaitsForLeases, with a new primary that has restarted since its promotion
// and no longer knows when the old one last committed.
func TestNewPrimaryWaitsAfterARestart(t *testing.T) {
	t.Parallel()
	pair := pgtest.StartPair(t)
	dsn := pair.DSN(t)
	writes := migrated(t, dsn).open()
	began := time.Now()
	commit(t, writes, "tnt_last")
	pair.Primary.Stop(t, pgtest.Fast)
	pair.Standby.Promote(t)
	pair.Standby.Stop(t, pgtest.Fast)
	pair.Standby.Start(t)
	db := storetest.Open(t, dsn, time.Now)
	storetest.Until(t, "the new primary to be read", func() bool {
		_, err := port(t.Context(), db)
		return err == nil
	})
	if took := time.Since(began); took < lease.MaxLease {
		t.Errorf("it was read at most %v after the last commit of the old primary", took)
	}
}

// Where nothing can be committed there may be another primary that this node can't reach.
// That is a fault, not an absent row.
func TestNothingIsReadWithoutALease(t *testing.T) {
	t.Parallel()
	pair := pgtest.StartPair(t)
	db := migrated(t, pair.DSN(t)).open()
	f := follow(t, db, longest)
	pair.Standby.Pause(t)
	defer pair.Standby.Resume(t)
	storetest.Until(t, "the end of the lease", func() bool { return !f.Valid() })
	if _, err := db.Read().Tenant(t.Context(), "tnt_none"); !doorward.HasCode(err, doorward.CodeUnavailable) {
		t.Errorf("a read without a lease: %v, want unavailable", err)
	}
	pair.Standby.Resume(t)
	storetest.Until(t, "the lease", f.Valid)
	if _, err := db.Read().Tenant(t.Context(), "tnt_none"); !errors.Is(err, store.ErrNone) {
		t.Errorf("a read with a lease: %v, want ErrNone", err)
	}
}

// applyAfterLease returns an apply for Lease.Follow that fails while the lease is valid, and
// then calls work.
func applyAfterLease(l *lease.Lease, work func(context.Context) error) func(context.Context, []store.Change) error {
	return func(ctx context.Context, changes []store.Change) error {
		switch {
		case len(changes) == 0:
			return nil
		case l.Valid():
			return errors.New("not before the lease is over")
		}
		return work(ctx)
	}
}

// Applying a change may write, and the lease isn't renewed until it is applied: so
// this write can't wait for the lease.
func TestApplyingWritesWithoutALease(t *testing.T) {
	t.Parallel()
	pair := pgtest.StartPair(t)
	db := migrated(t, pair.DSN(t)).open()
	l := lease.New(db, longest)
	var wrote atomic.Bool
	l.Follow(applyAfterLease(l, func(ctx context.Context) error {
		_, err := db.Write(ctx, func(tx *store.Tx) error {
			return tx.TouchSession(ctx, store.Use{Hash: [32]byte{1}, At: tx.Now})
		})
		wrote.Store(err == nil)
		return err
	}), func() {})
	run(t, l)
	commit(t, db, "tnt_new")
	storetest.Until(t, "the change to be applied", func() bool { return wrote.Load() && l.Valid() })
}

// A primary that was replaced may no longer wait for its standby: a Patroni restarted
// beside it configures this. Its commits are lost, and must not be reported as committed,
// even by a process without a lease, such as a command.
func TestReplacedWhileItCommits(t *testing.T) {
	t.Parallel()
	pair := pgtest.StartPair(t)
	db := migrated(t, pair.DSN(t)).open()
	before := readPort(t, db)
	opened := time.Now()
	_, err := db.Write(t.Context(), func(tx *store.Tx) error {
		pair.Standby.Promote(t)
		pair.Primary.Asynchronous(t)
		<-time.After(lease.MinLease - time.Since(opened)) // until a probe is due
		return announce("tnt_lost")(tx)
	})
	if !doorward.HasCode(err, doorward.CodeUnavailable) {
		t.Errorf("a commit on the replaced primary: %v, want unavailable", err)
	}
	storetest.Until(t, "the new primary to be used", func() bool {
		if _, err := db.Write(t.Context(), announce("tnt_new")); err != nil {
			return false
		}
		if readPort(t, db) == before {
			t.Fatal("the old primary was written to")
		}
		return true
	})
}

// Connecting to a machine that is gone takes until the timeout. So the server that answered
// the last probe is tried first.
func TestRaceVanishedServerIsTriedLast(t *testing.T) {
	t.Parallel()
	vanished, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	defer vanished.Close() //nolint:errcheck // it accepts no connection
	var asked atomic.Int64
	go func() {
		for conn, err := vanished.Accept(); err == nil; conn, err = vanished.Accept() {
			asked.Add(1)
			defer conn.Close() //nolint:errcheck // kept open, and silent
		}
	}()
	dsn := strings.Replace(pgtest.DSN(t), "@", "@"+vanished.Addr().String()+",", 1)
	db := storetest.Open(t, dsn, time.Now)
	before := asked.Load()
	allPorts(t, db)
	if before == 0 || asked.Load() > before {
		t.Errorf("the vanished server was tried %d times by the probe, and %d times after", before, asked.Load()-before)
	}
}
