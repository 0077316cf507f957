package storetest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// waiting is a row of the inbox.
func (w *world) waiting(source, subject string, hits int) store.InboxRow {
	return store.InboxRow{
		Source: source, Action: doorward.SessionRefuse, Reason: doorward.CodeInvalidCredentials, Subject: subject,
		Minute: noon.Truncate(store.InboxMinute), Email: "ann@acme.example", ReturnTo: "/a?b", Hits: hits,
		Event: doorward.Event{
			ID: w.id("evt_"), At: noon, Action: doorward.SessionRefuse, Outcome: doorward.Refused, ActorType: doorward.Anonymous,
			Target: doorward.Object{Type: "user"}, IP: "192.0.2.1", RequestID: "req_1", Changes: []doorward.Change{{Field: "reason", To: "x"}},
		},
	}
}

func (w *world) files(wait bool, rows ...store.InboxRow) {
	w.Helper()
	w.write(func(tx *store.Tx) {
		for _, r := range rows {
			ok(w, tx.FileInbox(w.Context(), r, wait))
		}
	})
}

func (w *world) claims(r store.InboxRow, done bool) (claimed bool) {
	w.Helper()
	w.write(func(tx *store.Tx) {
		var err error
		claimed, err = tx.ClaimInbox(w.Context(), r, done)
		ok(w, err)
	})
	return claimed
}

// What is alike is one row, which is taken at once, and again when its minute is
// over, if anything has come since.
func inbox(w *world) {
	ctx := w.Context()
	a, b := w.waiting("192.0.2.1", "ann", 1), w.waiting("192.0.2.1", "bob", 1)
	w.files(false, a)
	w.clock.move(time.Microsecond)
	w.files(false, b)
	again := w.waiting("192.0.2.1", "ann", 3)
	w.files(true, again) // the first one's event stays
	a.Hits = 4
	same(w, []store.InboxRow{a, b})(w.Read().DueInbox(ctx, doorward.PasswordForgot, noon.Add(time.Microsecond), 10))
	same(w, []store.InboxRow{a})(w.Read().DueInbox(ctx, doorward.PasswordForgot, noon, 10))
	same(w, []store.InboxRow{a})(w.Read().PendingInbox(ctx, 1))
	same(w, 2)(w.Read().CountInbox(ctx, 10))
	v, err := w.Read().Vitals(ctx)
	ok(w, err)
	same(w, 2)(v.InboxRows, nil)
	same(w, noon)(v.InboxDue, nil)
	same(w, 1)(w.Read().CountInbox(ctx, 1))
	w.write(func(tx *store.Tx) {
		same(w, true)(tx.HasInbox(ctx, b))
		same(w, false)(tx.HasInbox(ctx, w.waiting("192.0.2.2", "bob", 1)))
	})
	like := a
	like.Subject = "bob"
	same(w, []string{"192.0.2.1"})(w.Read().InboxSources(ctx, like, 5))

	old := a
	old.Hits = 3
	if !w.claims(old, false) || w.claims(old, false) || w.claims(a, true) {
		w.Error("a row is not claimed once, as it was read")
	}
	a.Recorded = 3
	same(w, []store.InboxRow{b, a})(w.Read().PendingInbox(ctx, 10))
	same(w, []store.InboxRow{b})(w.Read().DueInbox(ctx, doorward.PasswordForgot, noon.Add(time.Second), 10))
	if !w.claims(b, true) || !w.claims(a, false) {
		w.Error("what is there is not claimed")
	}
	same(w, []store.InboxRow(nil))(w.Read().PendingInbox(ctx, 10))
	a.Recorded = 4
	over := a.Minute.Add(store.InboxMinute)
	same(w, []store.InboxRow(nil))(w.Read().DueInbox(ctx, doorward.PasswordForgot, over.Add(-time.Microsecond), 10))
	same(w, []store.InboxRow{a})(w.Read().DueInbox(ctx, doorward.PasswordForgot, over, 10))
	w.clock.move(over.Sub(noon))
	if !w.claims(a, false) {
		w.Error("what is over is not claimed")
	}
	same(w, 0)(w.Read().CountInbox(ctx, 10))

	hostile := w.waiting("a\x00b", "c\xff", 1)
	hostile.Event.Target.ID, hostile.Event.RequestID = "\x00", "\xff"
	w.files(false, hostile)
	rows, err := w.Read().PendingInbox(ctx, 1)
	ok(w, err)
	w.write(func(tx *store.Tx) { tx.InsertPastEvent(rows[0].Event) })
	events, err := Events(ctx, w.Read(), "")
	ok(w, err)
	if len(events) != 1 || !events[0].At.Equal(noon) {
		w.Errorf("recorded is %v, want one at %v", events, noon)
	}
}

// A row that is set aside comes up again when its time has come, for nobody who looks
// before.
func inboxAside(w *world) {
	ctx := w.Context()
	bad, good := w.waiting("192.0.2.1", "ann", 1), w.waiting("192.0.2.1", "bob", 1)
	w.files(false, bad)
	w.clock.move(time.Microsecond)
	w.files(false, good)
	until := w.clock.read().Add(time.Hour)
	changed := bad
	changed.Recorded = 1 // as it is not
	for row, there := range map[*store.InboxRow]bool{&bad: true, &changed: false} {
		w.write(func(tx *store.Tx) {
			same(w, there)(tx.SetAsideInbox(ctx, *row, until))
		})
	}
	bad.Aside = true
	due := func(at time.Time) ([]store.InboxRow, error) {
		return w.Read().DueInbox(ctx, doorward.PasswordForgot, at, 10)
	}
	same(w, []store.InboxRow{good})(due(until.Add(-time.Microsecond)))
	same(w, []store.InboxRow{good, bad})(due(until))
	same(w, []store.InboxRow{good})(w.Read().PendingInbox(ctx, 10))
	v, err := w.Read().Vitals(ctx)
	ok(w, err)
	same(w, 1)(v.InboxAside, nil)
}

// Many rows of nobody's account go at once, and no others.
func inboxOfNobody(w *world) {
	ctx := w.Context()
	w.account("ann@acme.example")
	kept := []store.InboxRow{w.waiting("a", "ann", 1), w.waiting("b", "nobody", 1), w.waiting("d", "later", 1), w.waiting("e", "refused", 1)}
	kept[1].Email = ""
	kept[2].Email, kept[3].Email = "bob@acme.example", "bob@acme.example"
	kept[3].Action, kept[3].Reason = doorward.SessionRefuse, doorward.CodeInvalidCredentials
	for i := range kept[:3] {
		kept[i].Action, kept[i].Reason = doorward.PasswordForgot, ""
	}
	w.files(false, kept[0], kept[1], kept[3])
	w.files(true, kept[2])
	var junk []store.InboxRow
	for n := range 5 {
		r := w.waiting("c", fmt.Sprint(n), n+1)
		r.Action, r.Reason, r.Email = doorward.PasswordForgot, "", fmt.Sprintf("n%d@acme.example", n)
		w.clock.move(time.Microsecond)
		w.files(false, r)
		junk = append(junk, r)
	}
	for _, want := range [][]store.InboxRow{junk[:3], junk[3:], nil} {
		w.write(func(tx *store.Tx) {
			got, err := tx.TakeUnknownInbox(ctx, doorward.PasswordForgot, 3)
			slices.SortFunc(got, func(a, b store.InboxRow) int { return a.Hits - b.Hits })
			same(w, want)(got, err)
		})
	}
	same(w, len(kept))(w.Read().CountInbox(ctx, 10))
}

// Rows whose address has an account come first, and no source before another one
// has had its turn.
func inboxByTurns(w *world) {
	ctx := w.Context()
	for n := range 3 {
		w.account(fmt.Sprintf("p%d@acme.example", n))
	}
	file := func(source, email string) store.InboxRow {
		r := w.waiting(source, email, 1)
		r.Email = email
		w.files(false, r)
		w.clock.move(time.Microsecond)
		return r
	}
	first, second := file("a", "p0@acme.example"), file("a", "p1@acme.example")
	file("b", "nobody@acme.example")
	third := file("c", "p2@acme.example")
	same(w, []store.InboxRow{first, third, second})(w.Read().KnownInbox(ctx, doorward.SessionRefuse, noon.Add(time.Minute), 10))
	same(w, []store.InboxRow(nil))(w.Read().KnownInbox(ctx, doorward.PasswordForgot, noon.Add(time.Minute), 10))
	same(w, []store.InboxRow(nil))(w.Read().KnownInbox(ctx, doorward.SessionRefuse, noon.Add(-time.Minute), 10))
}

// Of many who claim a row one has it, while others count in it.
func inboxRaces(w *world) {
	row := w.waiting("192.0.2.1", "ann", 1)
	w.files(false, row)
	var mu sync.Mutex
	var all sync.WaitGroup
	recorded := 0
	for range 4 {
		all.Go(func() {
			for range 10 {
				w.files(true, row)
				rows, err := w.Read().PendingInbox(w.Context(), 10)
				ok(w, err)
				for _, r := range rows {
					if w.claims(r, false) {
						mu.Lock()
						recorded += r.Hits - r.Recorded
						mu.Unlock()
					}
				}
			}
		})
	}
	all.Wait()
	rows, err := w.Read().PendingInbox(w.Context(), 10)
	ok(w, err)
	left := 0
	for _, r := range rows {
		left += r.Hits - r.Recorded
	}
	if recorded+left != 41 {
		w.Errorf("%d of 41 were recorded and %d are left", recorded, left)
	}
}
