package storetest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// inboxRow returns a row of the inbox.
func (f *fixture) inboxRow(source, subject string, hits int) store.InboxRow {
	return store.InboxRow{
		Source: source, Action: doorward.SessionRefuse, Reason: doorward.CodeInvalidCredentials, Subject: subject,
		Minute: noon.Truncate(store.InboxMinute), Email: "ann@acme.example", ReturnTo: "/a?b", Hits: hits,
		Event: doorward.Event{
			ID: f.id("evt_"), At: noon, Action: doorward.SessionRefuse, Outcome: doorward.Refused, ActorType: doorward.Anonymous,
			Target: doorward.Object{Type: "user"}, IP: "192.0.2.1", RequestID: "req_1", Changes: []doorward.Change{{Field: "reason", To: "x"}},
		},
	}
}

func (f *fixture) fileInbox(wait bool, rows ...store.InboxRow) {
	f.Helper()
	f.write(func(tx *store.Tx) {
		file := tx.FileInbox
		if wait {
			file = tx.FileInboxLater
		}
		for _, r := range rows {
			noError(f, file(f.Context(), r))
		}
	})
}

func (f *fixture) claimInbox(r store.InboxRow, done bool) (claimed bool) {
	f.Helper()
	f.write(func(tx *store.Tx) {
		var err error
		claimed, err = tx.ClaimInbox(f.Context(), r, done)
		noError(f, err)
	})
	return claimed
}

// Equal requests share one row, which is due at once, and again at the end of its
// minute if more have come since.
func inbox(f *fixture) {
	ctx := f.Context()
	a, b := f.inboxRow("192.0.2.1", "ann", 1), f.inboxRow("192.0.2.1", "bob", 1)
	f.fileInbox(false, a)
	f.clock.move(time.Microsecond)
	f.fileInbox(false, b)
	again := f.inboxRow("192.0.2.1", "ann", 3)
	f.fileInbox(true, again) // the first event is kept
	a.Hits = 4
	// DueInbox leaves out rows of the action that it is given; these are of another one.
	equal(f, f.value(f.Read().DueInbox(ctx, doorward.PasswordForgot, noon.Add(time.Microsecond), 10)), []store.InboxRow{a, b})
	equal(f, f.value(f.Read().DueInbox(ctx, doorward.PasswordForgot, noon, 10)), []store.InboxRow{a})
	equal(f, f.value(f.Read().PendingInbox(ctx, 1)), []store.InboxRow{a})
	equal(f, f.value(f.Read().CountInbox(ctx, 10)), 2)
	v, err := f.Read().Vitals(ctx, f.clock.read())
	noError(f, err)
	equal(f, v.InboxRows, 2)
	equal(f, v.InboxDue, noon)
	equal(f, f.value(f.Read().CountInbox(ctx, 1)), 1)
	f.write(func(tx *store.Tx) {
		equal(f, f.value(tx.HasInbox(ctx, b)), true)
		equal(f, f.value(tx.HasInbox(ctx, f.inboxRow("192.0.2.2", "bob", 1))), false)
	})
	key := a
	key.Subject = "bob"
	equal(f, f.value(f.Read().InboxSources(ctx, key, 5)), []string{"192.0.2.1"})

	old := a
	old.Hits = 3
	if !f.claimInbox(old, false) || f.claimInbox(old, false) || f.claimInbox(a, true) {
		f.Error("a row can't be claimed exactly once, unchanged since it was read")
	}
	a.Recorded = 3
	equal(f, f.value(f.Read().PendingInbox(ctx, 10)), []store.InboxRow{b, a})
	equal(f, f.value(f.Read().DueInbox(ctx, doorward.PasswordForgot, noon.Add(time.Second), 10)), []store.InboxRow{b})
	if !f.claimInbox(b, true) || !f.claimInbox(a, false) {
		f.Error("a row that exists can't be claimed")
	}
	equal(f, f.value(f.Read().PendingInbox(ctx, 10)), []store.InboxRow(nil))
	a.Recorded = 4
	minuteEnd := a.Minute.Add(store.InboxMinute)
	equal(f, f.value(f.Read().DueInbox(ctx, doorward.PasswordForgot, minuteEnd.Add(-time.Microsecond), 10)), []store.InboxRow(nil))
	equal(f, f.value(f.Read().DueInbox(ctx, doorward.PasswordForgot, minuteEnd, 10)), []store.InboxRow{a})
	f.clock.move(minuteEnd.Sub(noon))
	if !f.claimInbox(a, false) {
		f.Error("a row whose minute is over can't be claimed")
	}
	equal(f, f.value(f.Read().CountInbox(ctx, 10)), 0)

	hostile := f.inboxRow("a\x00b", "c\xff", 1)
	hostile.Event.Target.ID, hostile.Event.RequestID = "\x00", "\xff"
	f.fileInbox(false, hostile)
	rows, err := f.Read().PendingInbox(ctx, 1)
	noError(f, err)
	f.write(func(tx *store.Tx) { tx.InsertPastEvent(rows[0].Event) })
	events, err := Events(ctx, f.Read(), "")
	noError(f, err)
	if len(events) != 1 || !events[0].At.Equal(noon) {
		f.Errorf("the events are %v, want one at %v", events, noon)
	}
}

// A row that is set aside is due again when its time has come, and hidden until then.
func inboxAside(f *fixture) {
	ctx := f.Context()
	bad, good := f.inboxRow("192.0.2.1", "ann", 1), f.inboxRow("192.0.2.1", "bob", 1)
	f.fileInbox(false, bad)
	f.clock.move(time.Microsecond)
	f.fileInbox(false, good)
	until := f.clock.read().Add(time.Hour)
	changed := bad
	changed.Recorded = 1 // differs from the stored row
	for row, unchanged := range map[*store.InboxRow]bool{&bad: true, &changed: false} {
		f.write(func(tx *store.Tx) {
			equal(f, f.value(tx.SetAsideInbox(ctx, *row, until)), unchanged)
		})
	}
	bad.IsSetAside = true
	due := func(at time.Time) ([]store.InboxRow, error) {
		return f.Read().DueInbox(ctx, doorward.PasswordForgot, at, 10)
	}
	equal(f, f.value(due(until.Add(-time.Microsecond))), []store.InboxRow{good})
	equal(f, f.value(due(until)), []store.InboxRow{good, bad})
	equal(f, f.value(f.Read().PendingInbox(ctx, 10)), []store.InboxRow{good})
	v, err := f.Read().Vitals(ctx, f.clock.read())
	noError(f, err)
	equal(f, v.InboxAside, 1)
}

// Rows for unknown addresses are taken, many at once, and no others.
func inboxOfUnknownAddresses(f *fixture) {
	ctx := f.Context()
	f.account("ann@acme.example")
	kept := []store.InboxRow{f.inboxRow("a", "ann", 1), f.inboxRow("b", "nobody", 1), f.inboxRow("d", "later", 1), f.inboxRow("e", "refused", 1)}
	kept[1].Email = ""
	kept[2].Email, kept[3].Email = "bob@acme.example", "bob@acme.example"
	kept[3].Action, kept[3].Reason = doorward.SessionRefuse, doorward.CodeInvalidCredentials
	for i := range kept[:3] {
		kept[i].Action, kept[i].Reason = doorward.PasswordForgot, ""
	}
	f.fileInbox(false, kept[0], kept[1], kept[3])
	f.fileInbox(true, kept[2])
	var junk []store.InboxRow
	for n := range 5 {
		r := f.inboxRow("c", fmt.Sprint(n), n+1)
		r.Action, r.Reason, r.Email = doorward.PasswordForgot, "", fmt.Sprintf("n%d@acme.example", n)
		f.clock.move(time.Microsecond)
		f.fileInbox(false, r)
		junk = append(junk, r)
	}
	for _, want := range [][]store.InboxRow{junk[:3], junk[3:], nil} {
		f.write(func(tx *store.Tx) {
			got, err := tx.TakeUnknownInbox(ctx, doorward.PasswordForgot, 3)
			slices.SortFunc(got, func(a, b store.InboxRow) int { return a.Hits - b.Hits })
			equal(f, f.value(got, err), want)
		})
	}
	equal(f, f.value(f.Read().CountInbox(ctx, 10)), len(kept))
}

// Only rows whose address has an account are returned, and sources take turns.
func inboxRoundRobin(f *fixture) {
	ctx := f.Context()
	for n := range 3 {
		f.account(fmt.Sprintf("p%d@acme.example", n))
	}
	file := func(source, email string) store.InboxRow {
		r := f.inboxRow(source, email, 1)
		r.Email = email
		f.fileInbox(false, r)
		f.clock.move(time.Microsecond)
		return r
	}
	first, second := file("a", "p0@acme.example"), file("a", "p1@acme.example")
	file("b", "nobody@acme.example")
	third := file("c", "p2@acme.example")
	equal(f, f.value(f.Read().KnownInbox(ctx, doorward.SessionRefuse, noon.Add(time.Minute), 10)), []store.InboxRow{first, third, second})
	equal(f, f.value(f.Read().KnownInbox(ctx, doorward.PasswordForgot, noon.Add(time.Minute), 10)), []store.InboxRow(nil))
	equal(f, f.value(f.Read().KnownInbox(ctx, doorward.SessionRefuse, noon.Add(-time.Minute), 10)), []store.InboxRow(nil))
}

// Of many claims of a row one succeeds, while others add hits to it.
func inboxRaces(f *fixture) {
	row := f.inboxRow("192.0.2.1", "ann", 1)
	f.fileInbox(false, row)
	var mu sync.Mutex
	var all sync.WaitGroup
	recorded := 0
	for range 4 {
		all.Go(func() {
			for range 10 {
				f.fileInbox(true, row)
				rows, err := f.Read().PendingInbox(f.Context(), 10)
				noError(f, err)
				for _, r := range rows {
					if f.claimInbox(r, false) {
						mu.Lock()
						recorded += r.Hits - r.Recorded
						mu.Unlock()
					}
				}
			}
		})
	}
	all.Wait()
	rows, err := f.Read().PendingInbox(f.Context(), 10)
	noError(f, err)
	pending := 0
	for _, r := range rows {
		pending += r.Hits - r.Recorded
	}
	if recorded+pending != 41 {
		f.Errorf("%d of 41 were recorded and %d are left", recorded, pending)
	}
}
