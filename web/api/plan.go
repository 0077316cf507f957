package api

import (
	"context"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/policy"
	"github.com/doorward/doorward/web/front"
)

type planInput struct {
	Text     *string    `json:"text" example:"@id(\"closed\") forbid(principal, action == Action::\"message.send\", resource);" doc:"The text to try, in Cedar; empty: no policies"`
	TimeZone string     `json:"timeZone,omitempty" example:"Europe/Berlin" doc:"As in PUT policy"`
	Hours    *front.Int `json:"hours,omitempty" minimum:"1" maximum:"168" example:"24" doc:"How far back decisions are decided again; absent: as far as they are kept"`
}

type planView struct {
	Matrix    []planCell    `json:"matrix" nullable:"false" doc:"Each role of the tenant with each action that roles grant, whether or not the text changes it"`
	Decisions planDecisions `json:"decisions"`
}

type planCell struct {
	Role   doorward.Role   `json:"role" example:"USER"`
	Action doorward.Action `json:"action" example:"message.send"`
	Was    policy.Outcome  `json:"was" enum:"allowed,refused,conditional" doc:"Under the policies that refuse now. conditional: it depends on which user or API key with the role asks, or on the request"`
	Would  policy.Outcome  `json:"would" enum:"allowed,refused,conditional" doc:"Under the text"`
	Users  *planEffect     `json:"users,omitempty" doc:"If something changes for users with the role: what, and why. Of the cells that change only the first 1,000 have it, by the order of the actions"`
	Keys   *planEffect     `json:"keys,omitempty" doc:"The same for API keys that have the role and the permission"`
}

type planEffect struct {
	Was        policy.Outcome  `json:"was" enum:"allowed,refused,conditional"`
	Would      policy.Outcome  `json:"would" enum:"allowed,refused,conditional" doc:"If it is conditional as before, then on other conditions"`
	WasBecause []front.Because `json:"wasBecause" nullable:"false" doc:"The policies that refuse it now, or on which it depends, the first five; without any, the role"`
	Because    []front.Because `json:"because" nullable:"false" doc:"The same under the text"`
}

type planDecisions struct {
	Checked int          `json:"checked" example:"412" doc:"Decisions that were decided again, the newest 5,000 at most"`
	Changed []planChange `json:"changed" nullable:"false" doc:"Decisions that would be different, the newest first"`
}

type planChange struct {
	At      time.Time          `json:"at"`
	Actor   doorward.ActorView `json:"actor"`
	Action  doorward.Action    `json:"action" example:"message.send"`
	Was     policy.Outcome     `json:"was" enum:"allowed,refused" doc:"What was answered"`
	Would   policy.Outcome     `json:"would" enum:"allowed,refused"`
	Because []front.Because    `json:"because" nullable:"false" doc:"Why it would be so"`
}

var docPlanPolicy = front.Doc{
	ID: "planPolicy", Tag: "Policies", Summary: "Show what policies would change",
	WhilePaused: true,
	Description: "Takes a text of policies that is not in force. Shows what it would change for each role, and which of the decisions that were kept it would decide differently. Of decisions, all refusals and 1 in 1,024 permits are kept, at most 100 a second on each node, for as long as `--keep-decisions` says. They are decided again with the roles of now. Changes nothing.",
}

func (a *api) planPolicy(ctx context.Context, c *front.Call, in planInput) (planView, error) {
	if in.Text == nil {
		return planView{}, doorward.Invalid("/text", "required", "Send the policies, or an empty text for none.")
	}
	hours := policy.PlanHoursMax
	if in.Hours != nil {
		hours = int(*in.Hours)
	}
	plan, err := a.app.Policies.Plan(ctx, c.Caller, policy.Draft{Text: *in.Text, TimeZone: in.TimeZone}, hours)
	if err != nil {
		return planView{}, err
	}
	return viewPlan(plan), nil
}

func viewPlan(p policy.Plan) planView {
	view := planView{Matrix: make([]planCell, len(p.Matrix)), Decisions: planDecisions{Checked: p.Checked, Changed: make([]planChange, len(p.Changed))}}
	for i, c := range p.Matrix {
		view.Matrix[i] = planCell{Role: c.Role, Action: c.Action, Was: c.Was, Would: c.Would, Users: viewPlanEffect(&c.Users), Keys: viewPlanEffect(c.Keys)}
	}
	for i, c := range p.Changed {
		view.Decisions.Changed[i] = planChange{
			At: c.At, Actor: doorward.ActorView{Type: c.ActorType, ID: c.ActorID, Email: c.ActorEmail}, Action: c.Action,
			Was: c.Was, Would: c.Would, Because: front.ViewBecause(c.Because),
		}
	}
	return view
}

// viewPlanEffect is nil for an effect that changes nothing, and for one without its causes.
func viewPlanEffect(e *policy.Effect) *planEffect {
	if e == nil || !e.Changes || e.Because.First == nil {
		return nil
	}
	return &planEffect{Was: e.Was, Would: e.Would, WasBecause: front.ViewBecause(e.WasBecause.First), Because: front.ViewBecause(e.Because.First)}
}
