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
	Key     string // the message on pages of roles; empty for actions of an applied model, which show Name
	Choices []permissionChoice
}

type permissionChoice struct {
	ui.Permission
	Chosen bool
	Closed bool // the caller may not give it
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
				g.Choices = append(g.Choices, permissionChoice{Permission: ui.Describe(rules.Model(), a), Chosen: chosen(a)})
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
