package doorward

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// PlatformActionsMax is how many actions a model may have.
const PlatformActionsMax = 500

// maxPermissions has space for 64 permissions of Doorward's own and those of a platform,
// rounded up to a multiple of 64.
const maxPermissions = 64 + PlatformActionsMax + 12

// Permissions is a set of permissions: one bit for each, in the order of a model's actions.
// Sets of different models can't be compared. Principals share sets, so a set must not be
// changed.
type Permissions [maxPermissions / 64]uint64

// Allow reports whether the set has the permission that allows the action.
func (p *Permissions) Allow(v *Verb) bool {
	return p != nil && v.By == ByRole && p[v.bit/64]&(1<<(v.bit%64)) != 0
}

func (p *Permissions) add(v *Verb) { p[v.bit/64] |= 1 << (v.bit % 64) }

// IsSubsetOf reports whether the set is a subset of another. Nil is the empty set.
func (p *Permissions) IsSubsetOf(other *Permissions) bool {
	switch {
	case p == nil:
		return true
	case other == nil:
		other = &Permissions{}
	}
	for i := range p {
		if p[i]&^other[i] != 0 {
			return false
		}
	}
	return true
}

// intersect returns the intersection of two sets.
func (p *Permissions) intersect(other *Permissions) *Permissions {
	both := new(Permissions)
	if p == nil || other == nil {
		return both
	}
	for i := range p {
		both[i] = p[i] & other[i]
	}
	return both
}

// PlatformAction is an action of the platform in its model.
type PlatformAction struct {
	Name  Action
	About string
	// Lowest is the lowest built-in role that grants it; higher ones do, too.
	Lowest Role
	// Resource is the type of the objects that it acts on; empty: the tenant.
	Resource string
	// StepUp reports whether it needs a recent proof of the user's identity.
	StepUp bool
	// NoKeys reports whether API keys can't have it.
	NoKeys bool
}

// Model is the list of all actions: Doorward's own, and those of the platform. It is
// immutable. Make one with NewModel.
type Model struct {
	verbs  []Verb
	named  map[Action]*Verb
	grants map[Role]*Grant // of the four roles
}

// builtin has the actions of a messaging platform, and Doorward's own.
var builtin = newModel(slices.Concat(messaging, own))

// BuiltIn returns the model of an installation that has applied none.
func BuiltIn() *Model { return builtin }

// IsBuiltIn reports whether the platform's actions are those of a messaging platform, which have
// texts in each language. Those of an applied model are described by it alone.
func (m *Model) IsBuiltIn() bool { return m == builtin }

// NewModel returns the model of Doorward's own actions and those of a platform, at most
// PlatformActionsMax. The names must be distinct and differ from those of Doorward's own
// actions, and Lowest must be a built-in role.
func NewModel(platform []PlatformAction) (*Model, error) {
	if len(platform) > PlatformActionsMax {
		return nil, fmt.Errorf("doorward: a model has %d actions, more than the limit of %d", len(platform), PlatformActionsMax)
	}
	var rows []Verb
	for _, a := range platform {
		isSame := func(v Verb) bool { return v.Action == a.Name }
		if slices.ContainsFunc(rows, isSame) || slices.ContainsFunc(own, isSame) || !a.Lowest.IsBuiltIn() {
			return nil, fmt.Errorf("doorward: the action %q has the name of another action, or its Lowest is none of the four roles", a.Name)
		}
		rows = append(rows, a.verb())
	}
	return newModel(append(rows, own...)), nil
}

func (a PlatformAction) verb() Verb {
	v := platform(a.Name, a.Lowest)
	v.About, v.Resource, v.NoKeys = a.About, a.Resource, v.NoKeys || a.NoKeys
	if a.StepUp {
		v.Proof = ProofAlways
	}
	return v
}

func newModel(rows []Verb) *Model {
	m := &Model{named: make(map[Action]*Verb, len(rows)), grants: map[Role]*Grant{}}
	for _, r := range Roles {
		m.grants[r] = &Grant{Role: r, Rank: r, ActsAs: r, BuiltIn: true, Permissions: new(Permissions)}
	}
	bit := uint16(0)
	for _, v := range rows {
		if v.IsPermission() {
			v.bit = bit
			bit++
		}
		m.add(v)
	}
	for _, g := range m.grants {
		slices.Sort(g.Actions)
	}
	return m
}

// add adds an action. An action that a broader permission allows gets its bit, its roles and what
// operator keys need from that permission, which must have been added before.
func (m *Model) add(v Verb) {
	if v.By == ByRole && !v.IsPermission() {
		permission, ok := m.named[v.Permission]
		if !ok {
			panic("doorward: " + v.Action + " comes before the permission that allows it")
		}
		v.bit, v.roles, v.Operator = permission.bit, permission.roles, cmp.Or(v.Operator, permission.Operator)
	}
	m.named[v.Action] = &v
	if v.By == ByGrant {
		return
	}
	m.verbs = append(m.verbs, v)
	for _, r := range v.Roles() {
		if g := m.grants[r]; v.IsPermission() {
			g.Permissions.add(&v)
			g.Actions = append(g.Actions, v.Action)
		}
	}
}

// Verbs returns the list of all actions, without those that are only permissions of keys.
func (m *Model) Verbs() []Verb { return slices.Clone(m.verbs) }

// helpActions is how many actions ActionsHelp lists.
const helpActions = 10

// ActionsHelp is the message for an unknown action. It lists the platform's first actions.
func (m *Model) ActionsHelp() string {
	var names []string
	for _, v := range m.verbs {
		if v.Platform {
			names = append(names, string(v.Action))
		}
	}
	switch more := len(names) - helpActions; {
	case len(names) == 0:
		return "There is no such action. The platform has no actions of its own."
	case more > 0:
		return fmt.Sprintf("There is no such action. Those of the platform are %s and %d more.", strings.Join(names[:helpActions], ", "), more)
	}
	return "There is no such action. Those of the platform are " + strings.Join(names, ", ") + "."
}

// Lookup returns the Verb of an action, which must not be changed, and whether there is one. It
// returns the zero Verb for an unknown action.
func (m *Model) Lookup(a Action) (*Verb, bool) {
	if v := m.named[a]; v != nil {
		return v, true
	}
	return &noVerb, false
}

// noVerb is the row of unknown actions.
var noVerb Verb

// IsPermission reports whether roles grant the action by its own name. A check may ask for
// these actions only.
func (m *Model) IsPermission(a Action) bool {
	v, known := m.Lookup(a)
	return known && v.IsPermission()
}

// ForKeys reports whether API keys can have the permission. It is true for actions that are no
// permissions.
func (m *Model) ForKeys(a Action) bool {
	v, _ := m.Lookup(a)
	return !v.NoKeys
}

// set returns the set of the actions. It leaves out those that are no permissions.
func (m *Model) set(actions ...Action) *Permissions {
	set := new(Permissions)
	for _, a := range actions {
		if v, known := m.Lookup(a); known && v.IsPermission() {
			set.add(v)
		}
	}
	return set
}

// setForKeys is set without the actions that API keys can't have. A key has one of these if another
// model was in force when the key got it.
func (m *Model) setForKeys(actions []Action) *Permissions {
	allowed := slices.DeleteFunc(slices.Clone(actions), func(a Action) bool {
		v, known := m.Lookup(a)
		return known && v.NoKeys
	})
	return m.set(allowed...)
}

// Verbs returns the list of all actions of the built-in model, permissions first.
func Verbs() []Verb { return builtin.Verbs() }

// Lookup is Model.Lookup of the built-in model.
func Lookup(a Action) (*Verb, bool) { return builtin.Lookup(a) }

// IsPermission is Model.IsPermission of the built-in model.
func (a Action) IsPermission() bool { return builtin.IsPermission(a) }
