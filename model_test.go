package doorward_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/doorward/doorward"
)

// grantOf returns what a role grants by the model alone.
func grantOf(m *doorward.Model, r doorward.Role) *doorward.Permissions {
	return doorward.NewRules(doorward.RulesVersion{}, m, nil).Grant(r).Permissions
}

// verb returns an action of the model. It fails the test if there is none.
func verb(t *testing.T, m *doorward.Model, a doorward.Action) *doorward.Verb {
	t.Helper()
	v, found := m.Lookup(a)
	if !found {
		t.Fatalf("no %s in the model", a)
	}
	return v
}

// A model of a platform, even of the greatest size, leaves the grants of Doorward's own
// actions unchanged.
func TestModelsKeepOwnActions(t *testing.T) {
	var platform []doorward.PlatformAction
	for n := range doorward.PlatformActionsMax {
		platform = append(platform, doorward.PlatformAction{Name: doorward.Action(fmt.Sprintf("invoice.approve%d", n)), Lowest: doorward.RoleAdmin})
	}
	m, err := doorward.NewModel(platform)
	if err != nil {
		t.Fatal(err)
	}
	own := m.Verbs()[len(platform):]
	for _, v := range own {
		for _, r := range doorward.Roles {
			if got, want := grantOf(m, r).Allow(&v), slices.Contains(verb(t, doorward.BuiltIn(), v.Action).Roles(), r); got != want {
				t.Errorf("%s, %s: %v, want %v", r, v.Action, got, want)
			}
		}
	}
	last := verb(t, m, "invoice.approve499")
	if !grantOf(m, doorward.RoleAdmin).Allow(last) || grantOf(m, doorward.RoleUser).Allow(last) {
		t.Error("the last of 500 actions is granted to USER, or not to ADMIN")
	}
	if m.IsPermission(doorward.MessageSend) {
		t.Error("a model of another platform has the messaging platform's actions")
	}
	if _, err := doorward.NewModel(append(platform, doorward.PlatformAction{Name: "one.more", Lowest: doorward.RoleUser})); err == nil {
		t.Error("a model with 501 actions is accepted")
	}
	for _, wrong := range []doorward.PlatformAction{{Name: doorward.UserInvite, Lowest: doorward.RoleUser}, {Name: "a.b", Lowest: "LORD"}} {
		if _, err := doorward.NewModel([]doorward.PlatformAction{wrong}); err == nil {
			t.Errorf("a model with %+v is accepted", wrong)
		}
	}
}

// An action is granted by the permission of its row alone, and an action that no role grants
// is in no set.
func TestActionsAreGrantedByTheirPermission(t *testing.T) {
	m := doorward.BuiltIn()
	var all []doorward.Action
	for _, v := range m.Verbs() {
		if m.IsPermission(v.Action) {
			all = append(all, v.Action)
		}
	}
	for _, v := range m.Verbs() {
		if v.By != doorward.ByRole {
			if grantOf(m, doorward.RoleOwner).Allow(&v) {
				t.Errorf("%s is in the set of a role", v.Action)
			}
			continue
		}
		if permission := verb(t, m, v.Permission); len(v.Roles()) == 0 || !slices.Equal(v.Roles(), permission.Roles()) {
			t.Errorf("%s is for %v, the permission %s for %v", v.Action, v.Roles(), v.Permission, permission.Roles())
		}
		others := slices.DeleteFunc(slices.Clone(all), func(a doorward.Action) bool { return a == v.Permission })
		if !m.GrantOf([]doorward.Action{v.Permission}).Permissions.Allow(&v) || m.GrantOf(others).Permissions.Allow(&v) {
			t.Errorf("%s isn't granted by %s alone", v.Action, v.Permission)
		}
	}
	if (*doorward.Permissions)(nil).Allow(verb(t, m, doorward.MessageRead)) {
		t.Error("the nil set allows an action")
	}
}

// Without a set a principal may do nothing, and only an active member has one.
func TestPermissionsOfPrincipals(t *testing.T) {
	for _, c := range []struct {
		u    doorward.User
		want bool
	}{
		{doorward.User{Role: doorward.RoleUser, Status: doorward.UserActive}, true},
		{doorward.User{Role: doorward.RoleOwner, Status: doorward.UserSuspended}, false},
		{doorward.User{Role: doorward.RoleOwner}, false},
		{doorward.User{Role: "LANDLORD", Status: doorward.UserActive}, false},
	} {
		if got := doorward.PrincipalOf(c.u, doorward.Session{}).Permissions.Allow(verb(t, doorward.BuiltIn(), doorward.MessageSend)); got != c.want {
			t.Errorf("%+v may send messages: %v", c.u, got)
		}
	}
}
