package store

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// A node that was taken for dead and comes back has a new row, and whoever was
// about to bury the old one must not bury that: revocations would stop waiting
// for a node that answers from memory. Both rows are of their first lease here,
// in which no beat has been counted yet.
func TestRowMadeAnewIsNotTakenForTheOldOne(t *testing.T) {
	ctx := t.Context()
	db, err := Open(ctx, "sqlite:"+filepath.Join(t.TempDir(), "doorward.db"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	back, other := db.Watch(MinLease), db.Watch(MinLease)
	for range 2 { // the second time as after a burial by a third node
		if err := back.enter(ctx, time.Now(), func(*Tx) error { return nil }); err != nil {
			t.Fatal(err)
		}
		other.peersSeenAt = time.Now()
		if err := other.deleteDeadPeers(ctx); err != nil {
			t.Fatal(err)
		}
		long := other.seen[back.id]
		long.at = long.at.Add(-2 * dead * MinLease)
		other.seen[back.id] = long
	}
	if !slices.Contains(rows(t, ctx, db), back.id) {
		t.Error("the node that came back was buried for the silence of its old row")
	}
}

func rows(t *testing.T, ctx context.Context, db *DB) (ids []string) {
	t.Helper()
	peers, err := db.Read().peers(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range peers {
		ids = append(ids, p.id)
	}
	return ids
}
