package lease

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/doorward/doorward/store"
)

// Settled reports how a revocation took effect on all nodes.
type Settled struct {
	Nodes int           // that have applied it, including this one
	Took  time.Duration // since the commit
}

var errFlushUnanswered = errors.New("a node has not written its last use of a session to the database")

// Settle waits until no node's memory still has what the committed changes ended: until all
// nodes have applied them or the longest lease has passed, which needs no answer of the
// database. Only acknowledgements settle a flush (store.ChangeFlush): a silent node leaves it
// unsettled. Then, and when ctx ends first, the error is unavailable; the changes stay
// committed.
func (l *Lease) Settle(ctx context.Context, changes []store.Change) (Settled, error) {
	began := time.Now()
	if err := l.apply(ctx, changes); err != nil {
		return Settled{}, err
	}
	settled, timedOut, err := l.wait(ctx, began, changes[len(changes)-1].Seq, l.id)
	flush := slices.ContainsFunc(changes, func(c store.Change) bool { return c.Kind == store.ChangeFlush })
	if err == nil && timedOut && flush {
		err = fault(errFlushUnanswered)
	}
	return settled, err
}

// SettleAll is Settle for everything committed so far, by any node. It is for a caller
// that finds something already ended and reports so: the caller that ended it may still
// be waiting, or may never have learned whether the commit succeeded. The error is
// unavailable.
func (l *Lease) SettleAll(ctx context.Context) (Settled, error) {
	began := time.Now()
	newest, err := newestChange(ctx, l.db.Read())
	if err != nil {
		return Settled{}, err
	}
	if applied, longest := l.progress(ctx, newest, ""); longest == 0 { // every node has applied it
		return Settled{applied, time.Since(began)}, nil
	}
	l.wakePoll()
	settled, _, err := l.wait(ctx, began, newest, "")
	return settled, err
}

// wait returns when every node has applied the change (node id, unless empty, already has), or
// when the longest lease of the nodes that have not has passed since began, an instant after
// the commit: then timedOut is true.
func (l *Lease) wait(ctx context.Context, began time.Time, seq int64, id string) (s Settled, timedOut bool, err error) {
	bounded, cancel := context.WithDeadline(ctx, began.Add(MaxLease))
	defer cancel()
	_ = l.db.NotifyNodes(bounded) // on an error polling finds it
	applied := 0
	for pause := time.Millisecond; ; pause = min(2*pause, 16*time.Millisecond) {
		now, longest := l.progress(bounded, seq, id)
		applied = max(applied, now) // at the end of the longest lease the read may fail, and counts none
		took := time.Since(began)
		if longest <= took {
			return Settled{applied, took}, longest > 0, nil
		}
		select {
		case <-ctx.Done():
			return Settled{applied, took}, true, fault(ctx.Err())
		case <-time.After(min(pause, longest-took)):
		}
	}
}

// progress counts the nodes that have applied the change, including node id unless it is empty,
// and returns the longest lease of those that have not: MaxLease if the database doesn't answer.
func (l *Lease) progress(ctx context.Context, seq int64, id string) (applied int, longest time.Duration) {
	if id != "" {
		applied = 1
	}
	nodes, err := readNodes(ctx, l.db.Read())
	if err != nil {
		return applied, MaxLease
	}
	for _, n := range nodes {
		switch {
		case n.id == id:
		case n.applied >= seq:
			applied++
		default:
			longest = max(longest, n.length())
		}
	}
	return applied, longest
}
