package storetest

import (
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

const day = 24 * time.Hour

func invitations(w *world) {
	ctx := w.Context()
	acme := w.tenant("Acme")
	ann := w.member(acme, "ann@acme.example", doorward.RoleOwner)
	byOperator := w.invitation(acme, "bob@acme.example")
	byAnn := w.draft(acme, "cat@acme.example")
	byAnn.InvitedBy, byAnn.Role, byAnn.Name, byAnn.Locale = ann.ID, doorward.RoleAdmin, "", ""
	w.write(func(tx *store.Tx) {
		yes(w)(tx.InsertInvitation(ctx, byAnn))
		ok(w, tx.InsertLinkToken(ctx, []byte("first"), byAnn.ID))
		ok(w, tx.InsertLinkToken(ctx, []byte("second"), byAnn.ID))
	})

	same(w, byOperator)(w.Read().Invitation(ctx, byOperator.ID))
	same(w, byAnn)(w.Read().InvitationByToken(ctx, []byte("first")))
	same(w, byAnn)(w.Read().InvitationByToken(ctx, []byte("second")))
	same(w, byAnn)(w.Read().PendingInvitation(ctx, acme.ID, byAnn.Email))
	none(w)(w.Read().Invitation(ctx, "inv_none"))
	none(w)(w.Read().InvitationByToken(ctx, []byte("third")))
	none(w)(w.Read().PendingInvitation(ctx, acme.ID, ann.Email))
	none(w)(w.Read().PendingInvitation(ctx, byAnn.Email, acme.ID)) // the two exchanged

	// Delivery is that of the newest mail about it.
	var mail store.Mail
	w.write(func(tx *store.Tx) { ok(w, tx.QueueMail(ctx, store.MailInvitation, byAnn.Email, byAnn.ID)) })
	mail = w.due()[0]
	w.write(func(tx *store.Tx) { ok(w, tx.MailSent(ctx, mail.ID)) })
	byAnn.Delivery = doorward.DeliverySent
	same(w, byAnn)(w.Read().Invitation(ctx, byAnn.ID))
	w.clock.move(time.Second)
	w.write(func(tx *store.Tx) { ok(w, tx.QueueMail(ctx, store.MailInvitation, byAnn.Email, byAnn.ID)) })
	byAnn.Delivery = doorward.DeliveryQueued
	same(w, byAnn)(w.Read().Invitation(ctx, byAnn.ID))
	w.write(func(tx *store.Tx) { ok(w, tx.MailFailed(ctx, w.due()[0].ID, "no such mailbox")) })
	byAnn.Delivery = doorward.DeliveryFailed
	same(w, byAnn)(w.Read().InvitationByToken(ctx, []byte("second")))
	same(w, byOperator)(w.Read().Invitation(ctx, byOperator.ID))
}

func onePendingInvitation(w *world) {
	ctx := w.Context()
	acme, zeta := w.tenant("Acme"), w.tenant("Zeta")
	first := w.invitation(acme, "bob@acme.example")
	w.invitation(zeta, "bob@acme.example")
	w.invitation(acme, "cat@acme.example")

	w.write(func(tx *store.Tx) {
		no(w)(tx.InsertInvitation(ctx, w.draft(acme, first.Email)))
		ok(w, tx.RetireExpiredInvitation(ctx, acme.ID, first.Email)) // not expired yet
		no(w)(tx.InsertInvitation(ctx, w.draft(acme, first.Email)))
	})
	w.clock.move(day)
	second := w.draft(acme, first.Email)
	w.write(func(tx *store.Tx) {
		no(w)(tx.InsertInvitation(ctx, second))
		ok(w, tx.RetireExpiredInvitation(ctx, acme.ID, first.Email))
		yes(w)(tx.InsertInvitation(ctx, second))
		no(w)(tx.AcceptInvitation(ctx, first.ID))
		yes(w)(tx.AcceptInvitation(ctx, second.ID))
	})
	first.State = doorward.InvitationExpired
	same(w, first)(w.Read().Invitation(ctx, first.ID))
	none(w)(w.Read().PendingInvitation(ctx, acme.ID, first.Email))
	// Expired ones elsewhere are left to their own address and tenant.
	if _, err := w.Read().PendingInvitation(ctx, zeta.ID, first.Email); err != nil {
		w.Error(err)
	}
	if _, err := w.Read().PendingInvitation(ctx, acme.ID, "cat@acme.example"); err != nil {
		w.Error(err)
	}
}

func endOfInvitations(w *world) {
	ctx := w.Context()
	acme, zeta := w.tenant("Acme"), w.tenant("Zeta")
	ann := w.member(acme, "ann@acme.example", doorward.RoleOwner)
	by := func(t doorward.Tenant, email string) doorward.Invitation {
		i := w.draft(t, email)
		i.InvitedBy = ann.ID
		w.write(func(tx *store.Tx) { yes(w)(tx.InsertInvitation(ctx, i)) })
		return i
	}
	late := by(acme, "late@acme.example")
	w.clock.move(day - time.Microsecond)
	intime := by(acme, "intime@acme.example")
	w.write(func(tx *store.Tx) { yes(w)(tx.AcceptInvitation(ctx, late.ID)) }) // in the last microsecond
	late.State, late.AcceptedAt = doorward.InvitationAccepted, at(w.clock.read())
	same(w, late)(w.Read().Invitation(ctx, late.ID))

	w.clock.move(day)
	w.write(func(tx *store.Tx) { no(w)(tx.AcceptInvitation(ctx, intime.ID)) }) // on the stroke of its end
	open, other, elsewhere := by(acme, "open@acme.example"), w.invitation(acme, "other@acme.example"), by(zeta, "open@acme.example")
	w.write(func(tx *store.Tx) {
		same(w, int64(1))(tx.RevokeInvitationsBy(ctx, acme.ID, ann.ID))
		same(w, int64(0))(tx.RevokeInvitationsBy(ctx, acme.ID, ann.ID))
		same(w, int64(0))(tx.RevokeInvitationsBy(ctx, acme.ID, ""))
		no(w)(tx.AcceptInvitation(ctx, open.ID))
		no(w)(tx.AcceptInvitation(ctx, late.ID))
		no(w)(tx.AcceptInvitation(ctx, "inv_none"))
	})
	open.State, open.RevokedAt = doorward.InvitationRevoked, at(w.clock.read())
	for _, i := range []doorward.Invitation{late, intime, open, other, elsewhere} {
		same(w, i)(w.Read().Invitation(ctx, i.ID))
	}
}

func invitationsSentAgain(w *world) {
	ctx := w.Context()
	acme := w.tenant("Acme")
	ann := w.member(acme, "ann@acme.example", doorward.RoleOwner)
	i, other := w.invitation(acme, "bob@acme.example"), w.invitation(acme, "cat@acme.example")
	none(w)(w.Read().LastMail(ctx, i.ID))
	w.write(func(tx *store.Tx) {
		ok(w, tx.InsertLinkToken(ctx, []byte("old"), i.ID))
		ok(w, tx.InsertLinkToken(ctx, []byte("other"), other.ID))
		ok(w, tx.QueueMail(ctx, store.MailInvitation, i.Email, i.ID))
	})
	w.clock.move(time.Minute)
	w.write(func(tx *store.Tx) {
		ok(w, tx.QueueMail(ctx, store.MailInvitation, i.Email, i.ID))
		ok(w, tx.RetireTokens(ctx, i.ID))
		ok(w, tx.InsertLinkToken(ctx, []byte("new"), i.ID))
	})
	same(w, w.clock.read())(w.Read().LastMail(ctx, i.ID))
	yes(w)(w.Read().TokenRetired(ctx, []byte("old")))
	no(w)(w.Read().TokenRetired(ctx, []byte("new")))
	no(w)(w.Read().TokenRetired(ctx, []byte("other")))
	no(w)(w.Read().TokenRetired(ctx, []byte("none")))

	until := noon.Add(3 * day)
	w.clock.move(day - time.Minute - time.Microsecond)
	w.write(func(tx *store.Tx) { yes(w)(tx.RenewInvitation(ctx, i.ID, ann.ID, until)) }) // in the last microsecond
	i.InvitedBy, i.ExpiresAt = ann.ID, until
	same(w, i)(w.Read().InvitationByToken(ctx, []byte("old")))
	same(w, i)(w.Read().InvitationByToken(ctx, []byte("new")))
	w.clock.move(time.Microsecond)
	w.write(func(tx *store.Tx) {
		no(w)(tx.RenewInvitation(ctx, other.ID, ann.ID, until))
		no(w)(tx.RenewInvitation(ctx, "inv_none", ann.ID, until))
		no(w)(tx.RevokeInvitation(ctx, other.ID))
		no(w)(tx.RevokeInvitation(ctx, "inv_none"))
		yes(w)(tx.RevokeInvitation(ctx, i.ID))
		no(w)(tx.RevokeInvitation(ctx, i.ID))
		no(w)(tx.RenewInvitation(ctx, i.ID, "", until))
		no(w)(tx.AcceptInvitation(ctx, i.ID))
	})
	i.State, i.RevokedAt = doorward.InvitationRevoked, at(w.clock.read())
	same(w, i)(w.Read().Invitation(ctx, i.ID))
	same(w, other)(w.Read().Invitation(ctx, other.ID))
}

func statesOfInvitations(w *world) {
	ctx := w.Context()
	acme := w.tenant("Acme")
	over, again := w.invitation(acme, "over@acme.example"), w.invitation(acme, "again@acme.example")
	w.clock.move(time.Second)
	open, taken, gone := w.invitation(acme, "open@acme.example"), w.invitation(acme, "taken@acme.example"), w.invitation(acme, "gone@acme.example")
	w.clock.move(day - time.Second) // on the stroke of the first two's end
	w.write(func(tx *store.Tx) {
		yes(w)(tx.AcceptInvitation(ctx, taken.ID))
		yes(w)(tx.RevokeInvitation(ctx, gone.ID))
		ok(w, tx.RetireExpiredInvitation(ctx, acme.ID, again.Email)) // stored as expired, the other one isn't
	})
	for state, want := range map[doorward.InvitationState][]string{
		doorward.InvitationPending: {open.ID}, doorward.InvitationAccepted: {taken.ID}, doorward.InvitationRevoked: {gone.ID},
		doorward.InvitationExpired: {again.ID, over.ID}, "": {gone.ID, taken.ID, open.ID, again.ID, over.ID}, "NONE": nil,
	} {
		page, err := w.Read().InvitationPage(ctx, acme.ID, store.InvitationFilter{State: state}, w.clock.read(), doorward.Window{Limit: 9})
		ok(w, err)
		var ids []string
		for _, i := range page.Items {
			ids = append(ids, i.ID)
		}
		same(w, want)(ids, nil)
	}
}

// strandedResets: with a tenant that nobody can sign in to go the resets of its
// people, but for those who can sign in elsewhere.
func strandedResets(w *world) {
	ctx := w.Context()
	acme, zeta, ice := w.tenant("Acme"), w.tenant("Zeta"), w.tenant("Ice")
	resetOf := func(a doorward.Account) string {
		r := store.Reset{ID: w.id("rst_"), UserID: a.ID, CreatedAt: w.clock.read(), ExpiresAt: w.clock.read().Add(time.Hour)}
		w.write(func(tx *store.Tx) { ok(w, tx.InsertReset(ctx, r)) })
		return r.ID
	}
	only, both, barred, frozen, stranger := w.account("only@x.example"), w.account("both@x.example"), w.account("barred@x.example"), w.account("frozen@x.example"), w.account("stranger@x.example")
	for _, a := range []doorward.Account{only, both, barred, frozen} {
		w.join(acme, a, doorward.RoleUser)
	}
	for _, a := range []doorward.Account{both, barred, stranger} {
		w.join(zeta, a, doorward.RoleUser)
	}
	w.join(ice, frozen, doorward.RoleUser)
	var open []string
	for _, a := range []doorward.Account{only, both, barred, frozen, stranger} {
		open = append(open, resetOf(a))
	}
	w.write(func(tx *store.Tx) {
		yes(w)(tx.SetUserStatus(ctx, zeta.ID, barred.ID, doorward.UserSuspended))
		yes(w)(tx.FreezeTenant(ctx, ice.ID))
		yes(w)(tx.CloseTenant(ctx, acme.ID, noon))
		ok(w, tx.ExpireStrandedResets(ctx, acme.ID))
		no(w)(tx.UseReset(ctx, open[0]))
		yes(w)(tx.UseReset(ctx, open[1]))
		no(w)(tx.UseReset(ctx, open[2]))
		no(w)(tx.UseReset(ctx, open[3]))
		yes(w)(tx.UseReset(ctx, open[4]))
	})
}

func resets(w *world) {
	ctx := w.Context()
	ann, bob := w.account("ann@acme.example"), w.account("bob@acme.example")
	reset := func(a doorward.Account) store.Reset {
		r := store.Reset{ID: w.id("rst_"), UserID: a.ID, CreatedAt: w.clock.read(), ExpiresAt: w.clock.read().Add(time.Hour)}
		w.write(func(tx *store.Tx) {
			ok(w, tx.InsertReset(ctx, r))
			ok(w, tx.InsertLinkToken(ctx, []byte(r.ID), r.ID))
		})
		return r
	}
	used, ended, bobs := reset(ann), reset(ann), reset(bob)
	same(w, used)(w.Read().ResetByToken(ctx, []byte(used.ID)))
	none(w)(w.Read().ResetByToken(ctx, []byte("none")))
	none(w)(w.Read().InvitationByToken(ctx, []byte(used.ID)))

	used.UsedAt = at(w.clock.move(time.Hour - time.Microsecond))
	w.write(func(tx *store.Tx) {
		yes(w)(tx.UseReset(ctx, used.ID)) // in the last microsecond
		no(w)(tx.UseReset(ctx, used.ID))
		no(w)(tx.UseReset(ctx, "rst_none"))
		ok(w, tx.ExpireResets(ctx, ann.ID))
		no(w)(tx.UseReset(ctx, ended.ID))
	})
	ended.ExpiresAt = w.clock.read()
	w.clock.move(time.Microsecond)
	w.write(func(tx *store.Tx) {
		no(w)(tx.UseReset(ctx, bobs.ID)) // on the stroke of its end
		ok(w, tx.ExpireResets(ctx, ann.ID))
		ok(w, tx.ExpireResets(ctx, bob.ID))
	})
	for _, r := range []store.Reset{used, ended, bobs} {
		same(w, r)(w.Read().ResetByToken(ctx, []byte(r.ID)))
	}
}

// due returns the mails to send now.
func (w *world) due() []store.Mail {
	w.Helper()
	all, err := w.Read().DueMails(w.Context(), store.Mail{}, w.clock.read(), 100)
	ok(w, err)
	return all
}

func mails(w *world) {
	ctx := w.Context()
	w.write(func(tx *store.Tx) { ok(w, tx.QueueMail(ctx, store.MailInvitation, "ann@acme.example", "inv_1")) })
	w.clock.move(time.Second)
	w.write(func(tx *store.Tx) {
		tx.MailShare = "192.0.2.7"
		ok(w, tx.QueueReset(ctx, "bob@acme.example", "https://app.example.com/inbox?a=b"))
	})
	all := w.due()
	if len(all) != 2 || all[0].ID == all[1].ID {
		w.Fatalf("due are %+v: want two mails", all)
	}
	first := store.Mail{
		ID: all[0].ID, Kind: store.MailInvitation, Recipient: "ann@acme.example", SubjectID: "inv_1",
		State: doorward.DeliveryQueued, NextAt: noon, CreatedAt: noon,
	}
	second := store.Mail{
		ID: all[1].ID, Kind: store.MailReset, Recipient: "bob@acme.example",
		State: doorward.DeliveryQueued, NextAt: noon.Add(time.Second), CreatedAt: noon.Add(time.Second),
		ReturnTo: "https://app.example.com/inbox?a=b", Share: "192.0.2.7",
	}
	same(w, []store.Mail{first, second})(all, nil)
	same(w, []store.Mail{first})(w.Read().DueMails(ctx, store.Mail{}, w.clock.read(), 1))
	same(w, []store.Mail{second})(w.Read().DueMails(ctx, first, w.clock.read(), 1))
	same(w, []store.Mail{second})(w.Read().DueUrgentMails(ctx, store.Mail{}, w.clock.read(), 1))
	same(w, []store.Mail{first})(w.Read().DueMailsOf(ctx, "inv_1", store.Mail{}, w.clock.read(), 9))
	same(w, []store.Mail(nil))(w.Read().DueMailsOf(ctx, "inv_1", first, w.clock.read(), 9))
	same(w, []store.Mail(nil))(w.Read().DueMailsOf(ctx, "inv_1", store.Mail{}, noon.Add(-time.Microsecond), 9))
	same(w, []store.Mail(nil))(w.Read().DueMailsOf(ctx, "inv_2", store.Mail{}, w.clock.read(), 9))
	same(w, []store.Mail(nil))(w.Read().DueUrgentMails(ctx, second, w.clock.read(), 1))
	same(w, []store.Mail{second})(w.Read().DueMails(ctx, store.Mail{NextAt: noon.Add(time.Microsecond)}, w.clock.read(), 100))
	same(w, []store.Mail(nil))(w.Read().DueMails(ctx, second, w.clock.read(), 100))
	same(w, []store.Mail{first})(w.Read().DueMails(ctx, store.Mail{}, noon, 100))
	same(w, []store.Mail(nil))(w.Read().DueMails(ctx, store.Mail{}, noon.Add(-time.Microsecond), 100))

	w.write(func(tx *store.Tx) { // nor what only a newer version can send
		for _, kind := range []store.MailKind{"voucher", "invit", "_nvitation", ""} {
			ok(w, tx.QueueMail(ctx, kind, "ann@acme.example", ""))
		}
	})
	same(w, []store.Mail{first, second})(w.due(), nil)
	same(w, 6)(CountMails(ctx, w.Read(), doorward.DeliveryQueued))

	w.write(func(tx *store.Tx) { ok(w, tx.SetMailSubject(ctx, second.ID, "rst_1")) })
	second.SubjectID = "rst_1"
	same(w, []store.Mail{first, second})(w.due(), nil)
	w.write(func(tx *store.Tx) { ok(w, tx.DeleteMail(ctx, first.ID)) })
	same(w, []store.Mail{second})(w.due(), nil)
	same(w, 5)(CountMails(ctx, w.Read(), doorward.DeliveryQueued))

	w.write(func(tx *store.Tx) {
		same(w, int64(0))(tx.DeleteOldMails(ctx, w.clock.read(), 10)) // not while it waits
		ok(w, tx.MailSent(ctx, second.ID))
		same(w, int64(0))(tx.DeleteOldMails(ctx, second.CreatedAt.Add(-time.Microsecond), 10))
	})
	same(w, 1)(CountMails(ctx, w.Read(), doorward.DeliverySent))
	w.write(func(tx *store.Tx) { same(w, int64(1))(tx.DeleteOldMails(ctx, second.CreatedAt, 10)) })
	same(w, 0)(CountMails(ctx, w.Read(), doorward.DeliverySent))

	// Of finished mails those of invitations stay: they show whether they came.
	w.write(func(tx *store.Tx) {
		for _, kind := range []store.MailKind{store.MailPasswordChanged, store.MailInvitation, store.MailRemoved} {
			ok(w, tx.QueueMail(ctx, kind, "ann@acme.example", string(kind)))
		}
	})
	for _, m := range w.due() {
		w.write(func(tx *store.Tx) { ok(w, tx.MailFailed(ctx, m.ID, "no such mailbox")) })
	}
	w.write(func(tx *store.Tx) { same(w, int64(2))(tx.DeleteOldMails(ctx, w.clock.read(), 10)) })
	same(w, 1)(CountMails(ctx, w.Read(), doorward.DeliveryFailed))
	same(w, w.clock.read())(w.Read().LastMail(ctx, string(store.MailInvitation)))
}

// blankedMails: a finished mail that stays for its state keeps no address.
func blankedMails(w *world) {
	ctx := w.Context()
	inv := w.invitation(w.tenant("Acme"), "ann@acme.example")
	w.write(func(tx *store.Tx) {
		ok(w, tx.QueueMail(ctx, store.MailInvitation, inv.Email, inv.ID))
		ok(w, tx.QueueMail(ctx, store.MailInvitation, "bob@acme.example", "inv_2"))
	})
	for _, m := range w.due() {
		if m.SubjectID == inv.ID {
			w.write(func(tx *store.Tx) { ok(w, tx.MailFailed(ctx, m.ID, "no mailbox "+inv.Email)) })
		}
	}
	w.write(func(tx *store.Tx) {
		same(w, int64(0))(tx.BlankOldMails(ctx, noon.Add(-time.Microsecond), 10))
		same(w, int64(0))(tx.BlankOldMails(ctx, noon, 0))
		same(w, int64(1))(tx.BlankOldMails(ctx, noon, 10))
		same(w, int64(0))(tx.BlankOldMails(ctx, noon, 10))
	})
	if kept, err := w.Read().Invitation(ctx, inv.ID); err != nil || kept.Delivery != doorward.DeliveryFailed || kept.Email != inv.Email {
		w.Errorf("the invitation is %+v, %v", kept, err)
	}
	if left := w.due(); len(left) != 1 || left[0].Recipient != "bob@acme.example" {
		w.Errorf("what waits is %+v", left)
	}
}

func triesOfAMail(w *world) {
	ctx := w.Context()
	w.write(func(tx *store.Tx) { ok(w, tx.QueueMail(ctx, store.MailInvitation, "ann@acme.example", "inv_1")) })
	fresh := w.due()[0]
	until := noon.Add(time.Minute)
	w.write(func(tx *store.Tx) {
		yes(w)(tx.ClaimMail(ctx, fresh, until))
		no(w)(tx.ClaimMail(ctx, fresh, until))
	})
	same(w, []store.Mail(nil))(w.due(), nil)

	// Whoever claimed it died: it is due again, and the old sight of it is dead.
	w.clock.move(time.Minute)
	again := fresh
	again.Tries, again.NextAt = 1, until
	same(w, []store.Mail{again})(w.due(), nil)
	w.write(func(tx *store.Tx) {
		no(w)(tx.ClaimMail(ctx, fresh, until.Add(time.Minute)))
		yes(w)(tx.ClaimMail(ctx, again, until.Add(time.Minute)))
		ok(w, tx.MailRetry(ctx, again.ID, until.Add(time.Hour), "421 try later"))
	})
	w.clock.move(time.Hour)
	again.Tries, again.NextAt, again.LastError = 2, until.Add(time.Hour), "421 try later"
	same(w, []store.Mail{again})(w.due(), nil)

	w.write(func(tx *store.Tx) {
		ok(w, tx.MailSent(ctx, again.ID))
		ok(w, tx.MailFailed(ctx, again.ID, "too late"))
		ok(w, tx.MailRetry(ctx, again.ID, noon, "too late"))
		no(w)(tx.ClaimMail(ctx, again, until.Add(day)))
	})
	same(w, 1)(CountMails(ctx, w.Read(), doorward.DeliverySent))
	same(w, 0)(CountMails(ctx, w.Read(), doorward.DeliveryFailed))
	same(w, []store.Mail(nil))(w.due(), nil)
}
