package doorward

import (
	"fmt"
	"slices"
	"testing"
)

// What is appended to the list leaves every bit where it was, so that sets made
// before mean the same.
func TestCatalogueGrows(t *testing.T) {
	rows := slices.Clone(verbs)
	for n := range 500 { // as many as a platform may have
		rows = append(rows, grants(Action(fmt.Sprintf("invoice.approve%d", n)), RoleOwner, RoleAdmin))
	}
	grown := newCatalogue(rows)
	for _, v := range builtin.verbs {
		for _, r := range Roles {
			was, is := builtin.granted[r].Allow(&v), grown.granted[r].Allow(grown.named[v.Action])
			if want := slices.Contains(v.Roles(), r); was != want || is != want || builtin.granted[r].Allow(grown.named[v.Action]) != want {
				t.Errorf("%s, %s: %v before, %v after, want %v", r, v.Action, was, is, want)
			}
		}
	}
	last := grown.named["invoice.approve499"]
	if !grown.granted[RoleAdmin].Allow(last) || grown.granted[RoleUser].Allow(last) || builtin.granted[RoleOwner].Allow(last) {
		t.Error("the last of many further permissions is not where it belongs")
	}
}

// An action without a permission of its own has that of the row that allows it, and
// what no role grants is in no set.
func TestActsThroughPermissions(t *testing.T) {
	for _, v := range builtin.verbs {
		switch permission := builtin.named[v.Through]; {
		case v.By == ByRole && (v.bit != permission.bit || v.roles != permission.roles || v.roles == 0):
			t.Errorf("%s: bit %d for %v, the permission %s has %d for %v", v.Action, v.bit, v.Roles(), v.Through, permission.bit, permission.Roles())
		case v.By != ByRole && builtin.granted[RoleOwner].Allow(&v):
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
