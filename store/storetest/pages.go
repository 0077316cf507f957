package storetest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// pages reads a list forward, page by page, and returns all rows.
func pages[T any](f *fixture, limit int, read func(doorward.Window) (doorward.Page[T], error)) (all []T) {
	f.Helper()
	for at := (doorward.Position{}); ; {
		page, err := read(doorward.Window{After: at, Limit: limit})
		noError(f, err)
		if len(page.Items) > limit || page.Next != nil && len(page.Items) < limit {
			f.Fatalf("a page of %d has %d rows", limit, len(page.Items))
		}
		all = append(all, page.Items...)
		if page.Next == nil {
			return all
		}
		at = *page.Next
	}
}

// pagesBack reads page after page to the end and back, and returns the rows of the
// way back in list order.
func pagesBack[T any](f *fixture, limit int, read func(doorward.Window) (doorward.Page[T], error)) (all []T) {
	f.Helper()
	page, err := read(doorward.Window{Limit: limit})
	noError(f, err)
	for page.Next != nil {
		page, err = read(doorward.Window{After: *page.Next, Limit: limit})
		noError(f, err)
	}
	all = page.Items
	for page.Prev != nil {
		page, err = read(doorward.Window{Before: *page.Prev, Limit: limit})
		noError(f, err)
		if len(page.Items) > limit || page.Next == nil {
			f.Fatalf("a page of %d on the way back has %d rows and continues at %v", limit, len(page.Items), page.Next)
		}
		all = append(slices.Clone(page.Items), all...)
	}
	return all
}

// allTenants returns the tenants, the oldest first.
func allTenants(ctx context.Context, read store.Reader) (all []doorward.Tenant, err error) {
	for t, err := range doorward.EachRow(3, func(w doorward.Window) (doorward.Page[doorward.Tenant], error) {
		return read.TenantPage(ctx, store.TenantFilter{}, w)
	}) {
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// allMembers returns the members of a tenant, the oldest membership first.
func allMembers(ctx context.Context, read store.Reader, tenantID string) (all []doorward.User, err error) {
	for u, err := range doorward.EachRow(3, func(w doorward.Window) (doorward.Page[doorward.User], error) {
		return read.UserPage(ctx, tenantID, store.UserFilter{}, w)
	}) {
		if err != nil {
			return nil, err
		}
		all = append(all, u)
	}
	return all, nil
}

// allUsers returns the members of all tenants.
func allUsers(ctx context.Context, read store.Reader) (all []doorward.User, err error) {
	tenants, err := allTenants(ctx, read)
	for _, t := range tenants {
		if err != nil {
			return nil, err
		}
		var members []doorward.User
		members, err = allMembers(ctx, read, t.ID)
		all = append(all, members...)
	}
	return all, err
}

func pagesOfLists(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta") // created at one instant
	var people []doorward.User
	var offers []doorward.Invitation
	for i := range 5 {
		if i == 3 {
			f.clock.move(time.Second)
		}
		people = append(people, f.member(acme, fmt.Sprintf("p%d@acme.example", i), doorward.RoleUser))
		offers = append(offers, f.invitation(acme, fmt.Sprintf("i%d@acme.example", i)))
	}
	f.member(zeta, "zoe@zeta.example", doorward.RoleUser)
	f.invitation(zeta, "zoe@zeta.example")
	slices.SortStableFunc(offers, func(a, b doorward.Invitation) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), strings.Compare(b.ID, a.ID))
	})
	for _, limit := range []int{2, 6} { // ordersOfLists has more
		equal(f, pages(f, limit, func(p doorward.Window) (doorward.Page[doorward.Tenant], error) {
			return f.Read().TenantPage(ctx, store.TenantFilter{}, p)
		}), []doorward.Tenant{acme, zeta})
		equal(f, pages(f, limit, func(p doorward.Window) (doorward.Page[doorward.Tenant], error) {
			return f.Read().TenantPage(ctx, store.TenantFilter{IDs: []string{"tnt_none", zeta.ID}}, p)
		}), []doorward.Tenant{zeta})
		users := func(p doorward.Window) (doorward.Page[doorward.User], error) {
			return f.Read().UserPage(ctx, acme.ID, store.UserFilter{Role: doorward.RoleUser}, p)
		}
		equal(f, pages(f, limit, users), people)
		equal(f, pagesBack(f, limit, users), people)
		invitations := func(p doorward.Window) (doorward.Page[doorward.Invitation], error) {
			return f.Read().InvitationPage(ctx, acme.ID, store.InvitationFilter{State: doorward.InvitationPending}, f.clock.read(), p)
		}
		equal(f, pages(f, limit, invitations), offers)
		equal(f, pagesBack(f, limit, invitations), offers)
	}
	equal(f, f.value(f.Read().UserPage(ctx, "tnt_none", store.UserFilter{}, doorward.Window{Limit: 9})), doorward.Page[doorward.User]{})
}

func filtersOfLists(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	ann := f.join(acme, f.account("ann@acme.example"), doorward.RoleOwner)
	bob := f.join(acme, f.account("bob_100%@acme.example"), doorward.RoleUser)
	f.write(func(tx *store.Tx) {
		noError(f, tx.RenameUser(ctx, ann, "ÄNNE O\u0308sterreich")) // the Ö as two code points
		noError(f, tx.RenameUser(ctx, bob, ""))
		f.wantChange(tx.SetUserStatus(ctx, acme.ID, bob.ID, doorward.UserSuspended))
	})
	ann.Name, bob.Name, bob.Status = "ÄNNE O\u0308sterreich", "", doorward.UserSuspended
	for _, c := range []struct {
		f    store.UserFilter
		want []doorward.User
	}{
		{store.UserFilter{}, []doorward.User{ann, bob}},
		{store.UserFilter{Role: doorward.RoleOwner}, []doorward.User{ann}},
		{store.UserFilter{Status: doorward.UserSuspended}, []doorward.User{bob}},
		{store.UserFilter{Role: doorward.RoleOwner, Status: doorward.UserSuspended}, nil},
		{store.UserFilter{Text: "änne Ö"}, []doorward.User{ann}},
		{store.UserFilter{Text: "ACME"}, []doorward.User{ann, bob}},
		{store.UserFilter{Text: "%"}, []doorward.User{bob}},
		{store.UserFilter{Text: "_"}, []doorward.User{bob}},
		{store.UserFilter{Text: "*"}, nil},
	} {
		equal(f, f.value(f.Read().UserPage(ctx, acme.ID, c.f, doorward.Window{Limit: 9})), doorward.Page[doorward.User]{Items: c.want})
	}
}

// filtersOfTenants also shows that tenants are found that an earlier version has created or renamed.
func filtersOfTenants(f *fixture) {
	ctx := f.Context()
	acme, zurich := f.tenant("Acme Inc"), f.tenant("Bank Zürich")
	f.write(func(tx *store.Tx) { f.wantChange(tx.FreezeTenant(ctx, zurich.ID)) })
	zurich.Status = doorward.TenantFrozen
	found := func(filter store.TenantFilter, want ...doorward.Tenant) {
		f.Helper()
		equal(f, f.value(f.Read().TenantPage(ctx, filter, doorward.Window{Limit: 9})), doorward.Page[doorward.Tenant]{Items: want})
	}
	found(store.TenantFilter{}, acme, zurich)
	found(store.TenantFilter{Text: "ZURICH bank"}, zurich)
	found(store.TenantFilter{Text: strings.ToUpper(acme.ID)}, acme)
	found(store.TenantFilter{Status: doorward.TenantFrozen}, zurich)
	found(store.TenantFilter{Status: doorward.TenantActive, Text: "bank"})
	found(store.TenantFilter{IDs: []string{acme.ID}, Text: "bank"})

	zurich.Name = "Bank Genève"
	f.write(func(tx *store.Tx) { noError(f, tx.EditTenant(ctx, zurich)) })
	found(store.TenantFilter{Text: "zurich"})
	found(store.TenantFilter{Text: "geneve"}, zurich)

	f.exec(`UPDATE tenants SET name = 'Öl', name_key = '6f6c' WHERE id = '` + zurich.ID + `'`)
	zurich.Name = "Öl"
	f.write(func(tx *store.Tx) {
		equal(f, f.value(tx.MakeTenantsSearchable(ctx, 1)), int64(1))
		equal(f, f.value(tx.MakeTenantsSearchable(ctx, 1)), int64(0))
	})
	found(store.TenantFilter{Text: "geneve"})
	found(store.TenantFilter{Text: "ol"}, zurich)
}
