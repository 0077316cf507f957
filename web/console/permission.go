package console

import (
	"slices"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/web/ui"
)

// permissionGroup has permissions about similar things.
type permissionGroup struct {
	Name    string // the last part of the message keys.group.Name; on pages of roles the first word of the actions
	Choices []permissionChoice
}

// HasMessage reports whether there is a message roles.word.Name. Actions of an applied model may
// begin with a word that has none.
func (g permissionGroup) HasMessage() bool { return messageKeys()["roles.word."+g.Name] }

type permissionChoice struct {
	permission
	Chosen bool
	Closed bool // the caller may not give it
}

// permission is an action with its description. If that is empty, the message can.Action is
// shown.
type permission struct {
	Action doorward.Action
	About  string
}

// describe returns the permission with the model's description. Without a description and a
// message it is described by its name.
func describe(rules *doorward.Rules, a doorward.Action) permission {
	verb, _ := rules.Model().Lookup(a)
	about := verb.About
	if about == "" && !messageKeys()["can."+string(a)] {
		about = string(a)
	}
	return permission{a, about}
}

// groupOfAction returns the group in which a permission is shown.
func groupOfAction(rules *doorward.Rules, a doorward.Action) string {
	switch verb, _ := rules.Model().Lookup(a); {
	case verb.Platform:
		return "platform"
	case strings.HasPrefix(string(a), "user."):
		return "people"
	}
	return "organisation"
}

// permissionsOf returns the permissions of the role; none if there is no such role.
func permissionsOf(rules *doorward.Rules, role doorward.Role) []doorward.Action {
	if g := rules.Grant(role); g != nil {
		return g.Actions
	}
	return nil
}

// permissionGroups returns the permissions that a key of the role can be given.
func permissionGroups(rules *doorward.Rules, role doorward.Role, chosen func(doorward.Action) bool) (all []permissionGroup) {
	for _, name := range []string{"platform", "people", "organisation"} {
		g := permissionGroup{Name: name}
		for _, a := range permissionsOf(rules, role) {
			if groupOfAction(rules, a) == name && rules.Model().ForKeys(a) {
				g.Choices = append(g.Choices, permissionChoice{permission: describe(rules, a), Chosen: chosen(a)})
			}
		}
		if len(g.Choices) > 0 {
			all = append(all, g)
		}
	}
	return all
}

// sentPermissions returns a function that reports whether the sent form has a permission.
func sentPermissions(c *ui.Call) func(doorward.Action) bool {
	return func(a doorward.Action) bool { return slices.Contains(c.Values("permissions"), string(a)) }
}
