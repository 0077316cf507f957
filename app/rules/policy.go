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
			actions = append(actions, cedar.Action{Name: string(v.Action), Resource: v.Resource, Platform: v.Platform})
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
	c, err := read(model)
	return c.schema, err
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

// policy is a doorward.Policy. The confirmed set takes the place of the latest one at an
// instant, by itself.
type policy struct {
	operator          *cedar.Set // nil: says nothing
	latest, confirmed *cedar.Set // nil: refuses nothing
	until             time.Time  // when the latest ends; zero: never
}

// compile returns nil where no policy says anything.
func compile(p store.Policies, model compiledModel) (doorward.Policy, error) {
	schema := model.schema
	latest, err := setOf(p.Latest, schema)
	if err != nil {
		return nil, err
	}
	one := policy{operator: model.operator, latest: latest}
	if p.Latest != nil && p.Latest.ConfirmUntil != nil {
		one.until = *p.Latest.ConfirmUntil
		if one.confirmed, err = setOf(p.Confirmed, schema); err != nil {
			return nil, err
		}
	}
	if one.operator == nil && one.latest == nil && one.confirmed == nil {
		return nil, nil
	}
	return &one, nil
}

// setOf returns nil for a version that refuses nothing.
func setOf(v *store.PolicyVersion, schema *cedar.Schema) (*cedar.Set, error) {
	if v == nil || v.Text == "" || v.Mode != store.PolicyEnforces {
		return nil, nil
	}
	set, _, err := cedar.ParseStored(v.Text, schema)
	return set, err
}

// For is part of doorward.Policy.
func (p *policy) For(who *doorward.Principal) doorward.PolicyOf {
	of := &policyOf{operator: prepare(p.operator, who), latest: prepare(p.latest, who), confirmed: prepare(p.confirmed, who), until: p.until}
	if who.Kind == doorward.ByUser {
		of.authAt = who.AuthAt
	}
	return of
}

// ForDeclared is part of doorward.Policy.
func (p *policy) ForDeclared(id string, stated map[string]any) doorward.PolicyOf {
	if p.operator == nil || !p.operator.Schema().Declares(modelfile.TypeUser, id) {
		return nil
	}
	return &policyOf{operator: p.operator.Prepare(cedar.Principal{Type: modelfile.TypeUser, ID: id, Attributes: stated})}
}

// Declared is part of doorward.Policy.
func (p *policy) Declared(kind string) []string {
	if p.operator == nil {
		return nil
	}
	return p.operator.Schema().Declared(kind)
}

func prepare(set *cedar.Set, who *doorward.Principal) *cedar.Prepared {
	if set == nil {
		return nil
	}
	return set.Prepare(cedar.Principal{
		ID: who.ID, Key: who.Kind == doorward.ByKey, Email: who.Email, Owner: who.OwnerID, Role: string(who.Role), Tenant: who.TenantID,
	})
}

// policyOf is a doorward.PolicyOf.
type policyOf struct {
	operator          *cedar.Prepared // of the model
	latest, confirmed *cedar.Prepared
	until             time.Time
	authAt            time.Time // of a user
}

// DependsOnRequest is part of doorward.PolicyOf.
func (p *policyOf) DependsOnRequest(action doorward.Action) bool {
	return !p.until.IsZero() || isConditional(p.latest, action) || isConditional(p.operator, action)
}

func isConditional(set *cedar.Prepared, action doorward.Action) bool {
	return set != nil && set.Conditional(string(action))
}

// Permit is part of doorward.PolicyOf.
func (p *policyOf) Permit(action doorward.Action, r *doorward.Request) *doorward.PolicyPermit {
	if p.operator == nil {
		return nil
	}
	permit, ok := p.operator.Permit(string(action), p.request(r))
	if !ok {
		return nil
	}
	return (*doorward.PolicyPermit)(&permit)
}

// Refusal is part of doorward.PolicyOf. Where the instant is unknown, a version that may
// have ended refuses, and so does the one after it.
func (p *policyOf) Refusal(action doorward.Action, r *doorward.Request) *doorward.PolicyRefusal {
	if p.operator != nil {
		if refusal := p.refusal(p.operator, action, r); refusal != nil {
			refusal.ByOperator = true
			return refusal
		}
	}
	ended := !p.until.IsZero() && !r.At.Before(p.until)
	if p.latest != nil && !ended {
		if refusal := p.refusal(p.latest, action, r); refusal != nil {
			return refusal
		}
	}
	if p.confirmed != nil && (ended || r.At.IsZero()) {
		return p.refusal(p.confirmed, action, r)
	}
	return nil
}

func (p *policyOf) refusal(set *cedar.Prepared, action doorward.Action, r *doorward.Request) *doorward.PolicyRefusal {
	if v := set.Refused(string(action)); v.Refused {
		return refusalOf(v)
	}
	if !set.Conditional(string(action)) {
		return nil
	}
	if v := set.Reading(string(action), r.Unreadable); v.Refused {
		return refusalOf(v)
	}
	return refusalOf(set.Verdict(string(action), p.request(r)))
}

func refusalOf(v cedar.Verdict) *doorward.PolicyRefusal {
	if !v.Refused {
		return nil
	}
	return &doorward.PolicyRefusal{PolicyID: v.PolicyID, Reason: v.Reason, Line: v.Line, Needs: v.Needs}
}

// passwordAAL is the assurance level of a session that began with a password.
const passwordAAL = 1

func (p *policyOf) request(r *doorward.Request) *cedar.Request {
	asked := &cedar.Request{Now: r.Now, IP: r.IP, Method: r.Method, Host: r.Host, Path: r.Path, Deferred: r.Deferred}
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
	if said := r.Properties; said != nil {
		asked.SubjectSays, asked.ActionSays, asked.ResourceSays = said.Subject, said.Action, said.Resource
	}
	return asked
}
