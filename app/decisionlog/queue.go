package decisionlog

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/decide"
	"github.com/doorward/doorward/store"
)

const (
	maxKeptPerSecond = 100  // decisions of one node
	maxQueued        = 300  // decisions in memory; further ones are dropped
	permitsPerSample = 1024 // one of this many permits is kept
	decisionBatch    = 100  // decisions written in one transaction
)

// decisionQueue has the decisions that wait to be written.
type decisionQueue struct {
	fullSecond atomic.Int64 // the second, in Unix time, that takes no more decisions

	mu        sync.Mutex
	second    int64
	taken     int           // decisions in this second
	retention time.Duration // for which decisions are kept in the database; 0: none are
	waiting   []queuedDecision
}

// queuedDecision is a decision that waits to be written. It is encoded only then.
type queuedDecision struct {
	at        time.Time
	principal doorward.Principal
	action    doorward.Action
	request   doorward.Request
	decision  decide.Decision
}

// KeepFor sets how long decisions are kept in the database; 0: none are. It must be called before
// the first decision.
func (l *Log) KeepFor(retention time.Duration) {
	l.queue.retention = retention
	l.queue.waiting = make([]queuedDecision, 0, maxQueued)
}

// shouldKeep reports whether to keep the decision. It keeps refusals that another role or policy
// could change, and one of permitsPerSample permits.
func (q *decisionQueue) shouldKeep(p *doorward.Principal, d decide.Decision) bool {
	if q.retention == 0 || p.TenantID == "" || p.Permissions == nil || p.Kind != doorward.ByUser && p.Kind != doorward.ByKey {
		return false
	}
	if d.Allowed {
		return (d.Reason == decide.ReasonRole || d.Reason == decide.ReasonPolicy) && rand.Uint32()%permitsPerSample == 0
	}
	switch d.Reason {
	case decide.ReasonRole, decide.ReasonRank, decide.ReasonKey, decide.ReasonKeyGives, decide.ReasonTenant, decide.ReasonPolicy:
		return true
	}
	return false // no role or policy could change it, such as a refusal for an object of another tenant
}

// isSecondFull reports whether maxKeptPerSecond decisions of this second were taken and a further
// one was turned away. The queue may still have space.
func (q *decisionQueue) isSecondFull(now time.Time) bool { return q.fullSecond.Load() == now.Unix() }

// add adds the decision, unless maxKeptPerSecond of its second were taken. It reports false if
// the queue is full, so that the decision is dropped. It doesn't allocate.
func (q *decisionQueue) add(one queuedDecision) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if second := one.at.Unix(); second != q.second {
		q.second, q.taken = second, 0
	}
	if q.taken == maxKeptPerSecond {
		q.fullSecond.Store(q.second)
		return true // not dropped: no more decisions of this second should be kept
	}
	q.taken++
	if len(q.waiting) == maxQueued {
		return false
	}
	q.waiting = append(q.waiting, one)
	return true
}

func (q *decisionQueue) take() []queuedDecision {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return nil
	}
	all := q.waiting
	q.waiting = make([]queuedDecision, 0, maxQueued)
	return all
}

// giveBack puts decisions that could not be written back into the queue, as far as there is space,
// and returns how many it dropped.
func (q *decisionQueue) giveBack(all []queuedDecision) (dropped int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	space := min(len(all), maxQueued-len(q.waiting))
	q.waiting = append(q.waiting, all[:space]...)
	return len(all) - space
}

// flushQueue writes the decisions in the queue. Those with a value that the database refuses are
// dropped; others that could not be written go back into the queue.
func (l *Log) flushQueue(ctx context.Context) error {
	unwritten, err := store.WriteRows(l.queue.take(), decisionBatch, func(all []queuedDecision) error { return l.writeDecisions(ctx, all) },
		func(queuedDecision) { l.dropped.Add(1) })
	l.dropped.Add(uint64(l.queue.giveBack(unwritten)))
	return err
}

// writeDecisions writes decisions in one transaction, without those that are too large.
func (l *Log) writeDecisions(ctx context.Context, all []queuedDecision) error {
	tooLarge := 0
	err := l.upkeep(ctx, func(tx *store.Tx) error {
		tooLarge = 0
		for _, one := range all {
			fits, err := tx.KeepDecision(ctx, one.row())
			if err != nil {
				return err
			}
			if !fits {
				tooLarge++
			}
		}
		return nil
	})
	if err == nil {
		l.dropped.Add(uint64(tooLarge))
		l.kept.Add(uint64(len(all) - tooLarge))
	}
	return err
}

func (k *queuedDecision) row() store.KeptDecision {
	row := store.KeptDecision{
		ID: doorward.NewID(doorward.PrefixDecision), TenantID: k.principal.TenantID, At: k.at,
		Kind: k.principal.Kind, ActorID: k.principal.ID, Email: k.principal.Email, OwnerID: k.principal.OwnerID,
		Role: k.principal.Role, Closing: k.principal.TenantStatus == doorward.TenantClosing,
		Action: k.action, Request: k.request, Granted: k.decision.IsGranted(), Allowed: k.decision.Allowed, Refusal: k.decision.Policy(),
	}
	if k.principal.Kind == doorward.ByUser {
		row.AuthAt, row.AAL = k.principal.AuthAt, k.principal.AAL
	}
	return row
}

// fits reports whether the decision is small enough to be kept. Only a resource or properties from
// a service can make it too large, so it encodes only a decision with one of these.
func (k *queuedDecision) fits() bool {
	if k.request.Resource == nil && k.request.Properties == nil {
		return true
	}
	row := k.row()
	return row.Fits()
}

// Sweep deletes decisions that are older than KeepFor allows, and those with a time in the future,
// which were made while the clock was ahead.
func (l *Log) Sweep(ctx context.Context) error {
	return l.inBatches(ctx, func(tx *store.Tx, limit int) (int64, error) {
		return tx.DropDecisions(ctx, tx.Now.Add(-l.queue.retention), limit)
	})
}

// Replay makes a kept decision again under the given rules and policy (nil: no policy). With the
// original rules and policy, Allowed is the same, but Reason may differ.
func Replay(k *store.KeptDecision, rules *doorward.Rules, policy doorward.Policy) decide.Decision {
	p := doorward.Principal{
		Kind: k.Kind, ID: k.ActorID, Email: k.Email, OwnerID: k.OwnerID, TenantID: k.TenantID, TenantStatus: doorward.TenantActive,
		Rules: rules, Role: k.Role, AuthAt: k.AuthAt, Permissions: new(doorward.Permissions),
		AAL: k.AAL,
	}
	if k.Closing {
		p.TenantStatus = doorward.TenantClosing
	}
	if verb, known := rules.Model().Lookup(k.Action); known && k.Granted {
		p.Permissions = rules.Model().GrantOf([]doorward.Action{verb.Permission}).Permissions
	}
	if policy != nil {
		p.Policy = policy.For(&p)
	}
	r := k.Request
	return decide.May(&p, &decide.Question{Action: k.Action, On: p.Tenant(), Request: &r})
}
