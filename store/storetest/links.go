package storetest

import (
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

const day = 24 * time.Hour

func invitations(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	ann := f.member(acme, "ann@acme.example", doorward.RoleOwner)
	byOperator := f.invitation(acme, "bob@acme.example")
	byAnn := f.draft(acme, "cat@acme.example")
	byAnn.InvitedBy, byAnn.Role, byAnn.Name, byAnn.Locale = ann.ID, doorward.RoleAdmin, "", ""
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.InsertInvitation(ctx, byAnn))
		noError(f, tx.InsertLinkToken(ctx, []byte("first"), byAnn.ID))
		noError(f, tx.InsertLinkToken(ctx, []byte("second"), byAnn.ID))
	})

	equal(f, f.value(f.Read().Invitation(ctx, byOperator.ID)), byOperator)
	equal(f, f.value(f.Read().InvitationByToken(ctx, []byte("first"))), byAnn)
	equal(f, f.value(f.Read().InvitationByToken(ctx, []byte("second"))), byAnn)
	equal(f, f.value(f.Read().PendingInvitation(ctx, acme.ID, byAnn.Email)), byAnn)
	f.wantNone(f.Read().Invitation(ctx, "inv_none"))
	f.wantNone(f.Read().InvitationByToken(ctx, []byte("third")))
	f.wantNone(f.Read().PendingInvitation(ctx, acme.ID, ann.Email))
	f.wantNone(f.Read().PendingInvitation(ctx, byAnn.Email, acme.ID)) // arguments swapped

	// Delivery is the state of the newest mail.
	var mail store.Mail
	f.write(func(tx *store.Tx) { noError(f, tx.QueueMail(ctx, store.MailInvitation, byAnn.Email, byAnn.ID)) })
	mail = f.due()[0]
	f.write(func(tx *store.Tx) { noError(f, tx.MarkMailSent(ctx, mail.ID)) })
	byAnn.Delivery = doorward.DeliverySent
	equal(f, f.value(f.Read().Invitation(ctx, byAnn.ID)), byAnn)
	f.clock.move(time.Second)
	f.write(func(tx *store.Tx) { noError(f, tx.QueueMail(ctx, store.MailInvitation, byAnn.Email, byAnn.ID)) })
	byAnn.Delivery = doorward.DeliveryQueued
	equal(f, f.value(f.Read().Invitation(ctx, byAnn.ID)), byAnn)
	f.write(func(tx *store.Tx) { noError(f, tx.MarkMailFailed(ctx, f.due()[0].ID, "no such mailbox")) })
	byAnn.Delivery = doorward.DeliveryFailed
	equal(f, f.value(f.Read().InvitationByToken(ctx, []byte("second"))), byAnn)
	equal(f, f.value(f.Read().Invitation(ctx, byOperator.ID)), byOperator)
}

func onePendingInvitation(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	first := f.invitation(acme, "bob@acme.example")
	f.invitation(zeta, "bob@acme.example")
	f.invitation(acme, "cat@acme.example")

	f.write(func(tx *store.Tx) {
		f.wantNoChange(tx.InsertInvitation(ctx, f.draft(acme, first.Email)))
		noError(f, tx.RetireExpiredInvitation(ctx, acme.ID, first.Email)) // not expired yet
		f.wantNoChange(tx.InsertInvitation(ctx, f.draft(acme, first.Email)))
	})
	f.clock.move(day)
	second := f.draft(acme, first.Email)
	f.write(func(tx *store.Tx) {
		f.wantNoChange(tx.InsertInvitation(ctx, second))
		noError(f, tx.RetireExpiredInvitation(ctx, acme.ID, first.Email))
		f.wantChange(tx.InsertInvitation(ctx, second))
		f.wantNoChange(tx.AcceptInvitation(ctx, first.ID))
		f.wantChange(tx.AcceptInvitation(ctx, second.ID))
	})
	first.State = doorward.InvitationExpired
	equal(f, f.value(f.Read().Invitation(ctx, first.ID)), first)
	f.wantNone(f.Read().PendingInvitation(ctx, acme.ID, first.Email))
	// Expired invitations of another address or tenant stay pending.
	if _, err := f.Read().PendingInvitation(ctx, zeta.ID, first.Email); err != nil {
		f.Error(err)
	}
	if _, err := f.Read().PendingInvitation(ctx, acme.ID, "cat@acme.example"); err != nil {
		f.Error(err)
	}
}

func endOfInvitations(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	ann := f.member(acme, "ann@acme.example", doorward.RoleOwner)
	invite := func(t doorward.Tenant, email string) doorward.Invitation {
		i := f.draft(t, email)
		i.InvitedBy = ann.ID
		f.write(func(tx *store.Tx) { f.wantChange(tx.InsertInvitation(ctx, i)) })
		return i
	}
	late := invite(acme, "late@acme.example")
	f.clock.move(day - time.Microsecond)
	intime := invite(acme, "intime@acme.example")
	f.write(func(tx *store.Tx) { f.wantChange(tx.AcceptInvitation(ctx, late.ID)) }) // in its last microsecond
	late.State, late.AcceptedAt = doorward.InvitationAccepted, pointerTo(f.clock.read())
	equal(f, f.value(f.Read().Invitation(ctx, late.ID)), late)

	f.clock.move(day)
	f.write(func(tx *store.Tx) { f.wantNoChange(tx.AcceptInvitation(ctx, intime.ID)) }) // exactly at its end
	open, other, elsewhere := invite(acme, "open@acme.example"), f.invitation(acme, "other@acme.example"), invite(zeta, "open@acme.example")
	f.write(func(tx *store.Tx) {
		equal(f, f.value(tx.RevokeInvitationsBy(ctx, acme.ID, ann.ID)), int64(1))
		equal(f, f.value(tx.RevokeInvitationsBy(ctx, acme.ID, ann.ID)), int64(0))
		equal(f, f.value(tx.RevokeInvitationsBy(ctx, acme.ID, "")), int64(0))
		f.wantNoChange(tx.AcceptInvitation(ctx, open.ID))
		f.wantNoChange(tx.AcceptInvitation(ctx, late.ID))
		f.wantNoChange(tx.AcceptInvitation(ctx, "inv_none"))
	})
	open.State, open.RevokedAt = doorward.InvitationRevoked, pointerTo(f.clock.read())
	for _, i := range []doorward.Invitation{late, intime, open, other, elsewhere} {
		equal(f, f.value(f.Read().Invitation(ctx, i.ID)), i)
	}
}

func invitationsSentAgain(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	ann := f.member(acme, "ann@acme.example", doorward.RoleOwner)
	i, other := f.invitation(acme, "bob@acme.example"), f.invitation(acme, "cat@acme.example")
	f.wantNone(f.Read().LastMail(ctx, i.ID))
	f.write(func(tx *store.Tx) {
		noError(f, tx.InsertLinkToken(ctx, []byte("old"), i.ID))
		noError(f, tx.InsertLinkToken(ctx, []byte("other"), other.ID))
		noError(f, tx.QueueMail(ctx, store.MailInvitation, i.Email, i.ID))
	})
	f.clock.move(time.Minute)
	f.write(func(tx *store.Tx) {
		noError(f, tx.QueueMail(ctx, store.MailInvitation, i.Email, i.ID))
		noError(f, tx.RetireTokens(ctx, i.ID))
		noError(f, tx.InsertLinkToken(ctx, []byte("new"), i.ID))
	})
	equal(f, f.value(f.Read().LastMail(ctx, i.ID)), f.clock.read())
	for token, want := range map[string]bool{"old": true, "new": false, "other": false, "none": false} {
		equal(f, f.value(f.Read().TokenRetired(ctx, []byte(token))), want)
	}

	until := noon.Add(3 * day)
	f.clock.move(day - time.Minute - time.Microsecond)
	i.InvitedBy, i.ServiceKeyID, i.ExpiresAt = ann.ID, "key_x", until
	f.write(func(tx *store.Tx) { f.wantChange(tx.RenewInvitation(ctx, i)) }) // in its last microsecond
	equal(f, f.value(f.Read().InvitationByToken(ctx, []byte("old"))), i)
	equal(f, f.value(f.Read().InvitationByToken(ctx, []byte("new"))), i)
	f.clock.move(time.Microsecond)
	f.write(func(tx *store.Tx) {
		renewed := other
		renewed.InvitedBy, renewed.ExpiresAt = ann.ID, until
		f.wantNoChange(tx.RenewInvitation(ctx, renewed))
		renewed.ID = "inv_none"
		f.wantNoChange(tx.RenewInvitation(ctx, renewed))
		f.wantNoChange(tx.RevokeInvitation(ctx, other.ID))
		f.wantNoChange(tx.RevokeInvitation(ctx, "inv_none"))
		f.wantChange(tx.RevokeInvitation(ctx, i.ID))
		f.wantNoChange(tx.RevokeInvitation(ctx, i.ID))
		f.wantNoChange(tx.RenewInvitation(ctx, i))
		f.wantNoChange(tx.AcceptInvitation(ctx, i.ID))
	})
	i.State, i.RevokedAt = doorward.InvitationRevoked, pointerTo(f.clock.read())
	equal(f, f.value(f.Read().Invitation(ctx, i.ID)), i)
	equal(f, f.value(f.Read().Invitation(ctx, other.ID)), other)
}

func statesOfInvitations(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	over, again := f.invitation(acme, "over@acme.example"), f.invitation(acme, "again@acme.example")
	f.clock.move(time.Second)
	open, taken, gone := f.invitation(acme, "open@acme.example"), f.invitation(acme, "taken@acme.example"), f.invitation(acme, "gone@acme.example")
	f.clock.move(day - time.Second) // exactly at the end of the first two
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.AcceptInvitation(ctx, taken.ID))
		f.wantChange(tx.RevokeInvitation(ctx, gone.ID))
		noError(f, tx.RetireExpiredInvitation(ctx, acme.ID, again.Email)) // stored as expired, unlike the other one
	})
	for state, want := range map[doorward.InvitationState][]string{
		doorward.InvitationPending: {open.ID}, doorward.InvitationAccepted: {taken.ID}, doorward.InvitationRevoked: {gone.ID},
		doorward.InvitationExpired: {again.ID, over.ID}, "": {gone.ID, taken.ID, open.ID, again.ID, over.ID}, "NONE": nil,
	} {
		page, err := f.Read().InvitationPage(ctx, acme.ID, store.InvitationFilter{State: state}, f.clock.read(), doorward.Window{Limit: 9})
		noError(f, err)
		var ids []string
		for _, i := range page.Items {
			ids = append(ids, i.ID)
		}
		equal(f, ids, want)
	}
}

// strandedResets: when nobody can sign in to a tenant, its people's resets expire, except
// those of people who can sign in elsewhere.
func strandedResets(f *fixture) {
	ctx := f.Context()
	acme, zeta, ice := f.tenant("Acme"), f.tenant("Zeta"), f.tenant("Ice")
	resetOf := func(a doorward.Account) string {
		r := store.Reset{ID: f.id("rst_"), UserID: a.ID, CreatedAt: f.clock.read(), ExpiresAt: f.clock.read().Add(time.Hour)}
		f.write(func(tx *store.Tx) { noError(f, tx.InsertReset(ctx, r)) })
		return r.ID
	}
	only, both, barred, frozen, stranger := f.account("only@x.example"), f.account("both@x.example"), f.account("barred@x.example"), f.account("frozen@x.example"), f.account("stranger@x.example")
	for _, a := range []doorward.Account{only, both, barred, frozen} {
		f.join(acme, a, doorward.RoleUser)
	}
	for _, a := range []doorward.Account{both, barred, stranger} {
		f.join(zeta, a, doorward.RoleUser)
	}
	f.join(ice, frozen, doorward.RoleUser)
	var open []string // ids of resets, in the order of these accounts
	for _, a := range []doorward.Account{only, both, barred, frozen, stranger} {
		open = append(open, resetOf(a))
	}
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.SetUserStatus(ctx, zeta.ID, barred.ID, doorward.UserSuspended))
		f.wantChange(tx.FreezeTenant(ctx, ice.ID))
		f.wantChange(tx.CloseTenant(ctx, acme.ID, noon))
		noError(f, tx.ExpireStrandedResets(ctx, acme.ID))
		f.wantNoChange(tx.UseReset(ctx, open[0]))
		f.wantChange(tx.UseReset(ctx, open[1]))
		f.wantNoChange(tx.UseReset(ctx, open[2]))
		f.wantNoChange(tx.UseReset(ctx, open[3]))
		f.wantChange(tx.UseReset(ctx, open[4]))
	})
}

func resets(f *fixture) {
	ctx := f.Context()
	ann, bob := f.account("ann@acme.example"), f.account("bob@acme.example")
	reset := func(a doorward.Account) store.Reset {
		r := store.Reset{ID: f.id("rst_"), UserID: a.ID, CreatedAt: f.clock.read(), ExpiresAt: f.clock.read().Add(time.Hour)}
		f.write(func(tx *store.Tx) {
			noError(f, tx.InsertReset(ctx, r))
			noError(f, tx.InsertLinkToken(ctx, []byte(r.ID), r.ID))
		})
		return r
	}
	used, ended, bobs := reset(ann), reset(ann), reset(bob)
	equal(f, f.value(f.Read().ResetByToken(ctx, []byte(used.ID))), used)
	f.wantNone(f.Read().ResetByToken(ctx, []byte("none")))
	f.wantNone(f.Read().InvitationByToken(ctx, []byte(used.ID)))

	used.UsedAt = pointerTo(f.clock.move(time.Hour - time.Microsecond))
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.UseReset(ctx, used.ID)) // in its last microsecond
		f.wantNoChange(tx.UseReset(ctx, used.ID))
		f.wantNoChange(tx.UseReset(ctx, "rst_none"))
		noError(f, tx.ExpireResets(ctx, ann.ID))
		f.wantNoChange(tx.UseReset(ctx, ended.ID))
	})
	ended.ExpiresAt = ended.CreatedAt
	f.clock.move(time.Microsecond)
	f.write(func(tx *store.Tx) {
		f.wantNoChange(tx.UseReset(ctx, bobs.ID)) // exactly at its end
		noError(f, tx.ExpireResets(ctx, ann.ID))
		noError(f, tx.ExpireResets(ctx, bob.ID))
	})
	for _, r := range []store.Reset{used, ended, bobs} {
		equal(f, f.value(f.Read().ResetByToken(ctx, []byte(r.ID))), r)
	}
}

// due returns the mails that are due now.
func (f *fixture) due() []store.Mail {
	f.Helper()
	all, err := f.Read().DueMails(f.Context(), store.Mail{}, f.clock.read(), 100)
	noError(f, err)
	return all
}

func mails(f *fixture) {
	ctx := f.Context()
	f.write(func(tx *store.Tx) { noError(f, tx.QueueMail(ctx, store.MailInvitation, "ann@acme.example", "inv_1")) })
	f.clock.move(time.Second)
	f.write(func(tx *store.Tx) {
		tx.MailShare = "192.0.2.7"
		noError(f, tx.QueueReset(ctx, "bob@acme.example", "https://app.example.com/inbox?a=b"))
	})
	all := f.due()
	if len(all) != 2 || all[0].ID == all[1].ID {
		f.Fatalf("the due mails are %+v: want two mails", all)
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
	equal(f, all, []store.Mail{first, second})
	equal(f, f.value(f.Read().DueMails(ctx, store.Mail{}, f.clock.read(), 1)), []store.Mail{first})
	equal(f, f.value(f.Read().DueMails(ctx, first, f.clock.read(), 1)), []store.Mail{second})
	equal(f, f.value(f.Read().DueUrgentMails(ctx, store.Mail{}, f.clock.read(), 1)), []store.Mail{second})
	equal(f, f.value(f.Read().DueMailsOf(ctx, "inv_1", store.Mail{}, f.clock.read(), 9)), []store.Mail{first})
	equal(f, f.value(f.Read().DueMailsOf(ctx, "inv_1", first, f.clock.read(), 9)), []store.Mail(nil))
	equal(f, f.value(f.Read().DueMailsOf(ctx, "inv_1", store.Mail{}, noon.Add(-time.Microsecond), 9)), []store.Mail(nil))
	equal(f, f.value(f.Read().DueMailsOf(ctx, "inv_2", store.Mail{}, f.clock.read(), 9)), []store.Mail(nil))
	equal(f, f.value(f.Read().DueUrgentMails(ctx, second, f.clock.read(), 1)), []store.Mail(nil))
	equal(f, f.value(f.Read().DueMails(ctx, store.Mail{NextAt: noon.Add(time.Microsecond)}, f.clock.read(), 100)), []store.Mail{second})
	equal(f, f.value(f.Read().DueMails(ctx, second, f.clock.read(), 100)), []store.Mail(nil))
	equal(f, f.value(f.Read().DueMails(ctx, store.Mail{}, noon, 100)), []store.Mail{first})
	equal(f, f.value(f.Read().DueMails(ctx, store.Mail{}, noon.Add(-time.Microsecond), 100)), []store.Mail(nil))

	f.write(func(tx *store.Tx) { // kinds that only a newer version can send aren't due
		for _, kind := range []store.MailKind{"voucher", "invit", "_nvitation", ""} {
			noError(f, tx.QueueMail(ctx, kind, "ann@acme.example", ""))
		}
	})
	equal(f, f.due(), []store.Mail{first, second})
	equal(f, f.value(CountMails(ctx, f.Read(), doorward.DeliveryQueued)), 6)

	f.write(func(tx *store.Tx) { noError(f, tx.SetMailSubject(ctx, second.ID, "rst_1")) })
	second.SubjectID = "rst_1"
	equal(f, f.due(), []store.Mail{first, second})
	f.write(func(tx *store.Tx) { noError(f, tx.DeleteMail(ctx, first.ID)) })
	equal(f, f.due(), []store.Mail{second})
	equal(f, f.value(CountMails(ctx, f.Read(), doorward.DeliveryQueued)), 5)

	f.write(func(tx *store.Tx) {
		equal(f, f.value(tx.DeleteOldMails(ctx, f.clock.read(), 10)), int64(0)) // not while it is queued
		noError(f, tx.MarkMailSent(ctx, second.ID))
		equal(f, f.value(tx.DeleteOldMails(ctx, second.CreatedAt.Add(-time.Microsecond), 10)), int64(0))
	})
	equal(f, f.value(CountMails(ctx, f.Read(), doorward.DeliverySent)), 1)
	f.write(func(tx *store.Tx) { equal(f, f.value(tx.DeleteOldMails(ctx, second.CreatedAt, 10)), int64(1)) })
	equal(f, f.value(CountMails(ctx, f.Read(), doorward.DeliverySent)), 0)

	// Of finished mails only those of invitations stay: they show the delivery.
	f.write(func(tx *store.Tx) {
		for _, kind := range []store.MailKind{store.MailPasswordChanged, store.MailInvitation, store.MailRemoved} {
			noError(f, tx.QueueMail(ctx, kind, "ann@acme.example", string(kind)))
		}
	})
	for _, m := range f.due() {
		f.write(func(tx *store.Tx) { noError(f, tx.MarkMailFailed(ctx, m.ID, "no such mailbox")) })
	}
	f.write(func(tx *store.Tx) { equal(f, f.value(tx.DeleteOldMails(ctx, f.clock.read(), 10)), int64(2)) })
	equal(f, f.value(CountMails(ctx, f.Read(), doorward.DeliveryFailed)), 1)
	equal(f, f.value(f.Read().LastMail(ctx, string(store.MailInvitation))), f.clock.read())
}

// blankedMails: a finished mail that is kept for its state has no address.
func blankedMails(f *fixture) {
	ctx := f.Context()
	inv := f.invitation(f.tenant("Acme"), "ann@acme.example")
	f.write(func(tx *store.Tx) {
		noError(f, tx.QueueMail(ctx, store.MailInvitation, inv.Email, inv.ID))
		noError(f, tx.QueueMail(ctx, store.MailInvitation, "bob@acme.example", "inv_2"))
		noError(f, tx.QueueMail(ctx, store.MailRemoved, inv.Email, "evt_1")) // DeleteOldMails deletes it
	})
	for _, m := range f.due() {
		if m.Recipient == inv.Email {
			f.write(func(tx *store.Tx) { noError(f, tx.MarkMailFailed(ctx, m.ID, "no mailbox "+inv.Email)) })
		}
	}
	f.write(func(tx *store.Tx) {
		equal(f, f.value(tx.BlankOldMails(ctx, noon.Add(-time.Microsecond), 10)), int64(0))
		equal(f, f.value(tx.BlankOldMails(ctx, noon, 0)), int64(0))
		equal(f, f.value(tx.BlankOldMails(ctx, noon, 10)), int64(1))
		equal(f, f.value(tx.BlankOldMails(ctx, noon, 10)), int64(0))
		equal(f, f.value(tx.DeleteOldMails(ctx, noon, 10)), int64(1))
	})
	if kept, err := f.Read().Invitation(ctx, inv.ID); err != nil || kept.Delivery != doorward.DeliveryFailed || kept.Email != inv.Email {
		f.Errorf("the invitation is %+v, %v", kept, err)
	}
	if due := f.due(); len(due) != 1 || due[0].Recipient != "bob@acme.example" {
		f.Errorf("the queued mail is %+v", due)
	}
}

func triesOfAMail(f *fixture) {
	ctx := f.Context()
	f.write(func(tx *store.Tx) { noError(f, tx.QueueMail(ctx, store.MailInvitation, "ann@acme.example", "inv_1")) })
	fresh := f.due()[0]
	until := noon.Add(time.Minute)
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.ClaimMail(ctx, fresh, until))
		f.wantNoChange(tx.ClaimMail(ctx, fresh, until))
	})
	equal(f, f.due(), []store.Mail(nil))

	// The node that claimed it died: it is due again, and a copy read earlier is stale.
	f.clock.move(time.Minute)
	again := fresh
	again.Tries, again.NextAt = 1, until
	equal(f, f.due(), []store.Mail{again})
	f.write(func(tx *store.Tx) {
		f.wantNoChange(tx.ClaimMail(ctx, fresh, until.Add(time.Minute)))
		f.wantChange(tx.ClaimMail(ctx, again, until.Add(time.Minute)))
		noError(f, tx.ScheduleMailRetry(ctx, again.ID, until.Add(time.Hour), "421 try later"))
	})
	f.clock.move(time.Hour)
	again.Tries, again.NextAt, again.LastError = 2, until.Add(time.Hour), "421 try later"
	equal(f, f.due(), []store.Mail{again})

	f.write(func(tx *store.Tx) {
		noError(f, tx.MarkMailSent(ctx, again.ID))
		noError(f, tx.MarkMailFailed(ctx, again.ID, "too late"))
		noError(f, tx.ScheduleMailRetry(ctx, again.ID, noon, "too late"))
		f.wantNoChange(tx.ClaimMail(ctx, again, until.Add(day)))
	})
	equal(f, f.value(CountMails(ctx, f.Read(), doorward.DeliverySent)), 1)
	equal(f, f.value(CountMails(ctx, f.Read(), doorward.DeliveryFailed)), 0)
	equal(f, f.due(), []store.Mail(nil))
}
