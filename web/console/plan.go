package console

import (
	"context"
	"slices"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/policy"
	"github.com/doorward/doorward/web/ui"
)

// maxPlanChanges is how many decisions a page shows that would be others.
const maxPlanChanges = 50

// planned is what the typed text would change.
type planned struct {
	Rows    []plannedRow
	Checked int // decisions that were decided again
	Differ  int // of them
	Changes []plannedChange
}

// plannedRow is what becomes of an action, for roles to which the same happens.
type plannedRow struct {
	policyAction
	Roles      []doorward.Role
	Was, Would policy.Outcome
}

// plannedChange is a decision that would be another.
type plannedChange struct {
	policy.Change
	Name, Page string // of who asked for it
	Label      policyAction
}

// ByPolicy is the policy that would refuse; nil where a role decides.
func (c plannedChange) ByPolicy() *policy.Because {
	if b := c.Because[0]; b.Kind == policy.ByPolicy {
		return &b
	}
	return nil
}

// planPolicy shows the page of the policies, with what the typed text would change.
func (h *console) planPolicy(ctx context.Context, c *ui.Call) (ui.View, error) {
	plan, err := h.app.Policies.Plan(ctx, c.Caller, typedPolicy(c), policy.PlanHoursMax)
	if err != nil {
		return ui.View{}, err
	}
	v, err := h.policyPage(ctx, c)
	if body, is := v.Body.(policyPage); err == nil && is {
		body.Plan = body.planned(plan)
		v.Body = body
	}
	return v, err
}

func (p policyPage) planned(plan policy.Plan) *planned {
	labels := map[doorward.Action]policyAction{}
	for _, a := range p.Actions {
		labels[a.Action] = a
	}
	all := &planned{Rows: plannedRows(plan.Matrix, labels), Checked: plan.Checked, Differ: len(plan.Changed)}
	for _, c := range plan.Changed[:min(len(plan.Changed), maxPlanChanges)] {
		one := plannedChange{Change: c, Name: c.ActorEmail, Page: "/console/people/" + c.ActorID, Label: labels[c.Action]}
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

// plannedRows are the cells that change, by action, with the roles that fare alike together.
func plannedRows(matrix []policy.Cell, labels map[doorward.Action]policyAction) (rows []plannedRow) {
	for _, cell := range matrix {
		if cell.Was == cell.Would {
			continue
		}
		i := slices.IndexFunc(rows, func(r plannedRow) bool {
			return r.Action == cell.Action && r.Was == cell.Was && r.Would == cell.Would
		})
		if i < 0 {
			i, rows = len(rows), append(rows, plannedRow{policyAction: labels[cell.Action], Was: cell.Was, Would: cell.Would})
		}
		rows[i].Roles = append(rows[i].Roles, cell.Role)
	}
	slices.SortStableFunc(rows, func(a, b plannedRow) int { return strings.Compare(string(a.Action), string(b.Action)) })
	return rows
}
