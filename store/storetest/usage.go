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

	since := hour.Add(-time.Hour)
	equal(f, f.sorted(f.Read().Usage(ctx, hook.ID, since)), []doorward.UsageCount{earlier, delivered, silent})
	equal(f, f.sorted(f.Read().UsageOfWebhooks(ctx, acme.ID, hour)), []doorward.UsageCount{delivered, silent})
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

// sorted returns counts in order: those of one hour are in none.
func (f *fixture) sorted(all []doorward.UsageCount, err error) []doorward.UsageCount {
	f.Helper()
	noError(f, err)
	slices.SortStableFunc(all, func(a, b doorward.UsageCount) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Outcome, b.Outcome))
	})
	return all
}

func (f *fixture) usageOfTrail(tenantID string, since time.Time, width time.Duration) []doorward.UsageCount {
	f.Helper()
	return f.sorted(f.Read().UsageOfTrail(f.Context(), tenantID, since, width))
}

// usageOfTrail: whether the events of a trail are in its usage or not, all are counted, each once, until they are trimmed
// or their tenant is destroyed. An event may be older than those before it.
func usageOfTrail(f *fixture) {
	ctx := f.Context()
	hour := f.clock.read().UTC().Truncate(time.Hour)
	write := func(n int, action doorward.Action, outcome doorward.Outcome, at time.Time) {
		f.write(func(tx *store.Tx) {
			for range n {
				tx.InsertPastEvent(doorward.Event{ID: f.id("evt"), At: at, Action: action, Outcome: outcome, Target: doorward.Object{TenantID: "tnt_a"}, Changes: []doorward.Change{}})
			}
		})
	}
	due := func(want ...string) {
		f.Helper()
		equal(f, f.value(f.Read().TrailsUncounted(ctx, 9)), want)
	}
	count := func() {
		f.write(func(tx *store.Tx) { noError(f, tx.CountTrail(ctx, "tnt_a", hour.Add(-24*time.Hour))) })
	}
	old, late := hour.Add(-25*time.Hour), hour.Add(-time.Hour)
	write(1, doorward.SessionOpen, doorward.Done, old)
	write(600, doorward.SessionOpen, doorward.Done, hour)
	write(398, doorward.SessionEnd, doorward.Done, hour)
	due()
	write(600, doorward.SessionRefuse, doorward.Refused, late)
	write(5, doorward.SessionOpen, doorward.Done, late)
	due("tnt_a")
	of := func(at time.Time, outcome doorward.UsageOutcome, times int64) doorward.UsageCount {
		return doorward.UsageCount{SubjectID: "tnt_a", At: at, Outcome: outcome, Times: times}
	}
	refused := doorward.UsageOutcome(doorward.SessionRefuse)
	want := []doorward.UsageCount{of(late, refused, 600), of(late, doorward.UsageSignedIn, 5), of(hour, doorward.UsageSignedIn, 600)}
	equal(f, f.usageOfTrail("tnt_a", late, time.Hour), want)
	count()
	due()
	equal(f, f.usageOfTrail("tnt_a", late, time.Hour), want)
	equal(f, f.sorted(f.Read().Usage(ctx, "tnt_a", old)), []doorward.UsageCount{of(late, refused, 1), of(hour, doorward.UsageSignedIn, 600)})
	f.wantNone(nil, f.try(ctx, func(tx *store.Tx) error { return tx.CountTrail(ctx, "tnt_a", old) }))
	write(1000, doorward.SessionOpen, doorward.Done, hour)
	count()
	want[2].Times += 1000
	equal(f, f.usageOfTrail("tnt_a", late, time.Hour), want)

	f.write(func(tx *store.Tx) { f.value(tx.TrimTrail(ctx, "tnt_a", hour, 2)) }) // the first is of late, the second is not
	equal(f, f.usageOfTrail("tnt_a", hour, time.Hour), want[2:])
	equal(f, f.sorted(f.Read().Usage(ctx, "tnt_a", old)), []doorward.UsageCount{of(hour, doorward.UsageSignedIn, 996)}) // the others are not in it yet
	for n := int64(1); n > 0; {
		f.write(func(tx *store.Tx) { n = f.value(tx.DeleteChain(ctx, "tnt_a")).(int64) })
	}
	equal(f, f.usageOfTrail("tnt_a", old, time.Hour), []doorward.UsageCount(nil))
	f.wantNone(nil, f.try(ctx, func(tx *store.Tx) error { return tx.CountTrail(ctx, "tnt_a", old) }))
}
