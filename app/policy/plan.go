package policy

import (
	"context"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/decide"
	"github.com/doorward/doorward/app/decisionlog"
	"github.com/doorward/doorward/store"
)

// Outcome says whether an action is allowed.
type Outcome string

// The outcomes. Conditional means that a condition of a policy, or the operator's permit, reads who
// exactly asks, or the request, so that the decider can't tell without them. Both results needn't occur:
// a condition that holds for every request is not seen to do so.
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
	// planReserve is how much of the request's time is left for the answer: 5,000 decisions of as many people, under
	// 200 policies that read who asks, took 4 s.
	planReserve = 500 * time.Millisecond
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
	s, err := stateOf(ctx, p.db.Read(), by.TenantID, p.db.Now())
	if err != nil {
		return Plan{}, err
	}
	t, err := p.newTrial(ctx, by.TenantID, s.Refusing(&s.inForce), &Version{Text: d.Text, TimeZone: d.TimeZone})
	if err != nil {
		return Plan{}, err
	}
	plan := Plan{Changed: []Change{}}
	if plan.Matrix, err = t.matrix(ctx); err != nil {
		return Plan{}, err
	}
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

// replay yields the stored decisions of the last hours, the newest first, at most
// PlanDecisionsMax, and fewer if the time of the request is nearly over.
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
			if at, isBounded := ctx.Deadline(); isBounded && time.Until(at) < planReserve {
				return nil
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
