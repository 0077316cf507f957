package storetest

import (
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
		yes(w)(tx.SetTenantStatus(ctx, acme.ID, doorward.TenantFrozen))
		no(w)(tx.SetTenantStatus(ctx, acme.ID, doorward.TenantFrozen))
		no(w)(tx.SetTenantStatus(ctx, "tnt_none", doorward.TenantFrozen))
		ok(w, tx.LockTenant(ctx, acme.ID))
		ok(w, tx.LockTenant(ctx, "tnt_none"))
	})
	acme.Status = doorward.TenantFrozen
	same(w, []doorward.Tenant{acme, zeta})(w.Read().Tenants(ctx))
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
}

func devices(w *world) {
	ctx := w.Context()
	ann, bob := w.account("ann@acme.example"), w.account("bob@acme.example")
	w.write(func(tx *store.Tx) {
		ok(w, tx.InsertDevice(ctx, []byte("ann 1"), ann.ID))
		ok(w, tx.InsertDevice(ctx, []byte("bob 1"), bob.ID))
	})
	w.clock.move(time.Minute)
	w.write(func(tx *store.Tx) { ok(w, tx.InsertDevice(ctx, []byte("ann 2"), ann.ID)) })
	w.clock.move(time.Minute)
	w.write(func(tx *store.Tx) { ok(w, tx.InsertDevice(ctx, []byte("ann 3"), ann.ID)) })
	known := func(hash, email string, since time.Time) (bool, error) {
		return w.Read().DeviceKnown(ctx, []byte(hash), email, since)
	}

	yes(w)(known("ann 1", ann.Email, noon.Add(-time.Microsecond)))
	no(w)(known("ann 1", ann.Email, noon))
	no(w)(known("ann 1", bob.Email, time.Time{}))
	no(w)(known("ann", ann.Email, time.Time{}))

	w.write(func(tx *store.Tx) { ok(w, tx.DeleteOldestDevices(ctx, ann.ID, 2)) })
	no(w)(known("ann 1", ann.Email, time.Time{}))
	yes(w)(known("ann 2", ann.Email, time.Time{}))
	yes(w)(known("ann 3", ann.Email, time.Time{}))
	yes(w)(known("bob 1", bob.Email, time.Time{}))

	w.write(func(tx *store.Tx) { ok(w, tx.DeleteOldDevices(ctx, noon.Add(time.Minute))) })
	no(w)(known("bob 1", bob.Email, time.Time{}))
	no(w)(known("ann 2", ann.Email, time.Time{}))
	yes(w)(known("ann 3", ann.Email, time.Time{}))
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
		ok(w, tx.InsertDevice(ctx, []byte("bob 1"), bob.ID))
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

	same(w, []doorward.Event{e, e2})(w.Read().Events(ctx, "tnt_1"))
	same(w, []doorward.Event{bare})(w.Read().Events(ctx, ""))
	same(w, []doorward.Event(nil))(w.Read().Events(ctx, "tnt_2"))
	same(w, e)(w.Read().Event(ctx, e.ID))
	same(w, bare)(w.Read().Event(ctx, bare.ID))
	none(w)(w.Read().Event(ctx, "evt_none"))
	none(w)(w.Read().Event(ctx, ""))
}
