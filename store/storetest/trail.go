package storetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// event adds an event by ann about the target.
func (w *world) event(tenantID, target string) doorward.Event {
	w.Helper()
	e := doorward.Event{
		ID: w.id("evt_"), At: w.clock.read(), Action: doorward.UserRole, Outcome: doorward.Done,
		ActorType: doorward.ByUser, ActorID: "usr_ann", ActorEmail: "ann@acme.example",
		Target: doorward.Object{Type: "user", ID: target, TenantID: tenantID}, IP: "192.0.2.7", RequestID: "req_1",
		Changes: []doorward.Change{{Field: "role", From: "USER", To: "ADMIN"}},
	}
	w.write(func(tx *store.Tx) { ok(w, tx.InsertEvent(w.Context(), e)) })
	return e
}

// pagesOfEvents: the newest first, and nothing comes twice or is left out when
// events come in between two pages.
func pagesOfEvents(w *world) {
	ctx := w.Context()
	var all []doorward.Event
	for n := range 7 {
		all = append(all, w.event("tnt_1", fmt.Sprint("usr_", n)))
		w.event("tnt_2", "usr_x")
		if n%2 == 0 { // some share an instant
			w.clock.move(time.Second)
		}
	}
	slices.Reverse(all)
	var got []doorward.Event
	win := doorward.Window{Limit: 3}
	for range 3 {
		page, err := w.Read().EventPage(ctx, "tnt_1", store.EventFilter{}, win)
		ok(w, err)
		got = append(got, page.Items...)
		w.event("tnt_1", "usr_new")
		if page.Next == nil {
			break
		}
		win.After = *page.Next
	}
	same(w, all)(got, nil)
	then := all[0].At.Add(time.Microsecond) // before the new ones
	for limit := 1; limit <= 8; limit++ {
		same(w, all)(pagesBack(w, limit, func(p doorward.Window) (doorward.Page[doorward.Event], error) {
			return w.Read().EventPage(ctx, "tnt_1", store.EventFilter{To: &then, Actor: "usr_ann"}, p)
		}), nil)
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
		page, err := w.Read().EventPage(ctx, "tnt_1", c.filter, doorward.Window{Limit: 100})
		ok(w, err)
		if diff := cmp.Diff(c.want, page.Items); diff != "" || page.Next != nil {
			w.Errorf("%+v: next %v (-want +got):\n%s", c.filter, page.Next, diff)
		}
	}
}

// chainsOfEvents: each event covers the one before, in a chain for each tenant,
// and a transaction that fails leaves no gap.
func chainsOfEvents(w *world) {
	ctx := w.Context()
	none(w)(w.Read().Chain(ctx, "tnt_1"))
	same(w, []string(nil))(w.Read().ChainIDs(ctx))
	var all []doorward.Event
	for range 3 {
		all = append(all, w.event("tnt_1", "usr_1"))
	}
	failed := errors.New("no")
	err := w.try(ctx, func(tx *store.Tx) error {
		ok(w, tx.InsertEvent(ctx, doorward.Event{ID: "evt_x", Target: doorward.Object{TenantID: "tnt_1"}}))
		return failed
	})
	same(w, true)(errors.Is(err, failed), nil)
	w.event("", "usr_1")
	both := doorward.Event{ID: w.id("evt_"), At: w.clock.read(), Changes: []doorward.Change{}}
	w.write(func(tx *store.Tx) {
		for _, tenantID := range []string{"tnt_2", "", "tnt_1"} {
			e := both
			e.ID, e.Target.TenantID = w.id("evt_"), tenantID
			ok(w, tx.InsertEvent(ctx, e))
			if tenantID == "tnt_1" {
				all = append(all, e)
			}
		}
	})
	same(w, []string{"", "tnt_1", "tnt_2"})(w.Read().ChainIDs(ctx))

	chain, err := w.Read().Chain(ctx, "tnt_1")
	ok(w, err)
	links := w.links("tnt_1")
	head := chain.Genesis()
	for i, l := range links {
		l.Event.Changes = all[i].Changes
		if diff := cmp.Diff(all[i], l.Event); diff != "" || l.Seq != int64(i+1) || !l.Follows(head, l.Seq) || !l.Whole() {
			w.Errorf("%d: number %d, follows: %v, whole: %v:\n%s", i, l.Seq, l.Follows(head, l.Seq), l.Whole(), diff)
		}
		if l.Follows(head, l.Seq+1) || l.Follows(chain.Head, l.Seq) && i < 3 {
			w.Error("any place will do for it")
		}
		head = l.Hash
	}
	same(w, store.Chain{TenantID: "tnt_1", Last: 4, Head: head})(chain, nil)
	other, err := w.Read().Chain(ctx, "tnt_2")
	ok(w, err)
	if cmp.Equal(other.Genesis(), chain.Genesis()) {
		w.Error("the chains of two tenants begin alike")
	}
}

// links are all of a chain, read two at a time.
func (w *world) links(tenantID string) (all []store.Link) {
	w.Helper()
	var at doorward.Position
	for {
		some, err := w.Read().Links(w.Context(), tenantID, at, 2)
		ok(w, err)
		if len(some) == 0 {
			return all
		}
		all = append(all, some...)
		at = doorward.Position{At: all[len(all)-1].Seq, ID: all[len(all)-1].ID}
	}
}

func blankedEvents(w *world) {
	ctx := w.Context()
	w.event("", "usr_bob")
	w.event("", "usr_cat")
	w.event("tnt_1", "usr_bob")
	chain, err := w.Read().Chain(ctx, "")
	ok(w, err)
	w.write(func(tx *store.Tx) { same(w, int64(1))(tx.RedactEvents(ctx, "usr_bob")) })
	w.write(func(tx *store.Tx) { same(w, int64(0))(tx.RedactEvents(ctx, "usr_bob")) })
	bob, cat, head := w.links("")[0], w.links("")[1], chain.Genesis()
	if e := bob.Event; e.ActorEmail != "" || e.IP != "" || e.Changes != nil || !bob.Blanked() || !bob.Whole() || !bob.Follows(head, 1) {
		w.Errorf("blanked it is %+v", bob)
	}
	same(w, chain)(w.Read().Chain(ctx, ""))
	if cat.Blanked() || cat.ActorEmail == "" || w.links("tnt_1")[0].Blanked() {
		w.Error("more was blanked than what is about the user")
	}
	w.write(func(tx *store.Tx) { same(w, int64(1))(tx.RedactEvents(ctx, "usr_ann")) }) // the actor of the other one
	same(w, true)(w.links("")[1].Blanked(), nil)
}

func endOfChain(w *world) {
	ctx := w.Context()
	kept := w.event("tnt_2", "usr_1")
	w.write(func(tx *store.Tx) {
		for range 1001 {
			ok(w, tx.InsertEvent(ctx, doorward.Event{ID: w.id("evt_"), Target: doorward.Object{TenantID: "tnt_1"}}))
		}
	})
	w.write(func(tx *store.Tx) { same(w, int64(1000))(tx.DeleteChain(ctx, "tnt_1")) })
	same(w, int64(1001))(w.links("tnt_1")[0].Seq, nil) // the oldest first
	_, err := w.Read().Chain(ctx, "tnt_1")
	ok(w, err)
	w.write(func(tx *store.Tx) { same(w, int64(1))(tx.DeleteChain(ctx, "tnt_1")) })
	w.write(func(tx *store.Tx) { same(w, int64(0))(tx.DeleteChain(ctx, "tnt_1")) })
	none(w)(w.Read().Chain(ctx, "tnt_1"))
	same(w, []string{"tnt_2"})(w.Read().ChainIDs(ctx))
	same(w, []doorward.Event{kept})(Events(ctx, w.Read(), "tnt_2"))
}

// manyEvents: transactions that write to the same trails at once, in any order,
// leave chains without a gap.
func manyEvents(w *world) {
	ctx := w.Context()
	errs := together(32, func(i int) error {
		return w.try(ctx, func(tx *store.Tx) error {
			var errs []error
			for n := range 3 {
				e := doorward.Event{ID: fmt.Sprintf("evt_%d_%d", i, n), Target: doorward.Object{TenantID: fmt.Sprint("tnt_", (i+n)%2)}}
				errs = append(errs, tx.InsertEvent(ctx, e))
			}
			return errors.Join(errs...)
		})
	})
	ok(w, errors.Join(errs...))
	total := 0
	for _, tenantID := range []string{"tnt_0", "tnt_1"} {
		chain, err := w.Read().Chain(ctx, tenantID)
		ok(w, err)
		head := chain.Genesis()
		for i, l := range w.links(tenantID) {
			if l.Seq != int64(i+1) || !l.Follows(head, l.Seq) {
				w.Fatalf("%s: the chain breaks at %d", tenantID, i+1)
			}
			head = l.Hash
			total++
		}
		same(w, chain.Head)(head, nil)
	}
	same(w, 96)(total, nil)
}
