package cedar

import (
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

// RoleOutcomes is a set, evaluated for all who have one role. Make it with Set.ForRole.
type RoleOutcomes struct {
	schema          *Schema
	prepared        []*Prepared // for a user and perhaps a key, of the forbids that don't read the identity
	identityActions []uint64    // the actions of the forbids that read the identity, see readsIdentity
	permits         []uint64    // the actions that a policy may permit a user
}

// ForRole evaluates the set for the users of a tenant that have the role. If keys is true, the
// outcomes also cover API keys with the role.
func (s *Set) ForRole(tenant, role string, keys bool) *RoleOutcomes {
	words := len(s.schema.actions)/64 + 1
	o := &RoleOutcomes{schema: s.schema, identityActions: make([]uint64, words), permits: make([]uint64, words)}
	user := Principal{Role: role, Tenant: tenant}
	sameForAll := &Set{schema: s.schema, platform: s.platform}
	for _, p := range s.policies {
		switch {
		case !p.isForbid():
			o.addPermit(p, s, user)
		case p.readsIdentity():
			addBits(o.identityActions, p.actions)
		default:
			sameForAll.policies = append(sameForAll.policies, p)
		}
	}
	o.prepared = append(o.prepared, sameForAll.Prepare(user))
	if keys {
		o.prepared = append(o.prepared, sameForAll.Prepare(Principal{Role: role, Tenant: tenant, Key: true}))
	}
	return o
}

// addPermit adds the actions of a permit that may apply to a user with the role.
func (o *RoleOutcomes) addPermit(p *policy, set *Set, user Principal) {
	if !p.readsIdentity() {
		one := &Set{schema: set.schema, platform: set.platform, policies: []*policy{p}}
		if prepared := one.Prepare(user); len(prepared.alwaysPermit)+len(prepared.conditional) == 0 {
			return
		}
	}
	addBits(o.permits, p.actions)
}

// MayPermit reports whether a policy permits the action to a user with the role: always, or
// depending on the user and the request.
func (o *RoleOutcomes) MayPermit(action string) bool {
	i, known := o.schema.index[action]
	return known && hasBit(o.permits, i)
}

// Outcome returns the outcome for an action.
func (o *RoleOutcomes) Outcome(action string) Outcome {
	i, known := o.schema.index[action]
	if !known {
		return RefusesNone
	}
	outcome := outcomeOf(o.prepared[0], action)
	for _, p := range o.prepared[1:] {
		if outcomeOf(p, action) != outcome {
			outcome = Depends
		}
	}
	if outcome == RefusesNone && hasBit(o.identityActions, i) {
		return Depends
	}
	return outcome
}

func outcomeOf(p *Prepared, action string) Outcome {
	switch {
	case p.Refused(action).Refused:
		return RefusesAll
	case p.Conditional(action):
		return Depends
	}
	return RefusesNone
}

// readsIdentity reports whether the policy reads more of the principal than its kind and
// its role.
func (p *policy) readsIdentity() bool {
	reads := false
	switch scope := p.ast.Principal.(type) {
	case ast.ScopeTypeEq:
		return true
	case ast.ScopeTypeIn:
		reads = scope.Entity.Type != typeRole
	case ast.ScopeTypeIsIn:
		reads = scope.Entity.Type != typeRole
	}
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
