package storetest

import (
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// future: what begins beyond all tolerance begins now, and what is within it or in the
// past stays as it is.
func future(w *world) {
	ctx := w.Context()
	acme := w.tenant("Acme")
	ann := w.member(acme, "ann@acme.example", doorward.RoleOwner)
	past := w.session(ann)
	w.clock.move(store.ClockTolerance)
	near := w.session(ann)
	w.clock.move(26 * time.Hour)
	ahead := w.session(ann)
	offer := w.invitation(acme, "bob@acme.example")
	reset := store.Reset{ID: w.id("rst_"), UserID: ann.ID, CreatedAt: w.clock.read(), ExpiresAt: w.clock.read().Add(30 * time.Minute)}
	w.write(func(tx *store.Tx) {
		ok(w, tx.InsertReset(ctx, reset))
		ok(w, tx.InsertLinkToken(ctx, []byte("a link"), reset.ID))
		_, err := tx.HitThrottle(ctx, "account:ann", time.Minute)
		ok(w, err)
		ok(w, tx.DelayThrottle(ctx, "account:ann", tx.Now.Add(time.Minute)))
		ok(w, tx.QueueMail(ctx, store.MailReset, ann.Email, ""))
	})
	now := w.clock.move(-26*time.Hour - store.ClockTolerance)
	for _, want := range []int{1, 0} { // the second time there is nothing left
		w.write(func(tx *store.Tx) {
			n, err := tx.CutFuture(ctx)
			same(w, want)(n, err)
		})
	}
	for id, want := range map[string]time.Time{past.ID: past.CreatedAt, near.ID: near.CreatedAt, ahead.ID: now} {
		cred, err := w.Read().Session(ctx, id)
		same(w, want)(cred.Session.CreatedAt, err)
		same(w, want)(cred.Session.LastSeenAt, err)
	}
	inv, err := w.Read().Invitation(ctx, offer.ID)
	same(w, now.Add(time.Duration(offer.Days)*24*time.Hour))(inv.ExpiresAt, err)
	r, err := w.Read().ResetByToken(ctx, []byte("a link"))
	same(w, now.Add(30*time.Minute))(r.ExpiresAt, err)
	w.write(func(tx *store.Tx) {
		is, err := tx.HitThrottle(ctx, "account:ann", time.Minute)
		same(w, store.Throttle{Hits: 2, Since: now, Until: now.Add(time.Minute)})(is, err)
	})
	same(w, 1)(len(w.due()), nil)
}
