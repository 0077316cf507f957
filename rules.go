package doorward

import (
	"slices"
	"strings"
)

// RulesVersion identifies the content of a tenant's Rules. Both numbers are random, so that
// different contents have different numbers. 0 stands for the built-in model, and for a tenant
// without rules of its own.
type RulesVersion struct {
	Model  int64
	Tenant int64
}

// Grant is what a role grants in a tenant. It must not be changed.
type Grant struct {
	Role        Role
	About       string
	BuiltIn     bool
	Permissions *Permissions
	Actions     []Action // the same, by name and sorted
	// Rank is the lowest built-in role that has all of the permissions. It limits who may give
	// the role, and who may act on those who have it.
	Rank Role
	// ActsAs is the highest built-in role whose permissions the role includes: the rank with
	// which its holders act on others. Empty if there is none.
	ActsAs Role
}

// HasMoreThanKeys reports whether the grant has a permission that no API key can have, whatever the
// platform's model says of its own actions.
func (g *Grant) HasMoreThanKeys() bool {
	return slices.ContainsFunc(g.Actions, func(a Action) bool {
		v, known := builtin.Lookup(a)
		return known && v.NoKeys
	})
}

// CustomRole is a role that a tenant has made.
type CustomRole struct {
	ID          string
	Name        Role
	About       string
	Permissions []Action // sorted; those that the model lacks have no effect
}

// Version returns a hash of the fields that can be edited, for If-Match.
func (c CustomRole) Version() string { return version(c.ID, c.Name, c.About, c.Permissions) }

// Limits of custom roles.
const (
	CustomRolesMax = 50  // in a tenant
	RoleAboutMax   = 200 // characters
)

// Rules are the rules of one tenant: the model of the installation, the tenant's own roles,
// and the policies. They are immutable and shared by all principals of the tenant. The nil
// Rules are those of the built-in model.
type Rules struct {
	Version RulesVersion
	model   *Model
	grants  map[Role]*Grant
	policy  Policy // nil: none
}

// NewRules returns the rules of a tenant. It leaves out a custom role with the name of a
// built-in one.
func NewRules(version RulesVersion, m *Model, roles []CustomRole) *Rules {
	r := &Rules{Version: version, model: m, grants: make(map[Role]*Grant, len(m.grants)+len(roles))}
	for _, custom := range roles {
		g := m.GrantOf(custom.Permissions)
		g.Role, g.About = custom.Name, custom.About
		r.grants[custom.Name] = g
	}
	for role, g := range m.grants {
		r.grants[role] = g
	}
	return r
}

// UnloadedRules returns a placeholder for the rules of a version that aren't read yet. It grants
// nothing.
func UnloadedRules(version RulesVersion) *Rules {
	return &Rules{Version: version, model: builtin}
}

var builtinRules = NewRules(RulesVersion{}, builtin, nil)

func (r *Rules) orBuiltin() *Rules {
	if r == nil {
		return builtinRules
	}
	return r
}

// Model returns the model of the installation.
func (r *Rules) Model() *Model { return r.orBuiltin().model }

// Grant returns what the role grants; nil if there is no such role.
func (r *Rules) Grant(role Role) *Grant { return r.orBuiltin().grants[role] }

// Rank returns the rank of the role's Grant; empty if there is no such role.
func (r *Rules) Rank(role Role) Role {
	if g := r.Grant(role); g != nil {
		return g.Rank
	}
	return ""
}

// Has reports whether there is such a role.
func (r *Rules) Has(role Role) bool { return r.Grant(role) != nil }

// Roles lists the roles, the lowest first: the built-in ones by rank, each followed by the
// custom roles of that rank by name.
func (r *Rules) Roles() []Role {
	all := make([]Role, 0, len(r.orBuiltin().grants))
	for role := range r.orBuiltin().grants {
		all = append(all, role)
	}
	slices.SortFunc(all, func(a, b Role) int {
		x, y := r.Grant(a), r.Grant(b)
		switch {
		case x.Rank != y.Rank:
			return x.Rank.rank() - y.Rank.rank()
		case x.BuiltIn != y.BuiltIn && x.BuiltIn:
			return -1
		case x.BuiltIn != y.BuiltIn:
			return 1
		}
		return strings.Compare(string(a), string(b))
	})
	return all
}

// RolesHelp is the message for an unknown role.
func (r *Rules) RolesHelp() string {
	var names []string
	for _, role := range slices.Backward(r.Roles()) {
		if !r.Grant(role).BuiltIn {
			names = append(names, string(role))
		}
	}
	if len(names) == 0 {
		return RolesHelp
	}
	return RolesHelp + " The tenant's own are " + strings.Join(names, ", ") + "."
}

// GrantOf returns what a role with the permissions would grant: a Grant with Rank and ActsAs,
// without a name. It leaves out actions that are no permissions of the model.
func (m *Model) GrantOf(permissions []Action) *Grant {
	g := &Grant{Permissions: m.set(permissions...), Actions: []Action{}}
	for _, a := range permissions {
		if m.IsPermission(a) {
			g.Actions = append(g.Actions, a)
		}
	}
	slices.Sort(g.Actions)
	g.Actions = slices.Compact(g.Actions)
	for _, role := range slices.Backward(Roles) { // OWNER has all permissions
		if g.Permissions.IsSubsetOf(m.grants[role].Permissions) {
			g.Rank = role
		}
	}
	for _, role := range Roles {
		if m.grants[role].Permissions.IsSubsetOf(g.Permissions) {
			g.ActsAs = role
		}
	}
	return g
}
