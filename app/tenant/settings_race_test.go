package tenant_test

import (
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/tenant"
)

// TestEditsAtOnce: of edits at once on several nodes, none is lost. Of those that are based on
// one version, one is made.
func TestEditsAtOnce(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		acme, owner := f.Tenant()
		name := "New name"
		editsTo := func(days, minutes int64, domain string) []tenant.Edit {
			return []tenant.Edit{
				{Name: &name},
				{Settings: map[string]any{"invitationDays": days}},
				{Settings: map[string]any{doorward.SettingIdle: minutes}},
				{Settings: map[string]any{doorward.SettingDomains: []string{domain}}},
			}
		}
		edits := editsTo(3, 20, "example.com")
		edit := func(i int, versions []string) error {
			e := edits[i]
			e.Versions = versions
			return apptest.ErrorOf(f.Node(i).Tenants.Edit(f.Context(), owner.Caller, e))
		}
		f.WantCodes(apptest.Concurrently(len(edits), func(i int) error { return edit(i, nil) }), apptest.Codes{"": len(edits)})
		is := storedTenant(f, acme.ID)
		if s := is.Settings; is.Name != name || s.InvitationDays != 3 || s.SessionIdle.Minutes() != 20 || len(s.AllowedDomains) != 1 {
			f.Errorf("an edit was lost: %+v", is)
		}
		name, edits = "Other name", editsTo(4, 21, "example.org")
		versions := []string{is.Version()}
		f.WantCodes(apptest.Concurrently(len(edits), func(i int) error { return edit(i, versions) }),
			apptest.Codes{"": 1, doorward.CodePreconditionFailed: len(edits) - 1})
	})
}
