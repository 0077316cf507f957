package doorward

import (
	"slices"
	"testing"
)

// A custom role's rank is the lowest of the four that has all it grants; its holder acts
// with the highest of the four of which it has all.
func TestRanksOfCustomRoles(t *testing.T) {
	viewer := builtin.grants[RoleViewer].Actions
	admin := builtin.grants[RoleAdmin].Actions
	for _, c := range []struct {
		name        string
		permissions []Action
		rank, acts  Role
	}{
		{"nothing", nil, RoleViewer, ""},
		{"less than a VIEWER", []Action{MessageRead}, RoleViewer, ""},
		{"a VIEWER", viewer, RoleViewer, RoleViewer},
		{"a VIEWER who sends", append(slices.Clone(viewer), MessageSend), RoleUser, RoleUser},
		{"one permission of ADMINs", []Action{UserInvite}, RoleAdmin, ""},
		{"a VIEWER who invites", append(slices.Clone(viewer), UserInvite), RoleAdmin, RoleViewer},
		{"an ADMIN", admin, RoleAdmin, RoleAdmin},
		{"an ADMIN who sees bills", append(slices.Clone(admin), BillingRead), RoleOwner, RoleAdmin},
		{"unknown actions", []Action{"ghost.walk", "user.role"}, RoleViewer, ""},
	} {
		if g := builtin.GrantOf(c.permissions); g.Rank != c.rank || g.Acts != c.acts {
			t.Errorf("%s: rank %q, acts as %q; want %q and %q", c.name, g.Rank, g.Acts, c.rank, c.acts)
		}
	}
}

// Custom roles stand behind the one of the four of their rank, and can't take its name.
func TestRulesListRoles(t *testing.T) {
	r := NewRules(RulesVersion{Tenant: 1}, builtin, []CustomRole{
		{Name: "SUPPORT", Permissions: []Action{UserRead}},
		{Name: "BILLING", Permissions: []Action{BillingRead}},
		{Name: "AGENT", Permissions: []Action{MessageRead}},
		{Name: RoleViewer, Permissions: []Action{TenantDestroy}},
	})
	want := []Role{RoleViewer, "AGENT", "SUPPORT", RoleUser, RoleAdmin, RoleOwner, "BILLING"}
	if got := r.Roles(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if r.Grant(RoleViewer).Permissions.Allow(builtin.named[TenantDestroy]) {
		t.Error("a custom role has taken the place of VIEWER")
	}
	if text := r.RolesHelp(); text != "The roles are OWNER, ADMIN, USER and VIEWER, in capitals. The tenant's own are BILLING, SUPPORT, AGENT." {
		t.Error(text)
	}
	if got := (*Rules)(nil).Roles(); !slices.Equal(got, Roles) || (*Rules)(nil).RolesHelp() != RolesHelp {
		t.Errorf("without rules: %v", got)
	}
}

// Rules that were not read grant nothing.
func TestRulesToRead(t *testing.T) {
	u := User{Role: RoleOwner, Status: UserActive, Rules: RulesToRead(RulesVersion{Model: 7})}
	if p := PrincipalOf(u, Session{}); p.Permissions != nil || p.Rank != "" {
		t.Errorf("%+v", p)
	}
}
