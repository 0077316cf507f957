package member

import (
	"context"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
)

// AtMostAdmin returns the role, or nothing if the tenant has none of the name or it ranks above ADMIN: nothing
// is raised above that from outside.
func AtMostAdmin(rules *doorward.Rules, role doorward.Role) doorward.Role {
	if !rules.Has(role) || rules.Rank(role).Outranks(doorward.RoleAdmin) {
		return ""
	}
	return role
}

// HighestRole returns the highest of roles that come from outside; empty: none may be given. Of two of the same
// rank the first counts.
func HighestRole(rules *doorward.Rules, roles []doorward.Role) (highest doorward.Role) {
	for _, role := range roles {
		role = AtMostAdmin(rules, role)
		if role != "" && (highest == "" || rules.Rank(role).Outranks(rules.Rank(highest))) {
			highest = role
		}
	}
	return highest
}

// WithFloor returns the mapped role, but nothing below the one that an OWNER gave by hand. Of two of the same
// rank the OWNER's counts.
func WithFloor(rules *doorward.Rules, mapped, floor doorward.Role) doorward.Role {
	if AtMostAdmin(rules, floor) == "" || rules.Rank(mapped).Outranks(rules.Rank(floor)) {
		return mapped
	}
	return floor
}

// MapRole gives the member the role that comes from outside, and records that as done by the actor. It touches no
// role of a rank above ADMIN, and lowers nobody below what an OWNER gave by hand. An empty role changes nothing.
// It returns the role that the member has then.
func MapRole(ctx context.Context, tx *access.Tx, actor doorward.Caller, rules *doorward.Rules, m doorward.User, mapped doorward.Role) (doorward.Role, error) {
	if mapped == "" || rules.Rank(m.Role).Outranks(doorward.RoleAdmin) {
		return m.Role, nil
	}
	floor, err := tx.RoleFloor(ctx, m.TenantID, m.ID)
	if err != nil {
		return m.Role, err
	}
	role := WithFloor(rules, mapped, floor)
	if role == m.Role {
		return role, nil
	}
	if _, err := tx.SetUserRole(ctx, m.TenantID, m.ID, role); err != nil {
		return m.Role, err
	}
	on := doorward.Object{Type: "user", ID: m.ID, TenantID: m.TenantID}
	return role, tx.RecordAlsoBy(ctx, actor, doorward.UserRole, on,
		doorward.Change{Field: doorward.FieldRole, From: string(m.Role), To: string(role)})
}
