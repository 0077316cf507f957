package console

import (
	"cmp"
	"slices"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/web/ui"
)

// permissionGroup has permissions about similar things.
type permissionGroup struct {
	Name    string // is unique, and shown if there is no Key
	Key     string // of the message that names the group; empty for actions of an applied model
	Choices []permissionChoice
	place   int // of the group; those of the platform come first
}

type permissionChoice struct {
	ui.Permission
	Chosen bool
	Closed bool // the caller may not give it
	Idle   bool // has no effect: the role doesn't grant it
}

// permissionForm has the fields of a form for permissions. Its template is "permissions".
type permissionForm struct {
	Groups []permissionGroup
	Hint   string // key of a message
}

// ownGroups are the groups of the navigation that Doorward's own permissions are in, by their first word.
var ownGroups = map[string]string{
	"user": "people", "role": "people", "policy": "access", "sso": "access", "apikey": "developers", "webhook": "developers",
	"audit": "organisation", "settings": "organisation", "tenant": "organisation",
}

// groupPermissions returns the permissions in groups, ordered by name: those of the platform by the first
// word, then Doorward's own as the navigation has them.
func groupPermissions(m *doorward.Model, all []doorward.Action, describe func(doorward.Action) permissionChoice) (groups []permissionGroup) {
	for _, a := range slices.Sorted(slices.Values(all)) {
		one := groupOf(m, a)
		i := slices.IndexFunc(groups, func(g permissionGroup) bool { return g.Name == one.Name })
		if i < 0 {
			i, groups = len(groups), append(groups, one)
		}
		choice := describe(a)
		choice.Permission = ui.Describe(m, a)
		groups[i].Choices = append(groups[i].Choices, choice)
	}
	slices.SortStableFunc(groups, func(a, b permissionGroup) int { return cmp.Compare(a.place, b.place) })
	return groups
}

// groupOf returns the group of the permission, without choices. One that has left the model counts as the
// platform's.
func groupOf(m *doorward.Model, a doorward.Action) permissionGroup {
	word, _, _ := strings.Cut(string(a), ".")
	v, isKnown := m.Lookup(a)
	switch own := ownGroups[word]; {
	case isKnown && !v.Platform:
		place := slices.IndexFunc(navigation, func(g group) bool { return g.Name == own })
		return permissionGroup{Name: "own-" + own, Key: "nav.group." + own, place: place}
	case isKnown && m.IsBuiltIn():
		return permissionGroup{Name: word, Key: "roles.word." + word}
	}
	return permissionGroup{Name: word}
}

// permissionsOf returns the permissions of the role; none if there is no such role.
func permissionsOf(rules *doorward.Rules, role doorward.Role) []doorward.Action {
	if g := rules.Grant(role); g != nil {
		return g.Actions
	}
	return nil
}

// keyPermissions returns the permissions that a key of the role can be given.
func keyPermissions(rules *doorward.Rules, role doorward.Role, chosen func(doorward.Action) bool) permissionForm {
	all := slices.DeleteFunc(slices.Clone(permissionsOf(rules, role)), func(a doorward.Action) bool { return !rules.Model().ForKeys(a) })
	groups := groupPermissions(rules.Model(), all, func(a doorward.Action) permissionChoice { return permissionChoice{Chosen: chosen(a)} })
	return permissionForm{groups, "keys.may.hint"}
}

// permissionsForKeys returns the permissions that keys can have, in groups.
func permissionsForKeys(m *doorward.Model) []permissionGroup {
	all := slices.DeleteFunc(allPermissions(m), func(a doorward.Action) bool { return !m.ForKeys(a) })
	return groupPermissions(m, all, func(doorward.Action) permissionChoice { return permissionChoice{} })
}

// rolePermissions returns all permissions, for the form of a role. Those that the caller may not give
// are closed.
func rolePermissions(m *doorward.Model, chosen, mayGive func(doorward.Action) bool) permissionForm {
	groups := groupPermissions(m, allPermissions(m), func(a doorward.Action) permissionChoice {
		return permissionChoice{Chosen: chosen(a), Closed: !mayGive(a)}
	})
	return permissionForm{groups, "roles.may.hint"}
}

// sentPermissions returns a function that reports whether the sent form has a permission.
func sentPermissions(c *ui.Call) func(doorward.Action) bool {
	return func(a doorward.Action) bool { return slices.Contains(c.Values("permissions"), string(a)) }
}
