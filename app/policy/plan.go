package policy

import (
	"context"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/cedar"
	"github.com/doorward/doorward/app/decide"
	"github.com/doorward/doorward/app/decisionlog"
	"github.com/doorward/doorward/app/rules"
	"github.com/doorward/doorward/store"
)

// Outcome says whether an action is allowed.
type Outcome string

// The outcomes. Conditional means that it depends on the principal or on the request.
const (
	Allowed     Outcome = "allowed"
	Refused     Outcome = "refused"
	Conditional Outcome = "conditional"
)

// Plan is what a text would change, if it were enforced.
type Plan struct {
	Matrix  []Cell
	Checked int // decisions that were decided again
	Changed []Change
}

// Cell is the outcome of an action for a role, under the policies that refuse now and under
// the text.
type Cell struct {
	Role       doorward.Role
	Action     doorward.Action
	Was, Would Outcome
}

// Change is a stored decision that would have been different under the text.
type Change struct {
	At         time.Time
	ActorType  doorward.PrincipalKind
	ActorID    string
	ActorEmail string // empty for a key, and for callers without user.read
	Action     doorward.Action
	Was, Would Outcome
	Because    []Cause // the causes of Would
}

const (
	// PlanHoursMax is how far back a plan looks, at most.
	PlanHoursMax = 168
	// PlanDecisionsMax is how many decisions are decided again, at most, the newest ones. It
	// bounds the time of the request.
	PlanDecisionsMax = 5000
	planBatch        = 500 // decisions in memory at once
)

// Plan returns what a text would change, for each role and in the stored decisions of the last
// hours, 1 to PlanHoursMax. It writes nothing. Errors: validation_failed, unavailable.
func (p *Policies) Plan(ctx context.Context, by doorward.Caller, d Draft, hours int) (Plan, error) {
	if hours < 1 || hours > PlanHoursMax {
		return Plan{}, doorward.Invalid("/hours", "out_of_range", "Give 1 to 168 hours, or leave it out.")
	}
	if faults := d.checkTimeZone(); len(faults) > 0 {
		return Plan{}, doorward.InvalidFields(faults...)
	}
	if err := p.Check(ctx, d.Text); err != nil {
		return Plan{}, err
	}
	if err := p.writer.Decisions().Flush(ctx); err != nil {
		return Plan{}, err
	}
	t, err := p.newTrial(ctx, by.TenantID, d)
	if err != nil {
		return Plan{}, err
	}
	plan := Plan{Matrix: t.matrix(by.TenantID), Changed: []Change{}}
	readsPeople := decide.May(&by.Principal, &decide.Question{Action: doorward.UserRead, On: by.Tenant(), Request: by.RequestAt(p.db.Now())}).Allowed
	return plan, p.replay(ctx, by.TenantID, hours, func(k *store.KeptDecision) {
		plan.Checked++
		d := decisionlog.Replay(k, t.current, t.would)
		if d.Allowed == k.Allowed {
			return
		}
		c := changeOf(k, d)
		if !readsPeople {
			c.ActorEmail = ""
		}
		plan.Changed = append(plan.Changed, c)
	})
}

// trial has the rules of a tenant, the policies that refuse there now, and a text that would
// refuse in their place.
type trial struct {
	current    *doorward.Rules
	was, would *rules.Trial
}

func (p *Policies) newTrial(ctx context.Context, tenantID string, d Draft) (t trial, err error) {
	read := p.db.Read()
	s, err := stateOf(ctx, read, tenantID, p.db.Now())
	if err != nil {
		return t, err
	}
	if t.current, err = read.Rules(ctx, tenantID); err != nil {
		return t, err
	}
	model, err := modelOf(ctx, read)
	if err != nil {
		return t, err
	}
	refusing := store.PolicyVersion{}
	if v := s.Refusing(&s.inForce); v != nil {
		refusing = *v
	}
	if t.was, err = rules.Try(refusing, model); err == nil {
		t.would, err = rules.Try(store.PolicyVersion{Text: d.Text, TimeZone: d.TimeZone}, model)
	}
	if err != nil {
		return t, doorward.Unavailable(err)
	}
	return t, nil
}

// replay yields the stored decisions of the last hours, the newest first, at most
// PlanDecisionsMax.
func (p *Policies) replay(ctx context.Context, tenantID string, hours int, yield func(*store.KeptDecision)) error {
	now := p.db.Now()
	since := now.Add(-time.Duration(hours) * time.Hour)
	before := doorward.Position{At: now.Add(store.ClockTolerance).UnixMicro()}
	for n := 0; n < PlanDecisionsMax; n += planBatch {
		batch, err := p.db.Read().Decisions(ctx, tenantID, since, before, planBatch)
		if err != nil {
			return err
		}
		for i := range batch {
			if err := ctx.Err(); err != nil {
				return doorward.Unavailable(err)
			}
			yield(&batch[i])
			before = doorward.Position{At: batch[i].At.UnixMicro(), ID: batch[i].ID}
		}
		if len(batch) < planBatch {
			return nil
		}
	}
	return nil
}

// matrix returns a cell for each role and each action that roles grant.
func (t trial) matrix(tenantID string) (all []Cell) {
	for _, role := range t.current.Roles() {
		was, would := t.was.ForRole(tenantID, role), t.would.ForRole(tenantID, role)
		for _, v := range t.current.Model().Verbs() {
			if v.By == doorward.ByRole {
				all = append(all, Cell{role, v.Action, outcome(t.current, role, v, was), outcome(t.current, role, v, would)})
			}
		}
	}
	return all
}

// outcome returns the outcome of an action, from what the role grants and from the policies:
// those of the operator may permit and refuse, those of the tenant only refuse.
func outcome(current *doorward.Rules, role doorward.Role, v doorward.Verb, policies rules.RoleOutcomes) Outcome {
	p := doorward.PrincipalOfRole(current, role)
	isGranted := decide.May(&p, &decide.Question{Action: v.Action, On: p.Tenant()}).Allowed
	worst := policies.Outcome(v.Permission)
	if v.Action != v.Permission {
		worst = max(worst, policies.Outcome(v.Action))
	}
	switch {
	case isGranted && decide.IsExempt(&p, &v):
		return Allowed
	case worst == cedar.RefusesAll || !isGranted && !(v.Platform && policies.MayPermit(v.Action)):
		return Refused
	case worst == cedar.Depends || !isGranted:
		return Conditional
	}
	return Allowed
}

func changeOf(k *store.KeptDecision, d decide.Decision) Change {
	c := Change{
		At: k.At, ActorType: k.Kind, ActorID: k.ActorID, ActorEmail: k.Email, Action: k.Action,
		Was: outcomeOf(k.Allowed), Would: outcomeOf(d.Allowed), Because: []Cause{{Kind: ByRole, ID: string(k.Role)}},
	}
	if d.Policy() != nil {
		c.Because = []Cause{policyCause(d.Policy())}
	}
	return c
}

func outcomeOf(allowed bool) Outcome {
	if allowed {
		return Allowed
	}
	return Refused
}
