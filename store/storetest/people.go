package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

func tenants(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	f.clock.move(time.Second)
	zeta := f.tenant("Zeta")

	equal(f, f.value(f.Read().Tenant(ctx, acme.ID)), acme)
	equal(f, f.value(f.Read().Tenants(ctx)), []doorward.Tenant{acme, zeta})
	f.wantNone(f.Read().Tenant(ctx, "tnt_none"))
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.FreezeTenant(ctx, acme.ID))
		f.wantNoChange(tx.FreezeTenant(ctx, acme.ID))
		f.wantNoChange(tx.FreezeTenant(ctx, "tnt_none"))
		noError(f, tx.LockTenant(ctx, acme.ID))
		noError(f, tx.LockTenant(ctx, "tnt_none"))
	})
	acme.Status = doorward.TenantFrozen
	equal(f, f.value(f.Read().Tenants(ctx)), []doorward.Tenant{acme, zeta})
}

func settingsOfTenants(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	edited := acme
	edited.Name = "Acme Ltd"
	edited.Settings = doorward.TenantSettings{
		SessionIdle: 90 * time.Second, SessionAbsolute: time.Hour, InvitationDays: 3, AllowedDomains: []string{"acme.example", "xn--bcher-kva.example"},
	}
	f.write(func(tx *store.Tx) { noError(f, tx.EditTenant(ctx, edited)) })
	equal(f, f.value(f.Read().Tenant(ctx, acme.ID)), edited)
	equal(f, f.value(f.Read().Tenant(ctx, zeta.ID)), zeta)
	f.write(func(tx *store.Tx) { noError(f, tx.EditTenant(ctx, acme)) })
	equal(f, f.value(f.Read().Tenant(ctx, acme.ID)), acme)
}

// statusesOfTenants: freezing and closing are independent, in any order.
func statusesOfTenants(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	closed := f.clock.move(time.Second)
	end := closed.Add(time.Hour)
	steps := []struct {
		name   string
		do     func(*store.Tx) (bool, error)
		hits   bool
		status doorward.TenantStatus
		closed bool
	}{
		{"thaw what is not frozen", func(tx *store.Tx) (bool, error) { return tx.ThawTenant(ctx, acme.ID, noon) }, false, doorward.TenantActive, false},
		{"restore what is not closed", func(tx *store.Tx) (bool, error) { return tx.RestoreTenant(ctx, acme.ID) }, false, doorward.TenantActive, false},
		{"close", func(tx *store.Tx) (bool, error) { return tx.CloseTenant(ctx, acme.ID, end) }, true, doorward.TenantClosing, true},
		{"thaw what is only closed", func(tx *store.Tx) (bool, error) { return tx.ThawTenant(ctx, acme.ID, noon) }, false, doorward.TenantClosing, true},
		{"freeze what is closed", func(tx *store.Tx) (bool, error) { return tx.FreezeTenant(ctx, acme.ID) }, true, doorward.TenantFrozen, true},
		{"restore what is frozen", func(tx *store.Tx) (bool, error) { return tx.RestoreTenant(ctx, acme.ID) }, true, doorward.TenantFrozen, false},
		{"close what is frozen", func(tx *store.Tx) (bool, error) { return tx.CloseTenant(ctx, acme.ID, end) }, true, doorward.TenantFrozen, true},
		{"close twice", func(tx *store.Tx) (bool, error) { return tx.CloseTenant(ctx, acme.ID, noon) }, false, doorward.TenantFrozen, true},
		{"thaw what is closed", func(tx *store.Tx) (bool, error) { return tx.ThawTenant(ctx, acme.ID, noon) }, true, doorward.TenantClosing, true},
		{"restore", func(tx *store.Tx) (bool, error) { return tx.RestoreTenant(ctx, acme.ID) }, true, doorward.TenantActive, false},
		{"freeze", func(tx *store.Tx) (bool, error) { return tx.FreezeTenant(ctx, acme.ID) }, true, doorward.TenantFrozen, false},
		{"thaw", func(tx *store.Tx) (bool, error) { return tx.ThawTenant(ctx, acme.ID, noon) }, true, doorward.TenantActive, false},
	}
	for _, s := range steps {
		f.write(func(tx *store.Tx) {
			hit, err := s.do(tx)
			noError(f, err)
			if hit != s.hits {
				f.Errorf("%s: a row changed: %v, want %v", s.name, hit, s.hits)
			}
		})
		want := acme
		want.Status = s.status
		if s.closed {
			want.ClosedAt, want.DestroyAt = at(closed), at(end)
		}
		equal(f, f.value(f.Read().Tenant(ctx, acme.ID)), want)
	}
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.CloseTenant(ctx, acme.ID, end))
		f.wantChange(tx.FreezeTenant(ctx, acme.ID))
		f.wantChange(tx.ThawTenant(ctx, acme.ID, end.Add(time.Hour))) // the thaw may postpone the end
	})
	late, err := f.Read().Tenant(ctx, acme.ID)
	equal(f, f.value(late.DestroyAt, err), at(end.Add(time.Hour)))
	f.clock.move(2 * time.Hour)
	f.write(func(tx *store.Tx) { f.wantNoChange(tx.RestoreTenant(ctx, acme.ID)) }) // the hold is over
}

// pages reads a list page by page and returns all rows.
func pages[T any](f *fixture, limit int, ask func(doorward.Window) (doorward.Page[T], error)) (all []T) {
	f.Helper()
	for at := (doorward.Position{}); ; {
		page, err := ask(doorward.Window{After: at, Limit: limit})
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
func pagesBack[T any](f *fixture, limit int, ask func(doorward.Window) (doorward.Page[T], error)) (all []T) {
	f.Helper()
	page, err := ask(doorward.Window{Limit: limit})
	for noError(f, err); page.Next != nil; noError(f, err) {
		page, err = ask(doorward.Window{After: *page.Next, Limit: limit})
	}
	for all = page.Items; page.Prev != nil; all = append(slices.Clone(page.Items), all...) {
		page, err = ask(doorward.Window{Before: *page.Prev, Limit: limit})
		noError(f, err)
		if len(page.Items) > limit || page.Next == nil {
			f.Fatalf("a page of %d on the way back has %d rows and continues at %v", limit, len(page.Items), page.Next)
		}
	}
	return all
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
	for limit := 1; limit <= 6; limit++ {
		equal(f, f.value(pages(f, limit, func(p doorward.Window) (doorward.Page[doorward.Tenant], error) {
			return f.Read().TenantPage(ctx, nil, p)
		}), nil), []doorward.Tenant{acme, zeta})
		equal(f, f.value(pages(f, limit, func(p doorward.Window) (doorward.Page[doorward.Tenant], error) {
			return f.Read().TenantPage(ctx, []string{"tnt_none", zeta.ID}, p)
		}), nil), []doorward.Tenant{zeta})
		users := func(p doorward.Window) (doorward.Page[doorward.User], error) {
			return f.Read().UserPage(ctx, acme.ID, store.UserFilter{Role: doorward.RoleUser}, p)
		}
		equal(f, f.value(pages(f, limit, users), nil), people)
		equal(f, f.value(pagesBack(f, limit, users), nil), people)
		invitations := func(p doorward.Window) (doorward.Page[doorward.Invitation], error) {
			return f.Read().InvitationPage(ctx, acme.ID, store.InvitationFilter{State: doorward.InvitationPending}, f.clock.read(), p)
		}
		equal(f, f.value(pages(f, limit, invitations), nil), offers)
		equal(f, f.value(pagesBack(f, limit, invitations), nil), offers)
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

func accounts(f *fixture) {
	ctx := f.Context()
	ann, bob := f.account("ann@acme.example"), f.account("bob@acme.example")

	equal(f, f.value(f.Read().Account(ctx, ann.ID)), ann)
	equal(f, f.value(f.Read().AccountByEmail(ctx, bob.Email)), bob)
	f.wantNone(f.Read().Account(ctx, "usr_none"))
	f.wantNone(f.Read().AccountByEmail(ctx, "none@acme.example"))
	f.wantNone(f.Read().AccountByEmail(ctx, ""))

	again := doorward.Account{ID: "usr_again", Email: ann.Email, PasswordHash: "stolen", CreatedAt: noon}
	f.write(func(tx *store.Tx) {
		f.wantNoChange(tx.InsertAccount(ctx, again))
		f.wantChange(tx.LockAccountWithHash(ctx, ann.ID, ann.PasswordHash))
		f.wantNoChange(tx.LockAccountWithHash(ctx, ann.ID, bob.PasswordHash))
		f.wantNoChange(tx.LockAccountWithHash(ctx, ann.ID, ""))
		f.wantNoChange(tx.LockAccountWithHash(ctx, "usr_none", ann.PasswordHash))
		f.wantNoChange(tx.SetPassword(ctx, ann.ID, bob.PasswordHash, "new"))
		f.wantNoChange(tx.SetPassword(ctx, "usr_none", ann.PasswordHash, "new"))
		f.wantChange(tx.SetPassword(ctx, ann.ID, ann.PasswordHash, "new"))
		f.wantNoChange(tx.SetPassword(ctx, ann.ID, ann.PasswordHash, "newer"))
	})
	ann.PasswordHash = "new"
	equal(f, f.value(f.Read().AccountByEmail(ctx, ann.Email)), ann)
	equal(f, f.value(f.Read().Account(ctx, bob.ID)), bob)
}

func memberships(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	ann := f.account("ann@acme.example")
	annAcme := f.join(acme, ann, doorward.RoleOwner)
	f.clock.move(time.Second)
	bobAcme := f.member(acme, "bob@acme.example", doorward.RoleViewer)
	annZeta := f.join(zeta, ann, doorward.RoleUser)

	equal(f, f.value(f.Read().User(ctx, zeta.ID, ann.ID)), annZeta)
	equal(f, f.value(f.Read().UserByEmail(ctx, acme.ID, ann.Email)), annAcme)
	f.wantNone(f.Read().User(ctx, zeta.ID, bobAcme.ID))
	f.wantNone(f.Read().User(ctx, ann.ID, zeta.ID)) // arguments swapped
	f.wantNone(f.Read().UserByEmail(ctx, zeta.ID, bobAcme.Email))

	equal(f, f.value(f.Read().Memberships(ctx, ann.ID)), []doorward.User{annAcme, annZeta})
	equal(f, f.value(f.Read().Users(ctx, acme.ID)), []doorward.User{annAcme, bobAcme})
	equal(f, f.value(f.Read().AllUsers(ctx)), []doorward.User{annAcme, bobAcme, annZeta})
	equal(f, f.value(f.Read().Users(ctx, "tnt_none")), []doorward.User(nil))
	equal(f, f.value(f.Read().CountActiveMemberships(ctx, ann.ID)), 2)

	f.write(func(tx *store.Tx) {
		again := annAcme
		again.Role, again.Name = doorward.RoleViewer, "again"
		f.wantNoChange(tx.InsertMembership(ctx, again))
		f.wantNoChange(tx.DeleteMembership(ctx, zeta.ID, bobAcme.ID))
		f.wantChange(tx.DeleteMembership(ctx, acme.ID, ann.ID))
		f.wantNoChange(tx.DeleteMembership(ctx, acme.ID, ann.ID))
	})
	equal(f, f.value(f.Read().Memberships(ctx, ann.ID)), []doorward.User{annZeta})
	equal(f, f.value(f.Read().Account(ctx, ann.ID)), ann)
}

func changesOfMembers(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	ann, bob := f.member(acme, "ann@acme.example", doorward.RoleOwner), f.member(acme, "bob@acme.example", doorward.RoleOwner)
	cat := f.member(zeta, "cat@zeta.example", doorward.RoleOwner)
	later := f.clock.move(time.Minute)

	f.write(func(tx *store.Tx) {
		equal(f, f.value(tx.CountActiveOwners(ctx, acme.ID)), 2)
		f.wantChange(tx.SetUserRole(ctx, acme.ID, bob.ID, doorward.RoleAdmin))
		f.wantNoChange(tx.SetUserRole(ctx, acme.ID, bob.ID, doorward.RoleAdmin))
		f.wantNoChange(tx.SetUserRole(ctx, acme.ID, cat.ID, doorward.RoleAdmin))
		equal(f, f.value(tx.CountActiveOwners(ctx, acme.ID)), 1)

		f.wantChange(tx.RecordLogin(ctx, acme.ID, ann.ID))
		f.wantNoChange(tx.RecordLogin(ctx, zeta.ID, ann.ID))
		f.wantChange(tx.SetUserStatus(ctx, acme.ID, ann.ID, doorward.UserSuspended))
		f.wantNoChange(tx.SetUserStatus(ctx, acme.ID, ann.ID, doorward.UserSuspended))
		f.wantNoChange(tx.SetUserStatus(ctx, zeta.ID, ann.ID, doorward.UserSuspended))
		equal(f, f.value(tx.CountActiveOwners(ctx, acme.ID)), 0)
		equal(f, f.value(tx.CountActiveMemberships(ctx, ann.ID)), 0)
		equal(f, f.value(tx.CountActiveOwners(ctx, zeta.ID)), 1)
	})
	f.clock.move(time.Minute)
	f.write(func(tx *store.Tx) { f.wantNoChange(tx.RecordLogin(ctx, acme.ID, ann.ID)) })

	ann.Status, ann.LastLoginAt = doorward.UserSuspended, at(later)
	bob.Role = doorward.RoleAdmin
	equal(f, f.value(f.Read().Users(ctx, acme.ID)), []doorward.User{ann, bob})
	equal(f, f.value(f.Read().Users(ctx, zeta.ID)), []doorward.User{cat})
}

func operatorKeys(f *fixture) {
	ctx := f.Context()
	k := store.OperatorKey{ID: "key_1", Name: "deployment", CreatedAt: noon, May: []doorward.Action{}}
	f.write(func(tx *store.Tx) { noError(f, tx.InsertOperatorKey(ctx, k, []byte{0, 1, 255})) })

	equal(f, f.value(f.Read().OperatorKey(ctx, []byte{0, 1, 255})), k)
	f.wantNone(f.Read().OperatorKey(ctx, []byte{0, 1}))
	f.wantNone(f.Read().OperatorKey(ctx, nil))

	later := store.OperatorKey{ID: "key_0", Name: "signup", CreatedAt: noon.Add(time.Second), ExpiresAt: at(noon.Add(day)), May: []doorward.Action{"tenant.create", "tenant.list"}}
	f.write(func(tx *store.Tx) { noError(f, tx.InsertOperatorKey(ctx, later, []byte{1})) })
	equal(f, f.value(f.Read().OperatorKeys(ctx)), []store.OperatorKey{k, later})
	f.write(func(tx *store.Tx) {
		equal(f, f.value(tx.LockOperatorKey(ctx, later.ID)), later)
		f.wantChange(tx.DeleteOperatorKey(ctx, k.ID))
		f.wantNone(tx.LockOperatorKey(ctx, k.ID))
		f.wantNoChange(tx.DeleteOperatorKey(ctx, k.ID))
	})
	equal(f, f.value(f.Read().OperatorKeys(ctx)), []store.OperatorKey{later})
	f.wantNone(f.Read().OperatorKey(ctx, []byte{0, 1, 255}))
}

func serviceKeys(f *fixture) {
	ctx := f.Context()
	k := doorward.ServiceKey{ID: "key_1", Name: "router", May: []doorward.Action{"tenant.list", "user.read"}, Tenants: []string{"tnt_1", "tnt_2"}, CreatedAt: noon}
	later := doorward.ServiceKey{ID: "key_0", Name: "router", May: []doorward.Action{"user.invite"}, Tenants: []string{}, CreatedAt: noon.Add(time.Second)}
	f.write(func(tx *store.Tx) {
		noError(f, tx.InsertServiceKey(ctx, later, []byte{1}))
		noError(f, tx.InsertServiceKey(ctx, k, []byte{0, 1, 255}))
	})
	equal(f, f.value(f.Read().ServiceKeyByHash(ctx, []byte{0, 1, 255})), k)
	f.wantNone(f.Read().ServiceKeyByHash(ctx, []byte{0, 1}))
	f.wantNone(f.Read().ServiceKey(ctx, "key_2"))
	equal(f, f.value(f.Read().ServiceKeys(ctx)), []doorward.ServiceKey{k, later})

	f.write(func(tx *store.Tx) {
		f.wantNoChange(tx.EnableServiceKey(ctx, k.ID))
		disabled, err := tx.DisableAllServiceKeys(ctx)
		k.Disabled, later.Disabled = true, true
		equal(f, f.value(disabled, err), []doorward.ServiceKey{k, later})
		f.wantChange(tx.EnableServiceKey(ctx, later.ID))
		later.Disabled = false
	})
	equal(f, f.value(f.Read().ServiceKeys(ctx)), []doorward.ServiceKey{k, later})
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.DeleteServiceKey(ctx, k.ID))
		f.wantNoChange(tx.DeleteServiceKey(ctx, k.ID))
	})
	f.wantNone(f.Read().ServiceKey(ctx, k.ID))
	equal(f, f.value(f.Read().ServiceKey(ctx, later.ID)), later)
}

// invitationsOfServices: the end of a service key ends its pending invitations, in all
// tenants, and no others.
func invitationsOfServices(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	by := func(key string, t doorward.Tenant, email string) doorward.Invitation {
		i := f.draft(t, email)
		i.ServiceKeyID = key
		f.write(func(tx *store.Tx) { f.wantChange(tx.InsertInvitation(ctx, i)) })
		return i
	}
	used := by("key_1", acme, "used@acme.example")
	f.write(func(tx *store.Tx) { f.wantChange(tx.AcceptInvitation(ctx, used.ID)) })
	by("key_1", acme, "one@acme.example")
	by("key_1", acme, "two@acme.example")
	by("key_1", zeta, "one@acme.example")
	other, none := by("key_2", zeta, "two@acme.example"), f.invitation(acme, "none@acme.example")
	want := []store.RevokedIn{{TenantID: acme.ID, Invitations: 2}, {TenantID: zeta.ID, Invitations: 1}}
	slices.SortFunc(want, func(a, b store.RevokedIn) int { return strings.Compare(a.TenantID, b.TenantID) })
	f.write(func(tx *store.Tx) { equal(f, f.value(tx.RevokeInvitationsOfService(ctx, "key_1")), want) })
	f.write(func(tx *store.Tx) {
		equal(f, f.value(tx.RevokeInvitationsOfService(ctx, "key_1")), []store.RevokedIn(nil))
	})
	for _, i := range []doorward.Invitation{other, none} {
		equal(f, f.value(f.Read().Invitation(ctx, i.ID)), i)
	}
}

func sharedSecrets(f *fixture) {
	ctx := f.Context()
	f.wantNone(f.Read().SharedSecret(ctx, "cursors"))
	got := make([][]byte, 8)
	errs := together(len(got), func(i int) error {
		return f.try(ctx, func(tx *store.Tx) (err error) {
			got[i], err = tx.MakeSharedSecret(ctx, "cursors", []byte{0, byte(i)})
			return err
		})
	})
	noError(f, errors.Join(errs...))
	for _, secret := range got {
		equal(f, f.value(secret, nil), got[0])
	}
	equal(f, f.value(f.Read().SharedSecret(ctx, "cursors")), got[0])
	f.wantNone(f.Read().SharedSecret(ctx, "Cursors"))
}

// known returns which of the hashes are devices of the address.
func (f *fixture) known(email string, since time.Time, hashes ...string) (known []string) {
	f.Helper()
	var all [][]byte
	for _, h := range hashes {
		all = append(all, []byte(h))
	}
	found, err := f.Read().KnownDevices(f.Context(), email, all, since)
	noError(f, err)
	for _, d := range found {
		known = append(known, string(d.Hash))
	}
	return known
}

// remember adds a device a minute later, with a limit of two, and reports whether
// it was added.
func (f *fixture) remember(hash, userID string) (remembered bool) {
	f.Helper()
	f.clock.move(time.Minute)
	f.write(func(tx *store.Tx) {
		var err error
		remembered, err = tx.InsertDevice(f.Context(), []byte(hash), userID, 2, time.Time{})
		noError(f, err)
	})
	return remembered
}

func devices(f *fixture) {
	ctx := f.Context()
	ann, bob := f.account("ann@acme.example"), f.account("bob@acme.example")
	f.wantChange(f.remember("bob 1", bob.ID), nil)
	first := f.clock.read()
	f.wantChange(f.remember("ann 1", ann.ID), nil)
	since := f.clock.read()

	equal(f, f.value(f.known(ann.Email, since.Add(-time.Microsecond), "ann 1"), nil), []string{"ann 1"})
	equal(f, f.value(f.known(ann.Email, since, "ann 1"), nil), []string(nil))
	equal(f, f.value(f.known(bob.Email, time.Time{}, "ann 1"), nil), []string(nil))
	equal(f, f.value(f.known(ann.Email, time.Time{}, "ann"), nil), []string(nil))
	equal(f, f.value(f.known(ann.Email, time.Time{}), nil), []string(nil))
	equal(f, f.value(f.known(ann.Email, time.Time{}, "a", "b", "c", "ann 1", "d"), nil), []string{"ann 1"})
	equal(f, f.value(f.known(ann.Email, time.Time{}, "a", "b", "c", "d", "ann 1"), nil), []string(nil)) // only four are compared
	found, err := f.Read().KnownDevices(ctx, ann.Email, [][]byte{[]byte("bob 1"), []byte("ann 1"), []byte("ann 1")}, time.Time{})
	equal(f, f.value(found, err), []store.KnownDevice{{Hash: []byte("ann 1"), UserID: ann.ID}})
	equal(f, f.value(f.Read().CountDevices(ctx, ann.ID, since.Add(-1))), 1)
	equal(f, f.value(f.Read().CountDevices(ctx, ann.ID, since)), 0)

	f.write(func(tx *store.Tx) {
		equal(f, []any{f.value(tx.DeleteOldDevices(ctx, first, 0)), f.value(tx.DeleteOldDevices(ctx, first, 1))}, []any{int64(0), int64(1)})
	})
	equal(f, f.value(f.known(bob.Email, time.Time{}, "bob 1"), nil), []string(nil))
	equal(f, f.value(f.known(ann.Email, time.Time{}, "ann 1"), nil), []string{"ann 1"})
}

// deviceLimit: a new device replaces the oldest that was never used again; used
// devices stay.
func deviceLimit(f *fixture) {
	ctx := f.Context()
	ann, bob := f.account("ann@acme.example"), f.account("bob@acme.example")
	f.wantChange(f.remember("bob 1", bob.ID), nil)
	known := func() []string { return f.known(ann.Email, time.Time{}, "1", "2", "3", "4") }
	use := func(hash string) {
		f.write(func(tx *store.Tx) { noError(f, tx.UseDevice(ctx, []byte(hash))) })
	}
	for _, hash := range []string{"1", "2", "3"} {
		f.wantChange(f.remember(hash, ann.ID), nil)
	}
	equal(f, f.value(known(), nil), []string{"2", "3"})
	use("2")
	f.wantChange(f.remember("4", ann.ID), nil)
	equal(f, f.value(known(), nil), []string{"2", "4"})
	use("4")
	use("4")
	f.wantNoChange(f.remember("1", ann.ID), nil)
	equal(f, f.value(known(), nil), []string{"2", "4"})
	equal(f, f.value(f.known(bob.Email, time.Time{}, "bob 1"), nil), []string{"bob 1"})
	f.wantNoChange(f.remember("1", "usr_none"), nil)
	f.write(func(tx *store.Tx) { // expired devices don't count
		f.wantChange(tx.InsertDevice(ctx, []byte("1"), ann.ID, 2, f.clock.read()))
	})
	equal(f, f.value(known(), nil), []string{"1"})
}

// generations: a device of an earlier generation is unknown and doesn't count
// towards the limit, even if a node without generations added it.
func generations(f *fixture) {
	ctx := f.Context()
	ann, bob := f.account("ann@acme.example"), f.account("bob@acme.example")
	known := func() []string { return f.known(ann.Email, time.Time{}, "1", "2", "3") }
	f.wantChange(f.remember("bob 1", bob.ID), nil)
	f.wantChange(f.remember("1", ann.ID), nil)
	f.wantChange(f.remember("2", ann.ID), nil)
	hit := func() (n int) {
		f.write(func(tx *store.Tx) {
			t, err := tx.HitThrottle(ctx, "devices:"+ann.ID, day)
			noError(f, err)
			n = t.Hits
		})
		return n
	}
	hit()

	f.write(func(tx *store.Tx) { noError(f, tx.RaiseGeneration(ctx, ann.ID, []byte("2"))) })
	equal(f, f.value(known(), nil), []string{"2"})
	equal(f, f.value(hit(), nil), 1)
	now, err := f.Read().Account(ctx, ann.ID)
	noError(f, err)
	equal(f, f.value(now.Generation, nil), ann.Generation+1)

	f.write(func(tx *store.Tx) { noError(f, tx.RaiseGeneration(ctx, ann.ID, []byte("bob 1"))) })
	equal(f, f.value(known(), nil), []string(nil))
	f.wantChange(f.remember("3", ann.ID), nil)
	f.write(func(tx *store.Tx) { noError(f, tx.RaiseGeneration(ctx, ann.ID, nil)) })
	equal(f, f.value(known(), nil), []string(nil))
	equal(f, f.value(f.Read().CountDevices(ctx, ann.ID, time.Time{})), 0)
	equal(f, f.value(f.known(bob.Email, time.Time{}, "bob 1"), nil), []string{"bob 1"})
}

// trustAfterARestore: no browser is known, later ones are remembered, and no
// generation is used twice.
func trustAfterARestore(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	ann, bob := f.member(acme, "ann@acme.example", doorward.RoleUser), f.member(acme, "bob@acme.example", doorward.RoleUser)
	f.wantChange(f.remember("ann 1", ann.ID), nil)
	f.wantChange(f.remember("bob 1", bob.ID), nil)
	f.write(func(tx *store.Tx) {
		_, err := tx.HitThrottle(ctx, "devices:"+ann.ID, time.Hour)
		noError(f, err)
	})
	before, err := f.Read().Account(ctx, ann.ID)
	noError(f, err)
	f.write(func(tx *store.Tx) { noError(f, tx.EndAllTrust(ctx)) })
	equal(f, f.value(f.known(ann.Email, time.Time{}, "ann 1"), nil), []string(nil))
	equal(f, f.value(f.known(bob.Email, time.Time{}, "bob 1"), nil), []string(nil))
	equal(f, f.value(f.Read().CountDevices(ctx, ann.ID, time.Time{})), 0)
	after, err := f.Read().Account(ctx, ann.ID)
	noError(f, err)
	if after.Generation < before.Generation+1000 {
		f.Errorf("the generation is %d and was %d: password changes since the backup have used the next ones", after.Generation, before.Generation)
	}
	f.write(func(tx *store.Tx) {
		is, err := tx.HitThrottle(ctx, "devices:"+ann.ID, time.Hour)
		equal(f, f.value(is.Hits, err), 1)
	})
	f.wantChange(f.remember("ann 2", ann.ID), nil)
	equal(f, f.value(f.known(ann.Email, time.Time{}, "ann 2"), nil), []string{"ann 2"})
}

// strippedAccounts keep only their address and id.
func strippedAccounts(f *fixture) {
	ctx := f.Context()
	ann := f.account("ann@acme.example")
	f.wantChange(f.remember("1", ann.ID), nil)
	equal(f, f.value(f.Read().OrphanedAccounts(ctx, f.clock.read(), 9)), []store.OrphanedAccount(nil))
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.LockAccount(ctx, ann.ID))
		f.wantNoChange(tx.LockAccount(ctx, "usr_none"))
		noError(f, tx.ClearCredentials(ctx, ann.ID))
	})
	now, err := f.Read().Account(ctx, ann.ID)
	want := ann
	want.PasswordHash, want.Generation = "", ann.Generation+1
	equal(f, f.value(now, err), want)
	equal(f, f.value(f.known(ann.Email, time.Time{}, "1"), nil), []string(nil))

	left := f.clock.read()
	equal(f, f.value(f.Read().OrphanedAccounts(ctx, left.Add(-1), 9)), []store.OrphanedAccount(nil))
	equal(f, f.value(f.Read().OrphanedAccounts(ctx, left, 9)), []store.OrphanedAccount{{Account: want, LeftAt: left}})
	f.write(func(tx *store.Tx) {
		_, err := tx.HitThrottle(ctx, "account:"+ann.Email, day)
		noError(f, err)
		noError(f, tx.DeleteCounters(ctx, ann))
		t, err := tx.HitThrottle(ctx, "account:"+ann.Email, day)
		noError(f, err)
		equal(f, f.value(t.Hits, nil), 1)
		noError(f, tx.UnmarkOrphaned(ctx, ann.ID))
	})
	equal(f, f.value(f.Read().OrphanedAccounts(ctx, left, 9)), []store.OrphanedAccount(nil))
}

func whoHasSignedIn(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	ann := f.member(acme, "ann@acme.example", doorward.RoleOwner)
	f.join(zeta, doorward.Account{ID: ann.ID, Email: ann.Email}, doorward.RoleUser)
	bob := f.member(acme, "bob@acme.example", doorward.RoleOwner)
	before := func(id string) (bool, error) { return f.Read().SignedInBefore(ctx, id) }

	f.wantNoChange(before(ann.ID))
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.RecordLogin(ctx, zeta.ID, ann.ID))
		f.wantChange(tx.InsertDevice(ctx, []byte("bob 1"), bob.ID, 20, time.Time{}))
	})
	f.wantChange(before(ann.ID))
	f.wantChange(before(bob.ID))
	f.wantNoChange(before("usr_none"))

	f.write(func(tx *store.Tx) { f.wantChange(tx.DeleteMembership(ctx, zeta.ID, ann.ID)) })
	f.wantNoChange(before(ann.ID)) // no row shows it any more
}

func events(f *fixture) {
	ctx := f.Context()
	e := doorward.Event{
		ID: "evt_1", At: noon, Action: doorward.UserRole, Outcome: doorward.Done,
		ActorType: doorward.ByUser, ActorID: "usr_1", ActorEmail: "ann@acme.example",
		Target: doorward.Object{Type: "user", ID: "usr_2", TenantID: "tnt_1"},
		IP:     "2001:db8::1", RequestID: "req_1",
		Changes: []doorward.Change{{Field: "role", From: "USER", To: `"ADMIN"`}, {Field: "名", From: "", To: "🚪"}},
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
