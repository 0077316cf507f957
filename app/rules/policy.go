package rules

import (
	"slices"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/cedar"
	"github.com/doorward/doorward/internal/modelfile"
	"github.com/doorward/doorward/store"
)

// Schema returns what policies may name: the actions that roles grant, and the resources
// of the platform.
func Schema(model *doorward.Model, resources []modelfile.Resource) (*cedar.Schema, error) {
	var actions []cedar.Action
	for _, v := range model.Verbs() {
		if v.By == doorward.ByRole {
			actions = append(actions, cedar.Action{Name: string(v.Action), Resource: v.Resource})
		}
	}
	types := map[string]map[string]cedar.Type{}
	for _, r := range resources {
		types[r.Name] = map[string]cedar.Type{}
		for _, a := range r.Attributes {
			types[r.Name][a.Name] = cedar.Type(a.Type)
		}
	}
	return cedar.NewSchema(actions, types)
}

// SchemaOf is Schema for the text of a model; empty for the built-in one.
func SchemaOf(model string) (*cedar.Schema, error) {
	_, schema, err := read(model)
	return schema, err
}

// PoliciesLost returns the ids of the policies of a stored text that have a place in the
// schema of one model and none in that of the next, sorted.
func PoliciesLost(text string, before, after *cedar.Schema) (ids []string, err error) {
	_, off, err := cedar.ParseStored(text, before)
	if err != nil {
		return nil, err
	}
	_, next, err := cedar.ParseStored(text, after)
	for id := range next {
		if _, already := off[id]; !already {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, err
}

// policy is a doorward.Policy. What holds once the latest version has ended takes its
// place at an instant, by itself.
type policy struct {
	latest, confirmed held
	until             time.Time // when the latest ends; zero: never
}

// held is what holds at a time: policies that refuse, and policies that only observe.
type held struct{ enforced, observed *text }

// text is the compiled text of a version.
type text struct {
	version int64
	set     *cedar.Set
}

// compile returns nil where nothing is ever refused or observed.
func compile(p store.Policies, schema *cedar.Schema) (doorward.Policy, error) {
	latest, err := heldBy(p, p.Latest, schema)
	if err != nil {
		return nil, err
	}
	one := policy{latest: latest}
	if p.Latest != nil && p.Latest.ConfirmUntil != nil {
		one.until = *p.Latest.ConfirmUntil
		if one.confirmed, err = heldBy(p, p.Confirmed, schema); err != nil {
			return nil, err
		}
	}
	if one.latest == (held{}) && one.confirmed == (held{}) {
		return nil, nil
	}
	return &one, nil
}

func heldBy(p store.Policies, v *store.PolicyVersion, schema *cedar.Schema) (h held, err error) {
	if h.enforced, err = textOf(p.Refusing(v), schema); err != nil || v == nil || v.Mode != store.PolicyObserves {
		return h, err
	}
	h.observed, err = textOf(v, schema)
	return h, err
}

// textOf returns nil for a version that refuses nothing.
func textOf(v *store.PolicyVersion, schema *cedar.Schema) (*text, error) {
	if v == nil || v.Text == "" {
		return nil, nil
	}
	set, _, err := cedar.ParseStored(v.Text, schema)
	return &text{v.Version, set}, err
}

// Under lets a version of the policies decide about a principal as if it refused, under a
// schema.
func Under(who *doorward.Principal, v store.PolicyVersion, schema *cedar.Schema) error {
	t, err := textOf(&v, schema)
	if err != nil {
		return err
	}
	who.Policy = (&policy{latest: held{enforced: t}}).For(who)
	return nil
}

// For is part of doorward.Policy.
func (p *policy) For(who *doorward.Principal) doorward.PolicyOf {
	of := &policyOf{latest: p.latest.prepare(who), confirmed: p.confirmed.prepare(who), until: p.until}
	if who.Kind == doorward.ByUser {
		of.authAt = who.AuthAt
	}
	return of
}

func (h held) prepare(who *doorward.Principal) heldOf {
	return heldOf{h.enforced.prepare(who), h.observed.prepare(who)}
}

// prepare returns nil for no text.
func (t *text) prepare(who *doorward.Principal) *textFor {
	if t == nil {
		return nil
	}
	return &textFor{t.version, t.set.Prepare(cedar.Principal{
		ID: who.ID, Key: who.Kind == doorward.ByKey, Email: who.Email, Owner: who.OwnerID, Role: string(who.Role), Tenant: who.TenantID,
	})}
}

// policyOf is a doorward.PolicyOf.
type policyOf struct {
	latest, confirmed heldOf
	until             time.Time
	authAt            time.Time // of a user
}

// heldOf is held for one principal.
type heldOf struct{ enforced, observed *textFor }

// textFor is a text, evaluated for one principal as far as that goes.
type textFor struct {
	version int64
	*cedar.Prepared
}

// DependsOnRequest is part of doorward.PolicyOf.
func (p *policyOf) DependsOnRequest(action doorward.Action) bool {
	return !p.until.IsZero() || p.latest.enforced != nil && p.latest.enforced.Conditional(string(action))
}

// Refusal is part of doorward.PolicyOf. Where the instant is unknown, a version that may
// have ended refuses, and so does the one after it.
func (p *policyOf) Refusal(action doorward.Action, r *doorward.Request) *doorward.PolicyRefusal {
	ended := p.ended(r)
	if p.latest.enforced != nil && !ended {
		if refusal := p.refusal(p.latest.enforced, action, r); refusal != nil {
			return refusal
		}
	}
	if p.confirmed.enforced != nil && (ended || r.At.IsZero()) {
		return p.refusal(p.confirmed.enforced, action, r)
	}
	return nil
}

// Refusals is part of doorward.PolicyOf.
func (p *policyOf) Refusals(action doorward.Action, r *doorward.Request) (all []doorward.PolicyRefusal) {
	set := p.latest.enforced
	if p.ended(r) {
		set = p.confirmed.enforced
	}
	if set == nil {
		return nil
	}
	for _, v := range set.Explain(string(action), p.request(r)) {
		all = append(all, *set.refusal(v))
	}
	return all
}

// ended reports whether the latest version has ended.
func (p *policyOf) ended(r *doorward.Request) bool { return !p.until.IsZero() && !r.At.Before(p.until) }

// Observes is part of doorward.PolicyOf.
func (p *policyOf) Observes() bool { return p.latest.observed != nil || p.confirmed.observed != nil }

// Observed is part of doorward.PolicyOf.
func (p *policyOf) Observed(action doorward.Action, r *doorward.Request) *doorward.PolicyRefusal {
	now := p.latest
	if p.ended(r) {
		now = p.confirmed
	}
	if now.observed == nil {
		return nil
	}
	return p.refusal(now.observed, action, r)
}

func (p *policyOf) refusal(set *textFor, action doorward.Action, r *doorward.Request) *doorward.PolicyRefusal {
	if v := set.Refused(string(action)); v.Refused {
		return set.refusal(v)
	}
	if !set.Conditional(string(action)) {
		return nil
	}
	if v := set.Reading(string(action), r.Unreadable); v.Refused {
		return set.refusal(v)
	}
	asked := p.request(r)
	if !r.Deferred {
		return set.refusal(set.Verdict(string(action), asked))
	}
	for _, v := range set.Explain(string(action), asked) {
		if v.Needs != "resource" {
			return set.refusal(v)
		}
	}
	return nil
}

func (t *textFor) refusal(v cedar.Verdict) *doorward.PolicyRefusal {
	if !v.Refused {
		return nil
	}
	return &doorward.PolicyRefusal{PolicyID: v.PolicyID, Reason: v.Reason, Line: v.Line, Version: t.version, Needs: v.Needs}
}

// passwordAAL is the assurance level of a session that began with a password.
const passwordAAL = 1

func (p *policyOf) request(r *doorward.Request) *cedar.Request {
	asked := &cedar.Request{Now: r.Now, IP: r.IP, Method: r.Method, Host: r.Host, Path: r.Path}
	if !p.authAt.IsZero() {
		asked.AAL = passwordAAL
	}
	if !p.authAt.IsZero() && !r.Now.IsZero() {
		age := max(0, r.Now.Sub(p.authAt))
		asked.AuthAge = &age
	}
	if r.Resource != nil {
		asked.Resource = &cedar.Resource{Type: r.Resource.Type, ID: r.Resource.ID, Attributes: r.Resource.Attributes}
	}
	return asked
}
