package store_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/internal/pgtest"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/lease"
	"github.com/doorward/doorward/store/storetest"
)

// Queries wait while the lease is late. They never take the connections that the poll needs.
func TestRaceLateLeaseIsAwaited(t *testing.T) {
	t.Parallel()
	pair := pgtest.StartPair(t)
	db := storetest.Migrated(t, pair.DSN(t), time.Now)
	l := lease.New(db, lease.MaxLease)
	var queries sync.WaitGroup
	start := func(query func() error) {
		queries.Go(func() {
			if err := query(); err != nil {
				t.Error(err)
			}
		})
	}
	// announce makes a change of which followers are notified; which one doesn't matter.
	announce := func(tx *store.Tx) error { tx.RequestFlush([]byte("any hash")); return nil }
	read := func() error { _, err := db.Read().Vitals(t.Context(), time.Now()); return err }
	write := func() error { _, err := db.Write(t.Context(), announce); return err }
	_, pool := store.Pools(db)
	started := make(chan struct{})
	startAll := func() error {
		defer close(started)
		// pgx's pool has 16 connections, 12 of them for writers. A query that waits for one of
		// them already counts as an open connection in database/sql.
		for range 30 {
			start(read)
			start(write)
		}
		storetest.Until(t, "readers to wait", func() bool { return pool.Stats().OpenConnections > 20 })
		return errors.New("not before the next poll")
	}
	// An error keeps the lease from being renewed: first wait until it has expired, then start
	// the queries, and let the next poll succeed.
	l.Follow(func(_ context.Context, changes []store.Change) error {
		switch {
		case len(changes) == 0:
			return nil
		case l.Valid():
			return errors.New("not before the lease is over")
		}
		select {
		case <-started:
			return nil
		default:
			return startAll()
		}
	}, func() {}) // there is no memory to clear
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { l.Run(ctx) })
	defer running.Wait()
	defer stop()
	storetest.Until(t, "the lease", l.Valid)
	_, err := db.Write(t.Context(), announce)
	ok(t, err)
	<-started
	queries.Wait()
}

// Synchronous reports whether commits wait for a standby.
func TestSynchronous(t *testing.T) {
	t.Parallel()
	pair := pgtest.StartPair(t)
	for dsn, want := range map[string]bool{
		pair.DSN(t): true, pair.DSN(t) + "&synchronous_commit=local": false, pgtest.DSN(t): false,
	} {
		if yes, err := storetest.Open(t, dsn, time.Now).Synchronous(t.Context()); err != nil || yes != want {
			t.Errorf("%s: %v, %v, want %v", dsn, yes, err, want)
		}
	}
	if _, err := storetest.Open(t, "sqlite:"+filepath.Join(t.TempDir(), "doorward.db"), time.Now).Synchronous(t.Context()); !errors.Is(err, store.ErrNone) {
		t.Errorf("SQLite: %v, want ErrNone", err)
	}
}
