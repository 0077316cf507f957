package policy

import (
	"cmp"
	"context"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/cedar"
	"github.com/doorward/doorward/app/decide"
	"github.com/doorward/doorward/app/rules"
	"github.com/doorward/doorward/store"
)

// Cell is the outcome of an action for all who have a role, before a change of the policies and after it.
type Cell struct {
	Role   doorward.Role
	Action doorward.Action
	// Was and Would are those of users and API keys; Conditional if they differ.
	Was, Would Outcome
	Users      Effect
	Keys       *Effect // nil: no API key with the role can do the action, whatever policies say
}

// Matrix compares two versions of the policies.
type Matrix struct {
	Cells      []Cell
	Was, Would int64 // the versions that refuse before and after; 0: none
}

// Effect is what a change of the policies does to all users, or all API keys, with a role. Keys are those
// that have the permission.
type Effect struct {
	Was, Would Outcome
	// Changes reports whether the outcomes differ, or both depend on conditions, on different ones.
	Changes bool
	// WasBecause and Because are what makes each outcome, if it changes: policies, or else the role.
	WasBecause, Because Causes
}

// Causes are the first CausesMax causes of an outcome, in the order of the text.
type Causes struct {
	First  []Cause
	Others int // how many more there are
}

// Changes reports whether the change of the policies changes something for users or keys with the role.
func (c *Cell) Changes() bool { return c.Users.Changes || c.Keys != nil && c.Keys.Changes }

// Explained reports whether the causes of what changes are there, see ReasonsMax.
func (c *Cell) Explained() bool {
	return (!c.Users.Changes || c.Users.Because.First != nil) && (c.Keys == nil || !c.Keys.Changes || c.Keys.Because.First != nil)
}

const (
	// CausesMax is how many policies are named for an outcome.
	CausesMax = 5
	// ReasonsMax is how many cells that change have their causes, by the order of the actions. The others
	// say that they change, and not why. It bounds an answer: a tenant may have 54 roles, a model 500 actions.
	ReasonsMax = 1000
)

// trial has the rules of a tenant, the policies that refuse there before a change, and those that
// would refuse in their place.
type trial struct {
	tenantID   string
	current    *doorward.Rules
	was, would *rules.Trial
}

// newTrial returns the trial of two versions; nil for no policies. Errors: unavailable.
func (p *Policies) newTrial(ctx context.Context, tenantID string, was, would *Version) (t trial, err error) {
	t.tenantID = tenantID
	if t.current, err = p.db.Read().Rules(ctx, tenantID); err != nil {
		return t, err
	}
	model, err := modelOf(ctx, p.db.Read())
	if err != nil {
		return t, err
	}
	if t.was, err = rules.Try(*cmp.Or(was, &Version{}), model); err == nil {
		t.would, err = rules.Try(*cmp.Or(would, &Version{}), model)
	}
	if err != nil {
		return t, doorward.Unavailable(err)
	}
	return t, nil
}

// ConfirmMatrix returns what the version in force, which waits to be confirmed, changes: compared with what
// refuses if it ends. It is empty if nothing waits. Errors: unavailable.
func (p *Policies) ConfirmMatrix(ctx context.Context, by doorward.Caller) (Matrix, error) {
	s, err := stateOf(ctx, p.db.Read(), by.TenantID, p.db.Now())
	if err != nil || s.inForce.ConfirmUntil == nil {
		return Matrix{}, err
	}
	return p.compare(ctx, by.TenantID, s.Refusing(s.Confirmed), s.Refusing(&s.inForce))
}

// RestoreMatrix returns what restoring an earlier version would change. A version that observes leaves the
// one that refuses beside it. Errors: not_found, unavailable.
func (p *Policies) RestoreMatrix(ctx context.Context, by doorward.Caller, version int64) (Matrix, error) {
	s, err := stateOf(ctx, p.db.Read(), by.TenantID, p.db.Now())
	if err != nil {
		return Matrix{}, err
	}
	would, err := p.Get(ctx, by, version)
	if err == nil && would.Mode == store.PolicyObserves {
		would, err = p.besides(ctx, by, s.enforcedBeside(would))
	}
	if err != nil {
		return Matrix{}, err
	}
	return p.compare(ctx, by.TenantID, s.Refusing(&s.inForce), &would)
}

// compare compares two versions; nil is no policies.
func (p *Policies) compare(ctx context.Context, tenantID string, was, would *Version) (m Matrix, err error) {
	t, err := p.newTrial(ctx, tenantID, was, would)
	if err != nil {
		return m, err
	}
	m.Was, m.Would = cmp.Or(was, &Version{}).Version, cmp.Or(would, &Version{}).Version
	m.Cells, err = t.matrix(ctx)
	return m, err
}

// besides is Get; version 0 is no policies.
func (p *Policies) besides(ctx context.Context, by doorward.Caller, version int64) (Version, error) {
	if version == 0 {
		return Version{}, nil
	}
	return p.Get(ctx, by, version)
}

// holders are all users, or all API keys, with a role: what the role grants them, and what the policies
// refuse them.
type holders struct {
	role       doorward.Role
	principal  doorward.Principal
	was, would rules.RoleOutcomes
}

func (t trial) holders(role doorward.Role, keys bool) holders {
	p := doorward.PrincipalOfRole(t.current, role)
	if keys { // with all permissions that a key of the role can have
		p = doorward.PrincipalOfKey(doorward.APIKey{Rules: t.current, Role: role, OwnerRole: doorward.RoleOwner, Permissions: t.current.Grant(role).Actions}, doorward.TenantActive)
		p.Policy = nil // the trials have the policies
	}
	return holders{role, p, t.was.ForRole(t.tenantID, role, keys), t.would.ForRole(t.tenantID, role, keys)}
}

// both are the holders of a role; keys is nil for the OWNER's, which no key has.
type both struct {
	users holders
	keys  *holders
}

// matrix returns a cell for each role and each action that roles grant, the roles in the order of
// Rules.Roles. The time is bounded by the limits on roles, actions and policies. Errors: unavailable, if
// the request has ended.
func (t trial) matrix(ctx context.Context) (all []Cell, err error) {
	verbs := slices.DeleteFunc(t.current.Model().Verbs(), func(v doorward.Verb) bool { return v.By != doorward.ByRole })
	roles := make([]both, 0, len(t.current.Roles()))
	for _, role := range t.current.Roles() {
		if err := ctx.Err(); err != nil {
			return nil, doorward.Unavailable(err)
		}
		of := both{users: t.holders(role, false)}
		if role != doorward.RoleOwner {
			keys := t.holders(role, true)
			of.keys = &keys
		}
		for i := range verbs {
			all = append(all, of.cell(&verbs[i]))
		}
		roles = append(roles, of)
	}
	addCauses(all, roles, verbs)
	return all, nil
}

// addCauses adds the causes to the first ReasonsMax cells that change.
func addCauses(all []Cell, roles []both, verbs []doorward.Verb) {
	explained := 0
	for v := range verbs {
		for r := range roles {
			cell := &all[r*len(verbs)+v]
			if !cell.Changes() {
				continue
			}
			if explained++; explained > ReasonsMax {
				return
			}
			roles[r].users.explain(&verbs[v], &cell.Users)
			if cell.Keys != nil {
				roles[r].keys.explain(&verbs[v], cell.Keys)
			}
		}
	}
}

func (b *both) cell(v *doorward.Verb) Cell {
	c := Cell{Role: b.users.role, Action: v.Action, Users: b.users.effect(v)}
	c.Was, c.Would = c.Users.Was, c.Users.Would
	if b.keys == nil || !b.keys.isGranted(v) {
		return c
	}
	keys := b.keys.effect(v)
	c.Keys = &keys
	if keys.Was != c.Was {
		c.Was = Conditional
	}
	if keys.Would != c.Would {
		c.Would = Conditional
	}
	return c
}

// isGranted reports whether the role, or the key, has the action, whatever policies say.
func (h *holders) isGranted(v *doorward.Verb) bool {
	return decide.May(&h.principal, &decide.Question{Action: v.Action, On: h.principal.Tenant()}).Allowed
}

func (h *holders) effect(v *doorward.Verb) Effect {
	isGranted := h.isGranted(v)
	e := Effect{Was: h.outcome(v, isGranted, h.was), Would: h.outcome(v, isGranted, h.would)}
	e.Changes = e.Was != e.Would || e.Was == Conditional && !h.was.SameConditions(h.would, deciding(v)...)
	return e
}

// deciding are the actions of which policies may refuse any, to refuse the action: it and its permission.
func deciding(v *doorward.Verb) []doorward.Action {
	if v.Action == v.Permission {
		return []doorward.Action{v.Action}
	}
	return []doorward.Action{v.Permission, v.Action}
}

// outcome returns the outcome of an action, from what the role grants and from the policies:
// those of the operator may permit and refuse, those of the tenant only refuse.
func (h *holders) outcome(v *doorward.Verb, isGranted bool, policies rules.RoleOutcomes) Outcome {
	if isGranted && decide.IsExempt(&h.principal, v) {
		return Allowed
	}
	refused := policies.Outcome(deciding(v)...)
	switch {
	case refused == cedar.RefusesAll || !isGranted && !h.mayBePermitted(v, policies):
		return Refused
	case refused == cedar.Depends || !isGranted:
		return Conditional
	}
	return Allowed
}

// mayBePermitted reports whether the operator's policies may permit the action. They never permit a key.
func (h *holders) mayBePermitted(v *doorward.Verb, policies rules.RoleOutcomes) bool {
	return v.Platform && h.principal.Kind == doorward.ByUser && policies.MayPermit(v.Action)
}

// explain adds the causes to an effect that changes something.
func (h *holders) explain(v *doorward.Verb, e *Effect) {
	if e.Changes {
		e.WasBecause, e.Because = h.causes(v, e.Was, h.was), h.causes(v, e.Would, h.would)
	}
}

// causes returns what makes an outcome: the policies that refuse, or on which it depends; without these, a
// policy of the operator that permits; else the role.
func (h *holders) causes(v *doorward.Verb, outcome Outcome, policies rules.RoleOutcomes) (all Causes) {
	var found []doorward.PolicyRefusal
	count := 0
	if outcome != Allowed {
		found, count = policies.Deciders(CausesMax, deciding(v)...)
	}
	if outcome == Conditional && count == 0 {
		found, count = policies.Permits(CausesMax, v.Action)
	}
	for i := range found {
		all.First = append(all.First, policyCause(&found[i]))
	}
	if count == 0 {
		all.First, count = []Cause{{Kind: ByRole, ID: string(h.role)}}, 1
	}
	all.Others = count - len(all.First)
	return all
}
