package doorward_test

import (
	"slices"
	"testing"

	"github.com/doorward/doorward"
)

// A custom role's Rank is the lowest built-in role that has all of its permissions; ActsAs is the
// highest built-in role whose permissions it includes.
func TestRanksOfCustomRoles(t *testing.T) {
	builtIn := doorward.NewRules(doorward.RulesVersion{}, doorward.BuiltIn(), nil)
	viewer, admin := builtIn.Grant(doorward.RoleViewer).Actions, builtIn.Grant(doorward.RoleAdmin).Actions
	for _, c := range []struct {
		name        string
		permissions []doorward.Action
		rank, acts  doorward.Role
	}{
		{"nothing", nil, doorward.RoleViewer, ""},
		{"less than a VIEWER", []doorward.Action{doorward.MessageRead}, doorward.RoleViewer, ""},
		{"a VIEWER", viewer, doorward.RoleViewer, doorward.RoleViewer},
		{"a VIEWER who sends", append(slices.Clone(viewer), doorward.MessageSend), doorward.RoleUser, doorward.RoleUser},
		{"one permission of ADMINs", []doorward.Action{doorward.UserInvite}, doorward.RoleAdmin, ""},
		{"a VIEWER who invites", append(slices.Clone(viewer), doorward.UserInvite), doorward.RoleAdmin, doorward.RoleViewer},
		{"an ADMIN", admin, doorward.RoleAdmin, doorward.RoleAdmin},
		{"an ADMIN who sees bills", append(slices.Clone(admin), doorward.BillingRead), doorward.RoleOwner, doorward.RoleAdmin},
		{"an unknown action, and one that is no permission", []doorward.Action{"ghost.walk", "user.role"}, doorward.RoleViewer, ""},
	} {
		if g := doorward.BuiltIn().GrantOf(c.permissions); g.Rank != c.rank || g.ActsAs != c.acts {
			t.Errorf("%s: rank %q, acts as %q; want %q and %q", c.name, g.Rank, g.ActsAs, c.rank, c.acts)
		}
	}
}

// Custom roles are listed after the built-in role of their rank, and can't take its name.
func TestRulesListRoles(t *testing.T) {
	r := doorward.NewRules(doorward.RulesVersion{Tenant: 1}, doorward.BuiltIn(), []doorward.CustomRole{
		{Name: "SUPPORT", Permissions: []doorward.Action{doorward.UserRead}},
		{Name: "BILLING", Permissions: []doorward.Action{doorward.BillingRead}},
		{Name: "AGENT", Permissions: []doorward.Action{doorward.MessageRead}},
		{Name: doorward.RoleViewer, Permissions: []doorward.Action{doorward.TenantDestroy}},
	})
	want := []doorward.Role{doorward.RoleViewer, "AGENT", "SUPPORT", doorward.RoleUser, doorward.RoleAdmin, doorward.RoleOwner, "BILLING"}
	if got := r.Roles(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if r.Grant(doorward.RoleViewer).Permissions.Allow(verb(t, doorward.BuiltIn(), doorward.TenantDestroy)) {
		t.Error("a custom role has taken the place of VIEWER")
	}
	if text := r.RolesHelp(); text != "The roles are OWNER, ADMIN, USER and VIEWER, in capitals. The tenant's own are BILLING, SUPPORT, AGENT." {
		t.Error(text)
	}
	if got := (*doorward.Rules)(nil).Roles(); !slices.Equal(got, doorward.Roles) || (*doorward.Rules)(nil).RolesHelp() != doorward.RolesHelp {
		t.Errorf("without rules: %v", got)
	}
}

// Rules that aren't read yet grant nothing.
func TestUnloadedRules(t *testing.T) {
	u := doorward.User{Role: doorward.RoleOwner, Status: doorward.UserActive, Rules: doorward.UnloadedRules(doorward.RulesVersion{Model: 7})}
	if p := doorward.PrincipalOf(u, doorward.Session{}); p.Permissions != nil || p.ActsAs != "" {
		t.Errorf("%+v", p)
	}
}
