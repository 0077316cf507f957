package lease

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/internal/cluster"
	"github.com/doorward/doorward/store/internal/rows"
)

const (
	sqlLockClock = `UPDATE shared_clock SET moved = moved WHERE id = 1 RETURNING moved`
	sqlMoveClock = `UPDATE shared_clock SET moved = $1 WHERE id = 1`
)

// lockClock serializes the registration of nodes, and returns the offset of the
// installation's clock.
func lockClock(ctx context.Context, tx *store.Tx) (time.Duration, error) {
	moved, err := rows.One(ctx, tx.Conn, int64Column, sqlLockClock)
	return time.Duration(moved) * time.Microsecond, err
}

// moveClock sets the offset of the installation's clock.
func moveClock(ctx context.Context, tx *store.Tx, offset time.Duration) error {
	_, err := rows.Exec(ctx, tx.Conn, sqlMoveClock, offset.Microseconds())
	return err
}

// admission decides which peers are alive before a node starts. A peer is alive if it has
// sent a heartbeat or appeared since began, and dead after three leases without a heartbeat.
type admission struct {
	l     *Lease
	began time.Time
	first []node // as first read
}

const (
	// joinInterval is how often a node that waits to start checks its peers.
	joinInterval = 50 * time.Millisecond
	// joinTimeout bounds one try, as the longest lease bounds a poll.
	joinTimeout = 2 * time.Second
)

// Join registers this process, before Run. If a setting that must agree differs, or this
// machine's clock has another offset than the installation's, it waits, for some seconds,
// until each other node has sent a heartbeat, or has sent none for three leases. Errors:
// *DiffersError, unavailable.
func (l *Lease) Join(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	ctx = cluster.Renewal(ctx)
	first, err := readNodes(ctx, l.db.Read())
	if err != nil {
		return err
	}
	a := &admission{l: l, began: time.Now(), first: first}
	for {
		err := a.try(ctx)
		if !errors.Is(err, errUndecided) {
			l.db.MeasureClock(ctx)
			return err
		}
		select {
		case <-ctx.Done():
			return fault(ctx.Err())
		case <-time.After(joinInterval):
		}
	}
}

var errUndecided = errors.New("lease: not known yet whether all other nodes are alive")

// try registers the node, unless that has to wait: then the error is errUndecided.
func (a *admission) try(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	return a.l.enter(ctx, time.Now(), func(tx *store.Tx) error {
		undecided, err := a.decide(ctx, tx)
		if err == nil && undecided {
			err = errUndecided
		}
		return err
	})
}

// decide reports whether the result depends on a node not yet known to be alive or
// dead. Otherwise it removes the dead nodes, and without living peers sets the
// installation's clock offset to this node's.
func (a *admission) decide(ctx context.Context, tx *store.Tx) (undecided bool, err error) {
	installation, err := lockClock(ctx, tx)
	if err != nil {
		return false, err
	}
	nodes, err := readNodes(ctx, tx.Reader)
	if err != nil {
		return false, err
	}
	var refused []Difference
	own, differs := a.l.db.Clock().OffsetFrom(installation)
	alone := true
	for _, n := range nodes {
		if n.id == a.l.id {
			continue
		}
		strict := a.l.strictDifferences(n)
		switch alive, known := a.alive(n); {
		case known && !alive:
			err = deleteDeadNode(ctx, tx, n)
		case known:
			refused, alone = append(refused, strict...), false
		default:
			undecided, alone = undecided || differs || len(strict) > 0, false
		}
		if err != nil {
			return false, err
		}
	}
	switch {
	case len(refused) > 0:
		return false, &DiffersError{refused}
	case !undecided && alone && differs:
		err = moveClock(ctx, tx, own)
	}
	return undecided, err
}

// alive reports whether the peer is alive. known is false while that isn't known yet.
func (a *admission) alive(n node) (alive, known bool) {
	if showsLife(a.first, n) {
		return true, true
	}
	return false, time.Since(a.began) >= deadAfter*max(a.l.length, n.length())
}

// claimClock sets the installation's clock offset to this node's if no other is registered.
// It is for a node whose row was removed while it was cut off.
func (l *Lease) claimClock(ctx context.Context, tx *store.Tx) error {
	installation, err := lockClock(ctx, tx)
	if err != nil {
		return err
	}
	own, differs := l.db.Clock().OffsetFrom(installation)
	if !differs {
		return nil
	}
	nodes, err := readNodes(ctx, tx.Reader)
	if err != nil || slices.ContainsFunc(nodes, func(n node) bool { return n.id != l.id }) {
		return err
	}
	return moveClock(ctx, tx, own)
}
