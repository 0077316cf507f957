package store_test

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/waittest"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/storetest"
)

// abort returns a statement that raises the error with the code.
func abort(code string) string {
	return `DO $$ BEGIN RAISE EXCEPTION 'as arranged' USING ERRCODE = '` + code + `'; END $$`
}

// TestAbortedTransactionsRunAgain: a transaction that was aborted because of another one runs
// again from the start, with another instant. It runs at most four times.
func TestAbortedTransactionsRunAgain(t *testing.T) {
	now := time.Unix(1e9, 0)
	db := storetest.Migrated(t, storetest.Engines["postgres"](t), func() time.Time { now = now.Add(time.Second); return now })
	for _, c := range []struct {
		name, code   string
		faults, runs int
		passes       bool
	}{
		{"a serialization failure", "40001", 1, 2, true},
		{"deadlocks, three in a row", "40P01", 3, 4, true},
		{"one failure too many", "40001", 4, 4, false},
		{"a unique violation", "23505", 1, 1, false},
	} {
		runs, instants := 0, map[time.Time]bool{}
		changes, err := db.Write(t.Context(), func(tx *store.Tx) error {
			runs++
			instants[tx.Now] = true
			tx.RequestFlush([]byte(c.name)) // any change: Write returns those of the attempt that commits
			if err := tx.InsertTenant(t.Context(), doorward.Tenant{ID: c.name}); err != nil {
				return err
			}
			if runs <= c.faults {
				return store.Execute(t.Context(), tx, abort(c.code))
			}
			return nil
		})
		if runs != c.runs || len(instants) != runs {
			t.Errorf("%s: %d runs at %d instants, want %d", c.name, runs, len(instants), c.runs)
		}
		_, readErr := db.Read().Tenant(t.Context(), c.name)
		if (err == nil) != c.passes || (readErr == nil) != c.passes || (len(changes) == 1) != c.passes {
			t.Errorf("%s: %v, %v, changes %v: want committed %v", c.name, err, readErr, changes, c.passes)
		}
		if !c.passes && (!doorward.HasCode(err, doorward.CodeUnavailable) || !errors.Is(readErr, store.ErrNone)) {
			t.Errorf("%s: got %v, and the row %v", c.name, err, readErr)
		}
	}
}

// TestFailedTransactionIsNotCommitted: PostgreSQL rolls back the transaction of a
// function that ignores a fault. Write must return an error then.
func TestFailedTransactionIsNotCommitted(t *testing.T) {
	db := storetest.Migrated(t, storetest.Engines["postgres"](t), time.Now)
	_, err := db.Write(t.Context(), func(tx *store.Tx) error {
		ok(t, tx.InsertTenant(t.Context(), doorward.Tenant{ID: "tnt_1"}))
		_ = store.Execute(t.Context(), tx, abort("22000"))
		return nil
	})
	if !doorward.HasCode(err, doorward.CodeUnavailable) {
		t.Errorf("got %v: want unavailable", err)
	}
	if _, err := db.Read().Tenant(t.Context(), "tnt_1"); !errors.Is(err, store.ErrNone) {
		t.Errorf("the row: %v", err)
	}
}

// TestUsesPassOverLockedSessions: a transaction that records uses never waits for a row, since the one that has
// locked it may come to wait for those that it has recorded. It returns what it has passed over.
func TestUsesPassOverLockedSessions(t *testing.T) {
	db := storetest.Migrated(t, storetest.Engines["postgres"](t), time.Now)
	hashes := benchSessions(t, db, 2)
	use := func(i int) store.Use { return store.Use{Hash: hashes[i], At: time.Now().Add(time.Minute)} }
	_, err := db.Write(t.Context(), func(ending *store.Tx) error {
		_, err := ending.DeleteSession(t.Context(), "ses_0")
		ok(t, err)
		_, err = db.Write(t.Context(), func(using *store.Tx) error {
			locked, err := using.TouchSessions(t.Context(), []store.Use{use(1), use(0)})
			if len(locked) != 1 || locked[0].Hash != hashes[0] {
				t.Errorf("passed over %v, want the session that is being ended", locked)
			}
			return err
		})
		if err == nil {
			_, err = ending.DeleteSession(t.Context(), "ses_1")
		}
		return err
	})
	ok(t, err)
}

// TestRaceSessionsSinceAreAll: a session that another transaction is opening, and that a first look doesn't find,
// ends, too.
func TestRaceSessionsSinceAreAll(t *testing.T) {
	db := storetest.Migrated(t, storetest.Engines["postgres"](t), time.Now)
	benchSessions(t, db, 1)
	pool, _ := store.Pools(db)
	var life store.SessionLifetime
	ended := make(chan error, 1)
	var deleted int64
	_, err := db.Write(t.Context(), func(opening *store.Tx) error {
		s := doorward.Session{ID: "ses_late", UserID: "usr_1", TenantID: "tnt_1", CreatedAt: opening.Now, LastSeenAt: opening.Now}
		if err := opening.InsertSession(t.Context(), s, []byte("late")); err != nil {
			return err
		}
		go func() {
			_, err := db.Write(t.Context(), func(tx *store.Tx) (err error) {
				deleted, _, err = tx.DeleteSessionsSince(t.Context(), life, "tnt_1", time.Time{}, 10)
				return err
			})
			ended <- err
		}()
		waittest.Until(t, "the other transaction waits, or has ended", func() bool {
			return len(ended) > 0 || storetest.Query[int](t, pool, `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`) > 0
		})
		return nil
	})
	ok(t, err)
	ok(t, <-ended)
	if deleted != 2 {
		t.Errorf("%d sessions ended, want both", deleted)
	}
}

// TestRaceWritersLeaveConnectionsToReaders: writers occupy all connections they may
// have, as in commits that wait for a standby, and reads still succeed.
func TestRaceWritersLeaveConnectionsToReaders(t *testing.T) {
	db := storetest.Migrated(t, storetest.Engines["postgres"](t), time.Now)
	var writers sync.WaitGroup
	release := make(chan struct{})
	defer writers.Wait()
	defer close(release)
	// write returns when a writer has a connection, or has timed out waiting for one.
	write := func() {
		done := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		timeout := time.AfterFunc(200*time.Millisecond, cancel)
		writers.Go(func() {
			defer cancel()
			begun := false
			_, _ = db.Write(ctx, func(*store.Tx) error {
				begun = true
				timeout.Stop()
				close(done)
				<-release
				return nil
			})
			if !begun {
				close(done)
			}
		})
		<-done
	}
	var started sync.WaitGroup
	for range db.Pools()[0].Max {
		started.Go(write)
	}
	started.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), waittest.Limit)
	defer cancel()
	if err := db.Ping(ctx); err != nil {
		t.Errorf("a read with %d writers blocked: %v", db.Pools()[0].Busy, err)
	}
}

// Transactions that wait for a lock go on when they have it, whatever default isolation the database has.
func TestDefaultIsolationOfTheDatabase(t *testing.T) {
	db := storetest.Migrated(t, storetest.Engines["postgres"](t)+"&default_transaction_isolation=serializable", time.Now)
	write, read := store.Pools(db)
	for name, pool := range map[string]*sql.DB{"writers": write, "readers": read} {
		var level string
		if err := pool.QueryRowContext(t.Context(), `SELECT current_setting('transaction_isolation')`).Scan(&level); err != nil || level != "read committed" {
			t.Errorf("%s are %s, %v", name, level, err)
		}
	}
}
