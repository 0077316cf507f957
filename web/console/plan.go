package console

import (
	"cmp"
	"context"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/policy"
	"github.com/doorward/doorward/web/ui"
)

// maxPlanChanges is how many decisions with another outcome a page shows.
const maxPlanChanges = 50

// planned is what the typed text would change.
type planned struct {
	Effect  *effect
	Checked int             // recorded decisions that were decided again
	Differ  int             // how many of them have another outcome
	Changes []plannedChange // the first maxPlanChanges of those
}

// plannedChange is a recorded decision that would have another outcome.
type plannedChange struct {
	policy.Change
	Name, Page string // of the person or key that asked for it; Page is a path
	Label      policyAction
}

// ByPolicy is the policy that would refuse; nil where a role decides.
func (c plannedChange) ByPolicy() *policy.Cause {
	if b := c.Because[0]; b.Kind == policy.ByPolicy {
		return &b
	}
	return nil
}

// planPolicy shows the page of the policies, with what the typed text would change.
func (h *console) planPolicy(ctx context.Context, c *ui.Call) (ui.View, error) {
	plan, err := h.app.Policies.Plan(ctx, c.Caller, policy.Draft{Text: typedPolicy(c), TimeZone: c.Value("timeZone")}, policy.PlanHoursMax)
	if err != nil {
		return ui.View{}, err
	}
	v, err := h.policyPage(ctx, c)
	if body, ok := v.Body.(policyPage); err == nil && ok {
		body.Plan = body.planned(plan)
		v.Body = body
	}
	return v, err
}

func (p policyPage) planned(plan policy.Plan) *planned {
	labels, wasLines := actionLabels(p.Actions), ""
	if p.Refusing.Text != "" {
		wasLines = "#L"
	}
	all := &planned{Effect: effectOf(effectSource{plan.Matrix, wasLines, "#T", labels}), Checked: plan.Checked, Differ: len(plan.Changed)}
	for _, c := range plan.Changed[:min(len(plan.Changed), maxPlanChanges)] {
		one := plannedChange{Change: c, Name: cmp.Or(c.ActorEmail, c.ActorID), Page: "/console/people/" + c.ActorID, Label: labels[c.Action]}
		if c.ActorType == doorward.ByKey {
			one.Name, one.Page = c.ActorID, "/console/keys/"+c.ActorID
		}
		if one.Label.Action == "" {
			one.Label.Action = c.Action // of an earlier model
		}
		all.Changes = append(all.Changes, one)
	}
	return all
}
