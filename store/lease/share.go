package lease

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/doorward/doorward/store"
)

// shareHeld is how long what one node may grant stays unused before another node may
// grant it: the second that a limiter's bucket holds (internal/gcra), and a margin for
// the rounding of its intervals and for clocks that run at different rates.
const shareHeld = time.Second + 250*time.Millisecond

// division is a node's part of every limit: its rank among the nodes, ordered by id.
// Without nodes it is no part at all.
type division struct{ nodes, rank int }

// share gives the remainder to the nodes of the lowest ranks.
func (d division) share(limit int) int { return (limit + d.nodes - 1 - d.rank) / d.nodes }

// heldDivision limits the shares until an instant since the lease's epoch.
type heldDivision struct {
	division
	until time.Duration
}

const forever = time.Duration(1<<63 - 1)

// shares are how this node divides limits with the others. All but held is guarded by
// the lock of a poll.
type shares struct {
	held  atomic.Pointer[[]heldDivision] // the present one last; nil: unknown
	stale bool                           // nodes have changed since held was made
	free  bool                           // when this node joined, no other could have granted for shareHeld

	joinedBy int64     // the changes that each other node has to apply before this one grants
	joinedAt time.Time // after they were committed; zero: not yet known
	settled  bool      // all others know of this node
}

// Share returns how many events of a limit per second this node may grant now, with a
// limiter of internal/gcra that is kept while it is not idle. The shares of all nodes
// add up to the limit at most: whole numbers, the remainder by the order of nodes' ids,
// so a limit below the number of nodes leaves some without. Over any t seconds all nodes
// together grant at most limit × (t + 1) events, also while nodes join, leave, die or are
// cut off; docs/lease.md says why.
//
// known is false while this node can't know its share: it is cut off, or it has joined
// and the others may still grant what will be its share. That is no refusal, but a
// fault: unavailable.
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
	s.free, s.settled, s.joinedAt = false, false, time.Time{}
}

// follow notes changes of the nodes, and returns the others.
func (s *shares) follow(changes []store.Change) []store.Change {
	isNodes := func(c store.Change) bool { return c.Kind == store.ChangeNodes }
	if !slices.ContainsFunc(changes, isNodes) {
		return changes
	}
	s.stale = true
	return slices.DeleteFunc(changes, isNodes)
}

// compare notes that nodes have changed without a change that says so: nodes of the
// version before announce nothing.
func (s *shares) compare(nodes []node) {
	if held := s.held.Load(); held != nil && (*held)[len(*held)-1].nodes != len(nodes) {
		s.stale = true
	}
}

// sharesAreFree reports whether no other node may grant anything, or could have within
// shareHeld. A node that was killed has left its row; if this transaction has removed it,
// its lease ended a second ago at least, and that is enough.
func (l *Lease) sharesAreFree(ctx context.Context, tx *store.Tx) (bool, error) {
	nodes, err := readNodes(ctx, tx.Reader)
	if err != nil || slices.ContainsFunc(nodes, func(n node) bool { return n.id != l.id }) {
		return false, err
	}
	changed, err := nodesChanged(ctx, tx.Reader, tx.Now.Add(-2*shareHeld))
	return !changed, err
}

// updateShares reads the nodes after changes were applied, before that is acknowledged
// and the lease renewed: a node that joins waits for either. It asks the database only
// when nodes have changed, or while this one has not settled.
func (l *Lease) updateShares(ctx context.Context) error {
	s := &l.shares
	if s.settled && !s.stale {
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
	if !s.settled {
		s.settle(nodes, rank, l.position.Seq, now)
	}
	if s.settled {
		s.divide(division{len(nodes), rank}, now.Sub(l.epoch))
		s.stale = false
	}
	return nil
}

// settle decides whether the others know that this node, the one of the rank, has
// joined: each has applied the changes up to the first position after the join, or its
// lease has ended since.
func (s *shares) settle(nodes []node, rank int, position int64, now time.Time) {
	if s.joinedAt.IsZero() {
		s.joinedBy, s.joinedAt = position, now
	}
	unaware := func(i int) bool {
		n := nodes[i]
		return i != rank && n.applied < s.joinedBy && now.Sub(s.joinedAt) < n.length()
	}
	for i := range nodes {
		if unaware(i) {
			return
		}
	}
	s.settled = true
}

// divide replaces the division. What this node gains by it, it gets after shareHeld,
// since the node that had it may have granted a second's events just now.
func (s *shares) divide(next division, now time.Duration) {
	var held []heldDivision
	if before := s.held.Load(); before != nil {
		held = slices.Clone(*before)
		held[len(held)-1].until = now + shareHeld
	} else if !s.free {
		held = append(held, heldDivision{until: now + shareHeld})
	}
	held = slices.DeleteFunc(held, func(d heldDivision) bool { return d.until <= now })
	held = append(held, heldDivision{next, forever})
	s.held.Store(&held)
}
