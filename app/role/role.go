// Package role lists, creates, changes and deletes the roles that a tenant has made.
//
// Memberships, invitations and API keys refer to a role by its name. A change of the name
// updates them in the same transaction. A role that is in use can only be deleted if another
// one replaces it. Every change runs under the lock on the tenant, and is in force on every node
// before the call returns.
package role

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

// Roles is the feature. Make it with New.
type Roles struct {
	writer *access.Writer
	db     *store.DB
}

// New returns the feature.
func New(writer *access.Writer, db *store.DB) *Roles { return &Roles{writer, db} }

// Role is a role of a tenant, custom or built in.
type Role struct {
	doorward.CustomRole
	Rank    doorward.Role
	BuiltIn bool
	Members int64
}

// idOf returns the id of a built-in role.
func idOf(r doorward.Role) string { return doorward.PrefixRole + strings.ToLower(string(r)) }

// isBuiltIn reports whether the id is that of a built-in role.
func isBuiltIn(id string) bool {
	return slices.ContainsFunc(doorward.Roles, func(r doorward.Role) bool { return idOf(r) == id })
}

// List returns all roles of the caller's tenant, the lowest rank first. Errors:
// unavailable.
func (r *Roles) List(ctx context.Context, by doorward.Caller) ([]Role, error) {
	return list(ctx, r.db.Read(), by.TenantID)
}

// Uncounted is List without the numbers of members, which take a while to count in a large tenant.
func (r *Roles) Uncounted(ctx context.Context, by doorward.Caller) ([]Role, error) {
	return listWith(ctx, r.db.Read(), by.TenantID, nil)
}

func list(ctx context.Context, read store.Reader, tenantID string) ([]Role, error) {
	members, err := membersOf(ctx, read, tenantID)
	if err != nil {
		return nil, err
	}
	return listWith(ctx, read, tenantID, members)
}

// listWith returns the roles with the numbers of their members.
func listWith(ctx context.Context, read store.Reader, tenantID string, members map[doorward.Role]int64) ([]Role, error) {
	rules, err := read.Rules(ctx, tenantID)
	if err != nil {
		return nil, err
	}
	custom, err := read.CustomRoles(ctx, tenantID)
	if err != nil {
		return nil, err
	}
	var all []Role
	for _, name := range rules.Roles() {
		g := rules.Grant(name)
		if g.BuiltIn {
			c := doorward.CustomRole{ID: idOf(name), Name: name, Permissions: g.Actions}
			all = append(all, Role{CustomRole: c, Rank: g.Rank, BuiltIn: true, Members: members[name]})
		} else if i := slices.IndexFunc(custom, func(c doorward.CustomRole) bool { return c.Name == name }); i >= 0 {
			all = append(all, view(rules, custom[i], members[name]))
		}
	}
	return all, nil
}

// view returns a custom role with the permissions that the model has.
func view(rules *doorward.Rules, c doorward.CustomRole, members int64) Role {
	g := rules.Model().GrantOf(c.Permissions)
	c.Permissions = g.Actions
	return Role{CustomRole: c, Rank: g.Rank, Members: members}
}

func membersOf(ctx context.Context, read store.Reader, tenantID string) (map[doorward.Role]int64, error) {
	counts, err := read.CountMembers(ctx, tenantID)
	members := map[doorward.Role]int64{}
	for _, c := range counts {
		members[c.Role] += c.People
	}
	return members, err
}

// Get returns a role of the caller's tenant. Errors: not_found.
func (r *Roles) Get(ctx context.Context, by doorward.Caller, id string) (Role, error) {
	return get(ctx, r.db.Read(), by.TenantID, id)
}

func get(ctx context.Context, read store.Reader, tenantID, id string) (Role, error) {
	all, err := list(ctx, read, tenantID)
	if err != nil {
		return Role{}, err
	}
	if i := slices.IndexFunc(all, func(c Role) bool { return c.ID == id }); i >= 0 {
		return all[i], nil
	}
	return Role{}, doorward.Fail(doorward.CodeNotFound, "")
}

// object returns the role as the object of an action. held is its name; empty for a new role.
func object(by doorward.Caller, id string, held doorward.Role) doorward.Object {
	return doorward.Object{Type: "role", ID: id, TenantID: by.TenantID, Held: held}
}

// grant returns what the role would grant under the rules, with the role's name, which refusals
// quote.
func grant(rules *doorward.Rules, c doorward.CustomRole) *doorward.Grant {
	g := rules.Model().GrantOf(c.Permissions)
	g.Role = c.Name
	return g
}

// current returns the custom role as it is now. Errors: not_found, forbidden for a built-in
// role.
func current(ctx context.Context, read store.Reader, tenantID, id string) (doorward.CustomRole, error) {
	if isBuiltIn(id) {
		return doorward.CustomRole{}, doorward.Fail(doorward.CodeForbidden, "The roles OWNER, ADMIN, USER and VIEWER can't be changed.")
	}
	c, err := read.CustomRole(ctx, tenantID, id)
	if errors.Is(err, store.ErrNone) {
		err = doorward.Fail(doorward.CodeNotFound, "")
	}
	return c, err
}
