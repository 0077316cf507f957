package console

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/policy"
	"github.com/doorward/doorward/internal/linediff"
	"github.com/doorward/doorward/web/ui"
)

// maxPolicyForm is the largest form with policies, in bytes. The text has up to 64 KiB; a
// browser encodes a byte of it as up to three, and a line break as six.
const maxPolicyForm = 1 << 20

// defaultConfirmMinutes is the time to confirm a version unless another one is chosen.
const defaultConfirmMinutes = 10

// policyModes are the modes to choose from.
var policyModes = []policy.Mode{policy.Enforces, policy.Observes}

// policyVersion is a version of the policies as the pages show it.
type policyVersion struct {
	policy.Version
	By      string // memberName of its author; empty for somebody who has left
	Current bool   // it is in force, or observes in place of an earlier one that goes on refusing
	Refuses bool   // what it forbids is refused now
	now     time.Time
}

// Avatar is shown in place of a picture of the author.
func (v policyVersion) Avatar() ui.Avatar { return ui.Avatar{Name: v.By, ID: v.CreatedBy} }

// Lines are the lines of the text.
func (v policyVersion) Lines() []string { return linediff.Lines(v.Text) }

// Unconfirmed reports whether the version is in force, and ends unless it is confirmed.
func (v policyVersion) Unconfirmed() bool { return v.Current && v.ConfirmUntil != nil }

// Observing reports whether what the version would refuse is counted now.
func (v policyVersion) Observing() bool { return v.Current && v.Observes() }

// Observes reports whether the version refuses nothing.
func (v policyVersion) Observes() bool { return v.Mode == policy.Observes }

// Expired reports whether the version has ended because it was not confirmed.
func (v policyVersion) Expired() bool { return v.ConfirmUntil != nil && !v.now.Before(*v.ConfirmUntil) }

// TimeLeft is the rest of the time to confirm the version.
func (v policyVersion) TimeLeft() time.Duration { return v.ConfirmUntil.Sub(v.now) }

// refusing returns the number of the version that refuses while current is in force; 0 for none.
func refusing(current policy.Version) int64 {
	switch current.Mode {
	case policy.Enforces:
		return current.Version
	case policy.Observes:
		return current.Enforced
	}
	return 0 // a mode of a newer version of Doorward
}

// policyVersion returns the version as shown. current is the one in force.
func (h *console) policyVersion(ctx context.Context, c *ui.Call, v, current policy.Version) (policyVersion, error) {
	one := policyVersion{Version: v, Current: v.Version == current.Version, Refuses: v.Version == refusing(current), now: c.Now()}
	if v.CreatedBy == "" {
		return one, nil
	}
	author, err := h.memberName(ctx, c, v.CreatedBy)
	if doorward.HasCode(err, doorward.CodeNotFound) {
		return one, nil
	}
	one.By = author
	return one, err
}

// policyPage is the page of the policies, with the editor.
type policyPage struct {
	pageData
	Now      policyVersion     // the version in force
	Refusing policyVersion     // the one that refuses while Now only observes; else Now
	Observed []policy.Observed // what a version that only observes would have refused
	Typed    string            // text in the editor
	Modes    []policy.Mode
	Mode     policy.Mode // chosen
	Faults   []policyFault
	// Changes are what the typed text changes; nil if none was sent, or if it changes nothing.
	Changes    *linediff.Diff
	Plan       *planned // nil unless it was asked for
	Effect     *effect  // what a version changes that waits to be confirmed; nil for others
	Minutes    string   // time to confirm, as typed
	TimeZone   string   // as typed
	MaxMinutes int64
	Examples   []string // for an empty editor
	Types      string   // what policies may name, as in a Cedar schema
	Actions    []policyAction
}

// FoldsRefusing reports whether the text in force is folded, since the page shows what matters more: a
// plan, faults of the typed text, or a text that is observed.
func (p policyPage) FoldsRefusing() bool {
	return p.Plan != nil || len(p.Faults) > 0 || p.Now.Observes()
}

// EditsRefusing reports whether the editor has the text that refuses, so that the page shows it once.
func (p policyPage) EditsRefusing() bool { return p.Typed == p.Refusing.Text }

// Version returns the tag of the version in force, for forms.
func (p policyPage) Version() string { return policy.Tag(p.Now.Version) }

// Rows is the height of the editor.
func (p policyPage) Rows() int { return min(max(len(linediff.Lines(p.Typed))+2, 10), 30) }

// TypedLines are the lines in the editor.
func (p policyPage) TypedLines() []string { return linediff.Lines(p.Typed) }

// FaultAt reports whether a line, counted from 0, has a fault.
func (p policyPage) FaultAt(index int) bool {
	return slices.ContainsFunc(p.Faults, func(f policyFault) bool { return f.Line == index+1 })
}

// policyFault is a fault in the typed text.
type policyFault struct {
	doorward.FieldError
	Text string // of its line
}

// policyAction is an action that policies may name.
type policyAction struct {
	Action   doorward.Action
	Resource string // its type; empty for the tenant
	Key      string // of the message that describes it; empty for none
	About    string // the model's description
}

func (h *console) policyPage(ctx context.Context, c *ui.Call) (ui.View, error) {
	s, err := h.pageData(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	current, err := h.app.Policies.Current(ctx, c.Caller)
	if err != nil {
		return ui.View{}, err
	}
	body := policyPage{pageData: s, MaxMinutes: policy.ConfirmMinutesMax, Observed: current.Observed, Modes: policyModes, Actions: policyActions(c.Caller.Rules)}
	if body.Now, err = h.policyVersion(ctx, c, current.PolicyVersion, current.PolicyVersion); err != nil {
		return ui.View{}, err
	}
	if body.Refusing, err = h.refusingVersion(ctx, c, body.Now); err != nil {
		return ui.View{}, err
	}
	schema, err := h.app.Policies.Schema(ctx)
	if err != nil {
		return ui.View{}, err
	}
	body.Types, _, _ = strings.Cut(schema, "\naction ")
	_, note := keepTyped(c, body.Version(), "notice.policy.precondition_failed", nil)
	if err := h.fillEditor(ctx, c, &body); err != nil {
		return ui.View{}, err
	}
	if body.Now.Unconfirmed() {
		effect, err := h.app.Policies.ConfirmMatrix(ctx, c.Caller)
		if err != nil {
			return ui.View{}, err
		}
		body.Effect = effectOfVersions(c.Site().BasePath(), effect, c.Caller.Rules)
	}
	return ui.View{Page: "policy", Note: note, Body: body, Wide: true}, nil
}

// refusingVersion returns the version that refuses while now is in force; version 0 for none.
func (h *console) refusingVersion(ctx context.Context, c *ui.Call, now policyVersion) (policyVersion, error) {
	number := refusing(now.Version)
	switch number {
	case now.Version.Version:
		return now, nil
	case 0:
		return policyVersion{}, nil
	}
	v, err := h.app.Policies.Get(ctx, c.Caller, number)
	if err != nil {
		return policyVersion{}, err
	}
	return h.policyVersion(ctx, c, v, now.Version)
}

// fillEditor puts into the editor what was sent, or else an earlier version or an example
// that the form or the query names, or else the text in force.
func (h *console) fillEditor(ctx context.Context, c *ui.Call, p *policyPage) error {
	p.Minutes, p.Mode, p.TimeZone = strconv.Itoa(defaultConfirmMinutes), p.Now.Mode, cmp.Or(p.Now.TimeZone, "UTC")
	if c.Value("version") != "" { // sent
		p.Examples = p.examples()
		p.Typed, p.Minutes, p.Mode, p.TimeZone = cmp.Or(policyExamples[c.Value("example")], typedPolicy(c)), c.Value("confirmMinutes"), policy.Mode(c.Value("mode")), c.Value("timeZone")
		if changes := linediff.Compare(p.Now.Text, p.Typed); len(changes.Hunks) > 0 {
			p.Changes = &changes
		}
		p.Faults = policyFaults(c, p.Typed)
		return nil
	}
	q := c.R.URL.Query()
	p.Typed = p.Now.Text
	p.Examples = p.examples()
	number, err := strconv.ParseInt(q.Get("from"), 10, 64)
	if err != nil {
		return nil
	}
	from, err := h.app.Policies.Get(ctx, c.Caller, number)
	p.Typed, p.TimeZone = from.Text, cmp.Or(from.TimeZone, "UTC")
	return err
}

// examples are the names of the examples to start from, while no text is in force.
func (p policyPage) examples() []string {
	if p.Now.Text != "" {
		return nil
	}
	return policyExampleNames
}

// typedPolicy is the text of the editor. Browsers send a line break as two characters.
func typedPolicy(c *ui.Call) string { return strings.ReplaceAll(c.Value("text"), "\r\n", "\n") }

func policyFaults(c *ui.Call, text string) (all []policyFault) {
	lines := linediff.Lines(text)
	for _, f := range c.FieldErrors() {
		if f.Pointer != "/text" {
			continue
		}
		one := policyFault{FieldError: f}
		if f.Line > 0 && f.Line <= len(lines) {
			one.Text = lines[f.Line-1]
		}
		all = append(all, one)
	}
	return all
}

// policyActions are the actions that policies may name, as in package app/rules.
func policyActions(rules *doorward.Rules) (all []policyAction) {
	for _, v := range rules.Model().Verbs() {
		if v.By != doorward.ByRole {
			continue
		}
		one := policyAction{Action: v.Action, Resource: v.Resource}
		if v.IsPermission() {
			one.Key, one.About = "can."+string(v.Action), ui.Describe(rules.Model(), v.Action).About
		} else if key := "tried." + string(v.Action); messageKeys()[key] {
			one.Key = key // an action that was refused
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b policyAction) int { return strings.Compare(string(a.Action), string(b.Action)) })
	return all
}

// policyExampleNames are the examples, in the order in which they are shown.
var policyExampleNames = []string{"hours", "network", "signin", "keys"}

// policyExamples are texts to start from. They name only what every model has.
var policyExamples = map[string]string{
	"hours": `@id("office-hours")
@reason("People are invited from Monday to Friday between 8 and 18 o'clock.")
forbid(principal, action == Action::"user.invite", resource)
unless { context.weekday <= 5 && context.hour >= 8 && context.hour < 18 };
`,
	"network": `@id("own-network")
@reason("Settings are changed from the office only.")
forbid(principal, action == Action::"settings.manage", resource)
unless { context.ip.isInRange(ip("192.0.2.0/24")) };
`,
	"signin": `@id("recent-sign-in")
@reason("Sign in again: your sign-in is more than an hour old.")
forbid(principal, action == Action::"user.manage", resource)
when { context has authAge && context.authAge > 3600 };
`,
	"keys": `@id("no-trail-for-keys")
@reason("The audit trail is for people.")
forbid(principal is Key, action == Action::"audit.read", resource);
`,
}

func (h *console) putPolicy(ctx context.Context, c *ui.Call) (ui.View, error) {
	d := policy.Draft{Text: typedPolicy(c), Mode: policy.Mode(c.Value("mode")), TimeZone: strings.TrimSpace(c.Value("timeZone"))}
	minutes, faults := optionalNumber(c, "confirmMinutes", nil)
	if len(faults) > 0 || minutes != nil && (*minutes < 1 || *minutes > policy.ConfirmMinutesMax) {
		return ui.View{}, doorward.Invalid("/confirmMinutes", "out_of_range", "Give 1 to 60 minutes, or leave it out.")
	}
	if minutes != nil {
		d.ConfirmMinutes = int(*minutes)
	}
	changed, err := h.app.Policies.Put(ctx, c.Caller, d, version(c))
	c.SetRevocation(changed.Revocation)
	return redirectDone(c, policyPath, "policy", nil), err
}

func (h *console) confirmPolicy(ctx context.Context, c *ui.Call) (ui.View, error) {
	changed, err := h.app.Policies.Confirm(ctx, c.Caller, version(c))
	c.SetRevocation(changed.Revocation)
	return redirectDone(c, policyPath, "policy-confirm", nil), err
}

// confirmAgain is the page after a refused confirmation. It drops that form, which has a version
// but no text: fillEditor takes a form with a version for the editor's.
func (h *console) confirmAgain(ctx context.Context, c *ui.Call) (ui.View, error) {
	c.KeepOnly()
	return h.policyPage(ctx, c)
}

// policyVersions is the list of versions.
type policyVersions struct {
	pageData
	pager
	Items []policyVersion
}

func (h *console) policyVersions(ctx context.Context, c *ui.Call) (ui.View, error) {
	s, err := h.pageData(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	pages, window, err := readWindow(ctx, c, nil, sorting{})
	if err != nil {
		return ui.View{}, err
	}
	body := policyVersions{pageData: s, pager: pages}
	current, err := h.app.Policies.Current(ctx, c.Caller)
	if err != nil {
		return ui.View{}, err
	}
	found, err := h.app.Policies.Versions(ctx, c.Caller, window)
	for _, v := range found.Items {
		one, err := h.policyVersion(ctx, c, v, current.PolicyVersion)
		if err != nil {
			return ui.View{}, err
		}
		body.Items = append(body.Items, one)
	}
	if err == nil {
		body.Total = found.Total
		err = body.setLinks(ctx, c, len(found.Items), found.Prev, found.Next)
	}
	return ui.View{Page: "policyversions", Body: body, Wide: true}, err
}

// policyVersionPage is the page of one version.
type policyVersionPage struct {
	pageData
	Shown          policyVersion
	Now            policyVersion // the version in force
	Before         int64         // number of the previous version; 0 for none
	Changes        linediff.Diff // what the version changed in the previous one
	RestoreChanges linediff.Diff // what restoring it would change in the version in force
	Effect         *effect       // of restoring it, on the page that asks
}

// Version returns the tag of the version in force, for forms.
func (p policyVersionPage) Version() string { return policy.Tag(p.Now.Version) }

// RestoreChangesNothing reports whether restoring the version would change nothing.
func (p policyVersionPage) RestoreChangesNothing() bool {
	return p.Shown.Text == p.Now.Text && p.Shown.Mode == p.Now.Mode && p.Shown.TimeZone == p.Now.TimeZone && p.Now.ConfirmUntil == nil
}

func (h *console) policyVersionPage(ctx context.Context, c *ui.Call) (ui.View, error) {
	body, err := h.loadPolicyVersion(ctx, c)
	return ui.View{Page: "policyversion", Body: body, Wide: true}, err
}

func (h *console) askRestore(ctx context.Context, c *ui.Call) (ui.View, error) {
	body, err := h.loadPolicyVersion(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	effect, err := h.app.Policies.RestoreMatrix(ctx, c.Caller, body.Shown.Version.Version)
	body.Effect = effectOfVersions(c.Site().BasePath(), effect, c.Caller.Rules)
	_, note := keepTyped(c, body.Version(), changedSince, nil)
	return ui.View{Page: "policyrestore", Note: note, Body: body, Wide: true}, err
}

// loadPolicyVersion returns the version that the path names.
func (h *console) loadPolicyVersion(ctx context.Context, c *ui.Call) (p policyVersionPage, err error) {
	number, err := policyNumber(c)
	if err != nil {
		return p, err
	}
	if p.pageData, err = h.pageData(ctx, c); err != nil {
		return p, err
	}
	shown, err := h.app.Policies.Get(ctx, c.Caller, number)
	if err != nil {
		return p, err
	}
	before := policy.Version{}
	if p.Before = number - 1; p.Before > 0 {
		if before, err = h.app.Policies.Get(ctx, c.Caller, p.Before); err != nil {
			return p, err
		}
	}
	current, err := h.app.Policies.Current(ctx, c.Caller)
	if err != nil {
		return p, err
	}
	p.Changes, p.RestoreChanges = linediff.Compare(before.Text, shown.Text), linediff.Compare(current.Text, shown.Text)
	if p.Shown, err = h.policyVersion(ctx, c, shown, current.PolicyVersion); err != nil {
		return p, err
	}
	p.Now, err = h.policyVersion(ctx, c, current.PolicyVersion, current.PolicyVersion)
	return p, err
}

// policyNumber returns the number of the version that the path names.
func policyNumber(c *ui.Call) (int64, error) {
	number, err := strconv.ParseInt(c.R.PathValue("version"), 10, 64)
	if err != nil || number < 1 {
		return 0, doorward.Fail(doorward.CodeNotFound, "")
	}
	return number, nil
}

func (h *console) restorePolicy(ctx context.Context, c *ui.Call) (ui.View, error) {
	number, err := policyNumber(c)
	if err != nil {
		return ui.View{}, err
	}
	changed, err := h.app.Policies.Restore(ctx, c.Caller, number, version(c))
	c.SetRevocation(changed.Revocation)
	return redirectDone(c, policyPath, "policy-restore", nil), err
}
