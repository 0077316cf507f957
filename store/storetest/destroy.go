package storetest

import (
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// closings: a closed tenant has a fixed end; once its destruction begins, it is due
// at every instant.
func closings(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	due := func(now time.Time) (ids []string) {
		f.Helper()
		all, err := f.Read().TenantsDue(ctx, now)
		noError(f, err)
		for _, t := range all {
			ids = append(ids, t.ID)
		}
		return ids
	}
	closed := f.clock.move(time.Hour)
	end := closed.Add(time.Minute)
	markDestroyed := func(id string) (marked bool) {
		f.Helper()
		f.write(func(tx *store.Tx) {
			var err error
			marked, err = tx.MarkDestroyed(ctx, id)
			noError(f, err)
		})
		return marked
	}
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.CloseTenant(ctx, acme.ID, end))
		f.wantNoChange(tx.CloseTenant(ctx, acme.ID, noon)) // the end doesn't change
	})
	equal(f, due(end.Add(-1)), []string(nil))
	equal(f, due(end), []string{acme.ID})
	if markDestroyed(acme.ID) || markDestroyed(zeta.ID) {
		f.Error("destroyed before its end")
	}
	f.clock.move(time.Minute)
	f.write(func(tx *store.Tx) { f.wantChange(tx.FreezeTenant(ctx, acme.ID)) })
	if markDestroyed(acme.ID) || len(due(end)) > 0 {
		f.Error("destroyed while it is frozen")
	}
	all, err := f.Read().TenantsClosed(ctx, 10)
	if err != nil || len(all) != 1 || all[0].ID != acme.ID {
		f.Errorf("the closed tenants are %v, %v", all, err)
	}
	f.write(func(tx *store.Tx) { f.wantChange(tx.ThawTenant(ctx, acme.ID, end)) })
	for range 2 { // again, by the node that continues
		if !markDestroyed(acme.ID) {
			f.Error("not destroyed after its end")
		}
	}
	f.write(func(tx *store.Tx) {
		f.wantNoChange(tx.RestoreTenant(ctx, acme.ID))
		f.wantChange(tx.FreezeTenant(ctx, acme.ID))
	})
	equal(f, due(noon), []string{acme.ID}) // a destruction that has begun continues
}

// endsOfTenantsAndPeople: rows of a deleted tenant or account are deleted, others stay.
func endsOfTenantsAndPeople(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	ann, bob := f.member(acme, "ann@acme.example", doorward.RoleOwner), f.member(zeta, "bob@zeta.example", doorward.RoleOwner)
	session, other := f.session(ann), f.session(bob)
	ofAcme, ofZeta := f.invitation(acme, "cat@acme.example"), f.draft(zeta, "dan@acme.example")
	mailedOnly := f.invitation(acme, "eve@acme.example")
	ofZeta.InvitedBy = ann.ID
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.InsertInvitation(ctx, ofZeta))
		noError(f, tx.InsertReset(ctx, store.Reset{ID: f.id("rst_"), UserID: ann.ID, CreatedAt: noon, ExpiresAt: noon.Add(time.Hour)}))
		f.wantChange(tx.InsertDevice(ctx, []byte("a device"), ann.ID, 20, time.Time{}))
		noError(f, tx.InsertLinkToken(ctx, []byte("a link"), ofAcme.ID))
		noError(f, tx.QueueMail(ctx, store.MailReset, ann.Email, ""))
		noError(f, tx.QueueMail(ctx, store.MailInvitation, ofAcme.Email, ofAcme.ID))
		noError(f, tx.QueueMail(ctx, store.MailInvitation, mailedOnly.Email, mailedOnly.ID))
	})
	equal(f, f.value(f.Read().CountMemberships(ctx, ann.ID)), 1)

	f.write(func(tx *store.Tx) {
		for _, want := range []int64{1, 1, 0} {
			equal(f, f.value(tx.DeleteInvitations(ctx, acme.ID, 1)), any(want))
		}
		f.wantChange(tx.DeleteMembership(ctx, acme.ID, ann.ID))
		account, err := tx.Account(ctx, ann.ID)
		noError(f, err)
		noError(f, tx.DeleteAccount(ctx, account))
		f.wantChange(tx.DeleteTenant(ctx, acme.ID))
		f.wantNoChange(tx.DeleteTenant(ctx, acme.ID))
	})
	equal(f, f.live(session, other), []string{other.ID})
	equal(f, f.due(), []store.Mail(nil))
	equal(f, f.value(allTenants(ctx, f.Read())), []doorward.Tenant{zeta})
	equal(f, f.value(f.Read().CountMemberships(ctx, ann.ID)), 0)
	for _, read := range []func() error{
		func() error { _, err := f.Read().AccountByEmail(ctx, ann.Email); return err },
		func() error { _, err := f.Read().Invitation(ctx, ofAcme.ID); return err },
		func() error { _, err := f.Read().InvitationByToken(ctx, []byte("a link")); return err },
	} {
		if err := read(); !errors.Is(err, store.ErrNone) {
			f.Errorf("the error is %v, want none", err)
		}
	}
	ofZeta.InvitedBy, ofZeta.State = "", doorward.InvitationExpired
	left, err := f.Read().Invitation(ctx, ofZeta.ID)
	equal(f, f.value(left, err), ofZeta)
}
