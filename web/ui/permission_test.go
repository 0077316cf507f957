package ui

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
)

func TestMessagesOfPermissions(t *testing.T) {
	words := catalogue{}
	if err := words.read(files, "text/en.txt"); err != nil {
		t.Fatal(err)
	}
	for _, v := range doorward.Verbs() {
		if _, found := words["can."+string(v.Action)]; v.IsPermission() != found {
			t.Errorf("can.%s: found %v, want %v", v.Action, found, v.IsPermission())
		}
	}
	for _, role := range doorward.Roles {
		if words["means."+string(role)] == "" {
			t.Errorf("no message means.%s", role)
		}
	}
}

// Roles are described by the actions of the model in force.
func TestRolesInWords(t *testing.T) {
	var platform []doorward.PlatformAction
	for _, name := range []doorward.Action{"z.read", "message.send"} {
		platform = append(platform, doorward.PlatformAction{Name: name, Lowest: doorward.RoleUser})
	}
	for _, n := range "abcdefgh" {
		platform = append(platform, doorward.PlatformAction{Name: doorward.Action(n), About: "Act", Lowest: doorward.RoleAdmin})
	}
	m, err := doorward.NewModel(platform)
	if err != nil {
		t.Fatal(err)
	}
	rules := doorward.NewRules(doorward.RulesVersion{Model: 1}, m, []doorward.CustomRole{
		{Name: "CLERK", Permissions: []doorward.Action{"user.read", "z.read"}},
		{Name: "GUIDE", About: "Shows people around", Permissions: []doorward.Action{"z.read"}},
	})
	own := []Permission{{"z.read", "z.read"}, {"message.send", "message.send"}}
	for role, want := range map[doorward.Role]RoleWords{
		"OWNER":  {Key: "means.OWNER"},
		"ADMIN":  {Key: "means.ADMIN", May: append(own[:2:2], Permission{"a", "Act"}, Permission{"b", "Act"}, Permission{"c", "Act"}, Permission{"d", "Act"}, Permission{"e", "Act"}, Permission{"f", "Act"}), More: 2},
		"USER":   {Key: "means.USER", May: own},
		"VIEWER": {Key: "means.VIEWER"},
		"CLERK":  {May: []Permission{{"z.read", "z.read"}, {"user.read", ""}}},
		"GUIDE":  {About: "Shows people around"},
		"NONE":   {},
	} {
		if diff := cmp.Diff(want, DescribeRole(rules, role)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", role, diff)
		}
	}
	builtin := RoleWords{Key: "means.USER", May: []Permission{{"message.send", ""}, {"message.read", ""}, {"report.read", ""}}}
	if diff := cmp.Diff(builtin, DescribeRole(nil, doorward.RoleUser)); diff != "" {
		t.Errorf("USER of the built-in model (-want +got):\n%s", diff)
	}
}
