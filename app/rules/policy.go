package rules

import (
	"errors"
	"regexp"
	"slices"
	"time"
	_ "time/tzdata" // for systems without a database of time zones, such as containers

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/cedar"
	"github.com/doorward/doorward/app/modelfile"
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
	c, err := compileModel(model)
	return c.schema, err
}

// PoliciesLost returns the ids of the policies of a stored text that are valid under the
// schema of one model and not under that of the next, sorted.
func PoliciesLost(text string, before, after *cedar.Schema) (ids []string, err error) {
	_, invalidBefore, err := cedar.ParseStored(text, before)
	if err != nil {
		return nil, err
	}
	_, invalidAfter, err := cedar.ParseStored(text, after)
	for id := range invalidAfter {
		if _, already := invalidBefore[id]; !already {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, err
}

// policy is a doorward.Policy. If the latest version has an end, confirmed is in force from
// then on.
type policy struct {
	operator          *text // policies of the model; nil: none
	latest, confirmed inForce
	until             time.Time // when the latest ends; zero: never
}

// inForce are the policies in force at a time: those that refuse, and those that only observe.
type inForce struct{ enforced, observed *text }

// text is the compiled text of a version.
type text struct {
	set      *cedar.Set
	version  int64
	operator bool // it is the operator's text, which has no version
}

// compile returns nil if there are no policies.
func compile(p store.Policies, model compiledModel) (doorward.Policy, error) {
	schema := model.schema
	latest, err := compileVersion(p, p.Latest, schema)
	if err != nil {
		return nil, err
	}
	compiled := policy{operator: model.operatorText(), latest: latest}
	if p.Latest != nil && p.Latest.ConfirmUntil != nil {
		compiled.until = *p.Latest.ConfirmUntil
		if compiled.confirmed, err = compileVersion(p, p.Confirmed, schema); err != nil {
			return nil, err
		}
	}
	if compiled.operator == nil && compiled.latest == (inForce{}) && compiled.confirmed == (inForce{}) {
		return nil, nil
	}
	return &compiled, nil
}

// compileVersion compiles the policies that apply while v is the version in force.
func compileVersion(p store.Policies, v *store.PolicyVersion, schema *cedar.Schema) (f inForce, err error) {
	if f.enforced, err = textOf(p.Refusing(v), schema); err != nil || v == nil || v.Mode != store.PolicyObserves {
		return f, err
	}
	f.observed, err = textOf(v, schema)
	return f, err
}

// timeZoneForm matches the names of the IANA database, and no others that a system's copy may have, such as
// right/Europe/Berlin: a node without these could not read the policies.
var timeZoneForm = regexp.MustCompile(`^[A-Z][A-Za-z0-9_+-]{0,30}(/[A-Z][A-Za-z0-9_+-]{0,30}){0,2}$`)

// TimeZone returns the time zone of a name in the IANA database, such as Europe/Berlin; UTC for the empty
// name. The database is part of the program, for systems that have none.
func TimeZone(name string) (*time.Location, error) {
	if name == "" {
		return time.UTC, nil
	}
	if name == "Local" || !timeZoneForm.MatchString(name) { // Local would be another zone on each node
		return nil, errUnknownTimeZone
	}
	return time.LoadLocation(name)
}

var errUnknownTimeZone = errors.New("rules: unknown time zone")

// textOf compiles the text of a version; nil without a version, or for an empty text.
func textOf(v *store.PolicyVersion, schema *cedar.Schema) (*text, error) {
	if v == nil || v.Text == "" {
		return nil, nil
	}
	zone, err := TimeZone(v.TimeZone)
	if err != nil {
		return nil, err
	}
	set, _, err := cedar.ParseStored(v.Text, schema)
	if err != nil {
		return nil, err
	}
	set.In(zone)
	return &text{set: set, version: v.Version}, nil
}

// For implements doorward.Policy.
func (p *policy) For(principal *doorward.Principal) doorward.PrincipalPolicies {
	prepared := &principalPolicies{operator: p.operator.prepare(principal), latest: p.latest.prepare(principal), confirmed: p.confirmed.prepare(principal), until: p.until}
	if principal.Kind == doorward.ByUser {
		prepared.authAt, prepared.aal = principal.AuthAt, principal.AAL
	}
	return prepared
}

// ForDeclared implements doorward.Policy.
func (p *policy) ForDeclared(id string, stated map[string]any) doorward.PrincipalPolicies {
	if p.operator == nil || !p.operator.set.Schema().Declares(modelfile.TypeUser, id) {
		return nil
	}
	principal := cedar.Principal{Type: modelfile.TypeUser, ID: id, Attributes: stated}
	return &principalPolicies{operator: &preparedText{p.operator, p.operator.set.Prepare(principal)}}
}

// Declared implements doorward.Policy.
func (p *policy) Declared(kind string) []string {
	if p.operator == nil {
		return nil
	}
	return p.operator.set.Schema().Declared(kind)
}

func (f inForce) prepare(principal *doorward.Principal) preparedPolicies {
	return preparedPolicies{f.enforced.prepare(principal), f.observed.prepare(principal)}
}

// prepare returns nil for no text.
func (t *text) prepare(principal *doorward.Principal) *preparedText {
	if t == nil {
		return nil
	}
	return &preparedText{t, t.set.Prepare(cedar.Principal{
		ID: principal.ID, Key: principal.Kind == doorward.ByKey, Email: principal.Email, Owner: principal.OwnerID, Role: t.roleOf(principal.Role), Tenant: principal.TenantID,
	})}
}

// roleOf returns the role that the policies see. The operator's policies don't see a tenant's
// own role: the tenant could give it a name that one of them permits.
func (t *text) roleOf(role doorward.Role) string {
	if t.operator && !role.IsBuiltIn() {
		return ""
	}
	return string(role)
}

// principalPolicies is a doorward.PrincipalPolicies.
type principalPolicies struct {
	operator          *preparedText
	latest, confirmed preparedPolicies
	until             time.Time
	authAt            time.Time // of a user
	aal               int       // of a user's session
}

// preparedPolicies is inForce, evaluated for one principal as far as possible without a request.
type preparedPolicies struct{ enforced, observed *preparedText }

// preparedText is a text, evaluated in the same way.
type preparedText struct {
	text *text
	*cedar.Prepared
}

// DependsOnRequest implements doorward.PrincipalPolicies.
func (p *principalPolicies) DependsOnRequest(action doorward.Action) bool {
	return !p.until.IsZero() || p.operator.isConditional(action) || p.latest.enforced.isConditional(action)
}

func (t *preparedText) isConditional(action doorward.Action) bool {
	return t != nil && t.Conditional(string(action))
}

// Permit implements doorward.PrincipalPolicies.
func (p *principalPolicies) Permit(action doorward.Action, r *doorward.Request) *doorward.PolicyPermit {
	if p.operator == nil {
		return nil
	}
	permit, ok := p.operator.Permit(string(action), p.request(r))
	if !ok {
		return nil
	}
	return &permit
}

// Refusal implements doorward.PrincipalPolicies. If the time of the request is unknown, so that the latest
// version may have ended, that version and the confirmed one both refuse.
func (p *principalPolicies) Refusal(action doorward.Action, r *doorward.Request) *doorward.PolicyRefusal {
	if refusal := p.refusal(p.operator, action, r); refusal != nil {
		return refusal
	}
	ended := p.hasEnded(r)
	if !ended {
		if refusal := p.refusal(p.latest.enforced, action, r); refusal != nil {
			return refusal
		}
	}
	if ended || r.At.IsZero() {
		return p.refusal(p.confirmed.enforced, action, r)
	}
	return nil
}

// Refusals implements doorward.PrincipalPolicies.
func (p *principalPolicies) Refusals(action doorward.Action, r *doorward.Request) (all []doorward.PolicyRefusal) {
	for _, t := range []*preparedText{p.operator, p.current(r).enforced} {
		if t == nil {
			continue
		}
		for _, v := range t.Explain(string(action), p.request(r)) {
			all = append(all, *t.refusal(v))
		}
	}
	return all
}

// current returns the tenant's policies that are in force at the time of the request.
func (p *principalPolicies) current(r *doorward.Request) preparedPolicies {
	if p.hasEnded(r) {
		return p.confirmed
	}
	return p.latest
}

// hasEnded reports whether the latest version has ended at the time of the request.
func (p *principalPolicies) hasEnded(r *doorward.Request) bool {
	return !p.until.IsZero() && !r.At.Before(p.until)
}

// Observes implements doorward.PrincipalPolicies.
func (p *principalPolicies) Observes() bool {
	return p.latest.observed != nil || p.confirmed.observed != nil
}

// ObservedRefusal implements doorward.PrincipalPolicies.
func (p *principalPolicies) ObservedRefusal(action doorward.Action, r *doorward.Request) *doorward.PolicyRefusal {
	return p.refusal(p.current(r).observed, action, r)
}

func (p *principalPolicies) refusal(set *preparedText, action doorward.Action, r *doorward.Request) *doorward.PolicyRefusal {
	if set == nil {
		return nil
	}
	if v := set.Refused(string(action)); v.Refused {
		return set.refusal(v)
	}
	if !set.Conditional(string(action)) {
		return nil
	}
	return set.refusal(set.Verdict(string(action), p.request(r)))
}

func (t *preparedText) refusal(v cedar.Verdict) *doorward.PolicyRefusal {
	if !v.Refused {
		return nil
	}
	return &doorward.PolicyRefusal{PolicyID: v.PolicyID, Reason: v.Reason, Line: v.Line, Version: t.text.version, ByOperator: t.text.operator, Needs: v.Needs}
}

func (p *principalPolicies) request(r *doorward.Request) *cedar.Request {
	asked := &cedar.Request{Now: r.Now, IP: r.IP, Method: r.Method, Host: r.Host, Path: r.Path, Unreadable: r.Unreadable, Resource: r.Resource, Deferred: r.Deferred}
	if !p.authAt.IsZero() {
		asked.AAL = p.aal
	}
	if !p.authAt.IsZero() && !r.Now.IsZero() {
		age := max(0, r.Now.Sub(p.authAt))
		asked.AuthAge = &age
	}
	if stated := r.Properties; stated != nil {
		asked.SubjectSays, asked.ActionSays, asked.ResourceSays = stated.Subject, stated.Action, stated.Resource
	}
	return asked
}
