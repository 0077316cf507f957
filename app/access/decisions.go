package access

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

// Decisions records decisions without delaying the answer. It counts what policies in mode
// observe would have refused, and keeps refusals and a sample of the permits. Callers never wait
// for the database: Run calls Flush every second. So a process that is killed normally loses the
// last second.
type Decisions struct {
	writer *Writer
	now    doorward.Clock

	mu       sync.Mutex
	observed map[store.ObservedPolicy]int64 // counts that are not yet written

	flushing chan struct{} // holds a value during a flush

	queue decisionQueue

	refused, wouldRefuse, kept, dropped atomic.Uint64
}

func newDecisions(w *Writer) *Decisions {
	return &Decisions{writer: w, now: w.db.Now, observed: map[store.ObservedPolicy]int64{}, flushing: make(chan struct{}, 1)}
}

// Decisions returns the recorder of this node's decisions.
func (w *Writer) Decisions() *Decisions { return w.decisions }

// Refused returns how many decisions policies have refused.
func (d *Decisions) Refused() uint64 { return d.refused.Load() }

// WouldRefuse returns how many decisions policies in mode observe would have refused.
func (d *Decisions) WouldRefuse() uint64 { return d.wouldRefuse.Load() }

// Kept returns how many decisions were written for replays.
func (d *Decisions) Kept() uint64 { return d.kept.Load() }

// Dropped returns how many decisions were not recorded because too many were waiting to be
// written, they were too large, or the database refused a value in them.
func (d *Decisions) Dropped() uint64 { return d.dropped.Load() }

// Due says what has to be recorded of a decision.
type Due struct{ count, observe, keep bool }

// Any reports whether Record has to be called.
func (d Due) Any() bool { return d.count || d.observe || d.keep }

// Due returns what has to be recorded of a decision, which is mostly nothing. It doesn't allocate.
// Callers parse the request, which costs more, only if something is due.
func (d *Decisions) Due(p *doorward.Principal, decision decide.Decision) Due {
	due := Due{keep: d.queue.shouldKeep(p, decision) && !d.queue.isSecondFull(d.now())}
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

// Record records a decision on an action, with its request.
func (d *Decisions) Record(due Due, p *doorward.Principal, action doorward.Action, r *doorward.Request, decision decide.Decision) {
	d.record(due, p, action, "", r, decision)
}

// record is Record after the policies were already evaluated for another action of the request:
// evaluated, which is empty if there was none. It doesn't count their refusals of that action again.
func (d *Decisions) record(due Due, p *doorward.Principal, action, evaluated doorward.Action, r *doorward.Request, decision decide.Decision) {
	if due.count {
		d.refused.Add(1)
	}
	if due.keep {
		d.keep(p, action, r, decision)
	}
	if due.observe && action != evaluated {
		d.observe(p, action, evaluated, r)
	}
}

// keep puts the decision into the queue, or counts it as dropped.
func (d *Decisions) keep(p *doorward.Principal, action doorward.Action, r *doorward.Request, decision decide.Decision) {
	one := queuedDecision{at: d.now(), principal: *p, action: action, decision: decision}
	if r != nil {
		one.request = *r
	}
	if !one.fits() || !d.queue.add(one) {
		d.dropped.Add(1)
	}
}

// observe counts what policies in mode observe would have refused. It skips the action
// evaluated, which was counted before.
func (d *Decisions) observe(p *doorward.Principal, action, evaluated doorward.Action, r *doorward.Request) {
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
		d.wouldRefuse.Add(1)
		d.add(store.ObservedPolicy{TenantID: p.TenantID, Version: refusal.Version, PolicyID: refusal.PolicyID}, 1)
	}
}

// add adds n to the count of a policy.
func (d *Decisions) add(policy store.ObservedPolicy, n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.observed[policy]; !known && len(d.observed) >= maxObserved {
		d.dropped.Add(uint64(n))
		return
	}
	d.observed[policy] += n
}

const (
	flushInterval    = time.Second
	lastFlushTimeout = 5 * time.Second // bounds the last flush, at shutdown
)

// Run calls Flush every second until ctx ends, then once more. Decisions that can't be written
// are tried again a second later; after the last flush they are lost.
func (d *Decisions) Run(ctx context.Context) {
	tick := time.NewTicker(flushInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastFlushTimeout)
			defer cancel()
			_ = d.Flush(last)
			return
		case <-tick.C:
			_ = d.Flush(ctx)
		}
	}
}

// Flush writes what is in memory. When it returns nil, everything recorded before the call is
// in the database, except what Dropped counts. Errors: unavailable; then what could not be
// written stays in memory, as far as there is space.
func (d *Decisions) Flush(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return doorward.Unavailable(ctx.Err())
	case d.flushing <- struct{}{}:
	}
	defer func() { <-d.flushing }()
	return errors.Join(d.flushObserved(ctx), d.flushQueue(ctx))
}

func (d *Decisions) flushObserved(ctx context.Context) error {
	unwritten, err := writeRows(d.takeObserved(), observedBatch, func(counts []store.ObservedCount) error {
		return d.writer.Upkeep(ctx, func(tx *store.Tx) error { return tx.CountObserved(ctx, counts) })
	}, func(c store.ObservedCount) { d.dropped.Add(uint64(c.Refused)) })
	for _, c := range unwritten {
		d.add(c.ObservedPolicy, c.Refused)
	}
	return err
}

func (d *Decisions) takeObserved() []store.ObservedCount {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.observed) == 0 {
		return nil
	}
	counts := make([]store.ObservedCount, 0, len(d.observed))
	for policy, n := range d.observed {
		counts = append(counts, store.ObservedCount{ObservedPolicy: policy, Refused: n})
	}
	d.observed = map[store.ObservedPolicy]int64{} // a Go map never shrinks
	store.SortObserved(counts)
	return counts
}
