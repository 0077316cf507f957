package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

func emailChanges(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	ann, bob := f.member(acme, "ann@acme.example", doorward.RoleUser), f.account("bob@acme.example")
	change := func(newEmail string) store.EmailChange {
		c := store.EmailChange{ID: f.id(doorward.PrefixChange), UserID: ann.ID, Old: ann.Email, New: newEmail, CreatedAt: f.DB.Now(), ConfirmUntil: time.UnixMicro(0).UTC(), UndoUntil: f.DB.Now().Add(7 * day), Suspend: true}
		f.write(func(tx *store.Tx) {
			noError(f, tx.InsertEmailChange(ctx, c))
			noError(f, tx.InsertLinkToken(ctx, []byte("confirm "+c.ID), c.ID))
			noError(f, tx.InsertLinkToken(ctx, []byte("undo "+c.ID), c.UndoSubject()))
		})
		f.clock.move(time.Second)
		return c
	}
	first, second := change("lee@acme.example"), change("lea@acme.example")

	equal(f, f.value(f.Read().EmailChange(ctx, second.ID)), second)
	equal(f, f.value(f.Read().EmailChangeByCode(ctx, []byte("confirm "+second.ID))), second)
	equal(f, f.value(f.Read().EmailChangeByUndo(ctx, []byte("undo "+second.ID))), second)
	f.wantNone(f.Read().EmailChangeByCode(ctx, []byte("undo "+second.ID)))
	f.wantNone(f.Read().EmailChangeByUndo(ctx, []byte("confirm "+second.ID)))
	f.wantNone(f.Read().EmailChange(ctx, "chg_none"))
	equal(f, f.value(f.Read().FormerEmails(ctx, doorward.Account{ID: ann.ID, Email: ann.Email})), []string{"lea@acme.example", "lee@acme.example"})

	f.write(func(tx *store.Tx) {
		for _, c := range []store.EmailChange{first, second} {
			f.wantNoChange(tx.ConfirmEmailChange(ctx, c.ID, c.UndoUntil)) // no mail has been made
			noError(f, tx.StartEmailChange(ctx, c.ID, tx.Now.Add(time.Minute)))
			noError(f, tx.StartEmailChange(ctx, c.ID, tx.Now.Add(time.Hour))) // it has a time
		}
		f.wantNoChange(tx.ConfirmEmailChange(ctx, first.ID, first.UndoUntil)) // replaced
		f.wantChange(tx.ConfirmEmailChange(ctx, second.ID, second.UndoUntil))
		f.wantNoChange(tx.ConfirmEmailChange(ctx, second.ID, second.UndoUntil))
		noError(f, tx.SetEmail(ctx, ann.ID, second.New))
	})
	equal(f, f.value(f.Read().Account(ctx, ann.ID)).(doorward.Account).Email, second.New)
	found := f.value(f.Read().UserPage(ctx, acme.ID, store.UserFilter{Text: "lea@"}, doorward.Window{Limit: 9})).(doorward.Page[doorward.User])
	equal(f, len(found.Items), 1)
	if err := f.try(ctx, func(tx *store.Tx) error { return tx.SetEmail(ctx, ann.ID, bob.Email) }); !errors.Is(err, store.ErrTaken) {
		f.Errorf("an address that is taken: %v, want ErrTaken", err)
	}

	f.clock.move(time.Second)
	third := change("mallory@acme.example")
	f.write(func(tx *store.Tx) { // undoing the second ends the third, and leaves the first
		f.wantChange(tx.UndoEmailChange(ctx, second))
		f.wantNoChange(tx.UndoEmailChange(ctx, second))
		f.wantNoChange(tx.UndoEmailChange(ctx, third))
		noError(f, tx.StartEmailChange(ctx, third.ID, tx.Now.Add(time.Minute)))
		f.wantNoChange(tx.ConfirmEmailChange(ctx, third.ID, third.UndoUntil))
		f.wantChange(tx.UndoEmailChange(ctx, first))
	})

	late := change("late@acme.example")
	f.write(func(tx *store.Tx) {
		noError(f, tx.StartEmailChange(ctx, late.ID, tx.Now.Add(time.Second)))
		noError(f, tx.ReplaceEmailChanges(ctx, "usr_none"))
	})
	defer func() { // no change can be undone any more
		f.write(func(tx *store.Tx) { noError(f, tx.EndEmailChanges(ctx, "usr_none")) })
		ended := change("ended@acme.example")
		f.write(func(tx *store.Tx) {
			noError(f, tx.EndEmailChanges(ctx, ann.ID))
			f.wantNoChange(tx.UndoEmailChange(ctx, ended))
		})
	}()
	f.clock.move(time.Minute)
	f.write(func(tx *store.Tx) {
		f.wantNoChange(tx.ConfirmEmailChange(ctx, late.ID, late.UndoUntil))
		equal(f, f.value(tx.DeleteOldEmailChanges(ctx, 10)), int64(0))
	})
	f.clock.move(8 * day)
	f.write(func(tx *store.Tx) {
		f.wantNoChange(tx.UndoEmailChange(ctx, late))
		equal(f, f.value(tx.DeleteOldEmailChanges(ctx, 3)), int64(3))
		equal(f, f.value(tx.DeleteOldEmailChanges(ctx, 3)), int64(1))
	})
	f.wantNone(f.Read().EmailChange(ctx, late.ID))
}

// oneAddress: of accounts that want one address at once, one gets it.
func oneAddress(f *fixture) {
	ctx := f.Context()
	const n = 8
	var accounts []doorward.Account
	for range n {
		accounts = append(accounts, f.account(f.id("a")+"@acme.example"))
	}
	won := 0
	for _, err := range together(n, func(i int) error {
		return f.try(ctx, func(tx *store.Tx) error { return tx.SetEmail(ctx, accounts[i].ID, "wanted@acme.example") })
	}) {
		switch {
		case err == nil:
			won++
		case !errors.Is(err, store.ErrTaken):
			f.Error(err)
		}
	}
	if won != 1 {
		f.Errorf("%d accounts have the address, want one", won)
	}
}

func personalData(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	ann := f.member(acme, "ann@acme.example", doorward.RoleOwner)
	key := f.apiKey(ann, "Reports")
	inv := f.invitation(acme, "bob@acme.example")
	f.write(func(tx *store.Tx) {
		noError(f, tx.QueueMail(ctx, store.MailReset, ann.Email, ""))
		f.wantChange(tx.InsertDevice(ctx, []byte("browser"), ann.ID, 9, noon.Add(-day)))
	})
	for range 3 {
		e := f.event(acme.ID, ann.ID)
		e.ID, e.ActorID, e.Target.ID = f.id("evt_"), ann.ID, "usr_bob"
		f.write(func(tx *store.Tx) { noError(f, tx.InsertEvent(ctx, e)) })
	}
	ids := func(events []doorward.Event, err error) (all []string) {
		noError(f, err)
		for _, e := range events {
			all = append(all, e.ID)
		}
		return all
	}
	for _, query := range []func(context.Context, string, doorward.Position, int) ([]doorward.Event, error){f.Read().EventsBy, f.Read().EventsAbout} {
		first, err := query(ctx, ann.ID, doorward.Position{}, 2)
		noError(f, err)
		last := first[1]
		all := ids(query(ctx, ann.ID, doorward.Position{At: last.At.UnixMicro(), ID: last.ID}, 9))
		equal(f, append(ids(first, nil), all...), ids(query(ctx, ann.ID, doorward.Position{}, 9)))
		equal(f, len(all), 1)
	}
	owned, err := f.Read().OwnedAPIKeys(ctx, ann.ID, f.DB.Now())
	noError(f, err)
	equal(f, []string{owned[0].ID}, []string{key.ID})
	equal(f, f.value(f.Read().InvitationsOf(ctx, ann.ID, inv.Email)), []doorward.Invitation{inv})
	equal(f, len(f.value(f.Read().InvitationsOf(ctx, ann.ID, ann.Email)).([]doorward.Invitation)), 0)
	mails, err := f.Read().MailsOf(ctx, ann.ID, ann.Email)
	noError(f, err)
	equal(f, len(mails), 1)
	f.write(func(tx *store.Tx) {
		noError(f, tx.InsertEmailChange(ctx, store.EmailChange{ID: "chg_1", UserID: ann.ID, Old: ann.Email, New: "lee@acme.example", CreatedAt: noon, UndoUntil: noon.Add(day)}))
		noError(f, tx.QueueMail(ctx, store.MailEmailConfirm, "lee@acme.example", "chg_1"))
		noError(f, tx.InsertEvent(ctx, doorward.Event{
			ID: f.id("evt_"), Action: doorward.InvitationAccept, Outcome: doorward.Done, ActorID: ann.ID,
			Target: doorward.Object{Type: "invitation", ID: inv.ID, TenantID: acme.ID},
		}))
		equal(f, f.value(tx.AcceptedInvitations(ctx, acme.ID, inv.Email, 9)), []string(nil))
		f.wantChange(tx.AcceptInvitation(ctx, inv.ID))
		equal(f, f.value(tx.AcceptedInvitations(ctx, acme.ID, inv.Email, 9)), []string{inv.ID})
		equal(f, f.value(tx.AcceptedInvitations(ctx, "tnt_other", inv.Email, 9)), []string(nil))
		noError(f, tx.InsertChallenge(ctx, []byte("challenge"), store.Challenge{Purpose: "login", UserID: ann.ID, EndsAt: f.DB.Now().Add(time.Minute)}))
		noError(f, tx.InsertReset(ctx, store.Reset{ID: "rst_1", UserID: ann.ID, CreatedAt: noon, ExpiresAt: noon.Add(day)}))
		for i, actor := range []string{ann.ID, ann.ID, "usr_other"} {
			_, err := tx.KeepDecision(ctx, store.KeptDecision{ID: "dec_" + string(rune('0'+i)), TenantID: ann.TenantID, At: noon.Add(time.Duration(i) * time.Second), ActorID: actor, Action: doorward.UserRead})
			noError(f, err)
		}
	})
	equal(f, len(f.value(f.Read().MailsOf(ctx, ann.ID, ann.Email)).([]store.Mail)), 2)
	equal(f, len(f.value(f.Read().InvitationsOf(ctx, ann.ID, ann.Email)).([]doorward.Invitation)), 1)
	equal(f, f.value(f.Read().ResetsOf(ctx, ann.ID)), []store.Reset{{ID: "rst_1", UserID: ann.ID, CreatedAt: noon, ExpiresAt: noon.Add(day)}})
	decisions, err := f.Read().DecisionsBy(ctx, ann.ID, 1)
	noError(f, err)
	equal(f, []string{decisions[0].ID}, []string{"dec_1"})
	changes, err := f.Read().EmailChanges(ctx, ann.ID)
	noError(f, err)
	equal(f, len(changes), 1)
	equal(f, changes[0].New, "lee@acme.example")
	for after, want := range map[time.Duration]int{0: 1, time.Minute: 0} {
		challenges, err := f.Read().ChallengesOf(ctx, ann.ID, f.DB.Now().Add(after))
		noError(f, err)
		equal(f, len(challenges), want)
	}
	browsers, err := f.Read().Browsers(ctx, ann.ID)
	noError(f, err)
	equal(f, len(browsers), 1)
}
