package cedar

import (
	"encoding/json"
	"iter"
	"math"
	"net/netip"
	"time"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/eval"
)

// Request is what is known of one request. What has its zero value is absent.
type Request struct {
	Now      time.Time
	IP       netip.Addr
	AuthAge  *time.Duration // since the person proved who they are; whole seconds count
	AAL      int
	Method   string
	Host     string
	Path     string
	Resource *Resource // of an action that declares a type; the tenant is known
	// Deferred: the question is asked again, with the resource. Until then no policy
	// refuses, and each permit holds, that depends on it.
	Deferred bool

	// What a caller says of the parties: context.subject, .action and .resource in
	// policies of ParsePlatform, which are records with nothing in them without.
	SubjectSays, ActionSays, ResourceSays map[string]any
}

// Resource is what an action is done to. An attribute that is absent, or whose value
// is not of its type, makes the policies err that read it.
type Resource struct {
	Type, ID   string
	Attributes map[string]any
}

// keys is a set of names of the context.
type keys uint

var keyNames = [...]types.String{"now", "ip", "kind", "authAge", "aal", "method", "host", "path", "subject", "action", "resource"}

var allKeys = keys(1)<<len(keyNames) - 1

func (k *keys) add(name types.String) {
	for i, known := range keyNames {
		if known == name {
			*k |= 1 << i
		}
	}
}

// Values of a request beside those of the context, which come first.
const (
	actionSlot = len(keyNames) + iota
	resourceSlot
	slots
)

// about is one request for one action. What policies read of it is made when the first
// one reads it.
type about struct {
	*Prepared
	action  int
	asked   *Request
	of      types.EntityUID // the resource
	missing bool            // the resource
	values  [slots]types.Value
	known   keys // the values that are made
	members []member
	engine  *engine
}

// member is an attribute of the resource; its value is nil where it is absent.
type member struct {
	name  types.String
	value types.Value
}

func (p *Prepared) about(action int, request *Request) *about {
	a := &about{Prepared: p, action: action, asked: request, of: p.tenant}
	switch declared := p.set.schema.actions[action].Resource; {
	case declared == "":
	case request.Resource == nil || request.Resource.Type != declared:
		a.missing = true
	default:
		a.of = types.NewEntityUID(types.EntityType(declared), types.String(request.Resource.ID))
	}
	return a
}

// value returns the value of a slot, nil where it is absent.
func (a *about) value(slot int) types.Value {
	if a.known&(1<<slot) == 0 {
		a.known |= 1 << slot
		a.values[slot] = a.make(slot)
	}
	return a.values[slot]
}

func (a *about) make(slot int) types.Value {
	switch slot {
	case actionSlot:
		return actionUID(a.set.schema.actions[a.action].Name)
	case resourceSlot:
		return a.of
	}
	return a.contextValue(keyNames[slot], a.asked)
}

// member returns an attribute of the resource, nil where it is absent.
func (a *about) member(name types.String) types.Value {
	for _, m := range a.members {
		if m.name == name {
			return m.value
		}
	}
	value := a.attribute(name)
	a.members = append(a.members, member{name, value})
	return value
}

func (a *about) attribute(name types.String) types.Value {
	switch {
	case a.set.platform:
		e, _ := a.inEngine().entities.Get(a.of)
		value, _ := e.Attributes.Get(name)
		return value
	case a.of == a.tenant:
		return nil
	}
	return a.set.attribute(a.asked.Resource, name)
}

// engine is a request in the terms of cedar-go.
type engine struct {
	entities entities
	request  cedar.Request
	found    *cedar.Diagnostic // of the policies that are not compiled
}

func (a *about) inEngine() *engine {
	if a.engine != nil {
		return a.engine
	}
	var reads keys
	for _, r := range a.open {
		if r.applies(a.action) {
			reads |= r.reads
		}
	}
	a.engine = &engine{entities: entities{principal: &a.principal, known: a.set.entities()}}
	a.engine.request = cedar.Request{
		Principal: a.principal.UID, Action: actionUID(a.set.schema.actions[a.action].Name), Resource: a.of, Context: a.context(reads, a.asked),
	}
	if a.of != a.tenant {
		a.engine.entities.resource = a.set.resource(a.asked.Resource, a.reads)
	}
	return a.engine
}

// All yields the policies that are not compiled and can be evaluated, as
// cedar.Authorize takes them.
func (a *about) All() iter.Seq2[cedar.PolicyID, *cedar.Policy] {
	return func(yield func(cedar.PolicyID, *cedar.Policy) bool) {
		for _, r := range a.open {
			if r.condition == nil && r.applies(a.action) && !(a.missing && r.resource) && !yield(cedar.PolicyID(r.id), r.inEngine) {
				return
			}
		}
	}
}

// context returns the record of the names that are read.
func (p *Prepared) context(reads keys, request *Request) types.Record {
	if reads == 0 {
		return types.Record{}
	}
	m := make(types.RecordMap, len(keyNames))
	for i, name := range keyNames {
		if reads&(1<<i) == 0 {
			continue
		}
		if value := p.contextValue(name, request); value != nil {
			m[name] = value
		}
	}
	return types.NewRecord(m)
}

func (p *Prepared) contextValue(name types.String, r *Request) types.Value {
	switch {
	case name == "kind":
		return p.kind
	case name == "now" && !r.Now.IsZero():
		return types.NewDatetime(r.Now)
	case name == "ip" && r.IP.IsValid():
		ip := r.IP.Unmap().WithZone("")
		return types.IPAddr(netip.PrefixFrom(ip, ip.BitLen()))
	case name == "authAge" && r.AuthAge != nil:
		return types.Long(*r.AuthAge / time.Second)
	case name == "aal" && r.AAL != 0:
		return types.Long(r.AAL)
	case name == "method" && r.Method != "":
		return types.String(r.Method)
	case name == "host" && r.Host != "":
		return types.String(r.Host)
	case name == "path" && r.Path != "":
		return types.String(r.Path)
	case name == "subject" && p.set.platform:
		return record(r.SubjectSays)
	case name == "action" && p.set.platform:
		return record(r.ActionSays)
	case name == "resource" && p.set.platform:
		return record(r.ResourceSays)
	}
	return nil
}

// result evaluates a policy for which everything that it reads is known.
func (a *about) result(r *residual) result {
	if r.condition != nil {
		return r.condition(a)
	}
	found := a.found()
	for _, e := range found.Errors {
		if e.PolicyID == cedar.PolicyID(r.id) {
			return errs
		}
	}
	for _, reason := range found.Reasons {
		if reason.PolicyID == cedar.PolicyID(r.id) {
			return yes
		}
	}
	return no
}

// found evaluates the policies that are not compiled, all at once: preparing the
// evaluation of one costs more than evaluating it.
func (a *about) found() *cedar.Diagnostic {
	e := a.inEngine()
	if e.found == nil {
		_, found := cedar.Authorize(a, &e.entities, e.request)
		e.found = &found
	}
	return e.found
}

// refuses says whether a policy refuses: no, yes, errs, or lacks for want of the resource.
func (a *about) refuses(r *residual) result {
	if a.missing && r.resource {
		return a.refusesWithout(r)
	}
	if o := a.result(r); o != yes || r.isForbid() {
		return o
	}
	return no
}

// verdict returns what is to be said of a policy that refuses.
func (a *about) verdict(r *residual, by result) Verdict {
	switch by {
	case errs:
		return r.verdict(true, a.lacking(r))
	case lacks:
		return r.verdict(false, "resource")
	}
	return r.verdict(false, "")
}

// permits reports whether a permit applies, whatever is not yet known of the resource. It
// can't use result, since cedar-go names no permits if another policy forbids.
func (a *about) permits(r *residual) bool {
	switch {
	case a.missing && r.resource:
		left, keep := eval.PartialPolicy(a.withoutResource(), r.rest)
		return keep && (alwaysTrue(left) || a.asked.Deferred && !alwaysErrs(left))
	case r.condition != nil:
		return r.condition(a) == yes
	}
	e := a.inEngine()
	decision, _ := cedar.Authorize(r, &e.entities, e.request)
	return decision == cedar.Allow
}

func (a *about) withoutResource() eval.Env {
	e := a.inEngine()
	return eval.Env{
		Entities: &e.entities, Principal: e.request.Principal, Action: e.request.Action,
		Resource: eval.Variable("resource"), Context: e.request.Context,
	}
}

// refusesWithout evaluates a policy that may need the resource, which is not known: it
// refuses unless the rest of the request says that it does not apply.
func (a *about) refusesWithout(r *residual) result {
	left, keep := eval.PartialPolicy(a.withoutResource(), r.rest)
	switch {
	case keep && alwaysErrs(left):
		return errs
	case !keep || !r.isForbid():
		return no
	case alwaysTrue(left):
		return yes
	case a.asked.Deferred:
		return no
	}
	return lacks
}

// lacking returns the first name that the policy reads and the request lacks.
func (a *about) lacking(r *residual) string {
	for i, name := range keyNames {
		if r.reads&(1<<i) != 0 && a.value(i) == nil {
			return string(name)
		}
	}
	return ""
}

// entities are the entities of one request.
type entities struct {
	principal, resource *types.Entity
	known               types.EntityMap
}

// Get is part of types.EntityGetter.
func (e *entities) Get(uid types.EntityUID) (types.Entity, bool) {
	switch {
	case uid == e.principal.UID:
		return *e.principal, true
	case e.resource != nil && uid == e.resource.UID:
		return *e.resource, true
	}
	return e.known.Get(uid)
}

// value returns a Go value in the engine's terms, nil where it is not of the type.
func (t Type) value(v any) types.Value {
	switch t {
	case Bool:
		if v, ok := v.(bool); ok {
			return types.Boolean(v)
		}
	case Long:
		return long(v)
	case String:
		if v, ok := v.(string); ok {
			return types.String(v)
		}
	case Strings:
		return set(v)
	case User:
		if v, ok := v.(string); ok {
			return types.NewEntityUID(typeUser, types.String(v))
		}
	case Datetime:
		return datetime(v)
	case Decimal:
		return parsed(v, types.ParseDecimal)
	case IP:
		return parsed(v, types.ParseIPAddr)
	}
	return nil
}

func parsed[T types.Value](v any, parse func(string) (T, error)) types.Value {
	text, _ := v.(string)
	if value, err := parse(text); err == nil {
		return value
	}
	return nil
}

func long(v any) types.Value {
	switch v := v.(type) {
	case int:
		return types.Long(v)
	case int64:
		return types.Long(v)
	case float64:
		// Above 2⁵³ a float64 does not hold every whole number.
		if v == math.Trunc(v) && math.Abs(v) <= 1<<53 {
			return types.Long(v)
		}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return types.Long(n)
		}
	}
	return nil
}

func set(v any) types.Value {
	var values []types.Value
	switch v := v.(type) {
	case []string:
		for _, s := range v {
			values = append(values, types.String(s))
		}
	case []any:
		for _, e := range v {
			s, ok := e.(string)
			if !ok {
				return nil
			}
			values = append(values, types.String(s))
		}
	default:
		return nil
	}
	return types.NewSet(values...)
}

func datetime(v any) types.Value {
	switch v := v.(type) {
	case time.Time:
		return types.NewDatetime(v)
	case string:
		if t, err := time.Parse(time.RFC3339, v); err == nil {
			return types.NewDatetime(t)
		}
	}
	return nil
}
