package store_test

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/pgtest"
	"github.com/doorward/doorward/store"
)

// server is the port of the server that a query is answered by.
func server(ctx context.Context, db *store.DB) (port int, err error) {
	_, read := store.Pools(db)
	err = read.QueryRowContext(ctx, `SELECT inet_server_port()`).Scan(&port)
	return port, err
}

// allIdle asks by many connections at once, all of the idle ones among them, and
// returns the servers that answered.
func allIdle(t *testing.T, db *store.DB) map[int]bool {
	t.Helper()
	_, read := store.Pools(db)
	var mu sync.Mutex
	var wg sync.WaitGroup
	ports := map[int]bool{}
	for range 12 {
		wg.Go(func() {
			var port int
			err := read.QueryRowContext(t.Context(), `SELECT inet_server_port() FROM pg_sleep(0.1)`).Scan(&port)
			mu.Lock()
			defer mu.Unlock()
			ports[port] = true
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	return ports
}

// busy keeps connections in use until it is told to give them back.
func busy(t *testing.T, db *store.DB) (end func()) {
	t.Helper()
	_, read := store.Pools(db)
	ctx, stop := context.WithCancel(t.Context())
	var ready, wg sync.WaitGroup
	for range 3 {
		ready.Add(1)
		wg.Go(func() {
			begun := sync.OnceFunc(ready.Done)
			defer begun()
			tx, err := read.BeginTx(t.Context(), nil)
			for err == nil && ctx.Err() == nil {
				_, err = tx.ExecContext(t.Context(), `SELECT pg_sleep(0.1)`)
				begun()
			}
			if err = errors.Join(err, tx.Rollback()); err != nil {
				t.Error(err)
			}
		})
	}
	ready.Wait()
	return func() { stop(); wg.Wait() }
}

// A primary that was replaced and lives on is still the first that the DSN names,
// has connections in the pool, and says of itself that it takes writes.
// Nothing is read from it once the leases that it gave are over; and without help
// the node finds the one that took its place.
func TestReplacedPrimaryIsLeft(t *testing.T) {
	t.Parallel()
	pair := pgtest.StartPair(t)
	db := migrated(t, pair.DSN(t), time.Now)
	f := follow(t, db, patience)
	before, err := server(t.Context(), db)
	ok(t, err)
	giveBack := busy(t, db)
	pair.Standby.Promote(t)
	promoted := time.Now()
	until(t, "the new primary to be read", func() bool {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		port, err := server(ctx, db)
		if err == nil && port == before && began.After(promoted.Add(patience)) {
			t.Fatalf("the old primary is read %v after it was replaced, which is after the lease", began.Sub(promoted))
		}
		return err == nil && port != before
	})
	until(t, "memory to be good again", f.Fresh)
	giveBack()
	if allIdle(t, db)[before] {
		t.Error("after the new primary, the old one is read")
	}
	heard := f.all()
	change(t, db, "tnt_new")
	until(t, "a change on the new primary", func() bool { return len(f.all()) > len(heard) })
}

// A server that was promoted a moment ago is left alone, also by a process that
// has only just begun: other nodes may still go by the one before.
func TestNewPrimaryWaitsForLeases(t *testing.T) {
	t.Parallel()
	pair := pgtest.StartPair(t)
	dsn := pair.DSN(t)
	writes := migrated(t, dsn, time.Now)
	change(t, writes, "tnt_last")
	pair.Primary.Stop(t, pgtest.Fast)
	pair.Standby.Promote(t)
	conn, err := pgx.Connect(t.Context(), dsn)
	ok(t, err)
	defer conn.Close(t.Context()) //nolint:errcheck // it has only read
	db := open(t, dsn, time.Now)
	until(t, "the new primary to be read", func() bool {
		if _, err := server(t.Context(), db); err != nil {
			return false
		}
		var since float64
		ok(t, conn.QueryRow(t.Context(), `SELECT extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())`).Scan(&since))
		if since < store.MaxLease.Seconds() {
			t.Fatalf("it was read at most %.3f s after the last commit of the one before", since)
		}
		return true
	})
}

// So is one that was started anew since, and has forgotten what it replayed.
func TestNewPrimaryWaitsAfterAStart(t *testing.T) {
	t.Parallel()
	pair := pgtest.StartPair(t)
	dsn := pair.DSN(t)
	writes := migrated(t, dsn, time.Now)
	began := time.Now()
	change(t, writes, "tnt_last")
	pair.Primary.Stop(t, pgtest.Fast)
	pair.Standby.Promote(t)
	pair.Standby.Stop(t, pgtest.Fast)
	pair.Standby.Start(t)
	db := open(t, dsn, time.Now)
	until(t, "the new primary to be read", func() bool {
		_, err := server(t.Context(), db)
		return err == nil
	})
	if took := time.Since(began); took < store.MaxLease {
		t.Errorf("it was read at most %v after the last commit of the one before", took)
	}
}

// Where nothing can be committed there may be another primary that can't be seen
// from here. That is a fault, not an absent row.
func TestNothingIsReadWithoutALease(t *testing.T) {
	t.Parallel()
	pair := pgtest.StartPair(t)
	db := migrated(t, pair.DSN(t), time.Now)
	f := follow(t, db, patience)
	pair.Standby.Pause(t)
	defer pair.Standby.Resume(t)
	until(t, "the lease to be over", func() bool { return !f.Fresh() })
	if _, err := db.Read().Tenant(t.Context(), "tnt_none"); !doorward.HasCode(err, doorward.CodeUnavailable) {
		t.Errorf("a reading without a lease: %v, want unavailable", err)
	}
	pair.Standby.Resume(t)
	until(t, "memory to be good again", f.Fresh)
	if _, err := db.Read().Tenant(t.Context(), "tnt_none"); doorward.HasCode(err, doorward.CodeUnavailable) {
		t.Errorf("a reading with a lease: %v", err)
	}
}

// onceStale refuses changes until the lease is over, and has do apply them then.
func onceStale(w *store.Watch, do func(context.Context) error) func(context.Context, []store.Change) error {
	return func(ctx context.Context, changes []store.Change) error {
		switch {
		case len(changes) == 0:
			return nil
		case w.Fresh():
			return errors.New("not before the lease is over")
		}
		return do(ctx)
	}
}

// Some of what is applied has the node write down what it knows, and until it has
// the lease isn't renewed: so that can't wait for the lease.
func TestApplyingWritesWithoutALease(t *testing.T) {
	t.Parallel()
	pair := pgtest.StartPair(t)
	db := migrated(t, pair.DSN(t), time.Now)
	w := db.Watch(patience)
	var wrote atomic.Bool
	w.Follow(onceStale(w, func(ctx context.Context) error {
		_, err := db.Write(ctx, func(tx *store.Tx) error {
			return tx.TouchSessions(ctx, []store.Use{{Hash: [32]byte{1}, At: tx.Now}})
		})
		wrote.Store(err == nil)
		return err
	}), func() {})
	watch(t, w)
	change(t, db, "tnt_new")
	until(t, "the change to be applied", func() bool { return wrote.Load() && w.Fresh() })
}

// Whoever comes while the lease is late waits for it, and doesn't keep the poll from
// the connections that it needs: as many as like.
func TestLateLeaseIsAwaited(t *testing.T) {
	t.Parallel()
	pair := pgtest.StartPair(t)
	db := migrated(t, pair.DSN(t), time.Now)
	w := db.Watch(patience)
	var asked sync.WaitGroup
	ask := func(question func() error) {
		asked.Go(func() {
			if err := question(); err != nil {
				t.Error(err)
			}
		})
	}
	read := func() error { _, err := server(t.Context(), db); return err }
	write := func() error { _, err := db.Write(t.Context(), announce("tnt_any")); return err }
	_, pool := store.Pools(db)
	came := make(chan struct{})
	come := func() error {
		defer close(came)
		for range 30 { // the pool has 16, and 12 for writers
			ask(read)
			ask(write)
		}
		until(t, "those who read to wait", func() bool { return pool.Stats().OpenConnections > 20 })
		return errors.New("not before the next beat")
	}
	w.Follow(onceStale(w, func(context.Context) error {
		select {
		case <-came:
			return nil
		default:
			return come()
		}
	}), func() {})
	watch(t, w)
	change(t, db, "tnt_new")
	<-came
	asked.Wait()
}

// A primary that was replaced may be told not to wait for its standby any more: a Patroni
// does so that is started anew beside it. What commits then is lost, and not called done,
// also where nobody follows changes, as in a command.
func TestReplacedWhileItCommits(t *testing.T) {
	t.Parallel()
	pair := pgtest.StartPair(t)
	db := migrated(t, pair.DSN(t), time.Now)
	before, err := server(t.Context(), db)
	ok(t, err)
	opened := time.Now()
	_, err = db.Write(t.Context(), func(tx *store.Tx) error {
		pair.Standby.Promote(t)
		pair.Primary.Asynchronous(t)
		until(t, "a look to be due", func() bool { return time.Since(opened) > store.MinLease })
		return announce("tnt_lost")(tx)
	})
	if !doorward.HasCode(err, doorward.CodeUnavailable) {
		t.Errorf("a commit on the primary that was replaced: %v, want unavailable", err)
	}
	until(t, "the new primary to be used", func() bool {
		if _, err := db.Write(t.Context(), announce("tnt_new")); err != nil {
			return false
		}
		port, err := server(t.Context(), db)
		ok(t, err)
		if port == before {
			t.Fatal("the old primary was written to")
		}
		return true
	})
}

// A machine that vanished takes all the time there is to connect to it. The one that
// was found instead is asked first.
func TestVanishedServerIsAskedLast(t *testing.T) {
	t.Parallel()
	vanished, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	defer vanished.Close() //nolint:errcheck // nobody listens to it
	var asked atomic.Int64
	go func() {
		for conn, err := vanished.Accept(); err == nil; conn, err = vanished.Accept() {
			asked.Add(1)
			defer conn.Close() //nolint:errcheck // kept open, and silent
		}
	}()
	dsn := strings.Replace(pgtest.DSN(t), "@", "@"+vanished.Addr().String()+",", 1)
	db := open(t, dsn, time.Now)
	before := asked.Load()
	allIdle(t, db)
	if before == 0 || asked.Load() > before {
		t.Errorf("the vanished server was asked %d times when all were looked at, and %d times after", before, asked.Load()-before)
	}
}

// What PostgreSQL does counts, also where a tool that manages it believes otherwise.
func TestSynchronous(t *testing.T) {
	t.Parallel()
	pair := pgtest.StartPair(t)
	for dsn, want := range map[string]bool{
		pair.DSN(t): true, pair.DSN(t) + "&synchronous_commit=local": false, pgtest.DSN(t): false,
	} {
		if yes, err := open(t, dsn, time.Now).Synchronous(t.Context()); err != nil || yes != want {
			t.Errorf("%s: %v, %v, want %v", dsn, yes, err, want)
		}
	}
	if _, err := open(t, "sqlite:"+filepath.Join(t.TempDir(), "doorward.db"), time.Now).Synchronous(t.Context()); !errors.Is(err, store.ErrNone) {
		t.Errorf("SQLite: %v, want ErrNone", err)
	}
}
