package cedar

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
	"github.com/cedar-policy/cedar-go/x/exp/schema/resolved"
	"github.com/cedar-policy/cedar-go/x/exp/schema/validate"

	"github.com/doorward/doorward"
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
// error holds the faults that no schema allows, such as those of syntax. A reason that
// is faulty today is made to fit: what has refused goes on to refuse.
func ParseStored(text string, schema *Schema) (set *Set, leftOut map[string]Fault, err error) {
	r := &reader{schema: schema, checks: math.MaxInt, leftOut: map[string]Fault{}, stored: true}
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
	stored   bool             // the text was accepted before, perhaps by an earlier version
	ids      map[string]bool  // that the text has
	unnamed  map[string]place // of policies without an @id, by the id that they get
	checks   int              // what is left of maxChecks
	trials   int              // what is left of it for finding the places of faults
	policies []*policy
	faults   Faults
	leftOut  map[string]Fault // the first fault of each policy left out, by id; nil: a fault refuses the text
}

func (r *reader) readSet(text string, max limits) (*Set, Faults) {
	statements, faults := split(text, max)
	r.faults, r.trials = faults, maxChecks
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
	if isNew := !r.platform && r.leftOut == nil; isNew && !r.checkTexts(st, parsed) {
		return
	}
	p := &policy{line: st.line, order: len(r.policies), ast: parsed}
	p.simple = p.simplified()
	if r.platform {
		r.locate(st, costOfReading(st), p, r.nameFindings)
	} else {
		p.evaluateForAll()
	}
	r.readID(st, p)
	r.readReason(st, p)
	if parsed.Effect != ast.EffectForbid && !r.platform {
		r.fault(st.find("permit"), OnlyForbid, "a tenant's policy can only forbid; roles say what is permitted")
	}
	before := len(r.faults)
	if r.readActions(st, p) && !r.platform {
		r.checkTypes(st, p)
	}
	if r.leftOut != nil && len(r.faults) > before {
		r.leftOut[p.id], r.faults = r.faults[before:].sorted()[0], r.faults[:before]
		return
	}
	r.policies = append(r.policies, p)
}

// checkTexts reports whether the texts and patterns of a policy are short, and stand where they may. It
// adds faults if not.
func (r *reader) checkTexts(st statement, p *ast.Policy) bool {
	before := len(r.faults)
	r.locate(st, costOfReading(st), &policy{ast: p}, textFindings)
	return len(r.faults) == before
}

// costOfReading is what reading a policy costs of maxChecks; it allocates about forty bytes for each of its
// bytes.
func costOfReading(st statement) int { return 2 * len(st.text) }

func textFindings(p *policy) findings {
	all := findings{}
	inspect(p.ast, func(n ast.IsNode) bool {
		all.add(TooLarge, literalFault(n))
		return true
	})
	all.add(WrongType, likeFault(p.ast))
	return all
}

func (r *reader) readID(st statement, p *policy) {
	at := st.find("id")
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
		r.unnamed[p.id] = st.place
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
		r.fault(st.place, MissingID, `each policy begins with an id: @id("…")`)
	case r.ids[p.id]:
		r.fault(at, DuplicateID, fmt.Sprintf("two policies have the id %q", p.id))
	}
	r.ids[p.id] = true
}

// maxReason is the longest @reason, in bytes. Pages, problems and explanations show it, a plan for each of thousands of
// cells and decisions.
const maxReason = 512

// readReason adds a fault for a reason that is too long, or that one line can't show. That of a stored text it makes
// fit instead.
func (r *reader) readReason(st statement, p *policy) {
	isLong := len(p.reason) > maxReason
	switch isOneLine := isShown(p.reason); {
	case r.stored:
		p.reason = fittingReason(p.reason)
	case isLong:
		r.fault(st.find("reason"), TooLarge, fmt.Sprintf("the @reason of the policy %q has %d bytes; %d are the most", p.id, len(p.reason), maxReason))
	case !isOneLine:
		r.fault(st.find("reason"), Syntax, fmt.Sprintf("the @reason of the policy %q has control characters, or some that switch the direction of text: write one line without them", p.id))
	}
}

// isShown reports whether one line shows the text as it is, on a page and at a terminal.
func isShown(text string) bool { return len(doorward.CheckAbout("", text, len(text))) == 0 }

// fittingReason returns the reason with spaces for what isShown refuses, cut to maxReason.
func fittingReason(reason string) string {
	reason = strings.Map(func(r rune) rune {
		if !isShown(string(r)) {
			return ' '
		}
		return r
	}, reason)
	if len(reason) > maxReason {
		return strings.ToValidUTF8(reason[:maxReason-len("…")], "") + "…"
	}
	return reason
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

// readActions finds the actions that the policy applies to, and reports whether there are any. It adds
// a fault for each unknown action, in a platform's text each that isn't the platform's, and for a
// policy that applies to no action.
func (r *reader) readActions(st statement, p *policy) bool {
	p.actions = make([]uint64, len(r.schema.actions)/64+1)
	before := len(r.faults)
	r.locate(st, costOfReading(st), p, r.actionFindings)
	known, found := len(r.faults) == before, false
	for i, action := range r.schema.actions {
		if r.isFor(action) && scopeHasAction(p.ast.Action, actionUID(action.Name)) && r.schema.scopeHasResource(p.ast.Resource, action.resourceType()) {
			p.actions[i/64] |= 1 << (i % 64)
			found = true
		}
	}
	if known && !found {
		r.fault(st.find("resource"), WrongType, "no action in this policy's scope has a resource of this type")
	}
	return found
}

// actionFindings finds the actions that the text can't be about.
func (r *reader) actionFindings(p *policy) findings {
	all := findings{}
	for _, uid := range r.namedActions(p.ast) {
		switch i, known := r.schema.index[string(uid.ID)]; {
		case !known || uid.Type != typeAction:
			all.add(UnknownAction, fmt.Sprintf("there is no action %s", uid)+r.schema.suggestAction(uid))
		case !r.isFor(r.schema.actions[i]):
			all.add(UnknownAction, fmt.Sprintf("%s is not an action of the platform", uid))
		}
	}
	return all
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
func (r *reader) checkTypes(st statement, p *policy) {
	nodes := 1
	inspect(p.ast, func(ast.IsNode) bool { nodes++; return true })
	reduced := r.reducedSchema(p)
	const principals = 2 // a user and a key
	cost := nodes * len(reduced.Actions) * principals
	if r.checks -= cost; r.checks < 0 {
		r.fault(st.place, TooLarge, "too much to check for so many types of resources: name the actions in the scope of each policy")
		return
	}
	r.locate(st, cost, p, func(p *policy) findings { return r.typeFindings(reduced, p) })
}

// typeFindings finds what is wrong with the types and attributes of a policy.
func (r *reader) typeFindings(reduced *resolved.Schema, p *policy) findings {
	all := findings{}
	inspect(p.ast, func(n ast.IsNode) bool {
		all.add(WrongType, nodeFault(n))
		return true
	})
	// As in Cedar, the conditions are checked as one: after one that is always false, the next
	// are not checked. The scope's actions are left out, since those of reduced stand for them.
	checked := *p.ast
	checked.Action, checked.Conditions = ast.ScopeTypeAll{}, p.simplified().Conditions
	times := typeFaults(reduced, &checked)
	if len(times) > 1 {
		delete(times, noActionApplies)
	}
	for message, times := range times {
		all[finding{codeOf(message), message + r.schema.suggest(message)}] += times
	}
	return all
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

// noActionApplies is a message of the validator, which follows from a fault in the scope.
const noActionApplies = "unable to find an applicable action given the policy scope constraints"

// typeFaults returns the messages of the validator, and how often each is true of a resource of one type.
func typeFaults(s *resolved.Schema, p *ast.Policy) (times map[string]int) {
	times = map[string]int{}
	defer func() {
		if r := recover(); r != nil {
			times = map[string]int{fmt.Sprintf("can't be checked: %v", r): 1}
		}
	}()
	err := validate.New(s).Policy("", p)
	if err == nil {
		return times
	}
	each := map[string]int{} // by the message with its action
	for _, message := range strings.Split(err.Error(), "\n") {
		each[message]++
		short := actionSuffix.ReplaceAllString(message, "")
		times[short] = max(times[short], each[message])
	}
	return times
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

// parseOne parses one policy.
func parseOne(st statement) (p *ast.Policy, fault *Fault) {
	p, err := parseText(st.text)
	if err != nil {
		f := st.syntaxFault(err.Error())
		return nil, &f
	}
	return p, nil
}

// parseText parses the text of one policy.
func parseText(text string) (p *ast.Policy, err error) {
	defer func() {
		if r := recover(); r != nil {
			p, err = nil, errors.New("can't be read")
		}
	}()
	var parsed cedar.Policy
	if err := parsed.UnmarshalCedar([]byte(text)); err != nil {
		return nil, err
	}
	return (*ast.Policy)(parsed.AST()), nil
}
