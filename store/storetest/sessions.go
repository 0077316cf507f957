package storetest

import (
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

func sessions(w *world) {
	ctx := w.Context()
	acme, zeta := w.tenant("Acme"), w.tenant("Zeta")
	a := w.account("ann@acme.example")
	ann, annZeta := w.join(acme, a, doorward.RoleOwner), w.join(zeta, a, doorward.RoleViewer)
	s, sZeta := w.session(ann), w.session(annZeta)

	same(w, store.Credential{Session: s, User: ann})(w.Read().SessionByToken(ctx, hashOf(s)))
	same(w, store.Credential{Session: sZeta, User: annZeta})(w.Read().Session(ctx, sZeta.ID))
	none(w)(w.Read().SessionByToken(ctx, []byte("none")))
	none(w)(w.Read().SessionByToken(ctx, nil))
	none(w)(w.Read().Session(ctx, "ses_none"))
	w.clock.move(time.Second)
	newest := w.session(ann)
	same(w, []store.StoredSession{{Hash: hashOf(newest), Session: newest}, {Hash: hashOf(s), Session: s}, {Hash: hashOf(sZeta), Session: sZeta}})(
		w.Read().UserSessions(ctx, ann.ID))
	same(w, []store.StoredSession(nil))(w.Read().UserSessions(ctx, acme.ID))

	w.write(func(tx *store.Tx) {
		yes(w)(tx.DeleteSession(ctx, sZeta.ID))
		no(w)(tx.DeleteSession(ctx, sZeta.ID))
		no(w)(tx.DeleteSession(ctx, "ses_none"))
	})
	none(w)(w.Read().Session(ctx, sZeta.ID))
	same(w, []string{s.ID, newest.ID})(w.live(s, sZeta, newest), nil)

	// A session is judged by the membership as it is now, and gone with it.
	w.write(func(tx *store.Tx) {
		yes(w)(tx.SetUserRole(ctx, acme.ID, ann.ID, doorward.RoleUser))
		yes(w)(tx.SetTenantStatus(ctx, acme.ID, doorward.TenantFrozen))
	})
	ann.Role, ann.TenantStatus = doorward.RoleUser, doorward.TenantFrozen
	same(w, store.Credential{Session: s, User: ann})(w.Read().SessionByToken(ctx, hashOf(s)))
	w.write(func(tx *store.Tx) { yes(w)(tx.DeleteMembership(ctx, acme.ID, ann.ID)) })
	none(w)(w.Read().SessionByToken(ctx, hashOf(s)))
}

// use notes that the session was used.
func (w *world) use(s doorward.Session, when time.Time) {
	w.Helper()
	w.write(func(tx *store.Tx) {
		ok(w, tx.TouchSessions(w.Context(), []store.Use{{Hash: [32]byte(hashOf(s)), At: when}}))
	})
}

func usesOfSessions(w *world) {
	ctx := w.Context()
	ann := w.member(w.tenant("Acme"), "ann@acme.example", doorward.RoleUser)
	s, other, ended := w.session(ann), w.session(ann), w.session(ann)
	w.write(func(tx *store.Tx) {
		yes(w)(tx.DeleteSession(ctx, ended.ID))
		ok(w, tx.TouchSessions(ctx, nil))
		ok(w, tx.TouchSessions(ctx, []store.Use{
			{Hash: [32]byte(hashOf(s)), At: noon.Add(time.Minute)},
			{Hash: [32]byte(hashOf(ended)), At: noon.Add(time.Minute)}, // brings nothing back
			{At: noon.Add(time.Minute)},
		}))
	})
	w.use(s, noon.Add(time.Second)) // a node that is slower: time doesn't run back
	s.LastSeenAt = noon.Add(time.Minute)
	for _, want := range []doorward.Session{s, other} {
		same(w, store.Credential{Session: want, User: ann})(w.Read().Session(ctx, want.ID))
	}
	none(w)(w.Read().Session(ctx, ended.ID))

	w.write(func(tx *store.Tx) { ok(w, tx.DeleteIdleSession(ctx, hashOf(s), noon)) }) // used after that
	same(w, []string{s.ID, other.ID})(w.live(s, other), nil)
	w.write(func(tx *store.Tx) { ok(w, tx.DeleteIdleSession(ctx, hashOf(s), s.LastSeenAt)) })
	same(w, []string{other.ID})(w.live(s, other), nil)
}

func endOfSessions(w *world) {
	ctx := w.Context()
	acme, zeta := w.tenant("Acme"), w.tenant("Zeta")
	a := w.account("ann@acme.example")
	ann, annZeta := w.join(acme, a, doorward.RoleOwner), w.join(zeta, a, doorward.RoleViewer)
	bob := w.member(acme, "bob@acme.example", doorward.RoleUser)
	s1, s2, s3, s4 := w.session(ann), w.session(ann), w.session(annZeta), w.session(bob)
	all := []doorward.Session{s1, s2, s3, s4}

	w.write(func(tx *store.Tx) {
		same(w, int64(0))(tx.DeleteMemberSessions(ctx, zeta.ID, bob.ID))
		same(w, int64(0))(tx.DeleteMemberSessions(ctx, ann.ID, acme.ID)) // the two exchanged
		same(w, int64(2))(tx.DeleteUserSessions(ctx, ann.ID, s1.ID))
		same(w, int64(0))(tx.DeleteUserSessions(ctx, ann.ID, s1.ID))
	})
	same(w, []string{s1.ID, s4.ID})(w.live(all...), nil)
	w.write(func(tx *store.Tx) { same(w, int64(1))(tx.DeleteUserSessions(ctx, ann.ID, "")) })
	same(w, []string{s4.ID})(w.live(all...), nil)

	s5, s6 := w.session(ann), w.session(annZeta)
	all = append(all, s5, s6)
	w.write(func(tx *store.Tx) { same(w, int64(1))(tx.DeleteMemberSessions(ctx, acme.ID, ann.ID)) })
	same(w, []string{s4.ID, s6.ID})(w.live(all...), nil)
	w.write(func(tx *store.Tx) { same(w, int64(1))(tx.DeleteTenantSessions(ctx, acme.ID)) })
	same(w, []string{s6.ID})(w.live(all...), nil)
}

// settingsOfSessions: a session knows what its tenant has tightened, and a tenant
// can end those that are too old, or all but one.
func settingsOfSessions(w *world) {
	ctx := w.Context()
	acme, zeta := w.tenant("Acme"), w.tenant("Zeta")
	ann, zoe := w.member(acme, "ann@acme.example", doorward.RoleOwner), w.member(zeta, "zoe@zeta.example", doorward.RoleOwner)
	old, elsewhere := w.session(ann), w.session(zoe)
	w.clock.move(time.Microsecond)
	young, other := w.session(ann), w.session(ann)
	acme.Settings = doorward.TenantSettings{SessionIdle: time.Minute, AllowedDomains: []string{"acme.example"}}
	w.write(func(tx *store.Tx) { ok(w, tx.EditTenant(ctx, acme)) })
	young.Tenant = acme.Settings
	same(w, store.Credential{Session: young, User: ann})(w.Read().Session(ctx, young.ID))
	same(w, store.Credential{Session: elsewhere, User: zoe})(w.Read().Session(ctx, elsewhere.ID))

	w.write(func(tx *store.Tx) { ok(w, tx.DeleteAgedSessions(ctx, acme.ID, noon)) })
	same(w, []string{elsewhere.ID, young.ID, other.ID})(w.live(old, elsewhere, young, other), nil)
	w.write(func(tx *store.Tx) { ok(w, tx.DeleteOtherSessions(ctx, acme.ID, other.ID)) })
	same(w, []string{elsewhere.ID, other.ID})(w.live(elsewhere, young, other), nil)

	overdue := func(u doorward.User, lag time.Duration) {
		w.write(func(tx *store.Tx) {
			ok(w, tx.DeleteOverdueUserSessions(ctx, u.ID, noon.Add(-day), noon.Add(-day), lag))
		})
	}
	w.clock.move(time.Minute)
	overdue(ann, time.Microsecond) // perhaps it was used a microsecond ago
	overdue(zoe, 0)
	same(w, []string{elsewhere.ID, other.ID})(w.live(elsewhere, other), nil)
	overdue(ann, 0)
	same(w, []string{elsewhere.ID})(w.live(elsewhere, other), nil)
	zeta.Settings = doorward.TenantSettings{SessionAbsolute: time.Minute + 2*time.Microsecond}
	w.write(func(tx *store.Tx) { ok(w, tx.EditTenant(ctx, zeta)) })
	overdue(zoe, 0)
	same(w, []string{elsewhere.ID})(w.live(elsewhere), nil)
	w.clock.move(time.Microsecond)
	overdue(zoe, day)
	same(w, []string(nil))(w.live(elsewhere), nil)
}

func limitsOfSessions(w *world) {
	ctx := w.Context()
	acme := w.tenant("Acme")
	ann, bob := w.member(acme, "ann@acme.example", doorward.RoleUser), w.member(acme, "bob@acme.example", doorward.RoleUser)
	var all []doorward.Session
	for range 3 {
		all = append(all, w.session(ann), w.session(bob))
		w.clock.move(time.Minute)
	}
	ids := func(i ...int) (ids []string) {
		for _, i := range i {
			ids = append(ids, all[i].ID)
		}
		return ids
	}
	w.write(func(tx *store.Tx) { same(w, int64(0))(tx.DeleteOldestSessions(ctx, ann.ID, all[0].ID, 3)) })
	w.write(func(tx *store.Tx) { same(w, int64(1))(tx.DeleteOldestSessions(ctx, ann.ID, all[4].ID, 2)) })
	same(w, ids(1, 2, 3, 4, 5))(w.live(all...), nil)
	// The one being opened stays, though a clock that lags made it the oldest.
	late := w.session(ann)
	w.write(func(tx *store.Tx) {
		no(w)(tx.DeleteSession(ctx, "ses_none"))
		same(w, int64(1))(tx.DeleteOldestSessions(ctx, ann.ID, all[2].ID, 2))
	})
	same(w, []string{all[2].ID, late.ID})(w.live(all[2], all[4], late), nil)
	all[4] = late

	// Overdue is what was made or last seen at the instant or before it.
	w.use(all[3], noon.Add(time.Hour))
	w.write(func(tx *store.Tx) {
		ok(w, tx.DeleteOverdueUserSessions(ctx, bob.ID, noon.Add(-1), noon.Add(time.Minute), 0))
	})
	same(w, ids(2, 3, 4, 5))(w.live(all...), nil)
	w.write(func(tx *store.Tx) {
		ok(w, tx.DeleteOverdueUserSessions(ctx, bob.ID, noon.Add(time.Minute), noon, 0))
	})
	same(w, ids(2, 4, 5))(w.live(all...), nil)
	w.write(func(tx *store.Tx) {
		same(w, int64(1))(tx.DeleteOverdueSessions(ctx, noon.Add(time.Minute), noon))
		same(w, int64(2))(tx.DeleteOverdueSessions(ctx, noon, noon.Add(3*time.Minute)))
	})
	same(w, ids())(w.live(all...), nil)
}

func throttles(w *world) {
	ctx := w.Context()
	hit := func(bucket string) (t store.Throttle, err error) {
		err = w.try(ctx, func(tx *store.Tx) (err error) { t, err = tx.HitThrottle(ctx, bucket, time.Minute); return err })
		return t, err
	}
	never := time.Unix(0, 0).UTC() // not the instant of the first hit, which another node's clock may not have reached
	same(w, store.Throttle{Hits: 1, Since: noon, Until: never})(hit("ann"))
	w.clock.move(time.Minute - time.Microsecond)
	same(w, store.Throttle{Hits: 2, Since: noon, Until: never})(hit("ann"))
	same(w, store.Throttle{Hits: 1, Since: w.clock.read(), Until: never})(hit("Ann"))

	// The window is over: counting begins anew, a delay goes on.
	w.write(func(tx *store.Tx) { ok(w, tx.DelayThrottle(ctx, "ann", noon.Add(time.Hour))) })
	again := w.clock.move(time.Microsecond)
	same(w, store.Throttle{Hits: 1, Since: again, Until: noon.Add(time.Hour)})(hit("ann"))
	same(w, store.Throttle{Hits: 2, Since: again, Until: noon.Add(time.Hour)})(hit("ann"))

	w.write(func(tx *store.Tx) {
		ok(w, tx.RefundThrottle(ctx, "ann"))
		ok(w, tx.RefundThrottle(ctx, "ann"))
		ok(w, tx.RefundThrottle(ctx, "ann")) // there is nothing left to give
		ok(w, tx.RefundThrottle(ctx, "none"))
		ok(w, tx.DelayThrottle(ctx, "none", again))
		ok(w, tx.ClearThrottle(ctx, "none"))
	})
	same(w, store.Throttle{Hits: 1, Since: again, Until: noon.Add(time.Hour)})(hit("ann"))
	w.write(func(tx *store.Tx) { ok(w, tx.ClearThrottle(ctx, "ann")) })
	same(w, store.Throttle{Hits: 1, Since: again, Until: never})(hit("ann"))
	same(w, store.Throttle{Hits: 2, Since: again.Add(-time.Microsecond), Until: never})(hit("Ann"))
}

func sweepOfThrottles(w *world) {
	ctx := w.Context()
	hit := func(bucket string) (n int) {
		w.write(func(tx *store.Tx) {
			t, err := tx.HitThrottle(ctx, bucket, day)
			ok(w, err)
			n = t.Hits
		})
		return n
	}
	hit("old")
	hit("delayed")
	w.write(func(tx *store.Tx) { ok(w, tx.DelayThrottle(ctx, "delayed", noon.Add(time.Minute))) })
	w.clock.move(time.Microsecond)
	hit("new")
	w.write(func(tx *store.Tx) { ok(w, tx.DeleteOldThrottles(ctx, noon)) })
	same(w, []int{1, 2, 2})([]int{hit("old"), hit("delayed"), hit("new")}, nil)
}
