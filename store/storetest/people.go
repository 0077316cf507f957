package storetest

import (
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

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
		accountWith := func(id, hash string, generation int64) doorward.Account {
			return doorward.Account{ID: id, PasswordHash: hash, Generation: generation}
		}
		f.wantChange(tx.LockAccountIfSamePassword(ctx, ann))
		f.wantChange(tx.LockAccountIfSamePassword(ctx, accountWith(ann.ID, ann.PasswordHash, ann.Generation+1)))
		f.wantChange(tx.LockAccountIfSamePassword(ctx, accountWith(ann.ID, bob.PasswordHash, ann.Generation)))
		f.wantNoChange(tx.LockAccountIfSamePassword(ctx, accountWith(ann.ID, bob.PasswordHash, ann.Generation+1)))
		f.wantNoChange(tx.LockAccountIfSamePassword(ctx, accountWith(ann.ID, "", ann.Generation-1)))
		f.wantNoChange(tx.LockAccountIfSamePassword(ctx, accountWith("usr_none", ann.PasswordHash, ann.Generation)))
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
	equal(f, f.value(allMembers(ctx, f.Read(), acme.ID)), []doorward.User{annAcme, bobAcme})
	equal(f, f.value(allUsers(ctx, f.Read())), []doorward.User{annAcme, bobAcme, annZeta})
	equal(f, f.value(allMembers(ctx, f.Read(), "tnt_none")), []doorward.User(nil))
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
		f.wantChange(tx.SetSuspensions(ctx, acme.ID, ann.ID, []string{doorward.ByAdministrator, "con_1"}))
		f.wantNoChange(tx.SetSuspensions(ctx, acme.ID, ann.ID, []string{doorward.ByAdministrator, "con_1"}))
		equal(f, f.value(tx.User(ctx, acme.ID, ann.ID)).(doorward.User).SuspendedBy, []string{doorward.ByAdministrator, "con_1"})
		f.wantChange(tx.SetUserStatus(ctx, acme.ID, ann.ID, doorward.UserSuspended))
		equal(f, f.value(tx.CountActiveOwners(ctx, acme.ID)), 0)
		ownerless := f.value(tx.OwnerlessTenants(ctx, tx.Now, 9)).([]doorward.Tenant)
		equal(f, []string{ownerless[0].ID}, []string{acme.ID})
		equal(f, len(ownerless), 1)
		equal(f, f.value(tx.CountActiveMemberships(ctx, ann.ID)), 0)
		equal(f, f.value(tx.CountActiveOwners(ctx, zeta.ID)), 1)
	})
	f.clock.move(time.Minute)
	f.write(func(tx *store.Tx) { f.wantNoChange(tx.RecordLogin(ctx, acme.ID, ann.ID)) })

	ann.Status, ann.LastLoginAt = doorward.UserSuspended, pointerTo(later)
	bob.Role = doorward.RoleAdmin
	equal(f, f.value(allMembers(ctx, f.Read(), acme.ID)), []doorward.User{ann, bob})
	equal(f, f.value(allMembers(ctx, f.Read(), zeta.ID)), []doorward.User{cat})
}

// orphanedAccounts have lost password, factors and known browsers; address and id stay.
func orphanedAccounts(f *fixture) {
	ctx := f.Context()
	ann := f.account("ann@acme.example")
	equal(f, f.remember("1", ann.ID), true)
	equal(f, f.value(f.Read().OrphanedAccounts(ctx, f.clock.read(), 9)), []doorward.Account(nil))
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.LockAccount(ctx, ann.ID))
		f.wantNoChange(tx.LockAccount(ctx, "usr_none"))
		noError(f, tx.ClearCredentials(ctx, ann.ID))
	})
	current, err := f.Read().Account(ctx, ann.ID)
	want := ann
	want.PasswordHash, want.Generation = "", ann.Generation+1
	equal(f, f.value(current, err), want)
	equal(f, f.knownDevices(ann.Email, time.Time{}, "1"), []string(nil))

	leftAt := f.clock.read()
	equal(f, f.value(f.Read().OrphanedAccounts(ctx, leftAt.Add(-1), 9)), []doorward.Account(nil))
	equal(f, f.value(f.Read().OrphanedAccounts(ctx, leftAt, 9)), []doorward.Account{want})
	f.write(func(tx *store.Tx) {
		for _, bucket := range []string{"account:" + ann.Email, "challenges:" + ann.ID, "changes:" + ann.ID} {
			f.value(tx.HitThrottle(ctx, bucket, day))
		}
		noError(f, tx.DeleteCounters(ctx, ann))
		t, err := tx.HitThrottle(ctx, "account:"+ann.Email, day)
		noError(f, err)
		equal(f, t.Hits, 1)
		f.wantNone(tx.Throttle(ctx, "challenges:"+ann.ID))
		f.wantNone(tx.Throttle(ctx, "changes:"+ann.ID))
		noError(f, tx.UnmarkOrphaned(ctx, ann.ID))
	})
	equal(f, f.value(f.Read().OrphanedAccounts(ctx, leftAt, 9)), []doorward.Account(nil))
}

func whoHasSignedIn(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	ann := f.member(acme, "ann@acme.example", doorward.RoleOwner)
	f.join(zeta, doorward.Account{ID: ann.ID, Email: ann.Email}, doorward.RoleUser)
	bob := f.member(acme, "bob@acme.example", doorward.RoleOwner)
	signedIn := func(id string) any { return f.value(f.Read().SignedInBefore(ctx, id)) }

	equal(f, signedIn(ann.ID), false)
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.RecordLogin(ctx, zeta.ID, ann.ID))
		f.wantChange(tx.InsertDevice(ctx, []byte("bob 1"), bob.ID, 20, time.Time{}))
	})
	equal(f, []any{signedIn(ann.ID), signedIn(bob.ID), signedIn("usr_none")}, []any{true, true, false})

	f.write(func(tx *store.Tx) { f.wantChange(tx.DeleteMembership(ctx, zeta.ID, ann.ID)) })
	equal(f, signedIn(ann.ID), false) // no row shows it any more
}

// strictestProofAge: the smallest of the active tenants in which the user is an active member counts.
func strictestProofAge(f *fixture) {
	ctx := f.Context()
	tenant := func(name string, age time.Duration) doorward.Tenant {
		t := f.tenant(name)
		t.Settings.StepUp = age
		f.write(func(tx *store.Tx) { noError(f, tx.EditTenant(ctx, t)) })
		return t
	}
	acme, zeta, frozen := tenant("Acme", 20*time.Minute), tenant("Zeta", 5*time.Minute), tenant("Frost", time.Minute)
	ann := f.member(acme, "ann@acme.example", doorward.RoleUser)
	age := func(id string) any { return f.value(f.Read().StrictestProofAge(ctx, id)) }
	equal(f, []any{age(ann.ID), age("usr_none")}, []any{20 * time.Minute, doorward.DefaultStepUp})
	for _, t := range []doorward.Tenant{zeta, frozen} {
		f.join(t, doorward.Account{ID: ann.ID, Email: ann.Email}, doorward.RoleUser)
	}
	f.write(func(tx *store.Tx) { f.wantChange(tx.FreezeTenant(ctx, frozen.ID)) })
	equal(f, age(ann.ID), 5*time.Minute)
	f.write(func(tx *store.Tx) { f.wantChange(tx.SetUserStatus(ctx, zeta.ID, ann.ID, doorward.UserSuspended)) })
	equal(f, age(ann.ID), 20*time.Minute)
}
