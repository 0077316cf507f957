package access

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// Limits of a node's memory.
const (
	maxObserved   = 10_000 // policies whose counts are not yet in the database
	observedBatch = 200    // counts written in one transaction
)

// Decisions records decisions without delaying the answer: it counts what policies in
// mode observe would have refused, and keeps refusals and a sample of the permits. Callers
// never wait for the database. Run calls Flush every second: a process that is killed loses
// what was not yet flushed, normally the last second.
type Decisions struct {
	writer *Writer
	now    doorward.Clock

	mu       sync.Mutex
	observed map[store.ObservedPolicy]int64 // not yet written

	flushing chan struct{} // holds a value during a flush

	keeper keeper

	refused, wouldRefuse, keptTotal, dropped atomic.Uint64
}

func newDecisions(w *Writer) *Decisions {
	return &Decisions{writer: w, now: w.db.Now, observed: map[store.ObservedPolicy]int64{}, flushing: make(chan struct{}, 1)}
}

// Decisions returns the recorder of this node's decisions.
func (w *Writer) Decisions() *Decisions { return w.decisions }

// Refused counts the decisions that policies of tenants have refused.
func (d *Decisions) Refused() uint64 { return d.refused.Load() }

// WouldRefuse counts the decisions that policies in mode observe would have refused.
func (d *Decisions) WouldRefuse() uint64 { return d.wouldRefuse.Load() }

// Kept counts the decisions that were written, to be replayed.
func (d *Decisions) Kept() uint64 { return d.keptTotal.Load() }

// Dropped counts what was not recorded: too much was waiting to be written, the decision was
// too large, or the database refused a value in it.
func (d *Decisions) Dropped() uint64 { return d.dropped.Load() }

// Due is what there is to record of a decision.
type Due struct{ count, observe, keep bool }

// Any reports whether Record has to be called.
func (d Due) Any() bool { return d.count || d.observe || d.keep }

// Due returns what there is to record of a decision: mostly nothing. It doesn't allocate, and
// spares the caller parsing the request, which costs more.
func (d *Decisions) Due(p *doorward.Principal, decision Decision) Due {
	due := Due{keep: d.keeper.wants(p, decision) && !d.keeper.isFull(d.now())}
	if p.Policy != nil {
		due.count, due.observe = decision.policy != nil, p.Policy.Observes() && isPoliced(decision)
	}
	return due
}

// isPoliced reports whether a policy could refuse what the role allows, or has refused it. What
// a policy of the operator permits is not counted.
func isPoliced(d Decision) bool {
	return d.Allowed && d.Reason == ReasonRole || d.policy != nil
}

// Record records a decision on what the request asks for.
func (d *Decisions) Record(due Due, p *doorward.Principal, action doorward.Action, r *doorward.Request, decision Decision) {
	d.record(due, p, action, "", r, decision)
}

// record is Record for a request whose policies were evaluated before, for the action
// evaluated (empty: for none). What they would have refused then isn't counted again.
func (d *Decisions) record(due Due, p *doorward.Principal, action, evaluated doorward.Action, r *doorward.Request, decision Decision) {
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

func (d *Decisions) keep(p *doorward.Principal, action doorward.Action, r *doorward.Request, decision Decision) {
	one := kept{at: d.now(), principal: *p, action: action, decision: decision}
	if r != nil {
		one.request = *r
	}
	if !one.fits() || !d.keeper.keep(one) {
		d.dropped.Add(1)
	}
}

// observe counts what policies in mode observe would have refused. It skips the action
// evaluated, which was counted before.
func (d *Decisions) observe(p *doorward.Principal, action, evaluated doorward.Action, r *doorward.Request) {
	verb, known := p.Rules.Model().Lookup(action)
	if !known || isExempt(p, verb) {
		return
	}
	if r == nil {
		r = &doorward.Request{}
	}
	var would *doorward.PolicyRefusal
	if verb.Through != evaluated {
		would = p.Policy.Observed(verb.Through, r)
	}
	if would == nil && verb.Action != verb.Through {
		would = p.Policy.Observed(verb.Action, r)
	}
	if would != nil {
		d.wouldRefuse.Add(1)
		d.add(store.ObservedPolicy{TenantID: p.TenantID, Version: would.Version, PolicyID: would.PolicyID}, 1)
	}
}

func (d *Decisions) add(of store.ObservedPolicy, n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.observed[of]; !known && len(d.observed) >= maxObserved {
		d.dropped.Add(uint64(n))
		return
	}
	d.observed[of] += n
}

const (
	flushDecisionsEvery = time.Second
	flushDecisionsEnd   = 5 * time.Second // bounds the last flush, at shutdown
)

// Run calls Flush every second until ctx ends, then once more. What can't be written is tried
// again a second later; after the last flush it is lost.
func (d *Decisions) Run(ctx context.Context) {
	tick := time.NewTicker(flushDecisionsEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushDecisionsEnd)
			defer cancel()
			_ = d.Flush(last)
			return
		case <-tick.C:
			_ = d.Flush(ctx)
		}
	}
}

// Flush writes what is in memory. When it returns nil, everything recorded before the call is
// in the database, except what Dropped counts. Errors: unavailable; what could not be written
// is kept as far as there is space.
func (d *Decisions) Flush(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return doorward.Unavailable(ctx.Err())
	case d.flushing <- struct{}{}:
	}
	defer func() { <-d.flushing }()
	return errors.Join(d.flushObserved(ctx), d.flushKept(ctx))
}

func (d *Decisions) flushObserved(ctx context.Context) error {
	rest, err := writeRows(d.takeObserved(), observedBatch, func(counts []store.ObservedCount) error {
		return d.writer.Upkeep(ctx, func(tx *store.Tx) error { return tx.CountObserved(ctx, counts) })
	}, func(c store.ObservedCount) { d.dropped.Add(uint64(c.Refused)) })
	for _, c := range rest {
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
	for of, n := range d.observed {
		counts = append(counts, store.ObservedCount{ObservedPolicy: of, Refused: n})
	}
	d.observed = map[store.ObservedPolicy]int64{} // a Go map never shrinks
	store.SortObserved(counts)
	return counts
}
