package signon

import (
	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/oidcrp"
)

// mappedRole returns the role that the provider's groups give by the connection: the highest of the mapped
// ones, jitRole where none is mapped, never one above ADMIN. It is empty where the groups say nothing: no
// claim is asked for or was ever sent, or it can't be read in full.
func mappedRole(c doorward.Connection, rules *doorward.Rules, groups oidcrp.Groups) doorward.Role {
	switch {
	case c.GroupsFrom == "":
		return ""
	case groups.State == oidcrp.GroupsAbsent && !c.GroupsSeen:
		return ""
	case groups.State != oidcrp.GroupsAbsent && groups.State != oidcrp.GroupsList:
		return ""
	}
	if role := highest(c.Mappings, rules, groups.Names); role != "" {
		return role
	}
	return atMostAdmin(rules, c.JITRole)
}

// highest returns the highest role that the mappings give for the groups; empty: none. Of two of the same
// rank the first mapping counts.
func highest(mappings []doorward.GroupMapping, rules *doorward.Rules, groups []string) doorward.Role {
	return best(mappings, rules, groups).Role
}

// deciding returns the group that gives the role; empty: none does.
func deciding(c doorward.Connection, rules *doorward.Rules, groups oidcrp.Groups) string {
	return best(c.Mappings, rules, groups.Names).Group
}

func best(mappings []doorward.GroupMapping, rules *doorward.Rules, groups []string) (best doorward.GroupMapping) {
	has := make(map[string]bool, len(groups))
	for _, g := range groups {
		has[g] = true
	}
	for _, m := range mappings {
		given := atMostAdmin(rules, m.Role)
		if has[m.Group] && given != "" && (best.Role == "" || rules.Rank(given).Outranks(rules.Rank(best.Role))) {
			best = m
		}
	}
	return best
}

// atMostAdmin returns the role, or nothing if the tenant has none of the name or it ranks above ADMIN.
func atMostAdmin(rules *doorward.Rules, role doorward.Role) doorward.Role {
	if !rules.Has(role) || rules.Rank(role).Outranks(doorward.RoleAdmin) {
		return ""
	}
	return role
}

// withFloor returns the mapped role, but nothing below the one that an OWNER gave by hand. Of two of the same
// rank the OWNER's counts.
func withFloor(rules *doorward.Rules, mapped, floor doorward.Role) doorward.Role {
	if atMostAdmin(rules, floor) == "" || rules.Rank(mapped).Outranks(rules.Rank(floor)) {
		return mapped
	}
	return floor
}
