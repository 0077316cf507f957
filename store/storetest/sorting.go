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

// ordersOfLists: lists are read in each order forward and back, in pages of every size, also
// with equal keys.
func ordersOfLists(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	for i, name := range []string{"Zoë", "Ann Lee", "Anna", "", "anna"} {
		u := f.member(acme, fmt.Sprintf("%c@acme.example", "cabed"[i]), doorward.Roles[i%4])
		f.write(func(tx *store.Tx) { noError(f, tx.RenameUser(ctx, u, name)) })
		f.clock.move(time.Second)
	}
	// letters are the first letters of the addresses.
	letters := func(order string, limit int, read func(*fixture, int, func(doorward.Window) (doorward.Page[doorward.User], error)) []doorward.User) (all []string) {
		for _, u := range read(f, limit, func(w doorward.Window) (doorward.Page[doorward.User], error) {
			w.Sort = order
			return f.Read().UserPage(ctx, acme.ID, store.UserFilter{}, w)
		}) {
			all = append(all, u.Email[:1])
		}
		return all
	}
	for order, want := range map[string]string{"": "cabed", "createdAt": "cabed", "email": "abcde"} {
		for limit := 1; limit <= 6; limit++ {
			equal(f, strings.Join(letters(order, limit, pages[doorward.User]), ""), want)
			equal(f, strings.Join(letters(order, limit, pagesBack[doorward.User]), ""), want)
		}
	}
	for _, order := range []string{"name", "role", "status", "lastLoginAt", "email", "createdAt"} {
		up := letters(order, 9, pages[doorward.User])
		down := slices.Clone(up)
		slices.Reverse(down)
		for limit := 1; limit <= 6; limit++ {
			equal(f, letters(order, limit, pages[doorward.User]), up)
			equal(f, letters(order, limit, pagesBack[doorward.User]), up)
			equal(f, letters("-"+order, limit, pages[doorward.User]), down)
			equal(f, letters("-"+order, limit, pagesBack[doorward.User]), down)
		}
	}
	byName := strings.Join(letters("name", 9, pages[doorward.User]), "")
	equal(f, byName[:2]+byName[4:], "ea"+"c") // the empty name, Ann Lee, both Annas, Zoë
	if _, err := f.Read().UserPage(ctx, acme.ID, store.UserFilter{}, doorward.Window{Limit: 9, Sort: "-size"}); !doorward.HasCode(err, doorward.CodeValidationFailed) {
		f.Errorf("sorted by an unknown name: %v", err)
	}
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
	equal(f, f.value(f.Read().TenantPage(ctx, nil, w)).(doorward.Page[doorward.Tenant]).Total, 1)
	equal(f, f.value(f.Read().PolicyPage(ctx, acme.ID, w)).(doorward.Page[store.PolicyVersion]).Total, 0)
	equal(f, f.value(f.Read().EventPage(ctx, acme.ID, store.EventFilter{}, w)).(doorward.Page[doorward.Event]).Total, 0)
}
