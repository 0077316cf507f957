package storetest

import (
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// future: times too far in the future become now; times within the tolerance or in the
// past stay.
func future(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	ann := f.member(acme, "ann@acme.example", doorward.RoleOwner)
	past := f.session(ann)
	f.clock.move(store.ClockTolerance)
	near := f.session(ann)
	f.clock.move(26 * time.Hour)
	ahead := f.session(ann)
	offer := f.invitation(acme, "bob@acme.example")
	made := f.apiKey(ann, "made ahead")
	reset := store.Reset{ID: f.id("rst_"), UserID: ann.ID, CreatedAt: f.clock.read(), ExpiresAt: f.clock.read().Add(30 * time.Minute)}
	f.write(func(tx *store.Tx) {
		noError(f, tx.InsertReset(ctx, reset))
		noError(f, tx.InsertLinkToken(ctx, []byte("a link"), reset.ID))
		_, err := tx.HitThrottle(ctx, "account:ann", time.Minute)
		noError(f, err)
		noError(f, tx.DelayThrottle(ctx, "account:ann", tx.Now.Add(time.Minute)))
		noError(f, tx.QueueMail(ctx, store.MailReset, ann.Email, ""))
	})
	underWay, answered := attemptAt("a", "one"), attemptAt("b", "one")
	equal(f, f.marks(underWay) && f.marks(answered) && f.keeps(answered, "kept"), true)
	now := f.clock.move(-26*time.Hour - store.ClockTolerance)
	for _, want := range []int{1, 0} { // the second time nothing is left
		f.write(func(tx *store.Tx) {
			n, err := tx.ClampFuture(ctx)
			equal(f, f.value(n, err), want)
		})
	}
	for id, want := range map[string]time.Time{past.ID: past.CreatedAt, near.ID: near.CreatedAt, ahead.ID: now} {
		cred, err := f.Read().Session(ctx, id)
		equal(f, f.value(cred.Session.CreatedAt, err), want)
		equal(f, f.value(cred.Session.LastSeenAt, err), want)
	}
	key, err := f.Read().APIKey(ctx, made.ID, now)
	equal(f, f.value([]time.Time{key.CreatedAt, key.ExpiresAt}, err), []time.Time{now, now.Add(made.ExpiresAt.Sub(made.CreatedAt))})
	inv, err := f.Read().Invitation(ctx, offer.ID)
	equal(f, f.value(inv.ExpiresAt, err), now.Add(time.Duration(offer.Days)*24*time.Hour))
	r, err := f.Read().ResetByToken(ctx, []byte("a link"))
	equal(f, f.value(r.ExpiresAt, err), now.Add(30*time.Minute))
	f.write(func(tx *store.Tx) {
		is, err := tx.HitThrottle(ctx, "account:ann", time.Minute)
		equal(f, f.value(is, err), store.Throttle{Hits: 2, Since: now, Until: now.Add(time.Minute)})
	})
	equal(f, f.value(len(f.due()), nil), 1)
	f.clock.move(4 * time.Second)
	equal(f, []bool{f.marks(attemptAt("a", "two")), f.marks(attemptAt("b", "two"))}, []bool{true, false})
	f.clock.move(24*time.Hour - 4*time.Second)
	equal(f, f.marks(attemptAt("b", "two")), true)
}
