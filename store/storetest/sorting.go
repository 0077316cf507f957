package storetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// wordsOfLists: rows are found by words without regard to case, accents and order.
func wordsOfLists(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	owner := f.member(acme, "owner@acme.example", doorward.RoleOwner)
	named := map[string]string{}
	for i, name := range []string{"Jürgen Müller", "Élodie Straße", "Carla Haddad", "Ann Lee"} {
		u := f.member(acme, fmt.Sprintf("p%d@acme.example", i), doorward.RoleUser)
		inv := doorward.Invitation{
			ID: fmt.Sprint("inv_", i), TenantID: acme.ID, Email: fmt.Sprintf("i%d@acme.example", i), Role: doorward.RoleUser, Name: name,
			State: doorward.InvitationPending, CreatedAt: noon, ExpiresAt: noon.Add(time.Hour), Days: 1, InvitedBy: owner.ID,
		}
		f.write(func(tx *store.Tx) {
			noError(f, tx.RenameUser(ctx, u, name))
			f.wantChange(tx.InsertInvitation(ctx, inv))
		})
		named[u.ID] = name
	}
	found := func(text string) (people, invited []string) {
		users, err := f.Read().UserPage(ctx, acme.ID, store.UserFilter{Text: text, Role: doorward.RoleUser}, doorward.Window{Limit: 9})
		noError(f, err)
		for _, u := range users.Items {
			people = append(people, named[u.ID])
		}
		offers, err := f.Read().InvitationPage(ctx, acme.ID, store.InvitationFilter{Text: text}, noon, doorward.Window{Limit: 9, Sort: "createdAt"})
		noError(f, err)
		for _, i := range offers.Items {
			invited = append(invited, i.Name)
		}
		return people, invited
	}
	for text, want := range map[string][]string{
		"muller": {"Jürgen Müller"}, "MÜLLER": {"Jürgen Müller"}, "strasse": {"Élodie Straße"}, "elodie": {"Élodie Straße"},
		"Haddad Carla": {"Carla Haddad"}, " carla": {"Carla Haddad"}, "haddad acme": {"Carla Haddad"}, "carla lee": nil,
		"a b c d e f g h": nil, "%": nil,
	} {
		people, invited := found(text)
		equal(f, people, want)
		equal(f, invited, want)
	}
}

// ordersOfLists: every list is read in each order forward and back, with its total, also where
// keys are equal. A page shorter than the list gives the same rows as one with all of them.
func ordersOfLists(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	owner := f.member(acme, "cat@acme.example", doorward.RoleOwner)
	all := f.webhook(acme.ID, "*")
	for i, name := range []string{"Ann Lee", "Anna", "", "anna"} {
		u := f.member(acme, fmt.Sprintf("%c@acme.example", "abed"[i]), doorward.Roles[i])
		inv := f.draft(acme, fmt.Sprintf("i%d@acme.example", i))
		inv.Name = name
		event := doorward.Event{
			ID: f.id("evt_"), At: f.clock.read(), Action: doorward.UserRole, Outcome: doorward.Refused, ActorType: doorward.Operator, ActorID: "usr_ann", ActorEmail: "ann@acme.example",
			Target: doorward.Object{Type: "user", ID: "usr_1", TenantID: acme.ID}, RequestID: "req_1", IP: "192.0.2.1", Changes: []doorward.Change{},
		}
		f.write(func(tx *store.Tx) {
			noError(f, tx.RenameUser(ctx, u, name))
			f.wantChange(tx.InsertInvitation(ctx, inv))
			noError(f, tx.InsertPolicy(ctx, store.PolicyVersion{TenantID: acme.ID, Version: int64(i + 1), Mode: store.PolicyEnforces, CreatedAt: tx.Now}))
			noError(f, tx.InsertEvent(ctx, event))
		})
		f.apiKey(owner, "key "+name)
		f.webhook(acme.ID, "user.invite")
		f.tenant(name)
		if i != 1 {
			f.clock.move(time.Second)
		}
	}
	read := f.Read()
	people := wantOrders(f, "createdAt name email role status lastLoginAt", 5, func(u doorward.User) string { return u.ID }, func(w doorward.Window) (doorward.Page[doorward.User], error) {
		return read.UserPage(ctx, acme.ID, store.UserFilter{}, w)
	})
	invitations := wantOrders(f, "createdAt expiresAt name email role", 4, func(i doorward.Invitation) string { return i.ID }, func(w doorward.Window) (doorward.Page[doorward.Invitation], error) {
		return read.InvitationPage(ctx, acme.ID, store.InvitationFilter{}, noon, w)
	})
	keys := wantOrders(f, "createdAt name expiresAt lastUsedAt", 4, func(k doorward.APIKey) string { return k.ID }, func(w doorward.Window) (doorward.Page[doorward.APIKey], error) {
		return read.APIKeyPage(ctx, acme.ID, store.APIKeyFilter{}, noon, w)
	})
	tenants := wantOrders(f, "createdAt name", 5, func(t doorward.Tenant) string { return t.ID }, func(w doorward.Window) (doorward.Page[doorward.Tenant], error) {
		return read.TenantPage(ctx, store.TenantFilter{}, w)
	})
	wantOrders(f, "version", 4, func(v store.PolicyVersion) string { return fmt.Sprint(v.Version) }, func(w doorward.Window) (doorward.Page[store.PolicyVersion], error) {
		return read.PolicyPage(ctx, acme.ID, w)
	})
	wantOrders(f, "createdAt", 5, func(w doorward.Webhook) string { return w.ID }, func(w doorward.Window) (doorward.Page[doorward.Webhook], error) {
		return read.WebhookPage(ctx, acme.ID, w)
	})
	for _, state := range []doorward.DeliveryState{"", doorward.DeliveryPending} {
		wantOrders(f, "createdAt", 4, func(d doorward.WebhookDelivery) string { return fmt.Sprint(d.CreatedAt.UnixMicro(), d.ID) }, func(w doorward.Window) (doorward.Page[doorward.WebhookDelivery], error) {
			return read.DeliveryPage(ctx, all.ID, state, w)
		})
	}
	for _, filter := range []store.EventFilter{
		{}, {Action: doorward.UserRole}, {Actor: "usr_ann"}, {Actor: "ann@acme.example"}, {Target: "usr_1"}, {Outcome: doorward.Refused}, {Request: "req_1"}, {IP: "192.0.2.1"}, {Operator: true},
	} {
		wantOrders(f, "at", 4, func(e doorward.Event) string { return e.ID }, func(w doorward.Window) (doorward.Page[doorward.Event], error) {
			return read.EventPage(ctx, acme.ID, filter, w)
		})
		wantOrders(f, "at", 4, func(e doorward.Event) string { return fmt.Sprint(e.At.UnixMicro(), e.ID) }, func(w doorward.Window) (doorward.Page[doorward.Event], error) {
			return read.EventPageOfAll(ctx, filter, w)
		})
		filter.From = &time.Time{}
		var sum int64
		for _, bar := range f.value(read.EventBars(ctx, acme.ID, filter, time.Hour, 100)).([]store.EventBar) {
			sum += bar.Count
		}
		equal(f, sum, int64(4))
	}
	for _, c := range []struct {
		list  map[string][]string
		order string
		want  []int // indexes in the order of creation
	}{
		{people, "email", []int{1, 2, 0, 4, 3}},
		{people, "name", []int{3, 1, 2, 4, 0}}, // the owner's name is "name of …"
		{invitations, "name", []int{2, 0, 1, 3}},
		{keys, "name", []int{2, 0, 1, 3}},
		{tenants, "name", []int{3, 0, 1, 2, 4}},
	} {
		var want []string
		for _, i := range c.want {
			want = append(want, c.list["createdAt"][i])
		}
		equal(f, c.list[c.order], want)
	}
	if _, err := read.UserPage(ctx, acme.ID, store.UserFilter{}, doorward.Window{Limit: 9, Sort: "-size"}); !doorward.HasCode(err, doorward.CodeValidationFailed) {
		f.Errorf("sorted by an unknown name: %v", err)
	}
}

// wantOrders reads a list of n rows in each of the orders, and their reverse, in pages of each
// size, forward and back, and returns the ids by order. Ids grow with the time of creation.
func wantOrders[T any](f *fixture, orders string, n int, id func(T) string, read func(doorward.Window) (doorward.Page[T], error)) map[string][]string {
	f.Helper()
	found := map[string][]string{}
	for order := range strings.FieldsSeq(orders) {
		ids := func(sort string, limit int, walk func(*fixture, int, func(doorward.Window) (doorward.Page[T], error)) []T) (all []string) {
			for _, row := range walk(f, limit, func(w doorward.Window) (doorward.Page[T], error) {
				w.Sort, w.Count = sort, true
				p, err := read(w)
				equal(f, f.value(p.Total, err), n)
				return p, err
			}) {
				all = append(all, id(row))
			}
			return all
		}
		up := ids(order, n, pages[T])
		found[order] = up
		if order == "createdAt" || order == "version" || order == "at" {
			equal(f, slices.IsSorted(up), true)
		}
		down := slices.Clone(up)
		slices.Reverse(down)
		for limit := 1; limit <= n; limit += 2 {
			equal(f, ids(order, limit, pages[T]), up)
			equal(f, ids(order, limit, pagesBack[T]), up)
			equal(f, ids("-"+order, limit, pages[T]), down)
			equal(f, ids("-"+order, limit, pagesBack[T]), down)
		}
	}
	return found
}

func totalsOfLists(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	for i := range 3 {
		f.member(acme, fmt.Sprintf("p%d@acme.example", i), doorward.RoleUser)
		f.invitation(acme, fmt.Sprintf("i%d@acme.example", i))
	}
	w := doorward.Window{Limit: 2, Count: true}
	equal(f, f.value(f.Read().UserPage(ctx, acme.ID, store.UserFilter{}, w)).(doorward.Page[doorward.User]).Total, 3)
	equal(f, f.value(f.Read().UserPage(ctx, acme.ID, store.UserFilter{Text: "p1"}, w)).(doorward.Page[doorward.User]).Total, 1)
	equal(f, f.value(f.Read().InvitationPage(ctx, acme.ID, store.InvitationFilter{Role: doorward.RoleOwner}, noon, w)).(doorward.Page[doorward.Invitation]).Total, 0)
	equal(f, f.value(f.Read().InvitationPage(ctx, acme.ID, store.InvitationFilter{Text: "i"}, noon, w)).(doorward.Page[doorward.Invitation]).Total, 3)
	equal(f, f.value(f.Read().APIKeyPage(ctx, acme.ID, store.APIKeyFilter{}, noon, w)).(doorward.Page[doorward.APIKey]).Total, 0)
	equal(f, f.value(f.Read().TenantPage(ctx, store.TenantFilter{}, w)).(doorward.Page[doorward.Tenant]).Total, 1)
	equal(f, f.value(f.Read().PolicyPage(ctx, acme.ID, w)).(doorward.Page[store.PolicyVersion]).Total, 0)
	equal(f, f.value(f.Read().EventPage(ctx, acme.ID, store.EventFilter{}, w)).(doorward.Page[doorward.Event]).Total, 0)
}
