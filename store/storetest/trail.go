package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// event adds an event by ann about the target.
func (f *fixture) event(tenantID, target string) doorward.Event {
	f.Helper()
	e := doorward.Event{
		ID: f.id("evt_"), At: f.clock.read(), Action: doorward.UserRole, Outcome: doorward.Done,
		ActorType: doorward.ByUser, ActorID: "usr_ann", ActorEmail: "ann@acme.example",
		Target: doorward.Object{Type: "user", ID: target, TenantID: tenantID}, IP: "192.0.2.7", RequestID: "req_1",
		Changes: []doorward.Change{{Field: "role", From: "USER", To: "ADMIN"}},
	}
	f.write(func(tx *store.Tx) { noError(f, tx.InsertEvent(f.Context(), e)) })
	chain, err := f.Read().Chain(f.Context(), tenantID)
	noError(f, err)
	e.Seq = chain.Last
	return e
}

func events(f *fixture) {
	ctx := f.Context()
	e := doorward.Event{
		ID: "evt_1", At: noon, Action: doorward.UserRole, Outcome: doorward.Done,
		ActorType: doorward.ByUser, ActorID: "usr_1", ActorEmail: "ann@acme.example",
		Target: doorward.Object{Type: "user", ID: "usr_2", TenantID: "tnt_1"},
		IP:     "2001:db8::1", RequestID: "req_1",
		Changes: []doorward.Change{{Field: "role", From: "USER", To: `"ADMIN"`}, {Field: "名", From: "", To: "🚪"}, {Field: doorward.FieldUserAgent, To: "curl"}},
	}
	bare := doorward.Event{
		ID: "evt_2", Action: doorward.SessionRefuse, Outcome: doorward.Refused,
		ActorType: doorward.Anonymous, Target: doorward.Object{Type: "user"}, Changes: []doorward.Change{},
	}
	f.write(func(tx *store.Tx) { noError(f, tx.InsertEvent(ctx, e)) })
	bare.At = f.clock.move(time.Second)
	f.write(func(tx *store.Tx) { noError(f, tx.InsertEvent(ctx, bare)) })
	e2 := e
	e2.ID, e2.At = "evt_0", f.clock.move(time.Second)
	f.write(func(tx *store.Tx) { noError(f, tx.InsertEvent(ctx, e2)) })

	e.Seq, e2.Seq, bare.Seq = 1, 2, 1
	equal(f, f.value(Events(ctx, f.Read(), "tnt_1")), []doorward.Event{e, e2})
	equal(f, f.value(Events(ctx, f.Read(), "")), []doorward.Event{bare})
	equal(f, f.value(Events(ctx, f.Read(), "tnt_2")), []doorward.Event(nil))
	equal(f, f.value(f.Read().Event(ctx, e.ID)), e)
	equal(f, f.value(f.Read().Event(ctx, bare.ID)), bare)
	f.wantNone(f.Read().Event(ctx, "evt_none"))
	f.wantNone(f.Read().Event(ctx, ""))
}

// pagesOfEvents: newest first, and events added between two pages cause no
// duplicate and no gap.
func pagesOfEvents(f *fixture) {
	ctx := f.Context()
	var all []doorward.Event
	for n := range 7 {
		all = append(all, f.event("tnt_1", fmt.Sprint("usr_", n)))
		f.event("tnt_2", "usr_x")
		if n%2 == 0 { // some share an instant
			f.clock.move(time.Second)
		}
	}
	slices.Reverse(all)
	var got []doorward.Event
	win := doorward.Window{Limit: 3}
	for range 3 {
		page, err := f.Read().EventPage(ctx, "tnt_1", store.EventFilter{}, win)
		noError(f, err)
		got = append(got, page.Items...)
		f.event("tnt_1", "usr_new")
		if page.Next == nil {
			break
		}
		win.After = *page.Next
	}
	equal(f, got, all)
	then := all[0].At.Add(time.Microsecond) // before the new events
	for limit := 1; limit <= 8; limit++ {
		equal(f, pagesBack(f, limit, func(p doorward.Window) (doorward.Page[doorward.Event], error) {
			return f.Read().EventPage(ctx, "tnt_1", store.EventFilter{To: &then, Actor: "usr_ann"}, p)
		}), all)
	}

	third := all[4]
	next := third.At.Add(time.Microsecond)
	for _, c := range []struct {
		filter store.EventFilter
		want   []doorward.Event
	}{
		{store.EventFilter{Target: "usr_2"}, all[4:5]},
		{store.EventFilter{Target: "usr_2", Actor: "usr_ann"}, all[4:5]},
		{store.EventFilter{Target: "usr_2", Actor: "ann@acme.example"}, all[4:5]},
		{store.EventFilter{Target: "usr_2", Actor: "usr_2"}, nil},
		{store.EventFilter{Target: "usr_2", Action: doorward.UserRole}, all[4:5]},
		{store.EventFilter{Target: "usr_2", Action: doorward.UserRemove}, nil},
		{store.EventFilter{To: &third.At}, all[6:]},
		{store.EventFilter{From: &third.At, To: &next}, all[4:6]},
		{store.EventFilter{Target: "usr_x"}, nil},
	} {
		page, err := f.Read().EventPage(ctx, "tnt_1", c.filter, doorward.Window{Limit: 100})
		noError(f, err)
		if diff := cmp.Diff(c.want, page.Items); diff != "" || page.Next != nil {
			f.Errorf("%+v: next %v (-want +got):\n%s", c.filter, page.Next, diff)
		}
	}
}

// eventsOfOperator: the operator's events, of the command line by who ran it, are found in a trail and in all.
func eventsOfOperator(f *fixture) {
	ctx := f.Context()
	write := func(tenantID, systemUser string) string {
		e := doorward.Event{
			ID: f.id("evt_"), At: f.clock.read(), Action: doorward.TenantFreeze, Outcome: doorward.Done, ActorType: doorward.Operator,
			Target: doorward.Object{Type: "tenant", ID: tenantID, TenantID: tenantID}, Changes: []doorward.Change{{Field: doorward.FieldOperatorReason, To: "spam"}},
		}
		if tenantID == "tnt_2" { // as where a mail reports the action
			e.Changes = append(e.Changes, doorward.Change{Field: doorward.FieldUserAgent, To: doorward.OperatorAtTerminal().UserAgent})
		}
		if systemUser != "" {
			e.Changes = append(e.Changes, doorward.Change{Field: doorward.FieldSystemUser, To: systemUser})
		}
		f.write(func(tx *store.Tx) { noError(f, tx.InsertEvent(ctx, e)) })
		f.clock.move(time.Second)
		return e.ID
	}
	f.event("tnt_1", "usr_1")
	root, byKey, other := write("tnt_1", `<root>@"db1"`), write("tnt_1", ""), write("tnt_2", `<root>@"db1"`)
	for _, c := range []struct {
		filter       store.EventFilter
		trail, every []string
	}{
		{store.EventFilter{Operator: true}, []string{byKey, root}, []string{other, byKey, root}},
		{store.EventFilter{SystemUser: `<root>@"db1"`}, []string{root}, []string{other, root}},
		{store.EventFilter{SystemUser: `<root>@"db1"`, Action: doorward.UserRole}, nil, nil},
		{store.EventFilter{SystemUser: "root@db1"}, nil, nil},
		{store.EventFilter{SystemUser: `<root>@"db1"`, Target: "tnt_1"}, []string{root}, []string{root}},
	} {
		ids := func(page doorward.Page[doorward.Event], err error) (all []string) {
			noError(f, err)
			for _, e := range page.Items {
				all = append(all, e.ID)
			}
			return all
		}
		equal(f, ids(f.Read().EventPage(ctx, "tnt_1", c.filter, doorward.Window{Limit: 10})), c.trail)
		equal(f, ids(f.Read().EventPageOfAll(ctx, c.filter, doorward.Window{Limit: 10})), c.every)
	}
}

// chainsOfEvents: each event's hash covers the previous event, in one chain per
// tenant, and a failed transaction leaves no gap.
func chainsOfEvents(f *fixture) {
	ctx := f.Context()
	f.wantNone(f.Read().Chain(ctx, "tnt_1"))
	equal(f, f.value(f.Read().ChainIDs(ctx)), []string(nil))
	var all []doorward.Event
	for range 3 {
		all = append(all, f.event("tnt_1", "usr_1"))
	}
	failed := errors.New("no")
	err := f.try(ctx, func(tx *store.Tx) error {
		noError(f, tx.InsertEvent(ctx, doorward.Event{ID: "evt_x", Target: doorward.Object{TenantID: "tnt_1"}}))
		return failed
	})
	equal(f, errors.Is(err, failed), true)
	f.event("", "usr_1")
	f.write(func(tx *store.Tx) {
		for _, tenantID := range []string{"tnt_2", "", "tnt_1"} {
			e := doorward.Event{ID: f.id("evt_"), At: tx.Now, Target: doorward.Object{TenantID: tenantID}, Changes: []doorward.Change{}}
			noError(f, tx.InsertEvent(ctx, e))
			if tenantID == "tnt_1" {
				e.Seq = 4
				all = append(all, e)
			}
		}
	})
	equal(f, f.value(f.Read().ChainIDs(ctx)), []string{"", "tnt_1", "tnt_2"})
	equal(f, f.value(f.Read().CountChained(ctx, true, "")), int64(7))
	equal(f, f.value(f.Read().CountChained(ctx, false, "tnt_1")), int64(4))
	equal(f, f.value(f.Read().CountChained(ctx, false, "tnt_none")), int64(0))

	chain, err := f.Read().Chain(ctx, "tnt_1")
	noError(f, err)
	links := f.links("tnt_1")
	head := chain.Genesis()
	for i, l := range links {
		l.Event.Changes = all[i].Changes // which Links doesn't decode
		if diff := cmp.Diff(all[i], l.Event); diff != "" || l.Seq != int64(i+1) || !l.Follows(head, l.Seq) || !l.Intact() {
			f.Errorf("%d: number %d, follows: %v, intact: %v:\n%s", i, l.Seq, l.Follows(head, l.Seq), l.Intact(), diff)
		}
		if l.Follows(head, l.Seq+1) || l.Follows(chain.Head, l.Seq) && i < 3 {
			f.Error("the link fits at any position")
		}
		head = l.Hash
	}
	equal(f, chain, store.Chain{TenantID: "tnt_1", Last: 4, Head: head})
	other, err := f.Read().Chain(ctx, "tnt_2")
	noError(f, err)
	if cmp.Equal(other.Genesis(), chain.Genesis()) {
		f.Error("the chains of two tenants begin with the same hash")
	}
}

// links returns all links of a chain, read two at a time.
func (f *fixture) links(tenantID string) (all []store.Link) {
	f.Helper()
	var at doorward.Position
	for {
		page, err := f.Read().Links(f.Context(), tenantID, at, 2)
		noError(f, err)
		if len(page) == 0 {
			return all
		}
		all = append(all, page...)
		at = doorward.Position{At: all[len(all)-1].Seq, ID: all[len(all)-1].ID} // of a chain, At is the number
	}
}

// blankedEvents: in the installation's trail, the events about a user lose their values, and those
// by a user what is about the actor. The chain remains valid.
func blankedEvents(f *fixture) {
	ctx := f.Context()
	f.event("", "usr_bob")
	f.event("", "usr_cat")
	f.event("tnt_1", "usr_bob")
	chain, err := f.Read().Chain(ctx, "")
	noError(f, err)
	for range 2 { // the second time changes nothing
		f.write(func(tx *store.Tx) { noError(f, tx.RedactEvents(ctx, "usr_bob")) })
		equal(f, f.blank(""), []string{"values", ""})
	}
	bob := f.links("")[0]
	if !bob.Intact() || !bob.Follows(chain.Genesis(), 1) {
		f.Errorf("the blanked event is %+v", bob)
	}
	read := f.value(f.Read().Event(ctx, bob.ID)).(doorward.Event)
	if read.Changes != nil || read.ActorEmail == "" {
		f.Errorf("the blanked event is %+v", read)
	}
	equal(f, f.value(f.Read().Chain(ctx, "")), chain)
	f.write(func(tx *store.Tx) { noError(f, tx.RedactEvents(ctx, "usr_ann")) }) // the actor
	equal(f, f.blank(""), []string{"actor values", "actor"})
	read = f.value(f.Read().Event(ctx, f.links("")[1].ID)).(doorward.Event)
	if read.ActorEmail != "" || read.IP != "" || len(read.Changes) != 1 {
		f.Errorf("the event by a deleted user is %+v", read)
	}
	equal(f, f.blank("tnt_1"), []string{""})
}

// blank says for each event of a chain what is blank: "actor", "values", or both. Each must be intact.
func (f *fixture) blank(tenantID string) (all []string) {
	f.Helper()
	for _, l := range f.links(tenantID) {
		var parts []string
		if l.IsActorBlank() {
			parts = append(parts, "actor")
		}
		if l.AreValuesBlank() {
			parts = append(parts, "values")
		}
		if !l.Intact() {
			parts = append(parts, "broken")
		}
		all = append(all, strings.Join(parts, " "))
	}
	return all
}

func endOfChain(f *fixture) {
	ctx := f.Context()
	kept := f.event("tnt_2", "usr_1")
	f.write(func(tx *store.Tx) {
		for range 1001 {
			id := f.id("evt_")
			noError(f, tx.InsertEvent(ctx, doorward.Event{ID: id, Target: doorward.Object{TenantID: "tnt_1"}}))
			noError(f, tx.QueueMail(ctx, store.MailSignedIn, "ann@acme.example", id))
		}
		noError(f, tx.QueueMail(ctx, store.MailSignedIn, "ann@acme.example", kept.ID))
	})
	f.write(func(tx *store.Tx) { equal(f, f.value(tx.DeleteChain(ctx, "tnt_1")), int64(1000)) })
	equal(f, len(f.due()), 2)                      // the mails go with the events
	equal(f, f.links("tnt_1")[0].Seq, int64(1001)) // the oldest first
	_, err := f.Read().Chain(ctx, "tnt_1")
	noError(f, err)
	f.write(func(tx *store.Tx) { equal(f, f.value(tx.DeleteChain(ctx, "tnt_1")), int64(1)) })
	f.write(func(tx *store.Tx) { equal(f, f.value(tx.DeleteChain(ctx, "tnt_1")), int64(0)) })
	equal(f, len(f.due()), 1)
	f.wantNone(f.Read().Chain(ctx, "tnt_1"))
	equal(f, f.value(f.Read().ChainIDs(ctx)), []string{"tnt_2"})
	equal(f, f.value(Events(ctx, f.Read(), "tnt_2")), []doorward.Event{kept})
}

// manyEvents: concurrent transactions that write to the same trails, in any order,
// leave chains without a gap.
func manyEvents(f *fixture) {
	ctx := f.Context()
	errs := together(32, func(i int) error {
		return f.try(ctx, func(tx *store.Tx) error {
			var errs []error
			for n := range 3 {
				e := doorward.Event{ID: fmt.Sprintf("evt_%d_%d", i, n), Target: doorward.Object{TenantID: fmt.Sprint("tnt_", (i+n)%2)}}
				errs = append(errs, tx.InsertEvent(ctx, e))
			}
			return errors.Join(errs...)
		})
	})
	noError(f, errors.Join(errs...))
	total := 0
	for _, tenantID := range []string{"tnt_0", "tnt_1"} {
		chain, err := f.Read().Chain(ctx, tenantID)
		noError(f, err)
		head := chain.Genesis()
		for i, l := range f.links(tenantID) {
			if l.Seq != int64(i+1) || !l.Follows(head, l.Seq) {
				f.Fatalf("%s: the chain breaks at %d", tenantID, i+1)
			}
			head = l.Hash
			total++
		}
		equal(f, head, chain.Head)
	}
	equal(f, total, 96)
}
