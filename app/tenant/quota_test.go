package tenant_test

import (
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
)

// TestUses: what a tenant has is counted as its quotas count it, for each of the tenants in their order.
func TestUses(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		zeta, _ := f.Tenant()
		acme, owner := f.Tenant()
		f.Join(owner, doorward.RoleUser)
		f.Invite(owner, f.NewEmail("ann"), doorward.RoleUser)
		uses, err := f.Node(0).Tenants.Uses(f.Context(), []doorward.Tenant{acme, zeta})
		f.NoError(err)
		if len(uses) != 2 || uses[0].Of(doorward.QuotaPeople) != 3 || uses[1].Of(doorward.QuotaPeople) != 1 || uses[0].IsCapped {
			f.Errorf("%+v", uses)
		}
		counted, err := f.DB.Read().CountedEvents(f.Context(), acme.ID, f.DB.Now())
		f.NoError(err)
		if got := uses[0].Of(doorward.QuotaEventsPerDay); got != counted || counted == 0 {
			f.Errorf("%d events of changes, want %d", got, counted)
		}
		if k, w := uses[0].Of(doorward.QuotaAPIKeys), uses[0].Of(doorward.QuotaWebhooks); k != 0 || w != 0 {
			f.Errorf("%d keys and %d webhooks of none", k, w)
		}
	})
}
