package doorward

import "slices"

// maxPermissions is room for Doorward's own permissions and 500 of a platform.
const maxPermissions = 9 * 64

// Permissions is a set of permissions: a bit for each, in the order in which the
// list of actions has them. Principals share sets, so that none is ever changed.
type Permissions [maxPermissions / 64]uint64

// Allow reports whether the set has the permission that allows the action.
func (p *Permissions) Allow(v *Verb) bool {
	return p != nil && v.By == ByRole && p[v.bit/64]&(1<<(v.bit%64)) != 0
}

// catalogue is a list of actions, made ready to be asked. The list is data: further
// actions are appended to it, so that those before keep their bits.
type catalogue struct {
	verbs   []Verb
	named   map[Action]*Verb
	granted map[Role]*Permissions // by role
	listed  map[Role][]Action     // the same, by name and sorted
}

// builtin has Doorward's own actions, and those of the messaging platform.
var builtin = newCatalogue(verbs)

func newCatalogue(rows []Verb) catalogue {
	c := catalogue{named: make(map[Action]*Verb, len(rows)), granted: map[Role]*Permissions{}, listed: map[Role][]Action{}}
	for _, r := range Roles {
		c.granted[r] = new(Permissions)
	}
	for _, v := range rows {
		c.add(v)
	}
	for _, r := range Roles {
		slices.Sort(c.listed[r])
	}
	return c
}

// add gives a permission the next bit, and an act that of the permission that
// allows it.
func (c *catalogue) add(v Verb) {
	switch {
	case v.isPermission():
		v.bit = uint16(len(c.listed[RoleOwner])) // OWNER has every permission
		for _, r := range v.Roles() {
			c.granted[r][v.bit/64] |= 1 << (v.bit % 64)
			c.listed[r] = append(c.listed[r], v.Action)
		}
	case v.By == ByRole:
		permission, ok := c.named[v.Through]
		if !ok {
			panic("doorward: " + v.Action + " comes before the permission that allows it")
		}
		v.bit, v.roles = permission.bit, permission.roles
	}
	c.verbs = append(c.verbs, v)
	c.named[v.Action] = &v
}

// Verbs returns the list of all actions, permissions first.
func Verbs() []Verb { return slices.Clone(builtin.verbs) }

// Lookup returns the row of a, which nobody may change, and whether there is one. An
// unknown action has the zero row.
func Lookup(a Action) (*Verb, bool) {
	if v := builtin.named[a]; v != nil {
		return v, true
	}
	return &Verb{}, false
}

// IsPermission reports whether a is one of the actions that roles grant by
// that name, the only ones a check may ask for.
func (a Action) IsPermission() bool {
	v, known := Lookup(a)
	return known && v.isPermission()
}
