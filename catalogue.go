package doorward

import "slices"

// maxPermissions has space for Doorward's own permissions and 500 of a platform.
const maxPermissions = 9 * 64

// Permissions is a set of permissions, a bit each in the order of the list of
// actions. Principals share sets, so a set must not be changed.
type Permissions [maxPermissions / 64]uint64

// Allow reports whether the set has the permission that allows the action.
func (p *Permissions) Allow(v *Verb) bool {
	return p != nil && v.By == ByRole && p[v.bit/64]&(1<<(v.bit%64)) != 0
}

// setOf is the set of the permissions among the actions; others are left out.
func setOf(actions ...Action) *Permissions {
	set := new(Permissions)
	for _, a := range actions {
		if v, known := Lookup(a); known && v.isPermission() {
			set[v.bit/64] |= 1 << (v.bit % 64)
		}
	}
	return set
}

// within reports whether all of the set is in another.
func (p *Permissions) within(other *Permissions) bool {
	for i := range p {
		if p[i]&^other[i] != 0 {
			return false
		}
	}
	return true
}

// catalogue is an indexed list of actions. Further actions are appended, so that
// earlier ones keep their bits.
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

// add assigns the next bit to a permission, and to another action the bit of the
// permission that allows it.
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
