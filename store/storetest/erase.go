package storetest

import (
	"errors"
	"slices"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// erasedInvitations: answered and expired invitations are blanked, those that can be accepted
// stay.
func erasedInvitations(f *fixture) {
	ctx := f.Context()
	acme, zeta, gamma := f.tenant("Acme"), f.tenant("Zeta"), f.tenant("Gamma")
	ann := f.member(acme, "ann@acme.example", doorward.RoleUser)
	accepted, earlier, over := f.invitation(acme, ann.Email), f.invitation(zeta, "lee@acme.example"), f.invitation(gamma, ann.Email)
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.AcceptInvitation(ctx, accepted.ID))
		f.wantChange(tx.AcceptInvitation(ctx, earlier.ID))
		noError(f, tx.InsertEvent(ctx, doorward.Event{
			ID: f.id("evt_"), Action: doorward.InvitationAccept, Outcome: doorward.Done, ActorID: ann.ID,
			Target: doorward.Object{Type: "invitation", ID: earlier.ID, TenantID: zeta.ID},
		}))
		for _, bucket := range []string{"resend:" + gamma.ID + ":" + ann.Email, "resend:" + gamma.ID + ":first:" + ann.Email, "resend:" + zeta.ID + ":" + ann.Email} {
			f.value(tx.HitThrottle(ctx, bucket, 9*day))
		}
	})
	f.clock.move(2 * day)
	pending := f.invitation(zeta, ann.Email)
	var blanked []store.BlankedInvitation
	f.write(func(tx *store.Tx) {
		blanked = f.value(tx.BlankInvitations(ctx, ann.ID, []string{ann.Email})).([]store.BlankedInvitation)
	})
	slices.SortFunc(blanked, func(a, b store.BlankedInvitation) int { return slices.Compare([]byte(a.ID), []byte(b.ID)) })
	equal(f, blanked, []store.BlankedInvitation{{ID: accepted.ID, TenantID: acme.ID}, {ID: earlier.ID, TenantID: zeta.ID}, {ID: over.ID, TenantID: gamma.ID}})
	for id, want := range map[string]doorward.InvitationState{accepted.ID: doorward.InvitationAccepted, earlier.ID: doorward.InvitationAccepted, over.ID: doorward.InvitationExpired} {
		i := f.value(f.Read().Invitation(ctx, id)).(doorward.Invitation)
		if i.Email != "" || i.Name != "" || i.State != want {
			f.Errorf("blanked: %+v", i)
		}
	}
	equal(f, f.value(f.Read().PendingInvitation(ctx, zeta.ID, ann.Email)), pending)
	f.wantNone(f.Read().Throttle(ctx, "resend:"+gamma.ID+":"+ann.Email))
	f.wantNone(f.Read().Throttle(ctx, "resend:"+gamma.ID+":first:"+ann.Email))
	equal(f, f.value(f.Read().Throttle(ctx, "resend:"+zeta.ID+":"+ann.Email)).(store.Throttle).Hits, 1)
}

// forgottenAddresses: counters, attempts, requests and mails of the address are deleted, except
// a mail of an invitation that can be accepted.
func forgottenAddresses(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	ann := f.account("ann@acme.example")
	inv := f.invitation(acme, ann.Email)
	f.write(func(tx *store.Tx) {
		noError(f, tx.QueueMail(ctx, store.MailInvitation, ann.Email, inv.ID))
		noError(f, tx.QueueMail(ctx, store.MailPasswordChanged, ann.Email, "evt_1"))
		f.value(tx.HitThrottle(ctx, "account:"+ann.Email, day))
		f.value(tx.HitThrottle(ctx, "forgot:"+ann.Email, day))
		noError(f, tx.InsertAttempt(ctx, store.Attempt{ID: "1", OwnBucket: "account:" + ann.Email, WiderBucket: "ip:192.0.2.7"}, tx.Now.Add(day)))
		noError(f, tx.FileInbox(ctx, store.InboxRow{Source: "192.0.2.7", Email: ann.Email, Hits: 1}))
		noError(f, tx.FileInbox(ctx, store.InboxRow{Source: "account:" + ann.Email, Hits: 1}))
		noError(f, tx.FileInbox(ctx, store.InboxRow{Source: ann.ID, Hits: 1}))
		f.value(tx.MarkCall(ctx, doorward.IdempotentCall{ID: []byte("a"), UserID: ann.ID, Body: []byte{1}, Attempt: "1"}))
		f.value(tx.MarkCall(ctx, doorward.IdempotentCall{ID: []byte("b"), UserID: "usr_bob", Body: []byte{1}, Attempt: "1"}))
	})
	f.write(func(tx *store.Tx) { noError(f, tx.ForgetAddress(ctx, ann.Email)) })
	equal(f, len(f.due()), 1)
	equal(f, len(f.value(f.Read().MailsOf(ctx, ann.ID, ann.Email)).([]store.Mail)), 1)
	f.wantNone(f.Read().Throttle(ctx, "account:"+ann.Email))
	f.wantNone(f.Read().Throttle(ctx, "forgot:"+ann.Email))
	f.write(func(tx *store.Tx) { f.wantNoChange(tx.DeleteAttempt(ctx, "1")) })
	equal(f, f.value(f.Read().CountInbox(ctx, 9)), 1)
	f.write(func(tx *store.Tx) { noError(f, tx.DeleteLateRows(ctx, ann.ID)) })
	equal(f, f.value(f.Read().CountInbox(ctx, 9)), 0)
	f.write(func(tx *store.Tx) { noError(f, tx.DeleteAccount(ctx, ann)) })
	equal(f, f.isKnown("a"), false)
	equal(f, f.isKnown("b"), true)
}

// erasedAddresses: addresses that the account has had are known also after a change was undone.
// The counters of mails to addresses that it only requested are deleted, unless another account
// has the address.
func erasedAddresses(f *fixture) {
	ctx := f.Context()
	ann := f.account("ann@acme.example")
	f.account("others@acme.example")
	f.write(func(tx *store.Tx) {
		for id, email := range map[string]string{"chg_1": "had@acme.example", "chg_2": "asked@acme.example", "chg_3": "others@acme.example"} {
			c := store.EmailChange{ID: id, UserID: ann.ID, Old: ann.Email, New: email, CreatedAt: tx.Now, UndoUntil: tx.Now.Add(day)}
			noError(f, tx.InsertEmailChange(ctx, c))
			noError(f, tx.StartEmailChange(ctx, id, tx.Now.Add(day)))
			f.value(tx.HitThrottle(ctx, "forgot:"+email, day))
			if id == "chg_1" {
				f.wantChange(tx.ConfirmEmailChange(ctx, id, tx.Now.Add(day)))
				f.wantChange(tx.UndoEmailChange(ctx, c))
			}
		}
	})
	equal(f, f.value(f.Read().ConfirmedFormerEmails(ctx, ann.ID)), []string{"had@acme.example"})
	f.write(func(tx *store.Tx) { // by a directory; of the second address another account has become
		for _, was := range []string{"former@acme.example", "others@acme.example"} {
			noError(f, tx.InsertEvent(ctx, doorward.Event{
				ID: f.id("evt_"), Action: doorward.UserRename, Outcome: doorward.Done, ActorType: doorward.ByDirectory, Target: doorward.Object{Type: "user", ID: ann.ID, TenantID: "ten_1"},
				Changes: []doorward.Change{{Field: doorward.FieldName, From: "a@acme.example"}, {Field: doorward.FieldEmail, From: was}},
			}))
		}
	})
	equal(f, f.value(f.Read().EmailsBeforeDirectories(ctx, ann.ID)), []string{"former@acme.example"})
	f.write(func(tx *store.Tx) { noError(f, tx.ClearRequestedEmailCounters(ctx, ann.ID)) })
	for email, want := range map[string]error{"had@acme.example": nil, "asked@acme.example": store.ErrNone, "others@acme.example": nil} {
		if _, err := f.Read().Throttle(ctx, "forgot:"+email); !errors.Is(err, want) {
			f.Errorf("the counter of %s: %v, want %v", email, err, want)
		}
	}
}

// erasures: what is about an account in events by it and about it is blanked, in steps, in every
// trail. The values of what it has changed stay, and so does the record of the erasure.
func erasures(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	for range 3 {
		f.event(acme.ID, "usr_bob")
	}
	f.write(func(tx *store.Tx) { // by nobody known
		noError(f, tx.InsertEvent(ctx, doorward.Event{
			ID: f.id("evt_"), Action: doorward.SessionRefuse, ActorType: doorward.Anonymous, IP: "192.0.2.9",
			Target: doorward.Object{Type: "user", ID: "usr_ann", TenantID: acme.ID},
		}))
		noError(f, tx.InsertEvent(ctx, doorward.Event{
			ID: f.id("evt_"), Action: doorward.UserRename, ActorType: doorward.ByUser, ActorID: "usr_bob", ActorEmail: "bob@acme.example",
			Target: doorward.Object{Type: "user", ID: "usr_ann", TenantID: acme.ID},
		}))
	})
	f.event(zeta.ID, "usr_ann")
	f.event("", "usr_ann")
	f.clock.move(time.Second)
	equal(f, f.value(f.Read().TrailsWith(ctx, "usr_ann")), []string{"", acme.ID, zeta.ID})
	f.write(func(tx *store.Tx) { f.wantChange(tx.CloseTenant(ctx, zeta.ID, noon)) })
	equal(f, f.value(f.Read().TrailsWith(ctx, "usr_ann")), []string{"", acme.ID, zeta.ID})
	f.write(func(tx *store.Tx) { f.wantChange(tx.MarkDestroyed(ctx, zeta.ID)) })
	equal(f, f.value(f.Read().TrailsWith(ctx, "usr_ann")), []string{"", acme.ID})
	equal(f, f.value(f.Read().TrailsWith(ctx, "usr_bob")), []string{acme.ID})

	at := f.clock.read()
	blankedField := []doorward.Change{{Field: doorward.FieldBlankedInvitation, To: "inv_1"}}
	f.write(func(tx *store.Tx) {
		noError(f, tx.InsertErasure(ctx, "usr_ann"))
		for _, outcome := range []doorward.Outcome{doorward.Done, doorward.Refused} {
			noError(f, tx.InsertEvent(ctx, doorward.Event{
				ID: f.id("evt_"), Action: doorward.AccountErase, Outcome: outcome, ActorID: "usr_ann",
				Target: doorward.Object{Type: "user", ID: "usr_ann", TenantID: acme.ID}, Changes: blankedField,
			}))
		}
	})
	equal(f, f.value(f.Read().Erasures(ctx, 9)), []store.Erasure{{UserID: "usr_ann", At: at}})
	equal(f, f.value(f.Read().ErasureRecords(ctx, acme.ID)), []store.ErasureRecord{{UserID: "usr_ann", At: at, Changes: blankedField}})
	equal(f, f.value(f.Read().ErasureRecords(ctx, "")), []store.ErasureRecord(nil))
	parts := 0
	for more := true; more; parts++ {
		f.write(func(tx *store.Tx) {
			f.wantChange(tx.LockErasure(ctx, "usr_ann"))
			more = f.value(tx.BlankEvents(ctx, "usr_ann", 2)).(bool)
		})
	}
	equal(f, parts, 4) // six events by ann, at most two in a step
	both := "actor values"
	equal(f, f.blank(acme.ID), []string{"actor", "actor", "actor", both, "values", "", both}) // the record is not
	equal(f, f.blank(""), []string{both})
	equal(f, f.blank(zeta.ID), []string{both})
	f.write(func(tx *store.Tx) {
		noError(f, tx.DeleteErasure(ctx, "usr_ann"))
		f.wantNoChange(tx.LockErasure(ctx, "usr_ann"))
	})
}

// blankedTrailsOfInvitations: events about an invitation are blanked, and the creation of
// the tenant that it came with.
func blankedTrailsOfInvitations(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	first := f.invitation(acme, "ann@acme.example")
	creation := f.event(acme.ID, acme.ID)
	f.write(func(tx *store.Tx) {
		e := creation
		e.ID, e.Action = f.id("evt_"), doorward.TenantCreate
		noError(f, tx.InsertEvent(ctx, e))
		creation = e
	})
	f.clock.move(time.Second)
	second := f.invitation(acme, "bob@acme.example")
	f.event(acme.ID, second.ID)
	f.clock.move(time.Second)
	f.write(func(tx *store.Tx) {
		equal(f, len(f.value(tx.BlankEventsOfInvitation(ctx, second.ID)).([]string)), 0)
	})
	equal(f, f.blank(acme.ID), []string{"", "", "values"})
	f.write(func(tx *store.Tx) {
		equal(f, f.value(tx.BlankEventsOfInvitation(ctx, first.ID)), []string{creation.ID})
	})
	equal(f, f.blank(acme.ID), []string{"", "values", "values"})
}

// formerAddresses: confirmed addresses that the account had are returned, unless another account
// has them now.
func formerAddresses(f *fixture) {
	ctx := f.Context()
	ann := f.account("ann@acme.example")
	f.account("now.bob@acme.example")
	for i, old := range []string{"first@acme.example", "now.bob@acme.example", "never@acme.example"} {
		c := store.EmailChange{ID: f.id(doorward.PrefixChange), UserID: ann.ID, Old: old, New: ann.Email, CreatedAt: f.clock.read(), UndoUntil: f.clock.read().Add(day)}
		f.write(func(tx *store.Tx) {
			noError(f, tx.InsertEmailChange(ctx, c))
			noError(f, tx.StartEmailChange(ctx, c.ID, tx.Now.Add(time.Hour)))
			if i < 2 {
				f.wantChange(tx.ConfirmEmailChange(ctx, c.ID, c.UndoUntil))
			}
		})
	}
	equal(f, f.value(f.Read().ConfirmedFormerEmails(ctx, ann.ID)), []string{"first@acme.example"})
}
