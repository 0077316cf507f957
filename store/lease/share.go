package lease

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/doorward/doorward/store"
)

// shareDelay is how long a node that gains a part of a limit waits before it grants that
// part: the second that the bucket of the previous node's limiter holds (internal/gcra),
// and a margin for rounded intervals and for clocks that run at different rates.
const shareDelay = time.Second + 250*time.Millisecond

// division is a node's part of every limit: its rank among the nodes, ordered by id. With
// nodes = 0 it may grant nothing.
type division struct{ nodes, rank int }

// share gives the remainder to the nodes of the lowest ranks.
func (d division) share(limit int) int { return (limit + d.nodes - 1 - d.rank) / d.nodes }

// heldDivision is a division that applies until an instant, in time since the lease's epoch.
// Of several that apply, the smallest share counts.
type heldDivision struct {
	division
	until time.Duration
}

const forever = time.Duration(1<<63 - 1)

// shares are how this node divides limits with the others. Only held is read without the
// lock of a poll.
type shares struct {
	held    atomic.Pointer[[]heldDivision] // the present one last; nil: unknown
	isStale bool                           // nodes have changed since held was made
	isFree  bool                           // sharesAreFree was true when this node joined: it need not wait

	joinPosition int64     // position of changes that each other node has to apply before this one grants
	joinedAt     time.Time // when joinPosition was read; zero: not yet
	isAnnounced  bool      // all others know of this node
}

// Share returns how many events of a limit per second this node may grant now. The shares
// of all nodes are whole numbers and add up to the limit at most, so with a limit below the
// number of nodes some have none. Over any t seconds all nodes grant at most
// limit × (t + 1) events: docs/lease.md says why.
//
// known is false while this node is cut off, or has joined and the others may still grant
// its share. That is a fault (unavailable), not a refusal.
func (l *Lease) Share(limit int) (share int, known bool) {
	now := time.Since(l.epoch)
	if int64(now) >= l.validUntil.Load() {
		return 0, false
	}
	held := l.shares.held.Load() // after the lease was found valid
	if held == nil {
		return 0, false
	}
	share = limit
	for _, d := range *held {
		switch {
		case now >= d.until:
		case d.nodes == 0:
			return 0, false
		default:
			share = min(share, d.share(limit))
		}
	}
	return share, true
}

// giveUp forgets the shares before others may take them.
func (s *shares) giveUp() {
	s.held.Store(nil)
	s.isFree, s.isAnnounced, s.joinedAt = false, false, time.Time{}
}

// takeNodeChanges marks the shares as stale if the list of nodes has changed, and returns
// the other changes.
func (s *shares) takeNodeChanges(changes []store.Change) []store.Change {
	isNodes := func(c store.Change) bool { return c.Kind == store.ChangeNodes }
	if !slices.ContainsFunc(changes, isNodes) {
		return changes
	}
	s.isStale = true
	return slices.DeleteFunc(changes, isNodes)
}

// sharesAreFree reports whether no other node can grant anything now, or could within the
// last shareDelay: none has a row, and none has joined or left recently. A row of a killed
// node that this transaction has removed needs no wait: its lease ended over a second ago.
func (l *Lease) sharesAreFree(ctx context.Context, tx *store.Tx) (bool, error) {
	nodes, err := readNodes(ctx, tx.Reader)
	if err != nil || slices.ContainsFunc(nodes, func(n node) bool { return n.id != l.id }) {
		return false, err
	}
	// Twice, because two nodes have measured the clock, each within half a second.
	changed, err := nodesChanged(ctx, tx.Reader, tx.Now.Add(-2*shareDelay))
	return !changed, err
}

// updateShares reads the nodes. It runs after changes are applied, but before they are
// acknowledged and the lease is renewed: a node that joins waits until one of these has
// happened. It asks the database only when nodes have changed, or while others may not know
// of this one.
func (l *Lease) updateShares(ctx context.Context) error {
	s := &l.shares
	if s.isAnnounced && !s.isStale {
		return nil
	}
	nodes, err := readNodes(ctx, l.db.Read())
	if err != nil {
		return err
	}
	rank := slices.IndexFunc(nodes, func(n node) bool { return n.id == l.id })
	if rank < 0 { // removed: the next heartbeat joins again
		s.giveUp()
		return nil
	}
	now := time.Now()
	if !s.isAnnounced {
		s.checkAnnounced(nodes, rank, l.position.Seq, now)
	}
	if s.isAnnounced {
		s.divide(division{len(nodes), rank}, now.Sub(l.epoch))
		s.isStale = false
	}
	return nil
}

// checkAnnounced decides whether the others know that this node, at nodes[rank], has joined:
// each has applied the changes up to the first position after the join, or its lease has
// ended since.
func (s *shares) checkAnnounced(nodes []node, rank int, position int64, now time.Time) {
	if s.joinedAt.IsZero() {
		s.joinPosition, s.joinedAt = position, now
	}
	unaware := func(i int) bool {
		n := nodes[i]
		return i != rank && n.applied < s.joinPosition && now.Sub(s.joinedAt) < n.length()
	}
	for i := range nodes {
		if unaware(i) {
			return
		}
	}
	s.isAnnounced = true
}

// divide replaces the division. What this node gains by it counts after shareDelay only,
// since the node that had it may just have granted a second's events.
func (s *shares) divide(next division, now time.Duration) {
	var held []heldDivision
	if before := s.held.Load(); before != nil {
		held = slices.Clone(*before)
		held[len(held)-1].until = now + shareDelay
	} else if !s.isFree {
		held = append(held, heldDivision{until: now + shareDelay})
	}
	held = slices.DeleteFunc(held, func(d heldDivision) bool { return d.until <= now })
	held = append(held, heldDivision{next, forever})
	s.held.Store(&held)
}
