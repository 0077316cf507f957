package storetest

import (
	"errors"
	"fmt"
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
	endedTogether(w, s, newest, sZeta)
	same(w, []string{s.ID, newest.ID})(w.live(s, sZeta, newest), nil)

	// A session is judged by the membership as it is now, and gone with it.
	w.write(func(tx *store.Tx) {
		yes(w)(tx.SetUserRole(ctx, acme.ID, ann.ID, doorward.RoleUser))
		yes(w)(tx.FreezeTenant(ctx, acme.ID))
	})
	ann.Role, ann.TenantStatus = doorward.RoleUser, doorward.TenantFrozen
	same(w, store.Credential{Session: s, User: ann})(w.Read().SessionByToken(ctx, hashOf(s)))
	w.write(func(tx *store.Tx) { yes(w)(tx.DeleteMembership(ctx, acme.ID, ann.ID)) })
	none(w)(w.Read().SessionByToken(ctx, hashOf(s)))
}

// endedTogether looks up and ends several at once, of one person and another; of
// those given the last is over.
func endedTogether(w *world, s, newest, over doorward.Session) {
	ctx := w.Context()
	w.Helper()
	hashes := [][]byte{hashOf(over), hashOf(newest), []byte("none"), hashOf(s), hashOf(s)}
	found, err := w.Read().SessionsByTokens(ctx, hashes)
	ok(w, err)
	ids := map[string]bool{}
	for _, c := range found {
		ids[c.Session.ID] = true
	}
	same(w, map[string]bool{s.ID: true, newest.ID: true})(ids, nil)
	same(w, []store.Credential(nil))(w.Read().SessionsByTokens(ctx, [][]byte{hashOf(over)}))

	bob := w.session(w.member(w.tenant("Beta"), "bob@beta.example", doorward.RoleUser))
	cleo := w.session(w.member(w.tenant("Gamma"), "cleo@gamma.example", doorward.RoleUser))
	together := []store.Credential{{Session: over}, {Session: bob}, {Session: cleo}}
	w.write(func(tx *store.Tx) {
		same(w, map[string]bool{bob.ID: true, cleo.ID: true})(tx.DeleteSessions(ctx, together))
		same(w, map[string]bool{})(tx.DeleteSessions(ctx, together))
	})
	same(w, []string(nil))(w.live(bob, cleo), nil)
}

// aDay is a life that no session of most cases outlives.
var aDay = store.Life{SessionLimits: doorward.SessionLimits{Idle: day, Absolute: day}}

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
		same(w, int64(0))(tx.DeleteMemberSessions(ctx, aDay, zeta.ID, bob.ID))
		same(w, int64(0))(tx.DeleteMemberSessions(ctx, aDay, ann.ID, acme.ID)) // the two exchanged
		same(w, map[string]int64{acme.ID: 1, zeta.ID: 1})(tx.DeleteUserSessions(ctx, aDay, ann.ID, s1.ID))
		same(w, map[string]int64{})(tx.DeleteUserSessions(ctx, aDay, ann.ID, s1.ID))
	})
	same(w, []string{s1.ID, s4.ID})(w.live(all...), nil)
	w.write(func(tx *store.Tx) {
		same(w, map[string]int64{acme.ID: 1})(tx.DeleteUserSessions(ctx, aDay, ann.ID, ""))
	})
	same(w, []string{s4.ID})(w.live(all...), nil)

	s5, s6 := w.session(ann), w.session(annZeta)
	all = append(all, s5, s6)
	w.write(func(tx *store.Tx) { same(w, int64(1))(tx.DeleteMemberSessions(ctx, aDay, acme.ID, ann.ID)) })
	same(w, []string{s4.ID, s6.ID})(w.live(all...), nil)
	w.write(func(tx *store.Tx) { same(w, int64(1))(tx.DeleteTenantSessions(ctx, aDay, acme.ID)) })
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
			ok(w, tx.DeleteOverdueUserSessions(ctx, store.Life{SessionLimits: aDay.SessionLimits, Lag: lag}, u.ID))
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
	w.write(func(tx *store.Tx) { same(w, map[string]int64{})(tx.DeleteOldestSessions(ctx, ann.ID, all[0].ID, 3)) })
	w.write(func(tx *store.Tx) {
		same(w, map[string]int64{acme.ID: 1})(tx.DeleteOldestSessions(ctx, ann.ID, all[4].ID, 2))
	})
	same(w, ids(1, 2, 3, 4, 5))(w.live(all...), nil)
	// The one being opened stays, though a clock that lags made it the oldest.
	late := w.session(ann)
	w.write(func(tx *store.Tx) {
		no(w)(tx.DeleteSession(ctx, "ses_none"))
		same(w, map[string]int64{acme.ID: 1})(tx.DeleteOldestSessions(ctx, ann.ID, all[2].ID, 2))
	})
	same(w, []string{all[2].ID, late.ID})(w.live(all[2], all[4], late), nil)
	all[4] = late

	// Overdue is what was made or last seen at the instant or before it.
	until := func(created, seen time.Time) store.Life {
		now := w.clock.read()
		return store.Life{SessionLimits: doorward.SessionLimits{Absolute: now.Sub(created), Idle: now.Sub(seen)}}
	}
	w.use(all[3], noon.Add(time.Hour))
	w.write(func(tx *store.Tx) {
		ok(w, tx.DeleteOverdueUserSessions(ctx, until(noon.Add(-time.Microsecond), noon.Add(time.Minute)), bob.ID))
	})
	same(w, ids(2, 3, 4, 5))(w.live(all...), nil)
	w.write(func(tx *store.Tx) {
		ok(w, tx.DeleteOverdueUserSessions(ctx, until(noon.Add(time.Minute), noon), bob.ID))
	})
	same(w, ids(2, 4, 5))(w.live(all...), nil)
	w.write(func(tx *store.Tx) {
		same(w, int64(1))(tx.DeleteOverdueSessions(ctx, until(noon.Add(time.Minute), noon)))
		same(w, int64(2))(tx.DeleteOverdueSessions(ctx, until(noon, noon.Add(3*time.Minute))))
	})
	same(w, ids())(w.live(all...), nil)
}

// overSessions: what is over by the limits of the installation, or by those that
// its tenant has tightened, is deleted with the others and counted nowhere. What
// may have been used since the last use that is noted is not over yet.
func overSessions(w *world) {
	const us, hour = time.Microsecond, time.Hour
	life := store.Life{SessionLimits: doorward.SessionLimits{Idle: 2 * hour, Absolute: 8 * hour}, Lag: time.Minute}
	acme, zeta := w.tenant("Acme"), w.tenant("Zeta")
	acme.Settings = doorward.TenantSettings{SessionIdle: hour, SessionAbsolute: 4 * hour}
	w.write(func(tx *store.Tx) { ok(w, tx.EditTenant(w.Context(), acme)) })
	a := w.account("ann@acme.example")
	ann, annZeta := w.join(acme, a, doorward.RoleOwner), w.join(zeta, a, doorward.RoleUser)
	bob := w.member(acme, "bob@acme.example", doorward.RoleUser)

	w.opened(ann, 0, 0)
	live := w.opened(ann, 4*hour-us, hour+time.Minute-us)
	over := w.opened(ann, 4*hour, 0)
	w.opened(ann, 2*hour, hour+time.Minute)
	w.opened(bob, 4*hour, 2*hour)
	w.opened(annZeta, 8*hour-us, 2*hour+time.Minute-us)
	w.opened(annZeta, 8*hour, 0)
	w.opened(annZeta, 3*hour, 2*hour+time.Minute)

	now := w.clock.read()
	same(w, int64(2))(w.Read().CountMemberSessions(w.Context(), life, acme.ID, ann.ID, now))
	same(w, int64(0))(w.Read().CountMemberSessions(w.Context(), life, acme.ID, bob.ID, now))
	same(w, int64(1))(w.Read().CountMemberSessions(w.Context(), life, zeta.ID, ann.ID, now))
	same(w, int64(2))(w.Read().CountTenantSessions(w.Context(), life, acme.ID, now))
	same(w, int64(1))(w.Read().CountTenantSessions(w.Context(), life, zeta.ID, now))
	same(w, int64(0))(w.Read().CountTenantSessions(w.Context(), life, acme.ID, now.Add(hour+time.Minute)))
	w.deletes(life, acme, ann, bob, live, over)
}

// opened adds a session that was opened and last seen so long ago.
func (w *world) opened(u doorward.User, created, seen time.Duration) doorward.Session {
	w.Helper()
	now := w.clock.read()
	s := doorward.Session{ID: w.id("ses_"), UserID: u.ID, TenantID: u.TenantID, CreatedAt: now.Add(-created), LastSeenAt: now.Add(-seen)}
	w.write(func(tx *store.Tx) { ok(w, tx.InsertSession(w.Context(), s, hashOf(s))) })
	return s
}

// deletes: each deletion on its own, of eight sessions of which three are not
// over, and what it leaves.
func (w *world) deletes(life store.Life, acme doorward.Tenant, ann, bob doorward.User, live, over doorward.Session) {
	w.Helper()
	ctx, loose := w.Context(), acme
	loose.Settings = doorward.TenantSettings{}
	for _, c := range []struct {
		counted, left int64
		ends          func(tx *store.Tx) (int64, error)
	}{
		{2, 4, func(tx *store.Tx) (int64, error) { return tx.DeleteMemberSessions(ctx, life, acme.ID, ann.ID) }},
		{0, 7, func(tx *store.Tx) (int64, error) { return tx.DeleteMemberSessions(ctx, life, acme.ID, bob.ID) }},
		{2, 3, func(tx *store.Tx) (int64, error) { return tx.DeleteTenantSessions(ctx, life, acme.ID) }},
		{3, 1, func(tx *store.Tx) (int64, error) { return sum(tx.DeleteUserSessions(ctx, life, ann.ID, "")) }},
		{2, 2, func(tx *store.Tx) (int64, error) { return sum(tx.DeleteUserSessions(ctx, life, ann.ID, live.ID)) }},
		{3, 2, func(tx *store.Tx) (int64, error) { return sum(tx.DeleteUserSessions(ctx, life, ann.ID, over.ID)) }},
		{3, 0, func(tx *store.Tx) (int64, error) { return tx.DeleteAllSessions(ctx, life) }},
	} {
		undo := errors.New("undo")
		err := w.try(ctx, func(tx *store.Tx) error {
			same(w, c.counted)(c.ends(tx))
			ok(w, tx.EditTenant(ctx, loose)) // under which nothing is over
			same(w, c.left)(tx.DeleteAllSessions(ctx, aDay))
			return undo
		})
		if !errors.Is(err, undo) {
			w.Fatal(err)
		}
	}
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
		ok(w, tx.DelayThrottle(ctx, "none", again))
		ok(w, tx.ClearThrottle(ctx, "none"))
	})
	same(w, store.Throttle{Hits: 3, Since: again, Until: noon.Add(time.Hour)})(hit("ann"))
	w.write(func(tx *store.Tx) { ok(w, tx.ClearThrottle(ctx, "ann")) })
	same(w, store.Throttle{Hits: 1, Since: again, Until: never})(hit("ann"))
	same(w, store.Throttle{Hits: 2, Since: again.Add(-time.Microsecond), Until: never})(hit("Ann"))
}

// attemptsInFlight are counted for both of their buckets until they end, or run
// out; that a bucket is locked counts nothing in it.
func attemptsInFlight(w *world) {
	ctx := w.Context()
	never := time.Unix(0, 0).UTC()
	look := func(bucket string) (t store.Throttle, n int) {
		w.write(func(tx *store.Tx) {
			var err error
			t, err = tx.LockThrottle(ctx, bucket, time.Minute)
			ok(w, err)
			n, err = tx.AttemptsInFlight(ctx, bucket)
			ok(w, err)
		})
		return t, n
	}
	flying := func(bucket string) int { _, n := look(bucket); return n }
	same(w, 0)(flying("ann"), nil)
	ends := w.clock.read().Add(time.Minute)
	w.write(func(tx *store.Tx) {
		ok(w, tx.InsertAttempt(ctx, store.Attempt{ID: "1", Own: "ann", Wider: "office"}, ends))
		ok(w, tx.InsertAttempt(ctx, store.Attempt{ID: "2", Own: "bob", Wider: "office"}, ends.Add(time.Microsecond)))
		ok(w, tx.InsertAttempt(ctx, store.Attempt{ID: "3", Own: "ann"}, ends))
	})
	same(w, []int{2, 1, 2, 0})([]int{flying("ann"), flying("bob"), flying("office"), flying("home")}, nil)
	w.write(func(tx *store.Tx) {
		yes(w)(tx.DeleteAttempt(ctx, "3"))
		no(w)(tx.DeleteAttempt(ctx, "3"))
	})
	same(w, 1)(flying("ann"), nil)
	w.clock.move(time.Minute)
	same(w, []int{0, 1, 1})([]int{flying("ann"), flying("bob"), flying("office")}, nil)
	w.write(func(tx *store.Tx) { ok(w, tx.DeleteEndedAttempts(ctx)) })
	w.write(func(tx *store.Tx) {
		no(w)(tx.DeleteAttempt(ctx, "1"))
		yes(w)(tx.DeleteAttempt(ctx, "2"))
	})

	// The window begins with the first hit, not with the first look.
	began := w.clock.move(time.Second)
	w.write(func(tx *store.Tx) {
		_, err := tx.LockThrottle(ctx, "ann", time.Minute)
		ok(w, err)
		_, err = tx.HitThrottle(ctx, "ann", time.Minute)
		ok(w, err)
	})
	w.clock.move(time.Minute - time.Microsecond)
	t, _ := look("ann")
	same(w, store.Throttle{Hits: 1, Since: began, Until: never})(t, nil)
	again := w.clock.move(time.Microsecond)
	t, _ = look("ann")
	same(w, store.Throttle{Hits: 0, Since: again, Until: never})(t, nil)
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
	hit("closed")
	w.write(func(tx *store.Tx) {
		ok(w, tx.DelayThrottle(ctx, "delayed", noon.Add(day+time.Minute)))
		ok(w, tx.DelayThrottle(ctx, "closed", time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)))
	})
	w.clock.move(time.Microsecond)
	hit("new")
	w.clock.move(day - time.Microsecond)
	sweep := func() (more bool) {
		w.write(func(tx *store.Tx) {
			var err error
			more, err = tx.DeleteOldThrottles(ctx, noon)
			ok(w, err)
		})
		return more
	}
	sweep()
	left := func(bucket string) error { _, err := w.Read().Throttle(ctx, bucket); return err }
	for bucket, want := range map[string]error{"old": store.ErrNone, "delayed": nil, "closed": nil, "new": nil} {
		if err := left(bucket); !errors.Is(err, want) {
			w.Errorf("after a day %s is %v, want %v", bucket, err, want)
		}
	}
	w.clock.move(time.Minute)
	sweep()
	for bucket, want := range map[string]error{"delayed": store.ErrNone, "closed": nil, "new": store.ErrNone} {
		if err := left(bucket); !errors.Is(err, want) {
			w.Errorf("a minute later %s is %v, want %v", bucket, err, want)
		}
	}
	for n := range store.ThrottleBatch + 1 {
		hit(fmt.Sprint("many", n))
	}
	w.clock.move(2 * day)
	for n, want := range []bool{true, false} {
		if more := sweep(); more != want {
			w.Errorf("more is %v after the sweep number %d", more, n)
		}
	}
	if err := left("many0"); !errors.Is(err, store.ErrNone) {
		w.Errorf("one of many is %v", err)
	}
}

// sum is how many there are in all tenants.
func sum(by map[string]int64, err error) (n int64, _ error) {
	for _, some := range by {
		n += some
	}
	return n, err
}
