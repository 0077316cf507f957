package cedar

import (
	"cmp"
	"encoding/json"
	"iter"
	"maps"
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/eval"

	"github.com/doorward/doorward"
)

// Request is what is known of one request. A field with its zero value is absent.
type Request struct {
	Now     time.Time
	IP      netip.Addr
	AuthAge *time.Duration // since the person proved who they are; fractions of seconds are cut
	AAL     int
	Method  string
	Host    string
	Path    string
	// Resource is of an action that declares a type; others act on the tenant. A policy errs if it reads
	// an attribute that is absent, or whose value is not of its type.
	Resource *doorward.Resource
	// Deferred: the caller asks again, with the resource. Until then a forbid that depends on
	// the resource doesn't refuse, and a permit that depends on it permits.
	Deferred bool
	// Unreadable are names of the context that can't be read. A policy that reads one errs, even if
	// it only asks whether it is there.
	Unreadable []string

	// What a caller says of the parties: context.subject, .action and .resource in
	// policies of ParsePlatform, which are empty records if it says nothing.
	SubjectSays, ActionSays, ResourceSays map[string]any
}

// nameSet is a set of names of the context, with a bit for each of contextNames.
type nameSet uint

var contextNames = [...]types.String{"now", "weekday", "hour", "ip", "kind", "authAge", "aal", "method", "host", "path", "subject", "action", "resource"}

var allNames = nameSet(1)<<len(contextNames) - 1

// statedNames are subject, action and resource, the last three: what a caller says of the parties.
const statedNames = nameSet(7) << (len(contextNames) - 3)

func (n *nameSet) add(name types.String) {
	for i, known := range contextNames {
		if known == name {
			*n |= 1 << i
		}
	}
}

// The slots of a request's values: those of the context come first.
const (
	actionSlot = len(contextNames) + iota
	resourceSlot
	slots
)

// evaluation evaluates policies for one action and request. A value that they read is made
// when the first one reads it.
type evaluation struct {
	*Prepared
	action          int
	request         *Request
	resource        types.EntityUID // the tenant if the action declares no type, or if resourceMissing
	resourceMissing bool            // the action declares a type, and the request has no resource of it
	unreadable      nameSet
	values          [slots]types.Value
	made            uint           // a bit for each slot whose value was made, even if it is absent
	attributes      []attribute    // those that were read
	engine          *engineRequest // nil until forEngine
}

// attribute is one of the resource; its value is nil where it is absent.
type attribute struct {
	name  types.String
	value types.Value
}

func (p *Prepared) newEvaluation(action int, request *Request) *evaluation {
	e := &evaluation{Prepared: p, action: action, request: request, resource: p.tenant}
	for _, name := range request.Unreadable {
		e.unreadable.add(types.String(name))
	}
	switch declared := p.set.schema.actions[action].Resource; {
	case declared == "":
	case request.Resource == nil || request.Resource.Type != declared:
		e.resourceMissing = true
	default:
		e.resource = types.NewEntityUID(types.EntityType(declared), types.String(request.Resource.ID))
	}
	return e
}

// value returns the value of a slot, nil where it is absent.
func (e *evaluation) value(slot int) types.Value {
	if e.made&(1<<slot) == 0 {
		e.made |= 1 << slot
		e.values[slot] = e.makeValue(slot)
	}
	return e.values[slot]
}

func (e *evaluation) makeValue(slot int) types.Value {
	switch slot {
	case actionSlot:
		return actionUID(e.set.schema.actions[e.action].Name)
	case resourceSlot:
		return e.resource
	}
	return e.contextValue(contextNames[slot], e.request)
}

// attribute returns an attribute of the resource, nil where it is absent.
func (e *evaluation) attribute(name types.String) types.Value {
	for _, known := range e.attributes {
		if known.name == name {
			return known.value
		}
	}
	value := e.findAttribute(name)
	e.attributes = append(e.attributes, attribute{name, value})
	return value
}

func (e *evaluation) findAttribute(name types.String) types.Value {
	switch {
	case e.set.platform:
		resource, _ := e.forEngine().entities.Get(e.resource)
		value, _ := resource.Attributes.Get(name)
		return value
	case e.resource == e.tenant:
		return nil
	}
	return e.set.attribute(e.request.Resource, name)
}

// engineRequest is a request as cedar-go takes it.
type engineRequest struct {
	entities   entities
	request    cedar.Request
	diagnostic *cedar.Diagnostic // of the policies that are not compiled; nil until diagnose
}

func (e *evaluation) forEngine() *engineRequest {
	if e.engine != nil {
		return e.engine
	}
	var reads nameSet
	for _, r := range e.conditional {
		if r.applies(e.action) {
			reads |= r.reads
		}
	}
	e.engine = &engineRequest{entities: entities{principal: &e.principal, known: e.set.entities()}}
	e.engine.request = cedar.Request{
		Principal: e.principal.UID, Action: actionUID(e.set.schema.actions[e.action].Name), Resource: e.resource, Context: e.context(reads, e.request),
	}
	if e.resource != e.tenant {
		e.engine.entities.resource = e.set.resource(e.request.Resource, e.resourceReads)
	}
	return e.engine
}

// All yields the policies that are not compiled, without those that need a missing resource,
// as cedar.Authorize takes them.
func (e *evaluation) All() iter.Seq2[cedar.PolicyID, *cedar.Policy] {
	return func(yield func(cedar.PolicyID, *cedar.Policy) bool) {
		for _, r := range e.conditional {
			if r.enginePolicy != nil && r.applies(e.action) && !(e.resourceMissing && r.readsResource) && !yield(cedar.PolicyID(r.id), r.enginePolicy) {
				return
			}
		}
	}
}

// context returns the record of the names that are read.
func (p *Prepared) context(reads nameSet, request *Request) types.Record {
	if reads == 0 {
		return types.Record{}
	}
	m := make(types.RecordMap, len(contextNames))
	for i, name := range contextNames {
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
	case name == "weekday" && !r.Now.IsZero():
		return types.Long((r.Now.In(p.set.timeZone()).Weekday()+6)%7 + 1)
	case name == "hour" && !r.Now.IsZero():
		return types.Long(r.Now.In(p.set.timeZone()).Hour())
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

// result evaluates a policy that doesn't read a missing resource.
func (e *evaluation) result(r *residual) result {
	switch {
	case r.condition != nil:
		return r.condition(e)
	case r.hasLike:
		return e.resultOfEngine(r)
	}
	diagnostic := e.diagnose()
	for _, fault := range diagnostic.Errors {
		if fault.PolicyID == cedar.PolicyID(r.id) {
			return errs
		}
	}
	for _, reason := range diagnostic.Reasons {
		if reason.PolicyID == cedar.PolicyID(r.id) {
			return yes
		}
	}
	return no
}

// resultOfEngine evaluates a policy that is not compiled, and has a "like".
func (e *evaluation) resultOfEngine(r *residual) result {
	engine := e.forEngine()
	value, err := eval.Eval(eval.PolicyToNode(matchAllLikes(r.rest, e.find)).AsIsNode(), eval.Env{
		Entities: &engine.entities, Principal: engine.request.Principal, Action: engine.request.Action,
		Resource: engine.request.Resource, Context: engine.request.Context,
	})
	holds, isBool := value.(types.Boolean)
	if err != nil || !isBool {
		return errs
	}
	return resultOf(bool(holds))
}

// find is a lookup of what the request has.
func (e *evaluation) find(object, name types.String) (value types.Value, known bool) {
	switch object {
	case "context":
		return e.contextValue(name, e.request), true
	case "resource":
		if !e.resourceMissing {
			return e.attribute(name), true
		}
	}
	return nil, false
}

// diagnose evaluates the policies that are compiled neither here nor have a "like", all at once: preparing the
// evaluation of one costs more than evaluating it.
func (e *evaluation) diagnose() *cedar.Diagnostic {
	engine := e.forEngine()
	if engine.diagnostic == nil {
		_, diagnostic := cedar.Authorize(e, &engine.entities, engine.request)
		engine.diagnostic = &diagnostic
	}
	return engine.diagnostic
}

// refusal says whether a policy refuses: no, yes, errs, or needsResource.
func (e *evaluation) refusal(r *residual) result {
	switch {
	case e.isUnreadable(r):
		return errs
	case e.resourceMissing && r.readsResource:
		return e.refusalWithoutResource(r)
	}
	if o := e.result(r); o != yes || r.isForbid() {
		return o
	}
	return no
}

// verdict returns the verdict of a policy that refuses, for the reason that refusal returned.
func (e *evaluation) verdict(r *residual, reason result) Verdict {
	switch reason {
	case errs:
		return r.verdict(true, e.firstAbsent(r))
	case needsResource:
		return r.verdict(false, "resource")
	}
	return r.verdict(false, "")
}

// permits reports whether a permit applies. If the request lacks the resource, it must apply
// to every one, or with Deferred to some. It can't use result, since cedar-go names no permits
// if another policy forbids.
func (e *evaluation) permits(r *residual) bool {
	switch {
	case e.isUnreadable(r):
		return false
	case e.resourceMissing && r.readsResource:
		remaining, keep := eval.PartialPolicy(e.withoutResource(), matchAllLikes(r.rest, e.find))
		return keep && (alwaysTrue(remaining) || e.request.Deferred && !alwaysErrs(remaining))
	case r.condition != nil:
		return r.condition(e) == yes
	case r.hasLike:
		return e.resultOfEngine(r) == yes
	}
	engine := e.forEngine()
	decision, _ := cedar.Authorize(r, &engine.entities, engine.request)
	return decision == cedar.Allow
}

func (e *evaluation) withoutResource() eval.Env {
	engine := e.forEngine()
	return eval.Env{
		Entities: &engine.entities, Principal: engine.request.Principal, Action: engine.request.Action,
		Resource: eval.Variable("resource"), Context: engine.request.Context,
	}
}

// refusalWithoutResource evaluates a policy that reads the resource, which is missing. A
// policy that errs refuses, and so does a forbid that applies to every resource. A forbid that
// depends on the resource refuses, too, unless Deferred is set.
func (e *evaluation) refusalWithoutResource(r *residual) result {
	remaining, keep := eval.PartialPolicy(e.withoutResource(), matchAllLikes(r.rest, e.find))
	switch {
	case keep && alwaysErrs(remaining):
		return errs
	case !keep || !r.isForbid():
		return no
	case alwaysTrue(remaining):
		return yes
	case e.request.Deferred:
		return no
	}
	return needsResource
}

// isUnreadable reports whether the policy reads what can't be read: a name in Unreadable, or something
// in which a caller states a text that is longer than MaxText, or a list or record that is larger
// than MaxMembers or maxListText allow.
func (e *evaluation) isUnreadable(r *residual) bool {
	if r.reads&e.unreadable != 0 {
		return true
	}
	if resource := e.request.Resource; resource != nil {
		for _, name := range r.attributes {
			if isTooLong(resource.Attributes[string(name)]) {
				return true
			}
		}
	}
	return r.reads&statedNames != 0 && (isTooLong(e.request.SubjectSays) || isTooLong(e.request.ActionSays) || isTooLong(e.request.ResourceSays))
}

func isTooLong(v any) bool {
	switch v := v.(type) {
	case string:
		return len(v) > MaxText
	case []string:
		return isTooLarge(len(v), slices.Values(v))
	case []any:
		return isTooLarge(len(v), slices.Values(v))
	case map[string]any:
		return isTooLarge(len(v), maps.Values(v))
	}
	return false
}

// isTooLarge is isTooLong for a list or record.
func isTooLarge[T any](members int, all iter.Seq[T]) bool {
	if members > MaxMembers {
		return true
	}
	bytes := 0
	for member := range all {
		text, _ := any(member).(string)
		if bytes += len(text); bytes > maxListText || isTooLong(member) {
			return true
		}
	}
	return false
}

// firstAbsent returns the first name of the context that the policy reads and that can't be read,
// else the first that the request lacks, else such an attribute of the resource.
func (e *evaluation) firstAbsent(r *residual) string {
	absent := ""
	for i, name := range contextNames {
		switch bit := nameSet(1) << i; {
		case r.reads&e.unreadable&bit != 0:
			return string(name)
		case r.reads&bit != 0 && absent == "" && e.value(i) == nil:
			absent = string(name)
		}
	}
	return cmp.Or(absent, e.firstAbsentAttribute(r))
}

// firstAbsentAttribute returns the first attribute of the resource that the policy reads and that the
// request lacks, states in another type or too long, with its type; empty if there is none.
func (e *evaluation) firstAbsentAttribute(r *residual) string {
	resource := e.request.Resource
	if resource == nil {
		return ""
	}
	for _, name := range r.attributes {
		if e.attribute(name) != nil && !isTooLong(resource.Attributes[string(name)]) {
			continue
		}
		absent := "resource." + string(name)
		if declared := e.set.schema.resources[resource.Type][string(name)]; declared != "" {
			absent += " as " + string(declared)
		}
		return absent
	}
	return ""
}

// entities are the entities of one request.
type entities struct {
	principal, resource *types.Entity
	known               types.EntityMap
}

// Get implements types.EntityGetter.
func (e *entities) Get(uid types.EntityUID) (types.Entity, bool) {
	switch {
	case uid == e.principal.UID:
		return *e.principal, true
	case e.resource != nil && uid == e.resource.UID:
		return *e.resource, true
	}
	return e.known.Get(uid)
}

// value returns a Go value as a Cedar value, nil where it is not of the type.
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
		return parseValue(v, types.ParseDecimal)
	case IP:
		return parseValue(v, types.ParseIPAddr)
	}
	return nil
}

func parseValue[T types.Value](v any, parse func(string) (T, error)) types.Value {
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
		if t, err := doorward.ParseTime(v); err == nil {
			return types.NewDatetime(t)
		}
	}
	return nil
}
