// Package decisionlog keeps decisions for replays, and counts what policies in mode observe would have
// refused. Answers never wait for the database: Log.Run writes every second what is in memory.
package decisionlog

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/decide"
	"github.com/doorward/doorward/store"
)

// Limits of a node's memory.
const (
	maxObserved   = 10_000 // policies whose counts are not yet in the database
	observedBatch = 200    // counts written in one transaction
)

// Log records decisions without delaying the answer. It counts what policies in mode
// observe would have refused, and keeps refusals and a sample of the permits. Callers never wait
// for the database: Run calls Flush every second. So a process that is killed normally loses the
// last second.
type Log struct {
	now       doorward.Clock
	upkeep    func(context.Context, func(*store.Tx) error) error
	inBatches func(context.Context, func(*store.Tx, int) (int64, error)) error

	mu       sync.Mutex
	observed map[store.ObservedPolicy]int64 // counts that are not yet written

	flushing chan struct{} // holds a value during a flush

	queue decisionQueue

	refused, wouldRefuse, kept, dropped atomic.Uint64
}

// New returns a log that writes by upkeep, and deletes by inBatches: access.Writer.Upkeep and InBatches.
func New(now doorward.Clock, upkeep func(context.Context, func(*store.Tx) error) error, inBatches func(context.Context, func(*store.Tx, int) (int64, error)) error) *Log {
	return &Log{now: now, upkeep: upkeep, inBatches: inBatches, observed: map[store.ObservedPolicy]int64{}, flushing: make(chan struct{}, 1)}
}

// Refused returns how many decisions policies have refused.
func (l *Log) Refused() uint64 { return l.refused.Load() }

// WouldRefuse returns how many decisions policies in mode observe would have refused.
func (l *Log) WouldRefuse() uint64 { return l.wouldRefuse.Load() }

// Kept returns how many decisions were written for replays.
func (l *Log) Kept() uint64 { return l.kept.Load() }

// Dropped returns how many decisions were not recorded because too many were waiting to be
// written, they were too large, or the database refused a value in them.
func (l *Log) Dropped() uint64 { return l.dropped.Load() }

// Due says what has to be recorded of a decision.
type Due struct{ count, observe, keep bool }

// Any reports whether Record has to be called.
func (d Due) Any() bool { return d.count || d.observe || d.keep }

// Due returns what has to be recorded of a decision, which is mostly nothing. It doesn't allocate.
// Callers parse the request, which costs more, only if something is due.
func (l *Log) Due(p *doorward.Principal, decision decide.Decision) Due {
	due := Due{keep: l.queue.shouldKeep(p, decision) && !l.queue.isSecondFull(l.now())}
	if p.Policy != nil {
		due.count, due.observe = decision.Policy() != nil, p.Policy.Observes() && concernsPolicy(decision)
	}
	return due
}

// concernsPolicy reports whether the role allows the action, so that a policy could refuse it, or
// a policy has refused it. It is false for an action that only a policy of the operator permits.
func concernsPolicy(d decide.Decision) bool {
	return d.Allowed && d.Reason == decide.ReasonRole || d.Policy() != nil
}

// Record records a decision on an action, with its request. If the policies were already evaluated for
// another action of the request, evaluated is that one, and their refusals of it aren't counted again.
func (l *Log) Record(due Due, p *doorward.Principal, action, evaluated doorward.Action, r *doorward.Request, decision decide.Decision) {
	if due.count {
		l.refused.Add(1)
	}
	if due.keep {
		l.keep(p, action, r, decision)
	}
	if due.observe && action != evaluated {
		l.observe(p, action, evaluated, r)
	}
}

// keep puts the decision into the queue, or counts it as dropped.
func (l *Log) keep(p *doorward.Principal, action doorward.Action, r *doorward.Request, decision decide.Decision) {
	one := queuedDecision{at: l.now(), principal: *p, action: action, decision: decision}
	if r != nil {
		one.request = *r
	}
	if !one.fits() || !l.queue.add(one) {
		l.dropped.Add(1)
	}
}

// observe counts what policies in mode observe would have refused. It skips the action
// evaluated, which was counted before.
func (l *Log) observe(p *doorward.Principal, action, evaluated doorward.Action, r *doorward.Request) {
	verb, known := p.Rules.Model().Lookup(action)
	if !known || decide.IsExempt(p, verb) {
		return
	}
	if r == nil {
		r = &doorward.Request{}
	}
	var refusal *doorward.PolicyRefusal
	if verb.Permission != evaluated {
		refusal = p.Policy.ObservedRefusal(verb.Permission, r)
	}
	if refusal == nil && verb.Action != verb.Permission {
		refusal = p.Policy.ObservedRefusal(verb.Action, r)
	}
	if refusal != nil {
		l.wouldRefuse.Add(1)
		l.add(store.ObservedPolicy{TenantID: p.TenantID, Version: refusal.Version, PolicyID: refusal.PolicyID}, 1)
	}
}

// add adds n to the count of a policy.
func (l *Log) add(policy store.ObservedPolicy, n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.observed[policy]; !known && len(l.observed) >= maxObserved {
		l.dropped.Add(uint64(n))
		return
	}
	l.observed[policy] += n
}

const (
	flushInterval    = time.Second
	lastFlushTimeout = 5 * time.Second // bounds the last flush, at shutdown
)

// Run calls Flush every second until ctx ends, then once more. Decisions that can't be written
// are tried again a second later; after the last flush they are lost.
func (l *Log) Run(ctx context.Context) {
	tick := time.NewTicker(flushInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastFlushTimeout)
			defer cancel()
			_ = l.Flush(last)
			return
		case <-tick.C:
			_ = l.Flush(ctx)
		}
	}
}

// Flush writes what is in memory. When it returns nil, everything recorded before the call is
// in the database, except what Dropped counts. Errors: unavailable; then what could not be
// written stays in memory, as far as there is space.
func (l *Log) Flush(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return doorward.Unavailable(ctx.Err())
	case l.flushing <- struct{}{}:
	}
	defer func() { <-l.flushing }()
	return errors.Join(l.flushObserved(ctx), l.flushQueue(ctx))
}

func (l *Log) flushObserved(ctx context.Context) error {
	unwritten, err := store.WriteRows(l.takeObserved(), observedBatch, func(counts []store.ObservedCount) error {
		return l.upkeep(ctx, func(tx *store.Tx) error { return tx.CountObserved(ctx, counts) })
	}, func(c store.ObservedCount) { l.dropped.Add(uint64(c.Refused)) })
	for _, c := range unwritten {
		l.add(c.ObservedPolicy, c.Refused)
	}
	return err
}

func (l *Log) takeObserved() []store.ObservedCount {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.observed) == 0 {
		return nil
	}
	counts := make([]store.ObservedCount, 0, len(l.observed))
	for policy, n := range l.observed {
		counts = append(counts, store.ObservedCount{ObservedPolicy: policy, Refused: n})
	}
	l.observed = map[store.ObservedPolicy]int64{} // a Go map never shrinks
	store.SortObserved(counts)
	return counts
}
