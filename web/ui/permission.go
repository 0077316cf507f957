package ui

import (
	"slices"

	"github.com/doorward/doorward"
)

// Permission is an action with its description. If that is empty, the message can.Action is
// shown.
type Permission struct {
	Action doorward.Action
	About  string
}

// Describe returns the permission with the model's description. An action of an applied model that
// has none is described by its name, even if the built-in model has an action of that name.
func Describe(m *doorward.Model, a doorward.Action) Permission {
	verb, known := m.Lookup(a)
	p := Permission{a, verb.About}
	if isOfModel := verb.Platform && !m.IsBuiltIn(); p.About == "" && (isOfModel || !known) {
		p.About = string(a)
	}
	return p
}

// RoleWords says what a role lets people do. Key is the message about a built-in role, and May has
// the platform's actions that it grants. A tenant's own role has no Key: it is described by About
// or else by all of its permissions.
type RoleWords struct {
	Key   string
	About string
	May   []Permission
	More  int // permissions that May leaves out
}

// maxListed is how many permissions the description of a role lists.
const maxListed = 8

// DescribeRole describes a role of a tenant with these rules. The result is empty if there is no
// such role, and May if the role grants everything.
func DescribeRole(rules *doorward.Rules, role doorward.Role) (w RoleWords) {
	g := rules.Grant(role)
	switch {
	case g == nil:
		return w
	case g.BuiltIn:
		w.Key = "means." + string(role)
	default:
		w.About = g.About
	}
	if role == doorward.RoleOwner || w.About != "" {
		return w
	}
	for _, v := range rules.Model().Verbs() {
		if !slices.Contains(g.Actions, v.Action) || g.BuiltIn && !v.Platform {
			continue
		}
		if len(w.May) == maxListed {
			w.More++
			continue
		}
		w.May = append(w.May, Describe(rules.Model(), v.Action))
	}
	return w
}

// RoleWords describes a role of the caller's tenant.
func (f Frame) RoleWords(role doorward.Role) RoleWords { return DescribeRole(f.Caller.Rules, role) }
