package api

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/policy"
	"github.com/doorward/doorward/web/front"
)

type policyView struct {
	Version      int64       `json:"version" example:"3" doc:"0: there have never been policies"`
	Text         string      `json:"text" example:"@id(\"closed\") forbid(principal, action == Action::\"message.send\", resource);" doc:"Cedar, see /docs/policies; empty: no policies"`
	Mode         policy.Mode `json:"mode" enum:"enforce,observe"`
	UpdatedAt    *time.Time  `json:"updatedAt,omitempty" doc:"Absent for version 0"`
	UpdatedBy    string      `json:"updatedBy,omitempty" example:"usr_5tqm7x3yh4n6rj7wd2c5tpae7k" doc:"Id of a user; absent for version 0"`
	ConfirmUntil *time.Time  `json:"confirmUntil,omitempty" doc:"When the version ends, and the last confirmed one holds again, unless it is confirmed before"`
	TimeZone     string      `json:"timeZone" example:"Europe/Berlin" doc:"IANA name of the time zone in which the text reads context.hour and context.weekday"`
	Enforced     int64       `json:"enforcedVersion,omitempty" example:"2" doc:"Only for a version that observes: the version that refuses while this one observes; absent: none"`
	Observed     []observed  `json:"observed,omitempty" doc:"Only if the current version observes: what its policies would have refused since it began, in the order of the text"`
}

type observed struct {
	ID      string `json:"id" example:"closed"`
	Refused int64  `json:"refused" example:"17" doc:"Decisions that the policy would have been the first to refuse"`
}

func viewPolicy(v policy.Version) policyView {
	view := policyView{Version: v.Version, Text: v.Text, Mode: v.Mode, UpdatedBy: v.CreatedBy, ConfirmUntil: v.ConfirmUntil, TimeZone: cmp.Or(v.TimeZone, "UTC"), Enforced: v.Enforced}
	if v.Version > 0 {
		view.UpdatedAt = &v.CreatedAt
	}
	return view
}

func viewCurrentPolicy(c *front.Call, inForce policy.InForce) policyView {
	c.SetVersion(policy.Tag(inForce.PolicyVersion))
	view := viewPolicy(inForce.PolicyVersion)
	for _, o := range inForce.Observed {
		view.Observed = append(view.Observed, observed(o))
	}
	return view
}

var docPolicy = front.Doc{
	ID: "getPolicy", Tag: "Policies", Summary: "Show the policies of the tenant",
	Description: "The version that holds now. One that observes refuses nothing: `observed` counts what it would have refused, on all nodes up to a second ago, and `enforcedVersion` goes on to refuse.",
	Versioned:   true,
}

func (a *api) policy(ctx context.Context, c *front.Call, _ front.None) (policyView, error) {
	v, err := a.app.Policies.Current(ctx, c.Caller)
	if err != nil {
		return policyView{}, err
	}
	return viewCurrentPolicy(c, v), nil
}

// maxPolicyBody is the largest body with policies, in bytes: JSON may write a character of
// their 64 KiB as six.
const maxPolicyBody = 1 << 20

type policyInput struct {
	Text           *string    `json:"text" example:"@id(\"closed\") forbid(principal, action == Action::\"message.send\", resource);" doc:"Cedar, \"forbid\" alone, each policy with an @id; empty for no policies"`
	Mode           *string    `json:"mode,omitempty" enum:"enforce,observe" doc:"Default enforce. observe: the text refuses nothing, what it would refuse is counted, and what refused before goes on to refuse, unless it is the same text"`
	TimeZone       string     `json:"timeZone,omitempty" example:"Europe/Berlin" doc:"IANA name of the time zone in which the text reads context.hour and context.weekday; absent: UTC"`
	ConfirmMinutes *front.Int `json:"confirmMinutes,omitempty" minimum:"1" maximum:"60" example:"10" doc:"The version ends by itself after this time unless it is confirmed; absent: it holds for good"`
}

var docPutPolicy = front.Doc{
	ID: "putPolicy", Tag: "Policies", Summary: "Replace the policies of the tenant",
	Description: "In force on every node before the answer. Policies only refuse: what a role doesn't allow, no policy does. They can't refuse an OWNER policy.read and policy.manage, nor anybody the end of sessions, nor the restoring of the tenant. In `errors`, each fault of the text has its `line` and `column`. All versions are kept.",
	Versioned:   true, MustMatch: true,
	Errors: []doorward.Code{doorward.CodeStepUpRequired, doorward.CodeQuotaExceeded},
}

func (a *api) putPolicy(ctx context.Context, c *front.Call, in policyInput) (policyView, error) {
	tags, err := c.NeedVersions()
	if err != nil {
		return policyView{}, err
	}
	if in.Text == nil {
		return policyView{}, doorward.Invalid("/text", "required", "Send the policies, or an empty text for none.")
	}
	d := policy.Draft{Text: *in.Text, TimeZone: in.TimeZone}
	if in.Mode != nil {
		if d.Mode = policy.Mode(*in.Mode); d.Mode == "" {
			return policyView{}, doorward.Invalid("/mode", "invalid", "The mode is enforce or observe; leave it out for enforce.")
		}
	}
	if in.ConfirmMinutes != nil {
		if d.ConfirmMinutes = int(*in.ConfirmMinutes); d.ConfirmMinutes == 0 {
			return policyView{}, doorward.Invalid("/confirmMinutes", "out_of_range", "Give 1 to 60 minutes to confirm, or leave it out.")
		}
	}
	changed, err := a.app.Policies.Put(ctx, c.Caller, d, tags)
	return viewChangedPolicy(c, changed, err)
}

func viewChangedPolicy(c *front.Call, changed policy.Changed, err error) (policyView, error) {
	if err != nil {
		return policyView{}, err
	}
	c.SetRevocation(changed.Revocation)
	return viewCurrentPolicy(c, changed.InForce), nil
}

type policySchema struct {
	Schema string `json:"schema" example:"entity Role;\nentity Tenant;\n" doc:"In Cedar's syntax for schemas"`
}

var docPolicySchema = front.Doc{
	ID: "getPolicySchema", Tag: "Policies", Summary: "Show what policies may name",
	Description: "The actions, the attributes of principal, resource and context, and their types: those of Doorward and of the platform's model.",
}

func (a *api) policySchema(ctx context.Context, _ *front.Call, _ front.None) (policySchema, error) {
	text, err := a.app.Policies.Schema(ctx)
	return policySchema{text}, err
}

type policyList struct {
	Items []policyView `json:"items" nullable:"false"`
	front.PageInfo
}

var docPolicyVersions = front.Doc{
	ID: "listPolicyVersions", Tag: "Policies", Summary: "List all versions of the tenant's policies",
	Description: "The newest first. A version with `confirmUntil` in the past was never confirmed, and has ended.",
	List:        true,
	Sort:        []string{"version"},
}

func (a *api) policyVersions(ctx context.Context, c *front.Call, _ front.None) (out policyList, err error) {
	out.Items, out.PageInfo, err = front.List(ctx, c, a.app.Policies.Versions, viewPolicy)
	return out, err
}

var docRestorePolicy = front.Doc{
	ID: "restorePolicyVersion", Tag: "Policies", Summary: "Restore an earlier version of the policies",
	Description: "Makes a new version with the text and mode of the earlier one. In force on every node before the answer.",
	Versioned:   true, Conditional: true,
	Errors: []doorward.Code{doorward.CodeStepUpRequired, doorward.CodeNotFound, doorward.CodePreconditionFailed, doorward.CodeValidationFailed},
}

func (a *api) restorePolicy(ctx context.Context, c *front.Call, _ front.None) (policyView, error) {
	version, err := strconv.ParseInt(c.R.PathValue("version"), 10, 64)
	if err != nil {
		return policyView{}, doorward.Fail(doorward.CodeNotFound, "")
	}
	changed, err := a.app.Policies.Restore(ctx, c.Caller, version, c.Versions())
	return viewChangedPolicy(c, changed, err)
}

var docConfirmPolicy = front.Doc{
	ID: "confirmPolicy", Tag: "Policies", Summary: "Confirm the version in force",
	Description: "Confirms a version that was put with `confirmMinutes`, so that it no longer ends by itself. The session must still be allowed to read the tenant and its people: a version that locks its author out can't be confirmed, and ends by itself. With `If-Match` only the version that the caller has seen is confirmed.",
	Versioned:   true, Conditional: true,
	Errors: []doorward.Code{doorward.CodeNotFound, doorward.CodePreconditionFailed},
}

func (a *api) confirmPolicy(ctx context.Context, c *front.Call, _ front.None) (policyView, error) {
	changed, err := a.app.Policies.Confirm(ctx, c.Caller, c.Versions())
	return viewChangedPolicy(c, changed, err)
}
