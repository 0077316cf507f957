package joining

import (
	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/answer"
	"github.com/doorward/doorward/app/member"
)

// mappedRole returns the role that the provider's groups give by the connection: the highest of the mapped
// ones, jitRole where none is mapped, never one above ADMIN. It is empty where the groups say nothing: no
// claim is asked for or was ever sent, or it can't be read in full.
func (p Person) mappedRole(rules *doorward.Rules) doorward.Role {
	c := p.Connection
	switch {
	case c.GroupsFrom == "":
		return ""
	case p.Groups == answer.GroupsAbsent && !c.GroupsSeen:
		return ""
	case p.Groups != answer.GroupsAbsent && p.Groups != answer.GroupsList:
		return ""
	}
	if role := best(c.Mappings, rules, []string{p.Group}).Role; role != "" {
		return role
	}
	return member.AtMostAdmin(rules, c.JITRole)
}

// best returns the mapping of the groups that gives the highest role; the zero one: none does. Of two of the
// same rank the first counts.
func best(mappings []doorward.GroupMapping, rules *doorward.Rules, groups []string) (best doorward.GroupMapping) {
	has := make(map[string]bool, len(groups))
	for _, g := range groups {
		has[g] = true
	}
	for _, m := range mappings {
		given := member.AtMostAdmin(rules, m.Role)
		if has[m.Group] && given != "" && (best.Role == "" || rules.Rank(given).Outranks(rules.Rank(best.Role))) {
			best = m
		}
	}
	return best
}
