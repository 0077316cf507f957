package lease

import (
	"slices"
	"testing"
	"time"

	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/dbtest"
)

// ChangesKept is for tests of Sweep.
const ChangesKept = changesKept

// A node that was removed while alive and comes back has a new row, which another node
// about to remove the old row must not remove: revocations would not wait for a node
// that answers from memory. Both rows are new here, without a heartbeat counted yet.
func TestRaceNewRowIsNotTakenForTheOldOne(t *testing.T) {
	ctx := t.Context()
	db, err := store.Open(ctx, dbtest.SQLite(t), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	back, other := New(db, MinLease), New(db, MinLease)
	for range 2 { // the second time as if a third node had removed the row
		if err := back.enter(ctx, time.Now(), func(*store.Tx) error { return nil }); err != nil {
			t.Fatal(err)
		}
		other.peersSeenAt = time.Now()
		nodes, err := readNodes(ctx, db.Read())
		if err == nil {
			err = other.removeDeadNodes(ctx, nodes)
		}
		if err != nil {
			t.Fatal(err)
		}
		silent := other.peers[back.id]
		silent.changedAt = silent.changedAt.Add(-2 * deadAfter * MinLease)
		other.peers[back.id] = silent
	}
	nodes, err := readNodes(ctx, db.Read())
	if err != nil || !slices.ContainsFunc(nodes, func(n node) bool { return n.id == back.id }) {
		t.Errorf("the new row was removed because of the old row's missing heartbeats (%v)", err)
	}
}

// TestSilentNodes: a node is called silent after two leases without a heartbeat, of the longer lease of both nodes.
func TestSilentNodes(t *testing.T) {
	l := New(nil, MinLease)
	state := func(ago time.Duration) NodeState {
		l.peersRead.Store(&map[string]peer{"nod_1": {changedAt: time.Now().Add(-ago), lease: 2 * MinLease}})
		return l.stateOf(node{id: "nod_1", applied: 5}, 7)
	}
	if s := l.stateOf(node{id: "nod_1"}, 0); s.SeenAgo >= 0 || s.IsSilent {
		t.Errorf("a node that nobody has seen is %+v", s)
	}
	if s := state(3 * MinLease); s.IsSilent || s.SeenAgo < 3*MinLease || s.Behind != 2 {
		t.Errorf("after one and a half leases: %+v", s)
	}
	if s := state(4*MinLease + time.Second); !s.IsSilent {
		t.Errorf("after more than two leases: %+v", s)
	}
}
