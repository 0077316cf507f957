package cedar

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
	"github.com/cedar-policy/cedar-go/x/exp/schema/resolved"
	"github.com/cedar-policy/cedar-go/x/exp/schema/validate"
)

// maxChecks bounds the work of checking the types of a text: for each policy, its nodes times
// the actions of its reducedSchema times two (user and key).
const maxChecks = 80_000

// Set is the policies of a text that have no faults. It is immutable.
type Set struct {
	schema   *Schema
	policies []*policy      // in the order of the text
	platform bool           // made by ParsePlatform
	zone     *time.Location // see In; nil: UTC
}

// In makes the policies read context.weekday (1 to 7 from Monday, ISO 8601) and context.hour (0 to 23) in a
// time zone instead of in UTC. Call it before Prepare.
func (s *Set) In(zone *time.Location) { s.zone = zone }

func (s *Set) timeZone() *time.Location {
	if s.zone == nil {
		return time.UTC
	}
	return s.zone
}

// policy is one policy of a set.
type policy struct {
	id, reason string
	line       int
	order      int // its index in Set.policies
	ast        *ast.Policy
	simple     *ast.Policy // what Prepare evaluates
	shared     *residual   // for all principals that the scope admits; nil if the conditions read the principal, or in a platform's set
	actions    []uint64    // the actions it applies to, a bit for each of Schema.actions
}

// Parse reads the policies of a tenant: "forbid" alone, each with an @id of its own.
// It returns either a set or the faults, at most one of syntax for each policy.
func Parse(text string, schema *Schema) (*Set, Faults) {
	r := &reader{schema: schema, checks: maxChecks}
	return r.readSet(text, limits{MaxBytes, MaxPolicies})
}

// ParseStored reads a text that had no faults under an earlier schema. It leaves out the
// policies that have one under this schema, and returns the first fault of each, by id. An
// error holds the faults that no schema allows, such as those of syntax.
func ParseStored(text string, schema *Schema) (set *Set, leftOut map[string]Fault, err error) {
	r := &reader{schema: schema, checks: math.MaxInt, leftOut: map[string]Fault{}}
	set, faults := r.readSet(text, limits{MaxBytes, MaxPolicies})
	if len(faults) > 0 {
		return nil, nil, faults
	}
	return set, r.leftOut, nil
}

// reader collects the policies and faults of a text.
type reader struct {
	schema   *Schema
	platform bool             // the text is a platform's
	ids      map[string]bool  // that the text has
	unnamed  map[string]place // of policies without an @id, by the id that they get
	checks   int              // what is left of maxChecks
	policies []*policy
	faults   Faults
	leftOut  map[string]Fault // the first fault of each policy left out, by id; nil: a fault refuses the text
}

func (r *reader) readSet(text string, max limits) (*Set, Faults) {
	statements, faults := split(text, max)
	if len(faults) > 0 {
		return nil, faults
	}
	r.ids, r.unnamed = map[string]bool{}, map[string]place{}
	for _, st := range statements {
		r.readPolicy(st)
	}
	r.checkUnnamed()
	if len(r.faults) > 0 {
		return nil, r.faults.sorted()
	}
	return &Set{schema: r.schema, policies: r.policies}, nil
}

func (r *reader) fault(at place, code Code, message string) {
	r.faults = append(r.faults, at.fault(code, shorten(message)))
}

// shorten bounds a message, which may quote the text.
func shorten(message string) string {
	const longest = 300
	if len(message) <= longest {
		return message
	}
	return strings.ToValidUTF8(message[:longest], "") + " …"
}

func (r *reader) readPolicy(st statement) {
	parsed, fault := parseOne(st)
	if fault != nil {
		r.faults = append(r.faults, *fault)
		return
	}
	if isNew := !r.platform && r.leftOut == nil; isNew && !r.checkTexts(st.place, parsed) {
		return
	}
	p := &policy{line: st.line, order: len(r.policies), ast: parsed}
	p.simple = p.simplified()
	if r.platform {
		r.checkNames(st.place, p)
	} else {
		p.evaluateForAll()
	}
	r.readID(st.place, p)
	if parsed.Effect != ast.EffectForbid && !r.platform {
		r.fault(st.place, OnlyForbid, "a tenant's policy can only forbid; roles say what is permitted")
	}
	before := len(r.faults)
	if r.readActions(st.place, p) && !r.platform {
		r.checkTypes(st.place, p)
	}
	if r.leftOut != nil && len(r.faults) > before {
		r.leftOut[p.id], r.faults = r.faults[before], r.faults[:before]
		return
	}
	r.policies = append(r.policies, p)
}

// checkTexts reports whether the texts and patterns of a policy are short, and stand where they may. It
// adds faults if not.
func (r *reader) checkTexts(at place, p *ast.Policy) bool {
	before := len(r.faults)
	inspect(p, func(n ast.IsNode) bool {
		if message := literalFault(n); message != "" {
			r.fault(at, TooLarge, message)
		}
		return true
	})
	if message := likeFault(p); message != "" {
		r.fault(at, WrongType, message)
	}
	return len(r.faults) == before
}

func (r *reader) readID(at place, p *policy) {
	for _, annotation := range p.ast.Annotations {
		switch annotation.Key {
		case "id":
			p.id = string(annotation.Value)
		case "reason":
			p.reason = string(annotation.Value)
		}
	}
	if p.id == "" && r.platform {
		p.id = fmt.Sprintf("policy%d", p.order)
		r.unnamed[p.id] = at
		return
	}
	switch {
	case len(p.id) > maxID:
		r.fault(at, TooLarge, fmt.Sprintf("an id has %d bytes at most", maxID))
	case !r.platform && strings.ContainsFunc(p.id, unicode.IsControl):
		r.fault(at, Syntax, "an id has no control characters")
	}
	switch {
	case p.id == "":
		r.fault(at, MissingID, `each policy begins with an id: @id("…")`)
	case r.ids[p.id]:
		r.fault(at, DuplicateID, fmt.Sprintf("two policies have the id %q", p.id))
	}
	r.ids[p.id] = true
}

// checkUnnamed refuses policies without an @id that get the id of another one. It needs all
// ids of the text: the other policy may come later.
func (r *reader) checkUnnamed() {
	for id, at := range r.unnamed {
		if r.ids[id] {
			r.fault(at, DuplicateID, fmt.Sprintf("without an @id, this policy's id is %q by its place, but another policy has it: write an @id", id))
		}
	}
}

// readActions finds the actions that the policy applies to. It reports false after adding a
// fault: the policy names an unknown action, in a platform's text one that isn't the platform's,
// or applies to no action.
func (r *reader) readActions(at place, p *policy) bool {
	p.actions = make([]uint64, len(r.schema.actions)/64+1)
	ok := true
	for _, uid := range r.namedActions(p.ast) {
		switch i, known := r.schema.index[string(uid.ID)]; {
		case !known || uid.Type != typeAction:
			r.fault(at, UnknownAction, fmt.Sprintf("there is no action %s", uid))
			ok = false
		case !r.isFor(r.schema.actions[i]):
			r.fault(at, UnknownAction, fmt.Sprintf("%s is not an action of the platform", uid))
			ok = false
		}
	}
	found := false
	for i, action := range r.schema.actions {
		if r.isFor(action) && scopeHasAction(p.ast.Action, actionUID(action.Name)) && r.schema.scopeHasResource(p.ast.Resource, action.resourceType()) {
			p.actions[i/64] |= 1 << (i % 64)
			found = true
		}
	}
	if ok && !found {
		r.fault(at, WrongType, "no action in this policy's scope has a resource of this type")
	}
	return ok && found
}

// isFor reports whether the text can be about the action.
func (r *reader) isFor(action Action) bool { return !r.platform || action.Platform }

// namedActions returns every action that the policy names.
func (r *reader) namedActions(p *ast.Policy) (uids []types.EntityUID) {
	switch scope := p.Action.(type) {
	case ast.ScopeTypeEq:
		uids = append(uids, scope.Entity)
	case ast.ScopeTypeIn:
		uids = append(uids, scope.Entity)
	case ast.ScopeTypeInSet:
		uids = append(uids, scope.Entities...)
	}
	inspect(p, func(n ast.IsNode) bool {
		if v, ok := n.(ast.NodeValue); ok {
			if uid, ok := v.Value.(types.EntityUID); ok && uid.Type == typeAction {
				uids = append(uids, uid)
			}
		}
		return true
	})
	return uids
}

func scopeHasAction(scope ast.IsActionScopeNode, uid types.EntityUID) bool {
	switch scope := scope.(type) {
	case ast.ScopeTypeEq:
		return scope.Entity == uid
	case ast.ScopeTypeIn:
		return scope.Entity == uid
	case ast.ScopeTypeInSet:
		return slices.Contains(scope.Entities, uid)
	}
	return true
}

// scopeHasResource reports whether the scope may admit a resource of the type.
func (s *Schema) scopeHasResource(scope ast.IsResourceScopeNode, resource types.EntityType) bool {
	switch scope := scope.(type) {
	case ast.ScopeTypeEq:
		return scope.Entity.Type == resource
	case ast.ScopeTypeIn:
		return s.mayBeIn(resource, scope.Entity.Type)
	case ast.ScopeTypeIs:
		return scope.Type == resource
	case ast.ScopeTypeIsIn:
		return scope.Type == resource && s.mayBeIn(resource, scope.Entity.Type)
	}
	return true
}

// mayBeIn reports whether a resource may be in an entity of the other type: it is in itself and in
// its parents, which a tenant never has.
func (s *Schema) mayBeIn(resource, other types.EntityType) bool {
	return resource == other || resource != typeTenant && s.types[other]
}

// inspect visits the nodes of the policy's conditions.
func inspect(p *ast.Policy, visit func(ast.IsNode) bool) {
	for _, c := range p.Conditions {
		ast.Inspect(ast.NewNode(c.Body), visit)
	}
}

// checkTypes checks the policy's types and attributes against the schema.
func (r *reader) checkTypes(at place, p *policy) {
	nodes := 1
	inspect(p.ast, func(n ast.IsNode) bool {
		nodes++
		if message := nodeFault(n); message != "" {
			r.fault(at, WrongType, message)
		}
		return true
	})
	reduced := r.reducedSchema(p)
	const principals = 2 // a user and a key
	if r.checks -= nodes * len(reduced.Actions) * principals; r.checks < 0 {
		r.fault(at, TooLarge, "too much to check for so many types of resources: name the actions in the scope of each policy")
		return
	}
	// As in Cedar, the conditions are checked as one: after one that is always false, the next
	// are not checked. The scope's actions are left out, since those of reduced stand for them.
	checked := *p.ast
	checked.Action, checked.Conditions = ast.ScopeTypeAll{}, p.simple.Conditions
	for _, message := range typeFaults(reduced, &checked) {
		r.fault(at, codeOf(message), message)
	}
}

// nodeFault returns the fault of a node, or empty. Only principal, resource and context have
// attributes, and only principal and resource have parents: of other entities just the id is
// known. Names with __cedar are reserved.
func nodeFault(n ast.IsNode) string {
	switch n := n.(type) {
	case ast.NodeTypeAccess:
		return accessFault(n.Arg)
	case ast.NodeTypeHas:
		return accessFault(n.Arg)
	case ast.NodeTypeIn:
		return inFault(n.Left)
	case ast.NodeTypeIsIn:
		return inFault(n.Left)
	case ast.NodeTypeExtensionCall:
		if strings.HasPrefix(string(n.Name), "__cedar") {
			return "names that begin with __cedar are reserved"
		}
	}
	return ""
}

func accessFault(n ast.IsNode) string {
	if _, ok := n.(ast.NodeTypeVariable); ok {
		return ""
	}
	return "only principal, resource and context have attributes that a policy can read directly"
}

func inFault(n ast.IsNode) string {
	if v, ok := n.(ast.NodeTypeVariable); ok && v.Name != "action" {
		return ""
	}
	return `"in" is for principal and resource; write the actions in the scope of the policy`
}

// reducedSchema returns the schema with one action for each type of resource that
// the policy is for: actions of one type are checked alike, and there may be 500.
func (r *reader) reducedSchema(p *policy) *resolved.Schema {
	reduced := *r.schema.resolved
	reduced.Actions = map[types.EntityUID]resolved.Action{}
	for _, uid := range r.namedActions(p.ast) {
		named := r.schema.resolved.Actions[uid]
		named.AppliesTo = nil // must be known to the validator, but is not checked itself
		reduced.Actions[uid] = named
	}
	seen := map[string]bool{}
	for i, action := range r.schema.actions {
		if p.applies(i) && !seen[action.Resource] {
			seen[action.Resource] = true
			reduced.Actions[actionUID(action.Name)] = r.schema.resolved.Actions[actionUID(action.Name)]
		}
	}
	return &reduced
}

func (p *policy) applies(action int) bool { return p.actions[action/64]&(1<<(action%64)) != 0 }

// actionSuffix is what the validator appends to each message.
var actionSuffix = regexp.MustCompile(` for Action::"[^"]*"`)

// typeFaults returns the messages of the validator, sorted and without duplicates.
func typeFaults(s *resolved.Schema, p *ast.Policy) (messages []string) {
	defer func() {
		if r := recover(); r != nil {
			messages = []string{fmt.Sprintf("can't be checked: %v", r)}
		}
	}()
	err := validate.New(s).Policy("", p)
	if err == nil {
		return nil
	}
	for _, message := range strings.Split(err.Error(), "\n") {
		messages = append(messages, actionSuffix.ReplaceAllString(message, ""))
	}
	slices.Sort(messages)
	return slices.Compact(messages)
}

func codeOf(message string) Code {
	switch {
	case strings.HasPrefix(message, "attribute `"), strings.HasPrefix(message, "unable to guarantee safety of access to optional"):
		return UnknownAttribute
	case strings.HasPrefix(message, "unrecognized action"):
		return UnknownAction
	}
	return WrongType
}

var (
	// placePattern finds the place in an error of cedar-go's parser; gotWantPattern the token
	// that it found and the one that it expected.
	placePattern   = regexp.MustCompile(`(?:parse error at )?<input>:(\d+):(\d+):? ?`)
	gotWantPattern = regexp.MustCompile(`^".*": (?:exact )?got (.*) want (.*)$`)
)

// parseOne parses one policy.
func parseOne(st statement) (p *ast.Policy, fault *Fault) {
	defer func() {
		if r := recover(); r != nil {
			f := st.fault(Syntax, "can't be read")
			p, fault = nil, &f
		}
	}()
	var parsed cedar.Policy
	if err := parsed.UnmarshalCedar([]byte(st.text)); err != nil {
		f := st.syntaxFault(err.Error())
		return nil, &f
	}
	return (*ast.Policy)(parsed.AST()), nil
}

func (st statement) syntaxFault(message string) Fault {
	at := st.place
	if m := placePattern.FindStringSubmatch(message); m != nil {
		line, _ := strconv.Atoi(m[1])
		column, _ := strconv.Atoi(m[2])
		if line == 1 {
			at.column += column - 1
		} else {
			at.line, at.column = at.line+line-1, column
		}
		message = strings.Replace(message, m[0], "", 1)
	}
	if m := gotWantPattern.FindStringSubmatch(message); m != nil {
		message = fmt.Sprintf("expected %q, found %q", m[2], m[1])
	}
	return at.fault(Syntax, shorten(message))
}
