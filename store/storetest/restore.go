package storetest

import (
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// restored: after a database was restored to an older state, sessions, links and resets end.
func restored(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	ann, bob := f.member(acme, "ann@acme.example", doorward.RoleOwner), f.member(zeta, "bob@acme.example", doorward.RoleUser)
	s, other := f.session(ann), f.session(bob)
	inv := f.invitation(acme, "cid@acme.example")
	reset := store.Reset{ID: f.id("rst_"), UserID: ann.ID, CreatedAt: noon, ExpiresAt: noon.Add(time.Hour)}
	used := store.Reset{ID: f.id("rst_"), UserID: ann.ID, CreatedAt: noon, ExpiresAt: noon.Add(time.Hour)}
	f.write(func(tx *store.Tx) {
		noError(f, tx.InsertReset(ctx, reset))
		noError(f, tx.InsertReset(ctx, used))
		f.wantChange(tx.UseReset(ctx, used.ID))
		noError(f, tx.InsertLinkToken(ctx, []byte("invited"), inv.ID))
		noError(f, tx.InsertLinkToken(ctx, []byte("reset"), reset.ID))
		noError(f, tx.InsertLinkToken(ctx, []byte("used"), used.ID))
	})

	f.clock.move(time.Minute)
	f.write(func(tx *store.Tx) {
		equal(f, f.value(tx.DeleteAllSessions(ctx, aDay)), int64(2))
		equal(f, f.value(tx.RetireAllTokens(ctx)), int64(3))
		equal(f, f.value(tx.RetireAllTokens(ctx)), int64(0))
	})
	equal(f, f.live(s, other), []string(nil))
	equal(f, f.value(f.Read().TokenRetired(ctx, []byte("invited"))), true)
	equal(f, f.value(f.Read().InvitationByToken(ctx, []byte("invited"))), inv) // can be sent again
	reset.ExpiresAt = noon.Add(time.Minute)
	equal(f, f.value(f.Read().ResetByToken(ctx, []byte("reset"))), reset)
	used.UsedAt = pointerTo(noon)
	equal(f, f.value(f.Read().ResetByToken(ctx, []byte("used"))), used)
	f.write(func(tx *store.Tx) { f.wantNoChange(tx.UseReset(ctx, reset.ID)) })
}

// invalidateAll: the number of the change is higher than all numbers used before, and the
// change affects everybody.
func invalidateAll(f *fixture) {
	before, err := f.Write(f.Context(), func(tx *store.Tx) error { tx.RequestFlush([]byte{1}); return nil })
	noError(f, err)
	after, err := f.Write(f.Context(), func(tx *store.Tx) error { return tx.InvalidateAll(f.Context()) })
	noError(f, err)
	equal(f, after, []store.Change{{Seq: before[0].Seq + 1<<32 + 1, Kind: store.ChangeAll}})
}

func doneSince(f *fixture) {
	ctx := f.Context()
	equal(f, f.value(f.Read().NewestEvent(ctx)), time.Unix(0, 0).UTC())
	equal(f, f.value(f.Read().NewestEventID(ctx)), "")
	equal(f, f.value(f.Read().CountDone(ctx, time.Unix(0, 0))), map[doorward.Action]int{})
	record := func(tenant string, action doorward.Action, outcome doorward.Outcome) {
		f.write(func(tx *store.Tx) {
			noError(f, tx.InsertEvent(ctx, doorward.Event{
				ID: f.id("evt_"), Action: action, Outcome: outcome, Target: doorward.Object{Type: "user", TenantID: tenant},
			}))
		})
	}
	record("tnt_1", doorward.UserSuspend, doorward.Done)
	since := f.clock.read()
	f.clock.move(time.Microsecond)
	record("tnt_1", doorward.UserSuspend, doorward.Done)
	record("tnt_2", doorward.UserSuspend, doorward.Done)
	record("", doorward.UserRole, doorward.Done)
	record("tnt_1", doorward.UserRole, doorward.Refused)
	equal(f, f.value(f.Read().NewestEvent(ctx)), f.clock.read())
	newest, err := f.Read().NewestEventID(ctx)
	noError(f, err)
	equal(f, f.value(f.Read().HasEvent(ctx, newest)), true)
	equal(f, f.value(f.Read().HasEvent(ctx, "evt_absent")), false)
	event, err := f.Read().Event(ctx, newest)
	noError(f, err)
	equal(f, event.At, f.clock.read())
	equal(f, f.value(f.Read().CountDone(ctx, since)), map[doorward.Action]int{doorward.UserSuspend: 2, doorward.UserRole: 1})
}

// vitals: only queued mails count, with the time of the oldest, and a digest from the end of its hour on; of
// backups the newest counts.
func vitals(f *fixture) {
	ctx := f.Context()
	none := time.Unix(0, 0).UTC()
	before, err := f.Read().Vitals(ctx, f.clock.read())
	noError(f, err)
	equal(f, before, store.Vitals{Position: before.Position, OldestMail: none, InboxDue: none, LastBackup: none, OldestDelivery: none, DeliveryDue: none})
	f.write(func(tx *store.Tx) { noError(f, tx.QueueMail(ctx, store.MailReset, "ann@acme.example", "")) })
	f.clock.move(time.Minute)
	f.write(func(tx *store.Tx) {
		noError(f, tx.QueueMail(ctx, store.MailReset, "bob@acme.example", ""))
		tx.RequestFlush([]byte{1})
	})
	equal(f, f.value(f.Read().Vitals(ctx, f.clock.read())), store.Vitals{Position: before.Position + 1, MailsQueued: 2, OldestMail: noon, InboxDue: none, LastBackup: none, OldestDelivery: none, DeliveryDue: none})
	due, err := f.Read().DueMails(ctx, store.Mail{}, f.clock.read(), 2)
	noError(f, err)
	f.write(func(tx *store.Tx) { noError(f, tx.MarkMailSent(ctx, due[0].ID)) })
	f.write(func(tx *store.Tx) { noError(f, tx.NoteBackup(ctx, "/var/backups/1.db")) })
	f.clock.move(time.Minute)
	f.write(func(tx *store.Tx) { noError(f, tx.NoteBackup(ctx, "")) })
	equal(f, f.value(f.Read().Vitals(ctx, f.clock.read())), store.Vitals{Position: before.Position + 1, MailsQueued: 1, OldestMail: noon.Add(time.Minute), InboxDue: none, LastBackup: noon.Add(2 * time.Minute), OldestDelivery: none, DeliveryDue: none})
	digests := func() any { return f.value(f.Read().Vitals(ctx, f.clock.read())).(store.Vitals).MailsQueued }
	f.hold(store.MailSignedIn, "ann@acme.example", f.event("tnt_1", "usr_1"))
	equal(f, digests(), 1)
	began := f.clock.read()
	f.clock.move(time.Hour)
	equal(f, digests(), 2)
	f.write(func(tx *store.Tx) { noError(f, tx.MarkMailSent(ctx, due[1].ID)) })
	equal(f, f.value(f.Read().Vitals(ctx, f.clock.read())).(store.Vitals).OldestMail, began.Add(time.Hour))
}
