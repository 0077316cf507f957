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

func tenants(w *world) {
	ctx := w.Context()
	acme := w.tenant("Acme")
	w.clock.move(time.Second)
	zeta := w.tenant("Zeta")

	same(w, acme)(w.Read().Tenant(ctx, acme.ID))
	same(w, []doorward.Tenant{acme, zeta})(w.Read().Tenants(ctx))
	none(w)(w.Read().Tenant(ctx, "tnt_none"))
	w.write(func(tx *store.Tx) {
		yes(w)(tx.FreezeTenant(ctx, acme.ID))
		no(w)(tx.FreezeTenant(ctx, acme.ID))
		no(w)(tx.FreezeTenant(ctx, "tnt_none"))
		ok(w, tx.LockTenant(ctx, acme.ID))
		ok(w, tx.LockTenant(ctx, "tnt_none"))
	})
	acme.Status = doorward.TenantFrozen
	same(w, []doorward.Tenant{acme, zeta})(w.Read().Tenants(ctx))
}

func settingsOfTenants(w *world) {
	ctx := w.Context()
	acme, zeta := w.tenant("Acme"), w.tenant("Zeta")
	edited := acme
	edited.Name = "Acme Ltd"
	edited.Settings = doorward.TenantSettings{
		SessionIdle: 90 * time.Second, SessionAbsolute: time.Hour, InvitationDays: 3, AllowedDomains: []string{"acme.example", "xn--bcher-kva.example"},
	}
	w.write(func(tx *store.Tx) { ok(w, tx.EditTenant(ctx, edited)) })
	same(w, edited)(w.Read().Tenant(ctx, acme.ID))
	same(w, zeta)(w.Read().Tenant(ctx, zeta.ID))
	w.write(func(tx *store.Tx) { ok(w, tx.EditTenant(ctx, acme)) })
	same(w, acme)(w.Read().Tenant(ctx, acme.ID))
}

// statusesOfTenants: freezing and closing are independent of each other, in every
// order.
func statusesOfTenants(w *world) {
	ctx := w.Context()
	acme := w.tenant("Acme")
	closed := w.clock.move(time.Second)
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
		w.write(func(tx *store.Tx) {
			hit, err := s.do(tx)
			ok(w, err)
			if hit != s.hits {
				w.Errorf("%s: something to do: %v, want %v", s.name, hit, s.hits)
			}
		})
		want := acme
		want.Status = s.status
		if s.closed {
			want.ClosedAt, want.DestroyAt = at(closed), at(end)
		}
		same(w, want)(w.Read().Tenant(ctx, acme.ID))
	}
	w.write(func(tx *store.Tx) {
		yes(w)(tx.CloseTenant(ctx, acme.ID, end))
		yes(w)(tx.FreezeTenant(ctx, acme.ID))
		yes(w)(tx.ThawTenant(ctx, acme.ID, end.Add(time.Hour))) // the thaw may put the end off
	})
	late, err := w.Read().Tenant(ctx, acme.ID)
	same(w, at(end.Add(time.Hour)))(late.DestroyAt, err)
	w.clock.move(2 * time.Hour)
	w.write(func(tx *store.Tx) { no(w)(tx.RestoreTenant(ctx, acme.ID)) }) // the hold is over
}

// pages follows a list page by page, so many rows at a time, and returns all
// that it shows.
func pages[T any](w *world, limit int, ask func(doorward.Window) (doorward.Page[T], error)) (all []T) {
	w.Helper()
	for at := (doorward.Position{}); ; {
		page, err := ask(doorward.Window{After: at, Limit: limit})
		ok(w, err)
		if len(page.Items) > limit || page.Next != nil && len(page.Items) < limit {
			w.Fatalf("a page of %d has %d rows", limit, len(page.Items))
		}
		all = append(all, page.Items...)
		if page.Next == nil {
			return all
		}
		at = *page.Next
	}
}

// pagesBack asks for page after page to the end, and from there back to the
// beginning, and returns what it saw on the way back, the first rows first.
func pagesBack[T any](w *world, limit int, ask func(doorward.Window) (doorward.Page[T], error)) (all []T) {
	w.Helper()
	page, err := ask(doorward.Window{Limit: limit})
	for ok(w, err); page.Next != nil; ok(w, err) {
		page, err = ask(doorward.Window{After: *page.Next, Limit: limit})
	}
	for all = page.Items; page.Prev != nil; all = append(slices.Clone(page.Items), all...) {
		page, err = ask(doorward.Window{Before: *page.Prev, Limit: limit})
		ok(w, err)
		if len(page.Items) > limit || page.Next == nil {
			w.Fatalf("a page of %d on the way back has %d rows and goes on at %v", limit, len(page.Items), page.Next)
		}
	}
	return all
}

func pagesOfLists(w *world) {
	ctx := w.Context()
	acme, zeta := w.tenant("Acme"), w.tenant("Zeta") // of one instant
	var people []doorward.User
	var offers []doorward.Invitation
	for i := range 5 {
		if i == 3 {
			w.clock.move(time.Second)
		}
		people = append(people, w.member(acme, fmt.Sprintf("p%d@acme.example", i), doorward.RoleUser))
		offers = append(offers, w.invitation(acme, fmt.Sprintf("i%d@acme.example", i)))
	}
	w.member(zeta, "zoe@zeta.example", doorward.RoleUser)
	w.invitation(zeta, "zoe@zeta.example")
	slices.SortStableFunc(offers, func(a, b doorward.Invitation) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), strings.Compare(b.ID, a.ID))
	})
	for limit := 1; limit <= 6; limit++ {
		same(w, []doorward.Tenant{acme, zeta})(pages(w, limit, func(p doorward.Window) (doorward.Page[doorward.Tenant], error) {
			return w.Read().TenantPage(ctx, p)
		}), nil)
		users := func(p doorward.Window) (doorward.Page[doorward.User], error) {
			return w.Read().UserPage(ctx, acme.ID, store.UserFilter{Role: doorward.RoleUser}, p)
		}
		same(w, people)(pages(w, limit, users), nil)
		same(w, people)(pagesBack(w, limit, users), nil)
		invitations := func(p doorward.Window) (doorward.Page[doorward.Invitation], error) {
			return w.Read().InvitationPage(ctx, acme.ID, store.InvitationFilter{State: doorward.InvitationPending}, w.clock.read(), p)
		}
		same(w, offers)(pages(w, limit, invitations), nil)
		same(w, offers)(pagesBack(w, limit, invitations), nil)
	}
	same(w, doorward.Page[doorward.User]{})(w.Read().UserPage(ctx, "tnt_none", store.UserFilter{}, doorward.Window{Limit: 9}))
}

func filtersOfLists(w *world) {
	ctx := w.Context()
	acme := w.tenant("Acme")
	ann := w.join(acme, w.account("ann@acme.example"), doorward.RoleOwner)
	bob := w.join(acme, w.account("bob_100%@acme.example"), doorward.RoleUser)
	w.write(func(tx *store.Tx) {
		ok(w, tx.RenameUser(ctx, ann, "ÄNNE O\u0308sterreich")) // the second in two code points
		ok(w, tx.RenameUser(ctx, bob, ""))
		yes(w)(tx.SetUserStatus(ctx, acme.ID, bob.ID, doorward.UserSuspended))
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
		same(w, doorward.Page[doorward.User]{Items: c.want})(w.Read().UserPage(ctx, acme.ID, c.f, doorward.Window{Limit: 9}))
	}
}

func accounts(w *world) {
	ctx := w.Context()
	ann, bob := w.account("ann@acme.example"), w.account("bob@acme.example")

	same(w, ann)(w.Read().Account(ctx, ann.ID))
	same(w, bob)(w.Read().AccountByEmail(ctx, bob.Email))
	none(w)(w.Read().Account(ctx, "usr_none"))
	none(w)(w.Read().AccountByEmail(ctx, "none@acme.example"))
	none(w)(w.Read().AccountByEmail(ctx, ""))

	again := doorward.Account{ID: "usr_again", Email: ann.Email, PasswordHash: "stolen", CreatedAt: noon}
	w.write(func(tx *store.Tx) {
		no(w)(tx.InsertAccount(ctx, again))
		yes(w)(tx.LockAccount(ctx, ann.ID, ann.PasswordHash))
		no(w)(tx.LockAccount(ctx, ann.ID, bob.PasswordHash))
		no(w)(tx.LockAccount(ctx, ann.ID, ""))
		no(w)(tx.LockAccount(ctx, "usr_none", ann.PasswordHash))
		no(w)(tx.SetPassword(ctx, ann.ID, bob.PasswordHash, "new"))
		no(w)(tx.SetPassword(ctx, "usr_none", ann.PasswordHash, "new"))
		yes(w)(tx.SetPassword(ctx, ann.ID, ann.PasswordHash, "new"))
		no(w)(tx.SetPassword(ctx, ann.ID, ann.PasswordHash, "newer"))
	})
	ann.PasswordHash = "new"
	same(w, ann)(w.Read().AccountByEmail(ctx, ann.Email))
	same(w, bob)(w.Read().Account(ctx, bob.ID))
}

func memberships(w *world) {
	ctx := w.Context()
	acme, zeta := w.tenant("Acme"), w.tenant("Zeta")
	ann := w.account("ann@acme.example")
	annAcme := w.join(acme, ann, doorward.RoleOwner)
	w.clock.move(time.Second)
	bobAcme := w.member(acme, "bob@acme.example", doorward.RoleViewer)
	annZeta := w.join(zeta, ann, doorward.RoleUser)

	same(w, annZeta)(w.Read().User(ctx, zeta.ID, ann.ID))
	same(w, annAcme)(w.Read().UserByEmail(ctx, acme.ID, ann.Email))
	none(w)(w.Read().User(ctx, zeta.ID, bobAcme.ID))
	none(w)(w.Read().User(ctx, ann.ID, zeta.ID)) // the two exchanged
	none(w)(w.Read().UserByEmail(ctx, zeta.ID, bobAcme.Email))

	same(w, []doorward.User{annAcme, annZeta})(w.Read().Memberships(ctx, ann.ID))
	same(w, []doorward.User{annAcme, bobAcme})(w.Read().Users(ctx, acme.ID))
	same(w, []doorward.User{annAcme, bobAcme, annZeta})(w.Read().AllUsers(ctx))
	same(w, []doorward.User(nil))(w.Read().Users(ctx, "tnt_none"))
	same(w, 2)(w.Read().CountActiveMemberships(ctx, ann.ID))

	w.write(func(tx *store.Tx) {
		again := annAcme
		again.Role, again.Name = doorward.RoleViewer, "again"
		no(w)(tx.InsertMembership(ctx, again))
		no(w)(tx.DeleteMembership(ctx, zeta.ID, bobAcme.ID))
		yes(w)(tx.DeleteMembership(ctx, acme.ID, ann.ID))
		no(w)(tx.DeleteMembership(ctx, acme.ID, ann.ID))
	})
	same(w, []doorward.User{annZeta})(w.Read().Memberships(ctx, ann.ID))
	same(w, ann)(w.Read().Account(ctx, ann.ID))
}

func changesOfMembers(w *world) {
	ctx := w.Context()
	acme, zeta := w.tenant("Acme"), w.tenant("Zeta")
	ann, bob := w.member(acme, "ann@acme.example", doorward.RoleOwner), w.member(acme, "bob@acme.example", doorward.RoleOwner)
	cat := w.member(zeta, "cat@zeta.example", doorward.RoleOwner)
	later := w.clock.move(time.Minute)

	w.write(func(tx *store.Tx) {
		same(w, 2)(tx.CountActiveOwners(ctx, acme.ID))
		yes(w)(tx.SetUserRole(ctx, acme.ID, bob.ID, doorward.RoleAdmin))
		no(w)(tx.SetUserRole(ctx, acme.ID, bob.ID, doorward.RoleAdmin))
		no(w)(tx.SetUserRole(ctx, acme.ID, cat.ID, doorward.RoleAdmin))
		same(w, 1)(tx.CountActiveOwners(ctx, acme.ID))

		yes(w)(tx.RecordLogin(ctx, acme.ID, ann.ID))
		no(w)(tx.RecordLogin(ctx, zeta.ID, ann.ID))
		yes(w)(tx.SetUserStatus(ctx, acme.ID, ann.ID, doorward.UserSuspended))
		no(w)(tx.SetUserStatus(ctx, acme.ID, ann.ID, doorward.UserSuspended))
		no(w)(tx.SetUserStatus(ctx, zeta.ID, ann.ID, doorward.UserSuspended))
		same(w, 0)(tx.CountActiveOwners(ctx, acme.ID))
		same(w, 0)(tx.CountActiveMemberships(ctx, ann.ID))
		same(w, 1)(tx.CountActiveOwners(ctx, zeta.ID))
	})
	w.clock.move(time.Minute)
	w.write(func(tx *store.Tx) { no(w)(tx.RecordLogin(ctx, acme.ID, ann.ID)) })

	ann.Status, ann.LastLoginAt = doorward.UserSuspended, at(later)
	bob.Role = doorward.RoleAdmin
	same(w, []doorward.User{ann, bob})(w.Read().Users(ctx, acme.ID))
	same(w, []doorward.User{cat})(w.Read().Users(ctx, zeta.ID))
}

func operatorKeys(w *world) {
	ctx := w.Context()
	k := store.OperatorKey{ID: "key_1", Name: "deployment", CreatedAt: noon}
	w.write(func(tx *store.Tx) { ok(w, tx.InsertOperatorKey(ctx, k, []byte{0, 1, 255})) })

	same(w, k)(w.Read().OperatorKey(ctx, []byte{0, 1, 255}))
	none(w)(w.Read().OperatorKey(ctx, []byte{0, 1}))
	none(w)(w.Read().OperatorKey(ctx, nil))

	later := store.OperatorKey{ID: "key_0", Name: "signup", CreatedAt: noon.Add(time.Second)}
	w.write(func(tx *store.Tx) { ok(w, tx.InsertOperatorKey(ctx, later, []byte{1})) })
	same(w, []store.OperatorKey{k, later})(w.Read().OperatorKeys(ctx))
	w.write(func(tx *store.Tx) {
		yes(w)(tx.DeleteOperatorKey(ctx, k.ID))
		no(w)(tx.DeleteOperatorKey(ctx, k.ID))
	})
	same(w, []store.OperatorKey{later})(w.Read().OperatorKeys(ctx))
	none(w)(w.Read().OperatorKey(ctx, []byte{0, 1, 255}))
}

func sharedSecrets(w *world) {
	ctx := w.Context()
	none(w)(w.Read().SharedSecret(ctx, "cursors"))
	got := make([][]byte, 8)
	errs := together(len(got), func(i int) error {
		return w.try(ctx, func(tx *store.Tx) (err error) {
			got[i], err = tx.MakeSharedSecret(ctx, "cursors", []byte{0, byte(i)})
			return err
		})
	})
	ok(w, errors.Join(errs...))
	for _, secret := range got {
		same(w, got[0])(secret, nil)
	}
	same(w, got[0])(w.Read().SharedSecret(ctx, "cursors"))
	none(w)(w.Read().SharedSecret(ctx, "Cursors"))
}

// known are those of the hashes that are devices of the address.
func (w *world) known(email string, since time.Time, hashes ...string) (known []string) {
	w.Helper()
	var all [][]byte
	for _, h := range hashes {
		all = append(all, []byte(h))
	}
	found, err := w.Read().KnownDevices(w.Context(), email, all, since)
	ok(w, err)
	for _, d := range found {
		known = append(known, string(d.Hash))
	}
	return known
}

// remember adds a device, a minute after the one before, and reports whether it
// found room among two.
func (w *world) remember(hash, userID string) (remembered bool) {
	w.Helper()
	w.clock.move(time.Minute)
	w.write(func(tx *store.Tx) {
		var err error
		remembered, err = tx.InsertDevice(w.Context(), []byte(hash), userID, 2, time.Time{})
		ok(w, err)
	})
	return remembered
}

func devices(w *world) {
	ctx := w.Context()
	ann, bob := w.account("ann@acme.example"), w.account("bob@acme.example")
	yes(w)(w.remember("bob 1", bob.ID), nil)
	first := w.clock.read()
	yes(w)(w.remember("ann 1", ann.ID), nil)
	since := w.clock.read()

	same(w, []string{"ann 1"})(w.known(ann.Email, since.Add(-time.Microsecond), "ann 1"), nil)
	same(w, []string(nil))(w.known(ann.Email, since, "ann 1"), nil)
	same(w, []string(nil))(w.known(bob.Email, time.Time{}, "ann 1"), nil)
	same(w, []string(nil))(w.known(ann.Email, time.Time{}, "ann"), nil)
	same(w, []string(nil))(w.known(ann.Email, time.Time{}), nil)
	same(w, []string{"ann 1"})(w.known(ann.Email, time.Time{}, "a", "b", "c", "ann 1", "d"), nil)
	same(w, []string(nil))(w.known(ann.Email, time.Time{}, "a", "b", "c", "d", "ann 1"), nil) // four are looked at
	found, err := w.Read().KnownDevices(ctx, ann.Email, [][]byte{[]byte("bob 1"), []byte("ann 1"), []byte("ann 1")}, time.Time{})
	same(w, []store.KnownDevice{{Hash: []byte("ann 1"), UserID: ann.ID}})(found, err)
	same(w, 1)(w.Read().CountDevices(ctx, ann.ID, since.Add(-1)))
	same(w, 0)(w.Read().CountDevices(ctx, ann.ID, since))

	w.write(func(tx *store.Tx) { ok(w, tx.DeleteOldDevices(ctx, first)) })
	same(w, []string(nil))(w.known(bob.Email, time.Time{}, "bob 1"), nil)
	same(w, []string{"ann 1"})(w.known(ann.Email, time.Time{}, "ann 1"), nil)
}

// roomForDevices: a new one takes the place of the oldest that was never used
// again; what was used stays.
func roomForDevices(w *world) {
	ctx := w.Context()
	ann, bob := w.account("ann@acme.example"), w.account("bob@acme.example")
	yes(w)(w.remember("bob 1", bob.ID), nil)
	known := func() []string { return w.known(ann.Email, time.Time{}, "1", "2", "3", "4") }
	use := func(hash string) {
		w.write(func(tx *store.Tx) { ok(w, tx.UseDevice(ctx, []byte(hash))) })
	}
	for _, hash := range []string{"1", "2", "3"} {
		yes(w)(w.remember(hash, ann.ID), nil)
	}
	same(w, []string{"2", "3"})(known(), nil)
	use("2")
	yes(w)(w.remember("4", ann.ID), nil)
	same(w, []string{"2", "4"})(known(), nil)
	use("4")
	use("4")
	no(w)(w.remember("1", ann.ID), nil)
	same(w, []string{"2", "4"})(known(), nil)
	same(w, []string{"bob 1"})(w.known(bob.Email, time.Time{}, "bob 1"), nil)
	no(w)(w.remember("1", "usr_none"), nil)
	w.write(func(tx *store.Tx) { // those that are over take no place
		yes(w)(tx.InsertDevice(ctx, []byte("1"), ann.ID, 2, w.clock.read()))
	})
	same(w, []string{"1"})(known(), nil)
}

// generations: what was made under an earlier one is worth nothing and takes no
// place, also when a node that knows nothing of generations has made it.
func generations(w *world) {
	ctx := w.Context()
	ann, bob := w.account("ann@acme.example"), w.account("bob@acme.example")
	known := func() []string { return w.known(ann.Email, time.Time{}, "1", "2", "3") }
	yes(w)(w.remember("bob 1", bob.ID), nil)
	yes(w)(w.remember("1", ann.ID), nil)
	yes(w)(w.remember("2", ann.ID), nil)
	hit := func() (n int) {
		w.write(func(tx *store.Tx) {
			t, err := tx.HitThrottle(ctx, "devices:"+ann.ID, day)
			ok(w, err)
			n = t.Hits
		})
		return n
	}
	hit()

	w.write(func(tx *store.Tx) { ok(w, tx.RaiseGeneration(ctx, ann.ID, []byte("2"))) })
	same(w, []string{"2"})(known(), nil)
	same(w, 1)(hit(), nil)
	now, err := w.Read().Account(ctx, ann.ID)
	ok(w, err)
	same(w, ann.Generation+1)(now.Generation, nil)

	w.write(func(tx *store.Tx) { ok(w, tx.RaiseGeneration(ctx, ann.ID, []byte("bob 1"))) })
	same(w, []string(nil))(known(), nil)
	yes(w)(w.remember("3", ann.ID), nil)
	w.write(func(tx *store.Tx) { ok(w, tx.RaiseGeneration(ctx, ann.ID, nil)) })
	same(w, []string(nil))(known(), nil)
	same(w, 0)(w.Read().CountDevices(ctx, ann.ID, time.Time{}))
	same(w, []string{"bob 1"})(w.known(bob.Email, time.Time{}, "bob 1"), nil)
}

// trustAfterARestore: nobody's browser is known, what is remembered afterwards is, and
// no generation that somebody has had is had again.
func trustAfterARestore(w *world) {
	ctx := w.Context()
	acme := w.tenant("Acme")
	ann, bob := w.member(acme, "ann@acme.example", doorward.RoleUser), w.member(acme, "bob@acme.example", doorward.RoleUser)
	yes(w)(w.remember("ann 1", ann.ID), nil)
	yes(w)(w.remember("bob 1", bob.ID), nil)
	w.write(func(tx *store.Tx) {
		_, err := tx.HitThrottle(ctx, "devices:"+ann.ID, time.Hour)
		ok(w, err)
	})
	before, err := w.Read().Account(ctx, ann.ID)
	ok(w, err)
	w.write(func(tx *store.Tx) { ok(w, tx.EndAllTrust(ctx)) })
	same(w, []string(nil))(w.known(ann.Email, time.Time{}, "ann 1"), nil)
	same(w, []string(nil))(w.known(bob.Email, time.Time{}, "bob 1"), nil)
	same(w, 0)(w.Read().CountDevices(ctx, ann.ID, time.Time{}))
	after, err := w.Read().Account(ctx, ann.ID)
	ok(w, err)
	if after.Generation < before.Generation+1000 {
		w.Errorf("the generation is %d and was %d: passwords that were changed since the backup have used the next ones", after.Generation, before.Generation)
	}
	w.write(func(tx *store.Tx) {
		is, err := tx.HitThrottle(ctx, "devices:"+ann.ID, time.Hour)
		same(w, 1)(is.Hits, err)
	})
	yes(w)(w.remember("ann 2", ann.ID), nil)
	same(w, []string{"ann 2"})(w.known(ann.Email, time.Time{}, "ann 2"), nil)
}

// strippedAccounts keep their address and id only.
func strippedAccounts(w *world) {
	ctx := w.Context()
	ann := w.account("ann@acme.example")
	yes(w)(w.remember("1", ann.ID), nil)
	same(w, []store.LeftAccount(nil))(w.Read().LeftAccounts(ctx, w.clock.read(), 9))
	w.write(func(tx *store.Tx) {
		yes(w)(tx.HoldAccount(ctx, ann.ID))
		no(w)(tx.HoldAccount(ctx, "usr_none"))
		ok(w, tx.StripAccount(ctx, ann.ID))
	})
	now, err := w.Read().Account(ctx, ann.ID)
	want := ann
	want.PasswordHash, want.Generation = "", ann.Generation+1
	same(w, want)(now, err)
	same(w, []string(nil))(w.known(ann.Email, time.Time{}, "1"), nil)

	left := w.clock.read()
	same(w, []store.LeftAccount(nil))(w.Read().LeftAccounts(ctx, left.Add(-1), 9))
	same(w, []store.LeftAccount{{Account: want, LeftAt: left}})(w.Read().LeftAccounts(ctx, left, 9))
	w.write(func(tx *store.Tx) {
		_, err := tx.HitThrottle(ctx, "account:"+ann.Email, day)
		ok(w, err)
		ok(w, tx.DeleteCounters(ctx, ann))
		t, err := tx.HitThrottle(ctx, "account:"+ann.Email, day)
		ok(w, err)
		same(w, 1)(t.Hits, nil)
		ok(w, tx.ForgetLeft(ctx, ann.ID))
	})
	same(w, []store.LeftAccount(nil))(w.Read().LeftAccounts(ctx, left, 9))
}

func whoHasSignedIn(w *world) {
	ctx := w.Context()
	acme, zeta := w.tenant("Acme"), w.tenant("Zeta")
	ann := w.member(acme, "ann@acme.example", doorward.RoleOwner)
	w.join(zeta, doorward.Account{ID: ann.ID, Email: ann.Email}, doorward.RoleUser)
	bob := w.member(acme, "bob@acme.example", doorward.RoleOwner)
	before := func(id string) (bool, error) { return w.Read().SignedInBefore(ctx, id) }

	no(w)(before(ann.ID))
	w.write(func(tx *store.Tx) {
		yes(w)(tx.RecordLogin(ctx, zeta.ID, ann.ID))
		yes(w)(tx.InsertDevice(ctx, []byte("bob 1"), bob.ID, 20, time.Time{}))
	})
	yes(w)(before(ann.ID))
	yes(w)(before(bob.ID))
	no(w)(before("usr_none"))

	w.write(func(tx *store.Tx) { yes(w)(tx.DeleteMembership(ctx, zeta.ID, ann.ID)) })
	no(w)(before(ann.ID)) // nothing is left that tells
}

func events(w *world) {
	ctx := w.Context()
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
	w.write(func(tx *store.Tx) { ok(w, tx.InsertEvent(ctx, e)) })
	bare.At = w.clock.move(time.Second)
	w.write(func(tx *store.Tx) { ok(w, tx.InsertEvent(ctx, bare)) })
	e2 := e
	e2.ID, e2.At = "evt_0", w.clock.move(time.Second)
	w.write(func(tx *store.Tx) { ok(w, tx.InsertEvent(ctx, e2)) })

	same(w, []doorward.Event{e, e2})(Events(ctx, w.Read(), "tnt_1"))
	same(w, []doorward.Event{bare})(Events(ctx, w.Read(), ""))
	same(w, []doorward.Event(nil))(Events(ctx, w.Read(), "tnt_2"))
	same(w, e)(w.Read().Event(ctx, e.ID))
	same(w, bare)(w.Read().Event(ctx, bare.ID))
	none(w)(w.Read().Event(ctx, "evt_none"))
	none(w)(w.Read().Event(ctx, ""))
}
