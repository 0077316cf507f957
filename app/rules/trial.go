package rules

import (
	"sync"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/cedar"
	"github.com/doorward/doorward/store"
)

// Trial is a doorward.Policy that enforces the text of any version, besides the policies of the
// operator, to find out how it would decide. It caches the result of For for each principal.
type Trial struct {
	policy

	mu       sync.Mutex
	prepared map[principalKey]doorward.PrincipalPolicies
}

// principalKey is what policies read of a principal, besides its tenant: one trial is for the
// principals of one tenant.
type principalKey struct {
	kind                   doorward.PrincipalKind
	id, email, owner, role string
	authAt                 int64
	aal                    int
}

// Try compiles a version under the text of a model. An empty model is the built-in one.
func Try(v store.PolicyVersion, model string) (*Trial, error) {
	c, err := compileModel(model)
	if err != nil {
		return nil, err
	}
	t, err := textOf(&v, c.schema)
	if err != nil {
		return nil, err
	}
	return &Trial{policy: policy{operator: c.operatorText(), latest: inForce{enforced: t}}, prepared: map[principalKey]doorward.PrincipalPolicies{}}, nil
}

// For implements doorward.Policy.
func (t *Trial) For(principal *doorward.Principal) doorward.PrincipalPolicies {
	key := principalKey{principal.Kind, principal.ID, principal.Email, principal.OwnerID, string(principal.Role), principal.AuthAt.UnixNano(), principal.AAL}
	t.mu.Lock()
	defer t.mu.Unlock()
	prepared, known := t.prepared[key]
	if !known {
		prepared = t.policy.For(principal)
		t.prepared[key] = prepared
	}
	return prepared
}

// RoleOutcomes has the outcomes of a trial for all principals with one role.
type RoleOutcomes struct{ operator, tenant *cedar.RoleOutcomes } // nil: no policies

// ForRole evaluates the policies for all principals with a role in the tenant.
func (t *Trial) ForRole(tenantID string, role doorward.Role) RoleOutcomes {
	evaluate := func(t *text) *cedar.RoleOutcomes {
		if t == nil {
			return nil
		}
		return t.set.ForRole(tenantID, t.roleOf(role), role != doorward.RoleOwner) // no key has the role OWNER
	}
	return RoleOutcomes{evaluate(t.operator), evaluate(t.latest.enforced)}
}

// Outcome returns whether the policies refuse an action: cedar.RefusesNone, cedar.Depends or
// cedar.RefusesAll.
func (o RoleOutcomes) Outcome(action doorward.Action) cedar.Outcome {
	worst := cedar.RefusesNone
	for _, policies := range []*cedar.RoleOutcomes{o.operator, o.tenant} {
		if policies != nil {
			worst = max(worst, policies.Outcome(string(action)))
		}
	}
	return worst
}

// MayPermit reports whether the operator's policies may permit the action to users with the
// role.
func (o RoleOutcomes) MayPermit(action doorward.Action) bool {
	return o.operator != nil && o.operator.MayPermit(string(action))
}
