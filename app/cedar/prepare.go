package cedar

import (
	"iter"
	"slices"

	"github.com/cedar-policy/cedar-go"
	publicast "github.com/cedar-policy/cedar-go/ast"
	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
	"github.com/cedar-policy/cedar-go/x/exp/eval"
)

// Principal is who acts, and the tenant that it acts in.
type Principal struct {
	ID     string
	Key    bool   // a key, not a user
	Type   string // of an entity of the schema; "" for a user or key
	Email  string // of a user
	Owner  string // of a key: the id of the user who owns it
	Role   string
	Tenant string
	// Attributes are what a caller says of an entity; they replace those of the schema.
	Attributes map[string]any
}

func (p Principal) kind() types.String {
	if p.Key {
		return "key"
	}
	return "user"
}

func (p Principal) entity() types.Entity {
	role := types.NewEntityUIDSet(types.NewEntityUID(typeRole, types.String(p.Role)))
	switch {
	case p.Type != "":
		return types.Entity{UID: entityName{p.Type, p.ID}.uid()}
	case !p.Key:
		return types.Entity{
			UID: types.NewEntityUID(typeUser, types.String(p.ID)), Parents: role,
			Attributes: types.NewRecord(types.RecordMap{"email": types.String(p.Email), "role": types.String(p.Role)}),
		}
	}
	attributes := types.RecordMap{}
	if p.Owner != "" {
		attributes["owner"] = types.NewEntityUID(typeUser, types.String(p.Owner))
	}
	return types.Entity{
		UID: types.NewEntityUID(typeKey, types.String(p.ID)), Parents: role,
		Attributes: types.NewRecord(attributes),
	}
}

// Prepared is a set that was partially evaluated: for one principal, without a request. It is
// immutable.
type Prepared struct {
	set                *Set
	principal          types.Entity
	kind               types.String
	tenant             types.EntityUID
	alwaysForbid       []*residual    // refuse each of their actions, whatever the request is: also permits that always err
	alwaysPermit       []*residual    // permit each of their actions, whatever the request is
	conditional        []*residual    // depend on the request
	refusedActions     []uint64       // the actions of alwaysForbid
	conditionalActions []uint64       // the actions of conditional
	resourceReads      []types.String // the attributes of the resource that conditional reads
}

// residual is what partial evaluation leaves of a policy: for one principal, or for all that its
// scope admits (policy.shared).
type residual struct {
	*policy
	never         bool           // applies to no request
	always        bool           // applies to every request, or errs
	errs          bool           // evaluation always fails, and therefore the policy refuses
	rest          *ast.Policy    // conditions that need the request
	condition     condition      // rest compiled; nil if it has what compile doesn't support
	enginePolicy  *cedar.Policy  // rest for cedar-go; nil if there is a condition, or hasLike
	hasLike       bool           // rest has a "like": cedar-go gets it with what matchLikes leaves
	reads         nameSet        // of the context
	readsResource bool           // whether rest reads the resource, or applies to some resources only
	attributes    []types.String // the attributes of the resource that rest reads
}

// Prepare evaluates the set for a principal as far as that is possible without a request.
// After any change of the principal, prepare the set again.
func (s *Set) Prepare(who Principal) *Prepared {
	if len(s.policies) == 0 {
		return &Prepared{set: s}
	}
	words := len(s.schema.actions)/64 + 1
	p := &Prepared{
		set: s, principal: s.principal(who), kind: who.kind(),
		tenant:         types.NewEntityUID(typeTenant, types.String(who.Tenant)),
		refusedActions: make([]uint64, words), conditionalActions: make([]uint64, words),
	}
	env := s.envOf(&p.principal)
	for _, policy := range s.policies {
		p.add(env, policy)
	}
	return p
}

// envOf is the environment of the principal, without a request.
func (s *Set) envOf(principal *types.Entity) eval.Env {
	return eval.Env{
		Entities: &entities{principal: principal, known: s.entities()}, Principal: principal.UID,
		Action: eval.Variable("action"), Resource: eval.Variable("resource"), Context: eval.Variable("context"),
	}
}

// add evaluates a policy, and keeps its residual.
func (p *Prepared) add(env eval.Env, policy *policy) {
	r := policy.shared
	if r == nil {
		r = policy.partiallyEvaluate(env, matchAllLikes(policy.simple, p.ofPrincipal))
	} else if !r.never && !policy.admits(env) { // evaluateForAll left that open
		return
	}
	switch {
	case r.never:
	case r.always && !r.errs && !r.isForbid():
		p.alwaysPermit = append(p.alwaysPermit, r)
	case r.always:
		p.alwaysForbid = append(p.alwaysForbid, r)
		addBits(p.refusedActions, policy.actions)
	default:
		p.conditional = append(p.conditional, r)
		addBits(p.conditionalActions, policy.actions)
		for _, name := range r.attributes {
			if !slices.Contains(p.resourceReads, name) {
				p.resourceReads = append(p.resourceReads, name)
			}
		}
	}
}

// admits reports whether the principal of the environment is in the policy's scope.
func (p *policy) admits(env eval.Env) bool {
	scope := ast.Policy{Principal: p.simple.Principal, Action: ast.ScopeTypeAll{}, Resource: ast.ScopeTypeAll{}}
	_, keep := eval.PartialPolicy(env, &scope)
	return keep
}

// ofPrincipal is a lookup that knows the attributes of the principal.
func (p *Prepared) ofPrincipal(object, name types.String) (value types.Value, known bool) {
	value, _ = p.principal.Attributes.Get(name)
	return value, object == "principal"
}

// partiallyEvaluate evaluates the policy as far as that is possible with the environment.
func (p *policy) partiallyEvaluate(env eval.Env, simple *ast.Policy) *residual {
	rest, keep := eval.PartialPolicy(env, simple)
	if !keep {
		return &residual{policy: p, never: true}
	}
	r := &residual{policy: p, rest: rest, errs: alwaysErrs(rest)}
	if r.always = r.errs || alwaysTrue(rest); r.always {
		return r
	}
	r.hasLike = hasLike(rest)
	if r.condition = compile(rest); r.condition == nil && !r.hasLike {
		r.enginePolicy = cedar.NewPolicyFromAST(public(rest))
	}
	r.findReads()
	return r
}

// evaluateForAll sets shared if the conditions don't read the principal: it evaluates the policy
// once for all principals that its scope admits.
func (p *policy) evaluateForAll() {
	isSameForAll := true
	inspect(p.simple, func(n ast.IsNode) bool {
		v, ok := n.(ast.NodeTypeVariable)
		isSameForAll = isSameForAll && (!ok || v.Name != "principal")
		return true
	})
	if !isSameForAll {
		return
	}
	simple := *p.simple
	simple.Principal = ast.ScopeTypeAll{}
	p.shared = p.partiallyEvaluate(eval.Env{
		Entities: types.EntityMap{}, Principal: eval.Variable("principal"),
		Action: eval.Variable("action"), Resource: eval.Variable("resource"), Context: eval.Variable("context"),
	}, &simple)
}

// simplified returns the policy without the parts of its scope that policy.applies checks,
// and with one condition instead of several. If a condition errs and a later one is
// false, a full evaluation errs, so the policy refuses; PartialPolicy would drop it.
func (p *policy) simplified() *ast.Policy {
	simple := *p.ast
	simple.Action, simple.Conditions = ast.ScopeTypeAll{}, nil
	if _, isType := simple.Resource.(ast.ScopeTypeIs); isType {
		simple.Resource = ast.ScopeTypeAll{}
	}
	for i := len(p.ast.Conditions) - 1; i >= 0; i-- {
		c := p.ast.Conditions[i]
		body := ast.NewNode(c.Body)
		if c.Condition == ast.ConditionUnless {
			body = ast.Not(body)
		}
		if simple.Conditions != nil {
			body = body.And(ast.NewNode(simple.Conditions[0].Body))
		}
		simple.Conditions = []ast.ConditionType{{Condition: ast.ConditionWhen, Body: body.AsIsNode()}}
	}
	return &simple
}

// public converts a policy to the type of the stable packages of cedar-go.
func public(p *ast.Policy) *publicast.Policy { return (*publicast.Policy)(p) }

func (p *policy) isForbid() bool { return p.ast.Effect == ast.EffectForbid }

func alwaysErrs(p *ast.Policy) bool {
	if _, all := p.Resource.(ast.ScopeTypeAll); !all || len(p.Conditions) == 0 {
		return false
	}
	_, failed := eval.ToPartialError(p.Conditions[0].Body)
	return failed
}

func alwaysTrue(p *ast.Policy) bool {
	_, all := p.Resource.(ast.ScopeTypeAll)
	return all && len(p.Conditions) == 0
}

func addBits(to, from []uint64) {
	for i, word := range from {
		to[i] |= word
	}
}

// findReads records which names of the context and of the resource the policy reads.
func (r *residual) findReads() {
	_, all := r.rest.Resource.(ast.ScopeTypeAll)
	r.readsResource = !all
	inspect(r.rest, func(n ast.IsNode) bool {
		switch n := n.(type) {
		case ast.NodeTypeAccess:
			return !r.noteRead(n.Arg, n.Value)
		case ast.NodeTypeHas:
			return !r.noteRead(n.Arg, n.Value)
		case ast.NodeTypeVariable:
			r.readsResource = r.readsResource || n.Name == "resource"
			if n.Name == "context" {
				r.reads = allNames
			}
		}
		return true
	})
}

// noteRead records the name if n is the context or the resource, and reports whether it is.
func (r *residual) noteRead(n ast.IsNode, name types.String) bool {
	v, ok := n.(ast.NodeTypeVariable)
	switch {
	case ok && v.Name == "context":
		r.reads.add(name)
		return true
	case ok && v.Name == "resource":
		r.readsResource = true
		if !slices.Contains(r.attributes, name) {
			r.attributes = append(r.attributes, name)
		}
		return true
	}
	return false
}

// Verdict is what the policies say of one action.
type Verdict struct {
	Refused  bool
	PolicyID string // of the policy that refuses; of several, Prepared.Verdict says which
	Reason   string // its @reason, "" without one
	Line     int    // where it begins
	Erred    bool   // it refuses because it could not be evaluated
	Needs    string // what the request lacked, or what of it can't be read: "resource", a name of the context or an attribute of the resource
}

func (r *residual) verdict(erred bool, needs string) Verdict {
	return Verdict{Refused: true, PolicyID: r.id, Reason: r.reason, Line: r.line, Erred: erred, Needs: needs}
}

// Conditional reports whether the verdict on the action depends on the request.
func (p *Prepared) Conditional(action string) bool {
	i, ok := p.set.schema.index[action]
	return ok && hasBit(p.conditionalActions, i) && !hasBit(p.refusedActions, i)
}

// Refused returns the verdict on an action that is refused whatever the request is; the zero
// Verdict for other actions.
func (p *Prepared) Refused(action string) Verdict {
	if i, ok := p.set.schema.index[action]; ok && hasBit(p.refusedActions, i) {
		for _, r := range p.alwaysForbid {
			if r.applies(i) {
				return r.verdict(r.errs, "")
			}
		}
	}
	return Verdict{}
}

func hasBit(bits []uint64, i int) bool { return bits != nil && bits[i/64]&(1<<(i%64)) != 0 }

// Verdict returns the verdict on the action for a request: the first policy that
// refuses whatever the request is, else the first that refuses this one. A policy
// that errs refuses, even a permit. It errs if it reads a name of the context that the request
// lacks. A forbid that depends on a missing resource refuses, too, except with Deferred.
func (p *Prepared) Verdict(action string, request *Request) Verdict {
	if v := p.Refused(action); v.Refused {
		return v
	}
	i, ok := p.set.schema.index[action]
	if !ok || !hasBit(p.conditionalActions, i) {
		return Verdict{}
	}
	for _, v := range p.evaluate(i, request) {
		return v
	}
	return Verdict{}
}

// Explain returns the verdict of every policy that refuses or errs, in the order of
// the text.
func (p *Prepared) Explain(action string, request *Request) []Verdict {
	i, ok := p.set.schema.index[action]
	if !ok {
		return nil
	}
	byOrder := make([]Verdict, len(p.set.policies))
	for _, r := range p.alwaysForbid {
		if r.applies(i) {
			byOrder[r.order] = r.verdict(r.errs, "")
		}
	}
	for order, v := range p.evaluate(i, request) {
		byOrder[order] = v
	}
	refused := make([]Verdict, 0, len(byOrder))
	for _, v := range byOrder {
		if v.Refused {
			refused = append(refused, v)
		}
	}
	return refused
}

// evaluate yields the verdicts of the conditional policies that refuse, in the order of the text,
// each with the policy's index there.
func (p *Prepared) evaluate(action int, request *Request) iter.Seq2[int, Verdict] {
	return func(yield func(int, Verdict) bool) {
		e := p.newEvaluation(action, request)
		for _, r := range p.conditional {
			if !r.applies(action) {
				continue
			}
			if refusal := e.refusal(r); refusal != no && !yield(r.order, e.verdict(r, refusal)) {
				return
			}
		}
	}
}

// All makes the residual a set of one policy, for cedar.Authorize.
func (r *residual) All() iter.Seq2[cedar.PolicyID, *cedar.Policy] {
	return func(yield func(cedar.PolicyID, *cedar.Policy) bool) { yield("", r.enginePolicy) }
}
