package rules

import (
	"slices"
	"sync"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/cedar"
	"github.com/doorward/doorward/store"
)

// Trial is a doorward.Policy that enforces the text of any version, besides the policies of the
// operator, to find out how it would decide. It caches the result of For for each principal.
type Trial struct {
	policy

	mu         sync.Mutex
	prepared   map[principalKey]doorward.PrincipalPolicies
	conditions map[*text]conditions // made when they are first asked for
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
	return &Trial{policy: policy{operator: c.operatorText(), latest: inForce{enforced: t}}, prepared: map[principalKey]doorward.PrincipalPolicies{}, conditions: map[*text]conditions{}}, nil
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

// RoleOutcomes has the outcomes of a trial for all users, or all API keys, with one role. See
// cedar.RoleOutcomes for what they mean.
type RoleOutcomes struct{ operator, tenant textOutcomes }

// textOutcomes are the outcomes of one text; the zero value for no text.
type textOutcomes struct {
	trial  *Trial
	text   *text
	tenant string
	*cedar.RoleOutcomes
}

// ForRole evaluates the policies for the users, or the API keys, with a role in the tenant.
func (t *Trial) ForRole(tenantID string, role doorward.Role, keys bool) RoleOutcomes {
	evaluate := func(of *text) textOutcomes {
		if of == nil {
			return textOutcomes{}
		}
		return textOutcomes{t, of, tenantID, of.set.ForRole(tenantID, of.roleOf(role), keys)}
	}
	return RoleOutcomes{evaluate(t.operator), evaluate(t.latest.enforced)}
}

// outcome returns whether the text refuses what any of the actions refuses.
func (o textOutcomes) outcome(actions []doorward.Action) (worst cedar.Outcome) {
	if o.text == nil {
		return cedar.RefusesNone
	}
	for _, a := range actions {
		worst = max(worst, o.Outcome(string(a)))
	}
	return worst
}

// deciders returns the policies that make an outcome for one of the actions, as indexes in the text's
// order.
func (o textOutcomes) deciders(outcome cedar.Outcome, actions []doorward.Action) (all []int) {
	if o.text == nil || outcome == cedar.RefusesNone {
		return nil
	}
	for _, a := range actions {
		if o.Outcome(string(a)) == outcome {
			all = append(all, o.Deciders(string(a))...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Outcome returns whether the policies refuse something that needs all of the actions, such as an action
// and its permission: cedar.RefusesNone, cedar.Depends or cedar.RefusesAll.
func (o RoleOutcomes) Outcome(actions ...doorward.Action) cedar.Outcome {
	return max(o.operator.outcome(actions), o.tenant.outcome(actions))
}

// MayPermit reports whether the operator's policies may permit the action to users with the
// role.
func (o RoleOutcomes) MayPermit(action doorward.Action) bool {
	return o.operator.text != nil && len(o.operator.Permits(string(action))) > 0
}

// Deciders returns the first policies that make the Outcome, up to most, and how many there are: those of
// the operator, then those of the tenant, each in the order of the text.
func (o RoleOutcomes) Deciders(most int, actions ...doorward.Action) (first []doorward.PolicyRefusal, count int) {
	outcome := o.Outcome(actions...)
	for _, of := range []textOutcomes{o.operator, o.tenant} {
		orders := of.deciders(outcome, actions)
		count += len(orders)
		first = append(first, of.describe(orders, most-len(first))...)
	}
	return first, count
}

// Permits returns the first policies of the operator that may permit the action to users with the role,
// up to most, and how many there are.
func (o RoleOutcomes) Permits(most int, action doorward.Action) (first []doorward.PolicyRefusal, count int) {
	if o.operator.text == nil {
		return nil, 0
	}
	orders := o.operator.Permits(string(action))
	return o.operator.describe(orders, most), len(orders)
}

// describe returns the first policies at the indexes of the text's order, up to most. Those of the operator that are about
// one person or thing are one without a name, after the others: the reader may be of another tenant.
func (o textOutcomes) describe(orders []int, most int) (all []doorward.PolicyRefusal) {
	isUnnamed := false
	for _, order := range orders {
		switch {
		case len(all) == most:
			return all
		case o.text.operator && o.trial.conditionsOf(o.text, o.tenant).aboutOne[order]:
			isUnnamed = true
		default:
			all = append(all, *(&preparedText{text: o.text}).refusal(o.text.set.Describe(order)))
		}
	}
	if isUnnamed && len(all) < most {
		all = append(all, doorward.PolicyRefusal{ByOperator: true})
	}
	return all
}

// SameConditions reports whether the Outcome for the actions is made by policies that refuse the same in
// both, whatever their order, names and reasons.
func (o RoleOutcomes) SameConditions(other RoleOutcomes, actions ...doorward.Action) bool {
	a, b := o.Outcome(actions...), other.Outcome(actions...)
	return a == b && slices.Equal(o.operator.conditions(a, actions), other.operator.conditions(b, actions)) &&
		slices.Equal(o.tenant.conditions(a, actions), other.tenant.conditions(b, actions))
}

// conditions returns the conditions of the policies that make an outcome, sorted, each once.
func (o textOutcomes) conditions(outcome cedar.Outcome, actions []doorward.Action) []string {
	orders := o.deciders(outcome, actions)
	if len(orders) == 0 {
		return nil
	}
	known := o.trial.conditionsOf(o.text, o.tenant)
	for i, order := range orders {
		orders[i] = known.rank[order]
	}
	slices.Sort(orders)
	orders = slices.Compact(orders)
	all := make([]string, len(orders))
	for i, rank := range orders {
		all[i] = known.sorted[rank]
	}
	return all
}

// conditions are those of a text, see cedar.Set.Conditions: sorted, each once, with the place there of
// each policy's. aboutOne is cedar.Set.IsAboutOne of each.
type conditions struct {
	sorted   []string
	rank     []int
	aboutOne []bool
}

func (t *Trial) conditionsOf(of *text, tenant string) conditions {
	t.mu.Lock()
	defer t.mu.Unlock()
	c, known := t.conditions[of]
	if !known {
		all := of.set.Conditions()
		c.sorted = slices.Compact(slices.Sorted(slices.Values(all)))
		for order, one := range all {
			at, _ := slices.BinarySearch(c.sorted, one)
			c.rank, c.aboutOne = append(c.rank, at), append(c.aboutOne, of.set.IsAboutOne(order, tenant))
		}
		t.conditions[of] = c
	}
	return c
}
