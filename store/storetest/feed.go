package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// feedPage returns a page of the feed, and its events as "tnt_1 3", tenant and number.
func (f *fixture) feedPage(after store.FeedPosition, limit int) (page store.FeedPage, all []string) {
	f.Helper()
	noError(f, f.Snapshot(f.Context(), func(read store.Reader) (err error) {
		page, err = read.Feed(f.Context(), after, limit)
		return err
	}))
	for _, e := range page.Events {
		all = append(all, fmt.Sprint(e.Target.TenantID, " ", e.Seq))
	}
	return page, all
}

func (f *fixture) extendFeed(limit int) (more bool) {
	f.Helper()
	f.write(func(tx *store.Tx) {
		var err error
		more, err = tx.ExtendFeed(f.Context(), f.id("feed_"), limit)
		noError(f, err)
	})
	return more
}

// feeds: committed events get a place once, in rows of a limited size.
func feeds(f *fixture) {
	ctx := f.Context()
	equal(f, f.value(f.Read().FeedIsBehind(ctx)), true)
	equal(f, f.extendFeed(10), false)
	equal(f, f.value(f.Read().FeedIsBehind(ctx)), false)
	empty, all := f.feedPage(store.FeedPosition{}, 10)
	equal(f, all, []string(nil))

	f.event("tnt_1", "usr_1")
	f.event("tnt_2", "usr_1")
	f.event("tnt_1", "usr_2")
	equal(f, f.value(f.Read().FeedIsBehind(ctx)), true)
	equal(f, f.extendFeed(1), true)
	equal(f, f.extendFeed(2), false)
	_, all = f.feedPage(empty.End, 10)
	equal(f, all, []string{"tnt_1 1", "tnt_1 2", "tnt_2 1"})
	page, _ := f.feedPage(store.FeedPosition{}, 10)
	f.event("tnt_1", "usr_3")
	f.extendFeed(10)
	last, all := f.feedPage(page.End, 10)
	equal(f, all, []string{"tnt_1 3"})
	equal(f, last.Read, int64(3))

	midRow := page.End
	midRow.Pos, midRow.Seq = 0, 1 // in the first row, after the event 1
	_, all = f.feedPage(midRow, 2)
	equal(f, all, []string{"tnt_1 2", "tnt_2 1"})
	f.write(func(tx *store.Tx) { noError(f, tx.ResetFeed(ctx)) })
	page, _ = f.feedPage(page.End, 10)
	equal(f, page.Gone, true)
	equal(f, f.value(f.Read().EventsAfter(ctx, "tnt_1", 2, 5)), f.value(Events(ctx, f.Read(), "tnt_1")).([]doorward.Event)[2:])
}

// trims: the oldest events are deleted, also from the feed. A reader that has not read them
// learns of the gap.
func trims(f *fixture) {
	ctx := f.Context()
	for n := range 5 {
		f.event("tnt_1", fmt.Sprint("usr_", n))
	}
	f.extendFeed(10)
	start, _ := f.feedPage(store.FeedPosition{}, 1)
	midRow := start.End
	midRow.Pos, midRow.Seq = 0, 2 // in the first row, after the event 2
	before := f.clock.move(time.Hour)
	f.event("tnt_2", "usr_1")
	equal(f, f.value(f.Read().TrailsDue(ctx, before, before, 10)), []string{"tnt_1"})
	trim := func(limit int, want int64) {
		f.Helper()
		f.write(func(tx *store.Tx) { equal(f, f.value(tx.TrimTrail(ctx, "tnt_1", before, limit)), want) })
	}
	trim(2, 2)
	_, all := f.feedPage(midRow, 10)
	equal(f, all, []string{"tnt_1 3", "tnt_1 4", "tnt_1 5"})
	trim(1, 1)
	page, _ := f.feedPage(midRow, 10)
	equal(f, page.Gone, true)
	page, _ = f.feedPage(start.End, 10)
	equal(f, page.Gone, false)
	_, all = f.feedPage(store.FeedPosition{}, 10)
	equal(f, all, []string{"tnt_1 4", "tnt_1 5"})

	f.event("tnt_1", "usr_6") // not in the feed yet, and too young
	trim(10, 2)
	trim(10, 0)
	chain, err := f.Read().Chain(ctx, "tnt_1")
	noError(f, err)
	equal(f, []int64{chain.Anchor, chain.Last}, []int64{5, 6})
	next := f.links("tnt_1")[0]
	equal(f, next.Follows(chain.AnchorHash, 6), true)
	equal(f, f.value(f.Read().TrailsDue(ctx, before, before, 10)), []string(nil))

	end, _ := f.feedPage(store.FeedPosition{}, 10)
	f.clock.move(time.Hour)
	f.write(func(tx *store.Tx) { equal(f, f.value(tx.TrimTrail(ctx, "tnt_1", tx.Now, 10)), int64(1)) })
	page, _ = f.feedPage(end.End, 10) // the event was deleted before it was in the feed
	equal(f, page.Gone, true)
	f.write(func(tx *store.Tx) { equal(f, f.value(tx.DeleteChain(ctx, "tnt_1")), int64(0)) })
}

// shortTrails: a tenant may keep its events for a shorter time than the installation, not for a longer one.
func shortTrails(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	for _, id := range []string{acme.ID, zeta.ID, ""} {
		f.event(id, "usr_1")
	}
	began := f.clock.read()
	acme.Settings.KeepEventsDays = 30
	f.write(func(tx *store.Tx) { noError(f, tx.EditTenant(ctx, acme)) })
	const day = 24 * time.Hour
	for _, c := range []struct {
		after, keep time.Duration // keep 0: for ever
		want        []string
	}{
		{30 * day, 0, nil},
		{30*day + time.Second, 0, []string{acme.ID}},
		{30*day + time.Second, 60 * day, []string{acme.ID}},
		{10*day + time.Second, 10 * day, slices.Sorted(slices.Values([]string{"", acme.ID, zeta.ID}))},
		{-time.Hour, 0, []string{acme.ID}}, // an event of the future, in a trail that isn't kept for ever
	} {
		now, since := began.Add(c.after), time.Time{}
		if c.keep > 0 {
			since = now.Add(-c.keep)
		}
		equal(f, f.value(f.Read().TrailsDue(ctx, since, now, 10)), c.want)
	}
}

// namesOfIDs: people, invitations and API keys of the tenant have names, other ids none.
func namesOfIDs(f *fixture) {
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	ann := f.member(acme, "ann@acme.example", doorward.RoleOwner)
	zoe := f.member(zeta, "zoe@zeta.example", doorward.RoleOwner)
	inv, key := f.invitation(acme, "bob@acme.example"), f.apiKey(ann, "Reports")
	ids := []string{ann.ID, zoe.ID, inv.ID, key.ID, "inv_none", "key_none", ""}
	for n := range 120 {
		ids = append(ids, fmt.Sprint("usr_", n))
	}
	found := f.value(f.Read().Names(f.Context(), acme.ID, ids)).(map[string]store.Named)
	equal(f, found, map[string]store.Named{
		ann.ID: {ID: ann.ID, Name: ann.Name, Email: ann.Email}, inv.ID: {ID: inv.ID, Name: inv.Name, Email: inv.Email}, key.ID: {ID: key.ID, Name: key.Name},
	})
	wantRemovals(f, acme.ID, ann.ID)
}

// wantRemovals: done removals of the person from the tenant are found, and nothing else.
func wantRemovals(f *fixture, tenantID, userID string) {
	ctx := f.Context()
	write := func(action doorward.Action, outcome doorward.Outcome, tenantID string) string {
		id := doorward.NewID(doorward.PrefixEvent)
		f.write(func(tx *store.Tx) {
			noError(f, tx.InsertEvent(ctx, doorward.Event{
				ID: id, Action: action, Outcome: outcome, ActorType: doorward.Operator,
				Target: doorward.Object{Type: "user", ID: userID, TenantID: tenantID},
			}))
		})
		return id
	}
	removed := write(doorward.UserRemove, doorward.Done, tenantID)
	write(doorward.UserRemove, doorward.Refused, tenantID)
	write(doorward.UserSuspend, doorward.Done, tenantID)
	write(doorward.UserRemove, doorward.Done, "tnt_other")
	found, err := f.Read().Removals(ctx, tenantID, []string{"usr_none", userID})
	noError(f, err)
	var ids []string
	for _, e := range found {
		ids = append(ids, e.ID)
	}
	equal(f, ids, []string{removed})
}
