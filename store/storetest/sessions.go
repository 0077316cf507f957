package storetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

func sessions(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	a := f.account("ann@acme.example")
	ann, annZeta := f.join(acme, a, doorward.RoleOwner), f.join(zeta, a, doorward.RoleViewer)
	s, sZeta := f.session(ann), f.session(annZeta)

	equal(f, f.value(f.Read().SessionByToken(ctx, hashOf(s))), store.Credential{Session: s, User: ann})
	equal(f, f.value(f.Read().Session(ctx, sZeta.ID)), store.Credential{Session: sZeta, User: annZeta})
	f.wantNone(f.Read().SessionByToken(ctx, []byte("none")))
	f.wantNone(f.Read().SessionByToken(ctx, nil))
	f.wantNone(f.Read().Session(ctx, "ses_none"))
	f.clock.move(time.Second)
	newest := f.session(ann)
	equal(f, f.value(
		f.Read().UserSessions(ctx, ann.ID)), []store.StoredSession{{Hash: hashOf(newest), Session: newest}, {Hash: hashOf(s), Session: s}, {Hash: hashOf(sZeta), Session: sZeta}})
	equal(f, f.value(f.Read().UserSessions(ctx, acme.ID)), []store.StoredSession(nil))

	f.write(func(tx *store.Tx) {
		f.wantChange(tx.DeleteSession(ctx, sZeta.ID))
		f.wantNoChange(tx.DeleteSession(ctx, sZeta.ID))
		f.wantNoChange(tx.DeleteSession(ctx, "ses_none"))
	})
	f.wantNone(f.Read().Session(ctx, sZeta.ID))
	endTogether(f, s, newest, sZeta)
	equal(f, f.live(s, sZeta, newest), []string{s.ID, newest.ID})

	// A session has the membership's current role and status, and is deleted with it.
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.SetUserRole(ctx, acme.ID, ann.ID, doorward.RoleUser))
		f.wantChange(tx.FreezeTenant(ctx, acme.ID))
	})
	ann.Role, ann.TenantStatus = doorward.RoleUser, doorward.TenantFrozen
	s.Role = ann.Role
	equal(f, f.value(f.Read().SessionByToken(ctx, hashOf(s))), store.Credential{Session: s, User: ann})
	f.write(func(tx *store.Tx) { f.wantChange(tx.DeleteMembership(ctx, acme.ID, ann.ID)) })
	f.wantNone(f.Read().SessionByToken(ctx, hashOf(s)))
}

// endTogether looks up and ends several sessions at once, of different people; one of them,
// ended, has already ended.
func endTogether(f *fixture, s, newest, ended doorward.Session) {
	ctx := f.Context()
	f.Helper()
	hashes := [][]byte{hashOf(ended), hashOf(newest), []byte("none"), hashOf(s), hashOf(s)}
	found, err := f.Read().SessionsByTokens(ctx, hashes)
	noError(f, err)
	ids := map[string]bool{}
	for _, c := range found {
		ids[c.Session.ID] = true
	}
	equal(f, ids, map[string]bool{s.ID: true, newest.ID: true})
	equal(f, f.value(f.Read().SessionsByTokens(ctx, [][]byte{hashOf(ended)})), []store.Credential(nil))

	bob := f.session(f.member(f.tenant("Beta"), "bob@beta.example", doorward.RoleUser))
	cleo := f.session(f.member(f.tenant("Gamma"), "cleo@gamma.example", doorward.RoleUser))
	several := []store.Credential{{Session: ended}, {Session: bob}, {Session: cleo}}
	f.write(func(tx *store.Tx) {
		equal(f, f.value(tx.DeleteSessions(ctx, several)), map[string]bool{bob.ID: true, cleo.ID: true})
		equal(f, f.value(tx.DeleteSessions(ctx, several)), map[string]bool{})
	})
	equal(f, f.live(bob, cleo), []string(nil))
}

// aDay is longer than the sessions of most cases.
var aDay = store.SessionLifetime{SessionLimits: doorward.SessionLimits{Idle: day, Absolute: day}}

// use records a use of the session.
func (f *fixture) use(s doorward.Session, when time.Time) {
	f.Helper()
	f.write(func(tx *store.Tx) {
		noError(f, tx.TouchSession(f.Context(), store.Use{Hash: [32]byte(hashOf(s)), At: when}))
	})
}

func usesOfSessions(f *fixture) {
	ctx := f.Context()
	ann := f.member(f.tenant("Acme"), "ann@acme.example", doorward.RoleUser)
	s, other, ended := f.session(ann), f.session(ann), f.session(ann)
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.DeleteSession(ctx, ended.ID))
		none := []store.Use(nil)
		equal(f, f.value(tx.TouchSessions(ctx, nil)), none)
		equal(f, f.value(tx.TouchSessions(ctx, []store.Use{
			{Hash: [32]byte(hashOf(s)), At: noon.Add(time.Minute)},
			{Hash: [32]byte(hashOf(ended)), At: noon.Add(time.Minute)}, // revives nothing
			{At: noon.Add(time.Minute)},
		})), none)
	})
	f.use(s, noon.Add(time.Second)) // from a slower node: last use never decreases
	s.LastSeenAt = noon.Add(time.Minute)
	for _, want := range []doorward.Session{s, other} {
		equal(f, f.value(f.Read().Session(ctx, want.ID)), store.Credential{Session: want, User: ann})
	}
	f.wantNone(f.Read().Session(ctx, ended.ID))

	f.write(func(tx *store.Tx) { noError(f, tx.DeleteIdleSession(ctx, hashOf(s), noon)) }) // used after that
	equal(f, f.live(s, other), []string{s.ID, other.ID})
	f.write(func(tx *store.Tx) { noError(f, tx.DeleteIdleSession(ctx, hashOf(s), s.LastSeenAt)) })
	equal(f, f.live(s, other), []string{other.ID})
}

func endOfSessions(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	a := f.account("ann@acme.example")
	ann, annZeta := f.join(acme, a, doorward.RoleOwner), f.join(zeta, a, doorward.RoleViewer)
	bob := f.member(acme, "bob@acme.example", doorward.RoleUser)
	s1, s2, s3, s4 := f.session(ann), f.session(ann), f.session(annZeta), f.session(bob)
	all := []doorward.Session{s1, s2, s3, s4}

	f.write(func(tx *store.Tx) {
		equal(f, f.value(tx.DeleteMemberSessions(ctx, aDay, zeta.ID, bob.ID)), int64(0))
		equal(f, f.value(tx.DeleteMemberSessions(ctx, aDay, ann.ID, acme.ID)), int64(0)) // arguments swapped
		equal(f, f.value(tx.DeleteUserSessions(ctx, aDay, ann.ID, s1.ID)), map[string]int64{acme.ID: 1, zeta.ID: 1})
		equal(f, f.value(tx.DeleteUserSessions(ctx, aDay, ann.ID, s1.ID)), map[string]int64{})
	})
	equal(f, f.live(all...), []string{s1.ID, s4.ID})
	f.write(func(tx *store.Tx) {
		equal(f, f.value(tx.DeleteUserSessions(ctx, aDay, ann.ID, "")), map[string]int64{acme.ID: 1})
	})
	equal(f, f.live(all...), []string{s4.ID})

	s5, s6 := f.session(ann), f.session(annZeta)
	all = append(all, s5, s6)
	f.write(func(tx *store.Tx) { equal(f, f.value(tx.DeleteMemberSessions(ctx, aDay, acme.ID, ann.ID)), int64(1)) })
	equal(f, f.live(all...), []string{s4.ID, s6.ID})
	f.write(func(tx *store.Tx) { noError(f, tx.EndTenantSessions(ctx, acme.ID, "")) })
	equal(f, f.live(all...), []string{s6.ID})
}

// endOfTenantsSessions: sessions end together by their tenant's row, also one that is being opened. Their rows
// are deleted later, a batch at a time.
func endOfTenantsSessions(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	ann, zoe := f.member(acme, "ann@acme.example", doorward.RoleOwner), f.member(zeta, "zoe@zeta.example", doorward.RoleOwner)
	before, kept, elsewhere := f.session(ann), f.session(ann), f.session(zoe)
	toSweep := func(want ...string) { equal(f, f.value(f.Read().TenantsToSweep(ctx)), want) }
	toSweep()
	f.write(func(tx *store.Tx) { noError(f, tx.EndTenantSessions(ctx, acme.ID, kept.ID)) })
	after := f.session(ann)
	equal(f, f.live(before, kept, elsewhere, after), []string{kept.ID, elsewhere.ID, after.ID})
	equal(f, f.value(f.Read().CountTenantSessions(ctx, aDay, acme.ID, f.clock.read())), int64(2))
	listed, err := f.Read().UserSessions(ctx, ann.ID)
	noError(f, err)
	equal(f, len(listed), 2)
	f.write(func(tx *store.Tx) { noError(f, tx.EndTenantSessions(ctx, acme.ID, elsewhere.ID)) }) // of another tenant
	equal(f, f.live(kept, elsewhere, after), []string{elsewhere.ID})
	last := f.session(ann)

	toSweep(acme.ID)
	for _, left := range []int64{2, 1, 0} { // three rows, two at once
		f.write(func(tx *store.Tx) { equal(f, f.value(tx.SweepEnded(ctx, acme.ID, 2)), left) })
	}
	toSweep()
	equal(f, f.live(last, elsewhere), []string{last.ID, elsewhere.ID})
}

// settingsOfSessions: a session has its tenant's tightened limits, and a tenant
// can end sessions that are too old, or all but one.
func settingsOfSessions(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	ann, zoe := f.member(acme, "ann@acme.example", doorward.RoleOwner), f.member(zeta, "zoe@zeta.example", doorward.RoleOwner)
	old, elsewhere := f.session(ann), f.session(zoe)
	f.clock.move(time.Microsecond)
	young, other := f.session(ann), f.session(ann)
	acme.Settings = doorward.TenantSettings{SessionIdle: time.Minute, AllowedDomains: []string{"acme.example"}}
	f.write(func(tx *store.Tx) { noError(f, tx.EditTenant(ctx, acme)) })
	young.Tenant = acme.Settings
	equal(f, f.value(f.Read().Session(ctx, young.ID)), store.Credential{Session: young, User: ann})
	equal(f, f.value(f.Read().Session(ctx, elsewhere.ID)), store.Credential{Session: elsewhere, User: zoe})

	f.write(func(tx *store.Tx) { noError(f, tx.DeleteAgedSessions(ctx, acme.ID, noon)) })
	equal(f, f.live(old, elsewhere, young, other), []string{elsewhere.ID, young.ID, other.ID})
	f.write(func(tx *store.Tx) { noError(f, tx.EndTenantSessions(ctx, acme.ID, other.ID)) })
	equal(f, f.live(elsewhere, young, other), []string{elsewhere.ID, other.ID})

	overdue := func(u doorward.User, lag time.Duration) {
		f.write(func(tx *store.Tx) {
			noError(f, tx.DeleteOverdueUserSessions(ctx, store.SessionLifetime{SessionLimits: aDay.SessionLimits, Lag: lag}, u.ID))
		})
	}
	f.clock.move(time.Minute)
	overdue(ann, time.Microsecond) // it may have been used a microsecond ago
	overdue(zoe, 0)
	equal(f, f.live(elsewhere, other), []string{elsewhere.ID, other.ID})
	overdue(ann, 0)
	equal(f, f.live(elsewhere, other), []string{elsewhere.ID})
	zeta.Settings = doorward.TenantSettings{SessionAbsolute: time.Minute + 2*time.Microsecond}
	f.write(func(tx *store.Tx) { noError(f, tx.EditTenant(ctx, zeta)) })
	overdue(zoe, 0)
	equal(f, f.live(elsewhere), []string{elsewhere.ID})
	f.clock.move(time.Microsecond)
	overdue(zoe, day)
	equal(f, f.live(elsewhere), []string(nil))
}

func limitsOfSessions(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	ann, bob := f.member(acme, "ann@acme.example", doorward.RoleUser), f.member(acme, "bob@acme.example", doorward.RoleUser)
	var all []doorward.Session
	for range 3 {
		all = append(all, f.session(ann), f.session(bob))
		f.clock.move(time.Minute)
	}
	ids := func(indexes ...int) (ids []string) {
		for _, i := range indexes {
			ids = append(ids, all[i].ID)
		}
		return ids
	}
	f.write(func(tx *store.Tx) {
		equal(f, f.value(tx.DeleteOldestSessions(ctx, ann.ID, "", all[0].ID, 3)), map[string]int64{})
	})
	f.write(func(tx *store.Tx) {
		equal(f, f.value(tx.DeleteOldestSessions(ctx, ann.ID, "", all[4].ID, 2)), map[string]int64{acme.ID: 1})
	})
	equal(f, f.live(all...), ids(1, 2, 3, 4, 5))
	// The new session stays, though a lagging clock made it the oldest.
	late := f.session(ann)
	f.write(func(tx *store.Tx) {
		f.wantNoChange(tx.DeleteSession(ctx, "ses_none"))
		equal(f, f.value(tx.DeleteOldestSessions(ctx, ann.ID, "", all[2].ID, 2)), map[string]int64{acme.ID: 1})
	})
	equal(f, f.live(all[2], all[4], late), []string{all[2].ID, late.ID})
	all[4] = late

	// Overdue means created or last seen at or before these instants.
	until := func(created, seen time.Time) store.SessionLifetime {
		now := f.clock.read()
		return store.SessionLifetime{SessionLimits: doorward.SessionLimits{Absolute: now.Sub(created), Idle: now.Sub(seen)}}
	}
	f.use(all[3], noon.Add(time.Hour))
	f.write(func(tx *store.Tx) {
		noError(f, tx.DeleteOverdueUserSessions(ctx, until(noon.Add(-time.Microsecond), noon.Add(time.Minute)), bob.ID))
	})
	equal(f, f.live(all...), ids(2, 3, 4, 5))
	f.write(func(tx *store.Tx) {
		noError(f, tx.DeleteOverdueUserSessions(ctx, until(noon.Add(time.Minute), noon), bob.ID))
	})
	equal(f, f.live(all...), ids(2, 4, 5))
	overdue := func(life store.SessionLifetime, limit int) []string {
		return f.value(f.Read().OverdueSessions(ctx, life, f.clock.read(), limit)).([]string)
	}
	first, second := until(noon.Add(time.Minute), noon), until(noon, noon.Add(3*time.Minute))
	equal(f, len(overdue(first, 10)), 1)
	equal(f, len(overdue(second, 10)), 3)
	equal(f, len(overdue(second, 1)), 1)
	f.write(func(tx *store.Tx) {
		equal(f, f.value(tx.DeleteOverdueSessions(ctx, first, ids(2, 4, 5))), int64(1)) // the others have not expired
		equal(f, f.value(tx.DeleteOverdueSessions(ctx, second, ids(2, 4, 5))), int64(2))
	})
	equal(f, f.live(all...), ids())
}

// expiredSessions: sessions beyond the installation's or the tenant's limits are
// deleted with the others and counted nowhere. A session that may have been used
// since its recorded use isn't over.
func expiredSessions(f *fixture) {
	const us, hour = time.Microsecond, time.Hour
	life := store.SessionLifetime{SessionLimits: doorward.SessionLimits{Idle: 2 * hour, Absolute: 8 * hour}, Lag: time.Minute}
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	acme.Settings = doorward.TenantSettings{SessionIdle: hour, SessionAbsolute: 4 * hour}
	f.write(func(tx *store.Tx) { noError(f, tx.EditTenant(f.Context(), acme)) })
	a := f.account("ann@acme.example")
	ann, annZeta := f.join(acme, a, doorward.RoleOwner), f.join(zeta, a, doorward.RoleUser)
	bob := f.member(acme, "bob@acme.example", doorward.RoleUser)

	f.sessionAged(ann, 0, 0)
	live := f.sessionAged(ann, 4*hour-us, hour+time.Minute-us)
	expired := f.sessionAged(ann, 4*hour, 0)
	f.sessionAged(ann, 2*hour, hour+time.Minute)
	f.sessionAged(bob, 4*hour, 2*hour)
	f.sessionAged(annZeta, 8*hour-us, 2*hour+time.Minute-us)
	f.sessionAged(annZeta, 8*hour, 0)
	f.sessionAged(annZeta, 3*hour, 2*hour+time.Minute)

	now := f.clock.read()
	equal(f, f.value(f.Read().CountMemberSessions(f.Context(), life, acme.ID, ann.ID, now)), int64(2))
	equal(f, f.value(f.Read().CountMemberSessions(f.Context(), life, acme.ID, bob.ID, now)), int64(0))
	equal(f, f.value(f.Read().CountMemberSessions(f.Context(), life, zeta.ID, ann.ID, now)), int64(1))
	equal(f, f.value(f.Read().CountTenantSessions(f.Context(), life, acme.ID, now)), int64(2))
	equal(f, f.value(f.Read().CountTenantSessions(f.Context(), life, zeta.ID, now)), int64(1))
	equal(f, f.value(f.Read().CountTenantSessions(f.Context(), life, acme.ID, now.Add(hour+time.Minute))), int64(0))
	f.wantDeletions(life, acme, ann, bob, live, expired)
}

// sessionAged adds a session with the given ages of its creation and last use.
func (f *fixture) sessionAged(u doorward.User, created, seen time.Duration) doorward.Session {
	f.Helper()
	now := f.clock.read()
	s := doorward.Session{ID: f.id("ses_"), UserID: u.ID, TenantID: u.TenantID, CreatedAt: now.Add(-created), LastSeenAt: now.Add(-seen)}
	f.write(func(tx *store.Tx) { noError(f, tx.InsertSession(f.Context(), s, hashOf(s))) })
	return s
}

// wantDeletions runs each kind of deletion, rolled back afterwards, on eight sessions of which
// three are live: counted is what it returns, and remaining is how many sessions it leaves.
func (f *fixture) wantDeletions(life store.SessionLifetime, acme doorward.Tenant, ann, bob doorward.User, live, expired doorward.Session) {
	f.Helper()
	ctx, loose := f.Context(), acme
	loose.Settings = doorward.TenantSettings{}
	for _, c := range []struct {
		counted, remaining int64
		ends               func(tx *store.Tx) (int64, error)
	}{
		{2, 4, func(tx *store.Tx) (int64, error) { return tx.DeleteMemberSessions(ctx, life, acme.ID, ann.ID) }},
		{0, 7, func(tx *store.Tx) (int64, error) { return tx.DeleteMemberSessions(ctx, life, acme.ID, bob.ID) }},
		{3, 1, func(tx *store.Tx) (int64, error) { return sum(tx.DeleteUserSessions(ctx, life, ann.ID, "")) }},
		{2, 2, func(tx *store.Tx) (int64, error) { return sum(tx.DeleteUserSessions(ctx, life, ann.ID, live.ID)) }},
		{3, 2, func(tx *store.Tx) (int64, error) { return sum(tx.DeleteUserSessions(ctx, life, ann.ID, expired.ID)) }},
		{3, 0, func(tx *store.Tx) (int64, error) { return tx.DeleteAllSessions(ctx, life) }},
	} {
		undo := errors.New("undo")
		err := f.try(ctx, func(tx *store.Tx) error {
			equal(f, f.value(c.ends(tx)), c.counted)
			noError(f, tx.EditTenant(ctx, loose)) // no session exceeds these limits
			equal(f, f.value(tx.DeleteAllSessions(ctx, aDay)), c.remaining)
			return undo
		})
		if !errors.Is(err, undo) {
			f.Fatal(err)
		}
	}
}

func throttles(f *fixture) {
	ctx := f.Context()
	hit := func(bucket string) (t store.Throttle, err error) {
		err = f.try(ctx, func(tx *store.Tx) (err error) { t, err = tx.HitThrottle(ctx, bucket, time.Minute); return err })
		return t, err
	}
	never := time.Unix(0, 0).UTC() // not Now: that may be in the future by another node's clock
	equal(f, f.value(hit("ann")), store.Throttle{Hits: 1, Since: noon, Until: never})
	f.clock.move(time.Minute - time.Microsecond)
	equal(f, f.value(hit("ann")), store.Throttle{Hits: 2, Since: noon, Until: never})
	equal(f, f.value(hit("Ann")), store.Throttle{Hits: 1, Since: f.clock.read(), Until: never})

	// The window is over: the count starts again, a delay stays.
	f.write(func(tx *store.Tx) { noError(f, tx.DelayThrottle(ctx, "ann", noon.Add(time.Hour))) })
	again := f.clock.move(time.Microsecond)
	equal(f, f.value(hit("ann")), store.Throttle{Hits: 1, Since: again, Until: noon.Add(time.Hour)})
	equal(f, f.value(hit("ann")), store.Throttle{Hits: 2, Since: again, Until: noon.Add(time.Hour)})

	f.write(func(tx *store.Tx) {
		noError(f, tx.DelayThrottle(ctx, "none", again))
		noError(f, tx.ClearThrottle(ctx, "none"))
	})
	equal(f, f.value(hit("ann")), store.Throttle{Hits: 3, Since: again, Until: noon.Add(time.Hour)})
	f.write(func(tx *store.Tx) { noError(f, tx.HitTwoThrottles(ctx, "site", "ann", time.Minute)) })
	equal(f, f.value(hit("ann")), store.Throttle{Hits: 5, Since: again, Until: noon.Add(time.Hour)})
	equal(f, f.value(hit("site")), store.Throttle{Hits: 2, Since: again, Until: never})
	f.write(func(tx *store.Tx) { noError(f, tx.ClearThrottle(ctx, "ann")) })
	equal(f, f.value(hit("ann")), store.Throttle{Hits: 1, Since: again, Until: never})
	equal(f, f.value(hit("Ann")), store.Throttle{Hits: 2, Since: again.Add(-time.Microsecond), Until: never})
}

// attemptsInFlight count in all of their buckets until they end or expire; the
// lock of a bucket adds no count.
func attemptsInFlight(f *fixture) {
	ctx := f.Context()
	never := time.Unix(0, 0).UTC()
	look := func(bucket string) (t store.Throttle, n int) {
		f.write(func(tx *store.Tx) {
			var err error
			t, err = tx.LockThrottle(ctx, bucket, time.Minute)
			noError(f, err)
			n, err = tx.AttemptsInFlight(ctx, bucket)
			noError(f, err)
		})
		return t, n
	}
	inFlight := func(bucket string) int { _, n := look(bucket); return n }
	equal(f, inFlight("ann"), 0)
	ends := f.clock.read().Add(time.Minute)
	f.write(func(tx *store.Tx) {
		noError(f, tx.InsertAttempt(ctx, store.Attempt{ID: "1", OwnBucket: "ann", WiderBucket: "office", SiteBucket: "site"}, ends))
		noError(f, tx.InsertAttempt(ctx, store.Attempt{ID: "2", OwnBucket: "bob", WiderBucket: "office"}, ends.Add(time.Microsecond)))
		noError(f, tx.InsertAttempt(ctx, store.Attempt{ID: "3", OwnBucket: "ann"}, ends))
	})
	equal(f, []int{inFlight("ann"), inFlight("bob"), inFlight("office"), inFlight("site"), inFlight("home")}, []int{2, 1, 2, 1, 0})
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.DeleteAttempt(ctx, "3"))
		f.wantNoChange(tx.DeleteAttempt(ctx, "3"))
	})
	equal(f, inFlight("ann"), 1)
	f.clock.move(time.Minute)
	equal(f, []int{inFlight("ann"), inFlight("bob"), inFlight("office")}, []int{0, 1, 1})
	f.write(func(tx *store.Tx) {
		equal(f, []any{f.value(tx.DeleteEndedAttempts(ctx, 1)), f.value(tx.DeleteEndedAttempts(ctx, 9))}, []any{int64(1), int64(0)})
	})
	f.write(func(tx *store.Tx) {
		f.wantNoChange(tx.DeleteAttempt(ctx, "1"))
		f.wantChange(tx.DeleteAttempt(ctx, "2"))
	})

	// The window begins at the first hit, not at the first read.
	began := f.clock.move(time.Second)
	f.write(func(tx *store.Tx) {
		_, err := tx.LockThrottle(ctx, "ann", time.Minute)
		noError(f, err)
		_, err = tx.HitThrottle(ctx, "ann", time.Minute)
		noError(f, err)
	})
	f.clock.move(time.Minute - time.Microsecond)
	t, _ := look("ann")
	equal(f, t, store.Throttle{Hits: 1, Since: began, Until: never})
	again := f.clock.move(time.Microsecond)
	t, _ = look("ann")
	equal(f, t, store.Throttle{Hits: 0, Since: again, Until: never})
}

func sweepOfThrottles(f *fixture) {
	ctx := f.Context()
	hit := func(bucket string) (n int) {
		f.write(func(tx *store.Tx) {
			t, err := tx.HitThrottle(ctx, bucket, day)
			noError(f, err)
			n = t.Hits
		})
		return n
	}
	hit("old")
	hit("delayed")
	hit("closed")
	f.write(func(tx *store.Tx) {
		noError(f, tx.DelayThrottle(ctx, "delayed", noon.Add(day+time.Minute)))
		noError(f, tx.DelayThrottle(ctx, "closed", time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)))
	})
	f.clock.move(time.Microsecond)
	hit("new")
	f.clock.move(day - time.Microsecond)
	const limit = 1000
	sweep := func() (more bool) {
		f.write(func(tx *store.Tx) {
			n, err := tx.DeleteOldThrottles(ctx, limit)
			noError(f, err)
			more = n == limit
		})
		return more
	}
	sweep()
	lookup := func(bucket string) error { _, err := f.Read().Throttle(ctx, bucket); return err }
	for bucket, want := range map[string]error{"old": store.ErrNone, "delayed": nil, "closed": nil, "new": nil} {
		if err := lookup(bucket); !errors.Is(err, want) {
			f.Errorf("after a day %s is %v, want %v", bucket, err, want)
		}
	}
	f.clock.move(time.Minute)
	sweep()
	for bucket, want := range map[string]error{"delayed": store.ErrNone, "closed": nil, "new": store.ErrNone} {
		if err := lookup(bucket); !errors.Is(err, want) {
			f.Errorf("a minute later %s is %v, want %v", bucket, err, want)
		}
	}
	for n := range limit + 1 {
		hit(fmt.Sprint("many", n))
	}
	f.clock.move(2 * day)
	for n, want := range []bool{true, false} {
		if more := sweep(); more != want {
			f.Errorf("more is %v after sweep %d", more, n)
		}
	}
	if err := lookup("many0"); !errors.Is(err, store.ErrNone) {
		f.Errorf("reading one of many: %v", err)
	}
}

// sum returns the total over all tenants.
func sum(counts map[string]int64, err error) (n int64, _ error) {
	for _, count := range counts {
		n += count
	}
	return n, err
}
