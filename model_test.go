package doorward

import (
	"fmt"
	"slices"
	"testing"
)

// Doorward's own actions are granted alike beside any model of a platform, as many as one
// may have.
func TestModelsKeepOwnActions(t *testing.T) {
	var platform []PlatformAction
	for n := range PlatformActionsMax {
		platform = append(platform, PlatformAction{Name: Action(fmt.Sprintf("invoice.approve%d", n)), Lowest: RoleAdmin})
	}
	m, err := NewModel(platform)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range own {
		for _, r := range Roles {
			if is, want := m.grants[r].Permissions.Allow(m.named[v.Action]), slices.Contains(builtin.named[v.Action].Roles(), r); is != want {
				t.Errorf("%s, %s: %v, want %v", r, v.Action, is, want)
			}
		}
	}
	last := m.named["invoice.approve499"]
	if !m.grants[RoleAdmin].Permissions.Allow(last) || m.grants[RoleUser].Permissions.Allow(last) {
		t.Error("the last of many actions is not where it belongs")
	}
	if m.IsPermission(MessageSend) {
		t.Error("a model leaves the messaging platform's actions in")
	}
	if _, err := NewModel(append(platform, PlatformAction{Name: "one.more", Lowest: RoleUser})); err == nil {
		t.Error("a model with 501 actions")
	}
	for _, wrong := range []PlatformAction{{Name: UserInvite, Lowest: RoleUser}, {Name: "a.b", Lowest: "LORD"}} {
		if _, err := NewModel([]PlatformAction{wrong}); err == nil {
			t.Errorf("a model with %+v", wrong)
		}
	}
}

// An action without a permission of its own has that of the row that allows it, and
// what no role grants is in no set.
func TestActsThroughPermissions(t *testing.T) {
	for _, v := range builtin.verbs {
		switch permission := builtin.named[v.Through]; {
		case v.By == ByRole && (v.bit != permission.bit || v.roles != permission.roles || v.roles == 0):
			t.Errorf("%s: bit %d for %v, the permission %s has %d for %v", v.Action, v.bit, v.Roles(), v.Through, permission.bit, permission.Roles())
		case v.By != ByRole && builtin.grants[RoleOwner].Permissions.Allow(&v):
			t.Errorf("%s is in the set of a role", v.Action)
		}
	}
	if (*Permissions)(nil).Allow(builtin.named[MessageRead]) {
		t.Error("no set at all allows something")
	}
}

// Without a set a principal may do nothing, and only an active member has one.
func TestPermissionsOfPrincipals(t *testing.T) {
	for _, c := range []struct {
		u    User
		want bool
	}{
		{User{Role: RoleUser, Status: UserActive}, true},
		{User{Role: RoleOwner, Status: UserSuspended}, false},
		{User{Role: RoleOwner}, false},
		{User{Role: "LANDLORD", Status: UserActive}, false},
	} {
		if got := PrincipalOf(c.u, Session{}).Permissions.Allow(builtin.named[MessageSend]); got != c.want {
			t.Errorf("%+v may send messages: %v", c.u, got)
		}
	}
}
