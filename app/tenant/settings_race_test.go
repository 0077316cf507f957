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
		name, days, minutes, domains := "New name", int64(3), int64(20), []string{"example.com"}
		edits := []tenant.Edit{{Name: &name}, {InvitationDays: &days}, {SessionIdleMinutes: &minutes}, {AllowedEmailDomains: &domains}}
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
		name, days, minutes, domains = "Other name", 4, 21, []string{"example.org"}
		versions := []string{is.Version()}
		f.WantCodes(apptest.Concurrently(len(edits), func(i int) error { return edit(i, versions) }),
			apptest.Codes{"": 1, doorward.CodePreconditionFailed: len(edits) - 1})
	})
}
