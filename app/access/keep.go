package access

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

const (
	keptPerSecond = 100  // decisions of one node
	keptWaiting   = 300  // in memory; beyond it they are dropped
	keptOneIn     = 1024 // permits
	keptBatch     = 100  // written in one transaction
)

// keeper holds the decisions of the last second until they are written.
type keeper struct {
	full atomic.Int64 // the second, in Unix time, that takes no more

	mu     sync.Mutex
	second int64
	taken  int // in this second
	life   time.Duration
	kept   []kept
}

// kept is a decision as it was made. It is encoded when it is written.
type kept struct {
	at        time.Time
	principal doorward.Principal
	action    doorward.Action
	request   doorward.Request
	decision  Decision
}

// KeepFor sets how long decisions are kept; 0: none are. It must be called before the
// first decision.
func (d *Decisions) KeepFor(life time.Duration) {
	d.keeper.life = life
	d.keeper.kept = make([]kept, 0, keptWaiting)
}

// wants reports whether to keep the decision: a refusal that a role or a policy could change,
// or one of keptOneIn permits.
func (k *keeper) wants(p *doorward.Principal, d Decision) bool {
	if k.life == 0 || p.TenantID == "" || p.Permissions == nil || p.Kind != doorward.ByUser && p.Kind != doorward.ByKey {
		return false
	}
	if d.Allowed {
		return (d.Reason == ReasonRole || d.Reason == ReasonPolicy) && rand.Uint32()%keptOneIn == 0
	}
	switch d.Reason {
	case ReasonRole, ReasonRank, ReasonKey, ReasonTenant, ReasonPolicy:
		return true
	}
	return false // no role or policy could change it, as for an object of another tenant
}

// isFull reports whether a decision of this second was turned away because keptPerSecond were
// taken.
func (k *keeper) isFull(now time.Time) bool { return k.full.Load() == now.Unix() }

// keep adds the decision, unless keptPerSecond of its second were taken. It reports false if
// too many wait, so that the decision is dropped. It doesn't allocate.
func (k *keeper) keep(one kept) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if second := one.at.Unix(); second != k.second {
		k.second, k.taken = second, 0
	}
	if k.taken == keptPerSecond {
		k.full.Store(k.second)
		return true // not dropped: no more of this second are to be kept
	}
	k.taken++
	if len(k.kept) == keptWaiting {
		return false
	}
	k.kept = append(k.kept, one)
	return true
}

func (k *keeper) take() []kept {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.kept) == 0 {
		return nil
	}
	all := k.kept
	k.kept = make([]kept, 0, keptWaiting)
	return all
}

// giveBack keeps what could not be written, as far as there is space, and returns how many
// it dropped.
func (k *keeper) giveBack(all []kept) (dropped int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	space := min(len(all), keptWaiting-len(k.kept))
	k.kept = append(k.kept, all[:space]...)
	return len(all) - space
}

func (d *Decisions) flushKept(ctx context.Context) error {
	rest, err := writeRows(d.keeper.take(), keptBatch, func(all []kept) error { return d.writeKept(ctx, all) },
		func(kept) { d.dropped.Add(1) })
	d.dropped.Add(uint64(d.keeper.giveBack(rest)))
	return err
}

// writeKept writes decisions in one transaction, without those that are too large.
func (d *Decisions) writeKept(ctx context.Context, all []kept) error {
	tooLarge := 0
	err := d.writer.Upkeep(ctx, func(tx *store.Tx) error {
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
		d.dropped.Add(uint64(tooLarge))
		d.keptTotal.Add(uint64(len(all) - tooLarge))
	}
	return err
}

func (k *kept) row() store.KeptDecision {
	row := store.KeptDecision{
		ID: doorward.NewID(doorward.PrefixDecision), TenantID: k.principal.TenantID, At: k.at,
		Kind: k.principal.Kind, ActorID: k.principal.ID, Email: k.principal.Email, OwnerID: k.principal.OwnerID,
		Role: k.principal.Role, Closing: k.principal.TenantStatus == doorward.TenantClosing,
		Action: k.action, Request: k.request, Granted: k.grants(), Allowed: k.decision.Allowed, Refusal: k.decision.policy,
	}
	if k.principal.Kind == doorward.ByUser {
		row.AuthAt, row.AAL = k.principal.AuthAt, k.principal.AAL
	}
	return row
}

// grants reports whether role, rank and key allow the action, whatever policies say.
func (k *kept) grants() bool {
	verb, known := k.principal.Rules.Model().Lookup(k.action)
	return known && k.principal.Permissions.Allow(verb) && (k.decision.Allowed || k.decision.policy != nil)
}

// fits reports whether the decision is small enough to wait in memory. Only a resource or
// properties sent by a service can make it too large, so others aren't encoded.
func (k *kept) fits() bool {
	if k.request.Resource == nil && k.request.Properties == nil {
		return true
	}
	row := k.row()
	return row.Fits()
}

// Sweep deletes decisions older than KeepFor allows, and those from the future, made while
// the clock was ahead.
func (d *Decisions) Sweep(ctx context.Context) error {
	return d.writer.InBatches(ctx, func(tx *store.Tx, limit int) (int64, error) {
		return tx.DropDecisions(ctx, tx.Now.Add(-d.keeper.life), limit)
	})
}

// Replay decides a kept decision again under the given rules and policy (nil: no policy). With
// the original rules and policy it gives the same Allowed, but perhaps another Reason.
func Replay(k *store.KeptDecision, rules *doorward.Rules, policy doorward.Policy) Decision {
	p := doorward.Principal{
		Kind: k.Kind, ID: k.ActorID, Email: k.Email, OwnerID: k.OwnerID, TenantID: k.TenantID, TenantStatus: doorward.TenantActive,
		Rules: rules, Role: k.Role, AuthAt: k.AuthAt, AAL: max(1, k.AAL), Permissions: new(doorward.Permissions),
	}
	if k.Closing {
		p.TenantStatus = doorward.TenantClosing
	}
	if verb, known := rules.Model().Lookup(k.Action); known && k.Granted {
		p.Permissions = rules.Model().GrantOf([]doorward.Action{verb.Through}).Permissions
	}
	if policy != nil {
		p.Policy = policy.For(&p)
	}
	r := k.Request
	return can(&p, k.Action, &ownTenant, &r)
}
