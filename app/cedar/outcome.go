package cedar

import (
	"slices"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
)

// IDs returns the ids of the policies, in the order of the text.
func (s *Set) IDs() []string {
	ids := make([]string, len(s.policies))
	for i, p := range s.policies {
		ids[i] = p.id
	}
	return ids
}

// Outcome says whether a set refuses an action to those who have a role.
type Outcome int

// The outcomes.
const (
	RefusesNone Outcome = iota // nobody, whatever the request is
	Depends                    // on which user or key it is, or on the request
	RefusesAll                 // everybody, whatever the request is
)

// RoleOutcomes is a set, partially evaluated for all users, or for all API keys, that have one role.
// Make it with Set.ForRole.
//
// Depends is what that evaluation leaves open: a condition reads the request, or who exactly asks. It
// does not say that both results occur: a condition such as context.hour < 24 is not seen to hold always.
// RefusesNone and RefusesAll are sure.
type RoleOutcomes struct {
	schema          *Schema
	prepared        *Prepared // of the forbids that don't read the identity
	identity        []*policy // the forbids that do, see readsIdentity
	identityActions []uint64  // the actions of these
	permits         []*policy // those that may permit a user something
}

// ForRole evaluates the set for the users of a tenant that have the role, or for the API keys that
// have it.
func (s *Set) ForRole(tenant, role string, keys bool) *RoleOutcomes {
	who := Principal{Role: role, Tenant: tenant, Key: keys}
	entity := s.principal(who)
	env := s.envOf(&entity)
	o := &RoleOutcomes{schema: s.schema, identityActions: make([]uint64, len(s.schema.actions)/64+1)}
	sameForAll := &Set{schema: s.schema, platform: s.platform}
	for _, p := range s.policies {
		switch {
		case !p.isForbid():
			if p.mayPermit(s, who) {
				o.permits = append(o.permits, p)
			}
		case !p.readsIdentity():
			sameForAll.policies = append(sameForAll.policies, p)
		case p.scopeReadsIdentity() && p.maybeIn(entity.UID.Type), !p.scopeReadsIdentity() && p.admits(env):
			o.identity = append(o.identity, p)
			addBits(o.identityActions, p.actions)
		}
	}
	o.prepared = sameForAll.Prepare(who)
	return o
}

// mayPermit reports whether a permit may apply to a principal with the role.
func (p *policy) mayPermit(set *Set, who Principal) bool {
	if p.readsIdentity() {
		return true
	}
	one := &Set{schema: set.schema, platform: set.platform, policies: []*policy{p}}
	prepared := one.Prepare(who)
	return len(prepared.alwaysPermit)+len(prepared.conditional) > 0
}

// Permits returns the policies that permit the action: always, or depending on the principal and the
// request. They are indexes in the text's order.
func (o *RoleOutcomes) Permits(action string) (all []int) {
	i, known := o.schema.index[action]
	for _, p := range o.permits {
		if known && hasBit(p.actions, i) {
			all = append(all, p.order)
		}
	}
	return all
}

// Outcome returns the outcome for an action.
func (o *RoleOutcomes) Outcome(action string) Outcome {
	i, known := o.schema.index[action]
	switch {
	case !known:
		return RefusesNone
	case o.prepared.Refused(action).Refused:
		return RefusesAll
	case o.prepared.Conditional(action) || hasBit(o.identityActions, i):
		return Depends
	}
	return RefusesNone
}

// Deciders returns the policies that make the outcome: all that refuse everybody, or else all on which
// it depends. They are indexes in the text's order, sorted.
func (o *RoleOutcomes) Deciders(action string) (all []int) {
	outcome, i := o.Outcome(action), o.schema.index[action]
	add := func(p *policy) {
		if p.applies(i) {
			all = append(all, p.order)
		}
	}
	switch outcome {
	case RefusesAll:
		for _, r := range o.prepared.alwaysForbid {
			add(r.policy)
		}
	case Depends:
		for _, r := range o.prepared.conditional {
			add(r.policy)
		}
		for _, p := range o.identity {
			add(p)
		}
	}
	slices.Sort(all)
	return all
}

// Describe returns the verdict with which the policy at an index of the text's order refuses.
func (s *Set) Describe(order int) Verdict {
	return (&residual{policy: s.policies[order]}).verdict(false, "")
}

// IsAboutOne reports whether the policy at an index of the text's order names somebody or something by id, or reads
// addresses, in the view of a tenant. Roles, actions and the tenant itself don't count.
func (s *Set) IsAboutOne(order int, tenant string) (is bool) {
	p, own := s.policies[order].ast, types.NewEntityUID(typeTenant, types.String(tenant))
	isOne := func(uid types.EntityUID) bool { return uid.Type != typeRole && uid.Type != typeAction && uid != own }
	is = slices.ContainsFunc(slices.Concat(scopeEntities(p.Principal), scopeEntities(p.Resource)), isOne)
	inspect(p, func(n ast.IsNode) bool {
		switch n := n.(type) {
		case ast.NodeValue:
			uid, ok := n.Value.(types.EntityUID)
			is = is || ok && isOne(uid)
		case ast.NodeTypeAccess:
			is = is || isPrincipal(n.Arg) && n.Value == "email"
		}
		return true
	})
	return is
}

// Conditions returns what each policy says without its annotations, in one form whatever the spaces
// and comments are, in the order of the text. Policies with the same condition refuse the same.
func (s *Set) Conditions() []string {
	all := make([]string, len(s.policies))
	for i, p := range s.policies {
		bare := *p.ast
		bare.Annotations = nil
		all[i] = string(cedar.NewPolicyFromAST(public(&bare)).MarshalCedar())
		if p.readsTimeZone() {
			all[i] += " // " + s.timeZone().String()
		}
	}
	return all
}

// readsTimeZone reports whether the policy reads the hour or the weekday, see Set.In.
func (p *policy) readsTimeZone() (reads bool) {
	inspect(p.ast, func(n ast.IsNode) bool {
		access, ok := n.(ast.NodeTypeAccess)
		reads = reads || ok && (access.Value == "hour" || access.Value == "weekday")
		return true
	})
	return reads
}

// readsIdentity reports whether the policy reads more of the principal than its kind and
// its role.
func (p *policy) readsIdentity() bool {
	reads := p.scopeReadsIdentity()
	inspect(p.ast, func(n ast.IsNode) bool {
		if isKindOrRole(n) {
			return false
		}
		v, ok := n.(ast.NodeTypeVariable)
		reads = reads || ok && v.Name == "principal"
		return true
	})
	return reads
}

// scopeReadsIdentity is readsIdentity for the scope alone.
func (p *policy) scopeReadsIdentity() bool {
	switch scope := p.ast.Principal.(type) {
	case ast.ScopeTypeEq:
		return true
	case ast.ScopeTypeIn:
		return scope.Entity.Type != typeRole
	case ast.ScopeTypeIsIn:
		return scope.Entity.Type != typeRole
	}
	return false
}

// maybeIn reports whether a scope that reads the identity can have principals of a type.
func (p *policy) maybeIn(kind types.EntityType) bool {
	switch scope := p.ast.Principal.(type) {
	case ast.ScopeTypeEq:
		return scope.Entity.Type == kind
	case ast.ScopeTypeIsIn:
		return scope.Type == kind
	}
	return true
}

// isKindOrRole reports whether the node reads the principal, but nothing of it beyond its
// kind and its role.
func isKindOrRole(n ast.IsNode) bool {
	switch n := n.(type) {
	case ast.NodeTypeAccess:
		return isPrincipal(n.Arg) && n.Value == "role"
	case ast.NodeTypeHas: // all principals of a kind have the same attributes, but only some keys have an owner
		return isPrincipal(n.Arg) && n.Value != "owner"
	case ast.NodeTypeIs:
		return isPrincipal(n.Left)
	case ast.NodeTypeIn:
		return isPrincipal(n.Left) && areRoles(n.Right)
	case ast.NodeTypeIsIn:
		return isPrincipal(n.Left) && areRoles(n.Entity)
	}
	return false
}

func isPrincipal(n ast.IsNode) bool {
	v, ok := n.(ast.NodeTypeVariable)
	return ok && v.Name == "principal"
}

// areRoles reports whether the node is a role, or a set of roles.
func areRoles(n ast.IsNode) bool {
	switch n := n.(type) {
	case ast.NodeValue:
		uid, ok := n.Value.(types.EntityUID)
		return ok && uid.Type == typeRole
	case ast.NodeTypeSet:
		for _, e := range n.Elements {
			if !areRoles(e) {
				return false
			}
		}
		return true
	}
	return false
}
