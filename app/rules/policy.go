package rules

import (
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

// policy is a doorward.Policy. The confirmed set takes the place of the latest one at an
// instant, by itself.
type policy struct {
	latest, confirmed *cedar.Set // nil: refuses nothing
	until             time.Time  // when the latest ends; zero: never
}

// compile returns nil where nothing is ever refused.
func compile(p store.Policies, schema *cedar.Schema) (doorward.Policy, error) {
	latest, err := setOf(p.Latest, schema)
	if err != nil {
		return nil, err
	}
	one := policy{latest: latest}
	if p.Latest != nil && p.Latest.ConfirmUntil != nil {
		one.until = *p.Latest.ConfirmUntil
		if one.confirmed, err = setOf(p.Confirmed, schema); err != nil {
			return nil, err
		}
	}
	if one.latest == nil && one.confirmed == nil {
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
	of := &policyOf{latest: prepare(p.latest, who), confirmed: prepare(p.confirmed, who), until: p.until}
	if who.Kind == doorward.ByUser {
		of.authAt = who.AuthAt
	}
	return of
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
	latest, confirmed *cedar.Prepared
	until             time.Time
	authAt            time.Time // of a user
}

// DependsOnRequest is part of doorward.PolicyOf.
func (p *policyOf) DependsOnRequest(action doorward.Action) bool {
	return !p.until.IsZero() || p.latest.Conditional(string(action))
}

// Refusal is part of doorward.PolicyOf. Where the instant is unknown, a version that may
// have ended refuses, and so does the one after it.
func (p *policyOf) Refusal(action doorward.Action, r *doorward.Request) *doorward.PolicyRefusal {
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
	asked := p.request(r)
	if !r.Deferred {
		return refusalOf(set.Verdict(string(action), asked))
	}
	for _, v := range set.Explain(string(action), asked) {
		if v.Needs != "resource" {
			return refusalOf(v)
		}
	}
	return nil
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
