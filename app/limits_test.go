package app_test

import (
	"fmt"
	"testing"
	"time"

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
		globex, zoe := f.Tenant()
		var tokens []string
		for i := range callers {
			_, token := f.Invite(zoe, fmt.Sprintf("invited%d@example.com", i), doorward.RoleUser)
			tokens = append(tokens, token)
		}
		f.NoError(apptest.ErrorOf(f.Node(0).Tenants.SetQuotas(f.Context(), apptest.Operator, globex.ID, map[doorward.Quota]int64{doorward.QuotaPeople: 1 + free})))
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
			{"people who accept", func(a *app.App, i int) error {
				return apptest.ErrorOf(a.Invitations.Complete(f.Context(), apptest.Anonymous(i), tokens[i], apptest.FirstPassword, apptest.FirstPassword))
			}, doorward.CodeQuotaExceeded},
			{"people who are invited", func(a *app.App, i int) error {
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

// TestRaceEventsPerDay: of many changes at once, on all nodes, exactly as many are made as the quota
// of events a day allows.
func TestRaceEventsPerDay(t *testing.T) {
	noon := func() *apptest.StoppedClock {
		return apptest.StopClockAt(time.Now().UTC().Truncate(24 * time.Hour).Add(12 * time.Hour))
	}
	apptest.OnEachClock(t, apptest.NoLimits, noon, func(f *apptest.Fixture, _ *apptest.StoppedClock) {
		const callers, free = 12, 5
		acme, owner := f.Tenant()
		counted, err := f.DB.Read().CountedEvents(f.Context(), acme.ID, f.DB.Now())
		f.NoError(err)
		f.NoError(apptest.ErrorOf(f.Node(0).Tenants.SetQuotas(f.Context(), apptest.Operator, acme.ID, map[doorward.Quota]int64{doorward.QuotaEventsPerDay: counted + free})))
		errs := apptest.Concurrently(callers, func(i int) error {
			return apptest.ErrorOf(f.Node(i).Invitations.Send(f.Context(), owner.Caller, apptest.Offer(fmt.Sprintf("new%d@example.com", i), doorward.RoleUser)))
		})
		f.WantCodes(errs, apptest.Codes{"": free, doorward.CodeQuotaExceeded: callers - free})
	})
}
