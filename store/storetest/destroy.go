package storetest

import (
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// closings: a tenant is closed from an instant on, and from the moment it is
// destroyed as if it had always been.
func closings(w *world) {
	ctx := w.Context()
	acme, zeta := w.tenant("Acme"), w.tenant("Zeta")
	due := func(by time.Time) (ids []string) {
		w.Helper()
		all, err := w.Read().TenantsDue(ctx, by)
		ok(w, err)
		for _, t := range all {
			ids = append(ids, t.ID)
		}
		return ids
	}
	closed := w.clock.move(time.Hour)
	end := closed.Add(time.Minute)
	destroyed := func(id string) (was bool) {
		w.Helper()
		w.write(func(tx *store.Tx) {
			var err error
			was, err = tx.MarkDestroyed(ctx, id)
			ok(w, err)
		})
		return was
	}
	w.write(func(tx *store.Tx) {
		yes(w)(tx.CloseTenant(ctx, acme.ID, end))
		no(w)(tx.CloseTenant(ctx, acme.ID, noon)) // the end is fixed
	})
	same(w, []string(nil))(due(end.Add(-1)), nil)
	same(w, []string{acme.ID})(due(end), nil)
	if destroyed(acme.ID) || destroyed(zeta.ID) {
		w.Error("destroyed before its time")
	}
	w.clock.move(time.Minute)
	w.write(func(tx *store.Tx) { yes(w)(tx.FreezeTenant(ctx, acme.ID)) })
	if destroyed(acme.ID) || len(due(end)) > 0 {
		w.Error("destroyed while it is frozen")
	}
	all, err := w.Read().TenantsClosed(ctx, 10)
	if err != nil || len(all) != 1 || all[0].ID != acme.ID {
		w.Errorf("the closed tenants are %v, %v", all, err)
	}
	w.write(func(tx *store.Tx) { yes(w)(tx.ThawTenant(ctx, acme.ID, end)) })
	for range 2 { // once more, by the node that goes on
		if !destroyed(acme.ID) {
			w.Error("not destroyed in time")
		}
	}
	w.write(func(tx *store.Tx) {
		no(w)(tx.RestoreTenant(ctx, acme.ID))
		yes(w)(tx.FreezeTenant(ctx, acme.ID))
	})
	same(w, []string{acme.ID})(due(noon), nil) // what has begun goes on
}

// promises: a closing that the version before has made gets its end, once, and one
// that it has taken back loses it.
func promises(w *world) {
	ctx := w.Context()
	acme, zeta := w.tenant("Acme"), w.tenant("Zeta")
	closed := w.clock.move(time.Hour)
	w.write(func(tx *store.Tx) {
		yes(w)(tx.CloseTenant(ctx, acme.ID, noon))
		ok(w, tx.PromiseHold(ctx, time.Hour)) // has one
	})
	is, err := w.Read().Tenant(ctx, acme.ID)
	same(w, at(noon))(is.DestroyAt, err)
	same(w, at(closed))(is.ClosedAt, err)
	open, err := w.Read().Tenant(ctx, zeta.ID)
	same(w, (*time.Time)(nil))(open.DestroyAt, err)
}

// endsOfTenantsAndPeople: what goes with a row, and what stays.
func endsOfTenantsAndPeople(w *world) {
	ctx := w.Context()
	acme, zeta := w.tenant("Acme"), w.tenant("Zeta")
	ann, bob := w.member(acme, "ann@acme.example", doorward.RoleOwner), w.member(zeta, "bob@zeta.example", doorward.RoleOwner)
	session, other := w.session(ann), w.session(bob)
	here, there := w.invitation(acme, "cat@acme.example"), w.draft(zeta, "dan@acme.example")
	there.InvitedBy = ann.ID
	w.write(func(tx *store.Tx) {
		yes(w)(tx.InsertInvitation(ctx, there))
		ok(w, tx.InsertReset(ctx, store.Reset{ID: w.id("rst_"), UserID: ann.ID, CreatedAt: noon, ExpiresAt: noon.Add(time.Hour)}))
		yes(w)(tx.InsertDevice(ctx, []byte("a device"), ann.ID, 20, time.Time{}))
		ok(w, tx.InsertLinkToken(ctx, []byte("a link"), here.ID))
		ok(w, tx.QueueMail(ctx, store.MailReset, ann.Email, ""))
		ok(w, tx.QueueMail(ctx, store.MailInvitation, here.Email, here.ID))
	})
	same(w, 1)(w.Read().CountMemberships(ctx, ann.ID))

	w.write(func(tx *store.Tx) {
		ok(w, tx.DeleteInvitations(ctx, acme.ID))
		yes(w)(tx.DeleteMembership(ctx, acme.ID, ann.ID))
		account, err := tx.Account(ctx, ann.ID)
		ok(w, err)
		ok(w, tx.DeleteAccount(ctx, account))
		yes(w)(tx.DeleteTenant(ctx, acme.ID))
		no(w)(tx.DeleteTenant(ctx, acme.ID))
	})
	same(w, []string{other.ID})(w.live(session, other), nil)
	same(w, []store.Mail(nil))(w.due(), nil)
	same(w, []doorward.Tenant{zeta})(w.Read().Tenants(ctx))
	same(w, 0)(w.Read().CountMemberships(ctx, ann.ID))
	for _, read := range []func() error{
		func() error { _, err := w.Read().AccountByEmail(ctx, ann.Email); return err },
		func() error { _, err := w.Read().Invitation(ctx, here.ID); return err },
		func() error { _, err := w.Read().InvitationByToken(ctx, []byte("a link")); return err },
	} {
		if err := read(); !errors.Is(err, store.ErrNone) {
			w.Errorf("the error is %v, want none", err)
		}
	}
	there.InvitedBy, there.State = "", doorward.InvitationExpired
	left, err := w.Read().Invitation(ctx, there.ID)
	same(w, there)(left, err)
}
