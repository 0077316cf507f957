package app_test

import (
	"fmt"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app"
	"github.com/doorward/doorward/app/apikey"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/role"
	"github.com/doorward/doorward/app/webhook"
)

// TestRaceLimitsAtOnce: of many who make something at once, on all nodes, exactly as many succeed as
// the limit allows.
func TestRaceLimitsAtOnce(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		const callers, free = 8, 3
		acme, owner := f.Tenant()
		url, events := "http://localhost:9/", []string{"user.*"}
		for _, node := range f.Nodes {
			f.NoError(node.MasterKey.Load(f.Context()))
		}
		hook := func(by doorward.Caller) func(*app.App, int) error {
			return func(a *app.App, _ int) error {
				return apptest.ErrorOf(a.Webhooks.Create(f.Context(), by, webhook.Draft{URL: &url, Events: &events}))
			}
		}
		newRole := func(a *app.App, i int) error {
			return apptest.ErrorOf(a.Roles.Create(f.Context(), owner.Caller, role.Draft{Name: fmt.Sprintf("ROLE_%d", i), Permissions: []string{"message.read"}}))
		}
		for i := range doorward.WebhooksMax - free {
			f.NoError(hook(apptest.Operator)(f.Node(i), i))
		}
		for i := range doorward.CustomRolesMax - free {
			f.NoError(newRole(f.Node(i), callers+i))
		}
		quotas := map[doorward.Quota]int64{doorward.QuotaAPIKeys: free, doorward.QuotaWebhooks: free, doorward.QuotaPeople: 1 + free}
		f.NoError(apptest.ErrorOf(f.Node(0).Tenants.SetQuotas(f.Context(), apptest.Operator, acme.ID, quotas)))
		for _, limit := range []struct {
			of   string
			make func(a *app.App, i int) error
			code doorward.Code
		}{
			{"webhooks of the installation", hook(apptest.Operator), doorward.CodeTooManyWebhooks},
			{"webhooks of the tenant", hook(owner.Caller), doorward.CodeQuotaExceeded},
			{"roles", newRole, doorward.CodeTooManyRoles},
			{"API keys", func(a *app.App, _ int) error {
				_, _, err := a.APIKeys.Create(f.Context(), owner.Caller, apikey.Draft{Name: "k", Permissions: []string{"message.read"}})
				return err
			}, doorward.CodeQuotaExceeded},
			{"people", func(a *app.App, i int) error {
				return apptest.ErrorOf(a.Invitations.Send(f.Context(), owner.Caller, apptest.Offer(fmt.Sprintf("new%d@example.com", i), doorward.RoleUser)))
			}, doorward.CodeQuotaExceeded},
		} {
			errs := apptest.Concurrently(callers, func(i int) error { return limit.make(f.Node(i), i) })
			if got := apptest.CountCodes(errs); got[""] != free || got[limit.code] != callers-free {
				t.Errorf("%s: %v, want %d successes", limit.of, got, free)
			}
		}
	})
}
