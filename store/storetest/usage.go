package storetest

import (
	"cmp"
	"slices"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// usage: counts of one hour and outcome are added up, those of webhooks and connections are found by their tenant, and
// old ones and those of a tenant are deleted.
func usage(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	hook, other := f.webhook(acme.ID, "*"), f.webhook(zeta.ID, "*")
	con := f.connection(acme, "Okta")
	hour := f.clock.read().Truncate(time.Hour)
	count := func(subject string, at time.Time, outcome doorward.UsageOutcome, times int64) doorward.UsageCount {
		c := doorward.UsageCount{SubjectID: subject, At: at, Outcome: outcome, Times: times}
		f.write(func(tx *store.Tx) { noError(f, tx.CountUsage(ctx, c)) })
		return c
	}
	count(hook.ID, hour, doorward.UsageDelivered, 2)
	delivered := count(hook.ID, hour, doorward.UsageDelivered, 1)
	delivered.Times = 3
	silent := count(hook.ID, hour, doorward.UsageSilent, 1)
	earlier := count(hook.ID, hour.Add(-time.Hour), doorward.UsageSilent, 4)
	elsewhere := count(other.ID, hour, doorward.UsageRefused, 5)
	signedIn := count(con.ID, hour, doorward.UsageSignedIn, 6)

	sorted := func(all []doorward.UsageCount, err error) []doorward.UsageCount { // those of one hour are in no order
		f.Helper()
		noError(f, err)
		slices.SortStableFunc(all, func(a, b doorward.UsageCount) int {
			return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Outcome, b.Outcome))
		})
		return all
	}
	since := hour.Add(-time.Hour)
	equal(f, sorted(f.Read().Usage(ctx, hook.ID, since)), []doorward.UsageCount{earlier, delivered, silent})
	equal(f, sorted(f.Read().UsageOfWebhooks(ctx, acme.ID, hour)), []doorward.UsageCount{delivered, silent})
	equal(f, f.value(f.Read().UsageOfConnections(ctx, acme.ID, since)), []doorward.UsageCount{signedIn})
	f.write(func(tx *store.Tx) {
		equal(f, f.value(tx.DeleteOldUsage(ctx, hour, 9)), int64(1))
		equal(f, f.value(tx.DeleteOldUsage(ctx, hour, 9)), int64(0))
		equal(f, f.value(tx.DeleteUsageOf(ctx, acme.ID, 1)).(int64)+f.value(tx.DeleteUsageOf(ctx, acme.ID, 1)).(int64), int64(3))
		equal(f, f.value(tx.DeleteUsageOf(ctx, acme.ID, 1)), int64(0))
	})
	equal(f, f.value(f.Read().UsageOfWebhooks(ctx, acme.ID, since)), []doorward.UsageCount(nil))
	equal(f, f.value(f.Read().UsageOfWebhooks(ctx, zeta.ID, since)), []doorward.UsageCount{elsewhere})
}
