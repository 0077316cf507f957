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

var keyNames = []types.String{"now", "ip", "kind", "authAge", "aal", "method", "host", "path", "subject", "action", "resource"}

var allKeys = keys(1)<<len(keyNames) - 1

func (k *keys) add(name types.String) {
	for i, known := range keyNames {
		if known == name {
			*k |= 1 << i
		}
	}
}

// about is one request in the engine's terms, with the policies that it decides.
type about struct {
	open     []*remainder
	entities entities
	request  cedar.Request
	lacks    keys
	missing  bool // the resource
	deferred bool
}

func (p *Prepared) about(action int, request *Request) *about {
	a := &about{deferred: request.Deferred, entities: entities{principal: &p.principal, known: p.set.entities()}}
	var reads keys
	for _, r := range p.open {
		if r.applies(action) {
			a.open = append(a.open, r)
			reads |= r.reads
		}
	}
	of := p.set.schema.actions[action]
	a.request = cedar.Request{Principal: p.principal.UID, Action: actionUID(of.Name), Resource: p.tenant}
	a.request.Context, a.lacks = p.context(reads, request)
	switch {
	case of.Resource == "":
	case request.Resource == nil || request.Resource.Type != of.Resource:
		a.missing = true
	default:
		a.entities.resource = p.set.resource(request.Resource, p.members)
		a.request.Resource = a.entities.resource.UID
	}
	return a
}

// All yields the policies that can be evaluated, as cedar.Authorize takes them.
func (a *about) All() iter.Seq2[cedar.PolicyID, *cedar.Policy] {
	return func(yield func(cedar.PolicyID, *cedar.Policy) bool) {
		for _, r := range a.open {
			if !(a.missing && r.resource) && !yield(cedar.PolicyID(r.id), r.compiled) {
				return
			}
		}
	}
}

// context returns the record of the names that are read, and those that are absent.
func (p *Prepared) context(reads keys, request *Request) (types.Record, keys) {
	if reads == 0 {
		return types.Record{}, 0
	}
	m := make(types.RecordMap, len(keyNames))
	var lacks keys
	for i, name := range keyNames {
		if reads&(1<<i) == 0 {
			continue
		}
		if value := p.contextValue(name, request); value != nil {
			m[name] = value
		} else {
			lacks |= 1 << i
		}
	}
	return types.NewRecord(m), lacks
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

// authorize evaluates the policies together: preparing the evaluation of one costs
// more than evaluating it.
func (a *about) authorize(policies cedar.PolicyIterator) cedar.Diagnostic {
	_, found := cedar.Authorize(policies, &a.entities, a.request)
	return found
}

// judge returns what was found of one policy.
func (a *about) judge(r *remainder, found cedar.Diagnostic) Verdict {
	if a.missing && r.resource {
		return a.judgeWithout(r)
	}
	for _, e := range found.Errors {
		if e.PolicyID == cedar.PolicyID(r.id) {
			return r.verdict(true, a.lacking(r))
		}
	}
	for _, reason := range found.Reasons {
		if r.forbids() && reason.PolicyID == cedar.PolicyID(r.id) {
			return r.verdict(false, "")
		}
	}
	return Verdict{}
}

// permits reports whether a permit surely holds, as far as the resource is known.
func (a *about) permits(r *remainder) bool {
	if a.missing && r.resource {
		left, keep := eval.PartialPolicy(a.withoutResource(), r.rest)
		return keep && (surelyTrue(left) || a.deferred && !surelyErrs(left))
	}
	decision, _ := cedar.Authorize(r, &a.entities, a.request)
	return decision == cedar.Allow
}

func (a *about) withoutResource() eval.Env {
	return eval.Env{
		Entities: &a.entities, Principal: a.request.Principal, Action: a.request.Action,
		Resource: eval.Variable("resource"), Context: a.request.Context,
	}
}

// judgeWithout evaluates a policy that may need the resource, which is not known: it
// refuses unless the rest of the request says that it does not apply.
func (a *about) judgeWithout(r *remainder) Verdict {
	left, keep := eval.PartialPolicy(a.withoutResource(), r.rest)
	switch {
	case keep && surelyErrs(left):
		return r.verdict(true, a.lacking(r))
	case !keep || !r.forbids():
		return Verdict{}
	case surelyTrue(left):
		return r.verdict(false, "")
	case a.deferred:
		return Verdict{}
	}
	return r.verdict(false, "resource")
}

func (a *about) lacking(r *remainder) string {
	for i, name := range keyNames {
		if a.lacks&r.reads&(1<<i) != 0 {
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
