package rules

import (
	"sync"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/cedar"
	"github.com/doorward/doorward/store"
)

// Trial is the text of a version as if it were enforced, beside the policies of the operator,
// to see what it would make of decisions. It is a doorward.Policy that keeps what For has
// returned for each principal.
type Trial struct {
	policy

	mu   sync.Mutex
	made map[principalKey]doorward.PolicyOf
}

// principalKey is what policies read of a principal.
type principalKey struct {
	kind                   doorward.PrincipalKind
	id, email, owner, role string
	authAt                 int64
	aal                    int
}

// Try compiles a version under the text of a model; empty is the built-in one.
func Try(v store.PolicyVersion, model string) (*Trial, error) {
	c, err := read(model)
	if err != nil {
		return nil, err
	}
	t, err := textOf(&v, c.schema)
	if err != nil {
		return nil, err
	}
	return &Trial{policy: policy{operator: c.operatorText(), latest: inForce{enforced: t}}, made: map[principalKey]doorward.PolicyOf{}}, nil
}

// For is part of doorward.Policy.
func (t *Trial) For(who *doorward.Principal) doorward.PolicyOf {
	key := principalKey{who.Kind, who.ID, who.Email, who.OwnerID, string(who.Role), who.AuthAt.UnixNano(), who.AAL}
	t.mu.Lock()
	defer t.mu.Unlock()
	of, known := t.made[key]
	if !known {
		of = t.policy.For(who)
		t.made[key] = of
	}
	return of
}

// OfRole is what a trial makes of actions for all who have a role.
type OfRole struct{ operator, tenant *cedar.OfRole } // nil: say nothing

// OfRole evaluates the policies for those who have a role in the tenant.
func (t *Trial) OfRole(tenantID string, role doorward.Role) OfRole {
	of := func(t *text) *cedar.OfRole {
		if t == nil {
			return nil
		}
		return t.set.OfRole(tenantID, t.roleOf(role), role != doorward.RoleOwner) // no key has the role OWNER
	}
	return OfRole{of(t.operator), of(t.latest.enforced)}
}

// Outcome is what the policies that refuse make of an action: cedar.RefusesNone,
// cedar.Depends or cedar.RefusesAll.
func (o OfRole) Outcome(action doorward.Action) cedar.Outcome {
	worst := cedar.RefusesNone
	for _, of := range []*cedar.OfRole{o.operator, o.tenant} {
		if of != nil {
			worst = max(worst, of.Outcome(string(action)))
		}
	}
	return worst
}

// MayPermit reports whether the operator's policies may permit the action to users with the
// role.
func (o OfRole) MayPermit(action doorward.Action) bool {
	return o.operator != nil && o.operator.MayPermit(string(action))
}
