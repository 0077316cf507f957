package storetest

import (
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// setBack is what has to be done with a database that was set back to an older
// state.
func setBack(w *world) {
	ctx := w.Context()
	acme, zeta := w.tenant("Acme"), w.tenant("Zeta")
	ann, bob := w.member(acme, "ann@acme.example", doorward.RoleOwner), w.member(zeta, "bob@acme.example", doorward.RoleUser)
	s, other := w.session(ann), w.session(bob)
	inv := w.invitation(acme, "cid@acme.example")
	reset := store.Reset{ID: w.id("rst_"), UserID: ann.ID, CreatedAt: noon, ExpiresAt: noon.Add(time.Hour)}
	used := store.Reset{ID: w.id("rst_"), UserID: ann.ID, CreatedAt: noon, ExpiresAt: noon.Add(time.Hour)}
	w.write(func(tx *store.Tx) {
		ok(w, tx.InsertReset(ctx, reset))
		ok(w, tx.InsertReset(ctx, used))
		yes(w)(tx.UseReset(ctx, used.ID))
		ok(w, tx.InsertLinkToken(ctx, []byte("invited"), inv.ID))
		ok(w, tx.InsertLinkToken(ctx, []byte("reset"), reset.ID))
		ok(w, tx.InsertLinkToken(ctx, []byte("used"), used.ID))
	})

	w.clock.move(time.Minute)
	w.write(func(tx *store.Tx) {
		same(w, int64(2))(tx.DeleteAllSessions(ctx, aDay))
		same(w, int64(3))(tx.RetireAllTokens(ctx))
		same(w, int64(0))(tx.RetireAllTokens(ctx))
	})
	same(w, []string(nil))(w.live(s, other), nil)
	same(w, true)(w.Read().TokenRetired(ctx, []byte("invited")))
	same(w, inv)(w.Read().InvitationByToken(ctx, []byte("invited"))) // to be sent again
	reset.ExpiresAt = noon.Add(time.Minute)
	same(w, reset)(w.Read().ResetByToken(ctx, []byte("reset")))
	used.UsedAt = at(noon)
	same(w, used)(w.Read().ResetByToken(ctx, []byte("used")))
	w.write(func(tx *store.Tx) { no(w)(tx.UseReset(ctx, reset.ID)) })
}

// leaps: the number of a change is beyond all that were given, and the change is
// one for everybody.
func leaps(w *world) {
	before, err := w.Write(w.Context(), func(tx *store.Tx) error { tx.AskFlush([]byte{1}); return nil })
	ok(w, err)
	after, err := w.Write(w.Context(), func(tx *store.Tx) error { return tx.InvalidateAll(w.Context()) })
	ok(w, err)
	same(w, []store.Change{{Seq: before[0].Seq + 1<<32 + 1, Kind: store.ChangeAll}})(after, nil)
}

func doneSince(w *world) {
	ctx := w.Context()
	same(w, time.Unix(0, 0).UTC())(w.Read().NewestEvent(ctx))
	same(w, "")(w.Read().NewestEventID(ctx))
	same(w, map[doorward.Action]int{})(w.Read().CountDone(ctx, time.Unix(0, 0)))
	record := func(tenant string, action doorward.Action, outcome doorward.Outcome) {
		w.write(func(tx *store.Tx) {
			ok(w, tx.InsertEvent(ctx, doorward.Event{
				ID: w.id("evt_"), Action: action, Outcome: outcome, Target: doorward.Object{Type: "user", TenantID: tenant},
			}))
		})
	}
	record("tnt_1", doorward.UserSuspend, doorward.Done)
	since := w.clock.read()
	w.clock.move(time.Microsecond)
	record("tnt_1", doorward.UserSuspend, doorward.Done)
	record("tnt_2", doorward.UserSuspend, doorward.Done)
	record("", doorward.UserRole, doorward.Done)
	record("tnt_1", doorward.UserRole, doorward.Refused)
	same(w, w.clock.read())(w.Read().NewestEvent(ctx))
	newest, err := w.Read().NewestEventID(ctx)
	ok(w, err)
	same(w, true)(w.Read().HasEvent(ctx, newest))
	same(w, false)(w.Read().HasEvent(ctx, "evt_absent"))
	event, err := w.Read().Event(ctx, newest)
	ok(w, err)
	same(w, w.clock.read())(event.At, nil)
	same(w, map[doorward.Action]int{doorward.UserSuspend: 2, doorward.UserRole: 1})(w.Read().CountDone(ctx, since))
}

// vitals: of mails those that wait count, and the one that has waited longest.
func vitals(w *world) {
	ctx := w.Context()
	none := time.Unix(0, 0).UTC()
	before, err := w.Read().Vitals(ctx)
	ok(w, err)
	same(w, store.Vitals{Position: before.Position, OldestMail: none, InboxDue: none, LastBackup: none})(before, nil)
	w.write(func(tx *store.Tx) { ok(w, tx.QueueMail(ctx, store.MailReset, "ann@acme.example", "")) })
	w.clock.move(time.Minute)
	w.write(func(tx *store.Tx) {
		ok(w, tx.QueueMail(ctx, store.MailReset, "bob@acme.example", ""))
		tx.AskFlush([]byte{1})
	})
	same(w, store.Vitals{Position: before.Position + 1, MailsQueued: 2, OldestMail: noon, InboxDue: none, LastBackup: none})(w.Read().Vitals(ctx))
	due, err := w.Read().DueMails(ctx, store.Mail{}, w.clock.read(), 1)
	ok(w, err)
	w.write(func(tx *store.Tx) { ok(w, tx.MailSent(ctx, due[0].ID)) })
	w.write(func(tx *store.Tx) { ok(w, tx.NoteBackup(ctx, "/var/backups/1.db")) })
	w.clock.move(time.Minute)
	w.write(func(tx *store.Tx) { ok(w, tx.NoteBackup(ctx, "")) })
	same(w, store.Vitals{Position: before.Position + 1, MailsQueued: 1, OldestMail: noon.Add(time.Minute), InboxDue: none, LastBackup: noon.Add(2 * time.Minute)})(w.Read().Vitals(ctx))
}
