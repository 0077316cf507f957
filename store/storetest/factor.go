package storetest

import (
	"slices"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

func (f *fixture) factor(account doorward.Account, kind doorward.FactorKind) store.Factor {
	f.Helper()
	x := store.Factor{Factor: doorward.Factor{ID: f.id("mfa_"), UserID: account.ID, Kind: kind, Name: "Phone", CreatedAt: f.clock.read()}}
	if kind == doorward.Passkey {
		at := f.clock.read()
		x.ConfirmedAt, x.CredentialID, x.Credential, x.Synced = &at, []byte(x.ID), []byte("counter 1"), true
	} else {
		x.SeedSealed = []byte("sealed")
	}
	f.write(func(tx *store.Tx) { f.wantChange(tx.InsertFactor(f.Context(), x)) })
	return x
}

func (f *fixture) factorsOf(a doorward.Account) int {
	f.Helper()
	return f.value(f.Read().Account(f.Context(), a.ID)).(doorward.Account).Factors
}

// factors are found by account and credential, and counted at the account once they are
// confirmed, disabled or not.
func factors(f *fixture) {
	ctx := f.Context()
	ann, bob := f.account("ann@acme.example"), f.account("bob@acme.example")
	code, key := f.factor(ann, doorward.TOTP), f.factor(ann, doorward.Passkey)
	equal(f, f.value(f.Read().Factors(ctx, ann.ID)), []store.Factor{code, key})
	equal(f, f.value(f.Read().FactorByCredential(ctx, key.CredentialID)), key)
	f.wantNone(f.Read().FactorByCredential(ctx, []byte("other")))
	f.write(func(tx *store.Tx) {
		again := key
		again.ID, again.UserID = "mfa_again", bob.ID
		f.wantNoChange(tx.InsertFactor(ctx, again)) // one authenticator, one account
		noError(f, tx.UpdateFactorCounts(ctx, ann.ID))
	})
	equal(f, f.factorsOf(ann), 1)
	f.write(func(tx *store.Tx) {
		f.wantNoChange(tx.ConfirmFactor(ctx, bob.ID, code.ID, 7))
		f.wantNoChange(tx.UseCode(ctx, code.ID, 8)) // not confirmed yet
		f.wantNoChange(tx.RenameFactor(ctx, ann.ID, code.ID, "x"))
		f.wantChange(tx.ConfirmFactor(ctx, ann.ID, code.ID, 7))
		f.wantNoChange(tx.ConfirmFactor(ctx, ann.ID, code.ID, 9))
		f.wantNoChange(tx.UseCode(ctx, code.ID, 7))
		f.wantChange(tx.UseCode(ctx, code.ID, 8))
		f.wantNoChange(tx.UseCode(ctx, code.ID, 8))
		f.wantNoChange(tx.RenameFactor(ctx, bob.ID, code.ID, "x"))
		f.wantChange(tx.RenameFactor(ctx, ann.ID, code.ID, "Tablet"))
		noError(f, tx.UpdateFactorCounts(ctx, ann.ID))
	})
	acme := f.tenant("Acme")
	f.join(acme, ann, doorward.RoleUser)
	f.join(acme, bob, doorward.RoleUser)
	equal(f, f.value(f.Read().CountMembersFactors(ctx, acme.ID)), store.FactorCount{People: 2, WithoutFactor: 1})
	equal(f, f.value(f.Read().CountMembersFactors(ctx, "tnt_none")), store.FactorCount{})
	for role, want := range map[doorward.Role]int{doorward.RoleUser: 1, "USE": 0} { // a part of USER is no role
		members := f.value(f.Read().MembersWithoutFactor(ctx, acme.ID, []doorward.Role{role}, 9)).([]doorward.User)
		counted := f.value(f.Read().CountWithoutFactor(ctx, acme.ID, []doorward.Role{role})).([]store.RoleCount)
		if len(members) != want || len(counted) != want || want == 1 && (members[0].ID != bob.ID || counted[0] != store.RoleCount{Role: role, Count: 1}) {
			f.Errorf("%s: %v, %v", role, members, counted)
		}
	}
	for filter, want := range map[string]string{store.WithFactor: ann.ID, store.WithoutFactor: bob.ID} {
		page := f.value(f.Read().UserPage(ctx, acme.ID, store.UserFilter{Factor: filter}, doorward.Window{Limit: 9})).(doorward.Page[doorward.User])
		if len(page.Items) != 1 || page.Items[0].ID != want {
			f.Errorf("with the filter %s: %+v", filter, page.Items)
		}
	}
	equal(f, f.value(f.Read().CountFactors(ctx)), store.FactorTotals{Apps: 1, Passkeys: 1, Accounts: 1})
	current := f.value(f.Read().Factors(ctx, ann.ID)).([]store.Factor)
	equal(f, current[0].LastStep, int64(8))
	equal(f, current[0].Name, "Tablet")
	equal(f, f.factorsOf(ann), 2)
	f.write(func(tx *store.Tx) {
		used := key
		used.Credential, used.Synced = []byte("counter 2"), false
		f.wantChange(tx.UsePasskey(ctx, key, used))
		f.wantNoChange(tx.UsePasskey(ctx, key, used)) // read before the other use
		f.wantChange(tx.DisableFactor(ctx, key.ID))
		f.wantNoChange(tx.DisableFactor(ctx, key.ID))
		f.wantNoChange(tx.UsePasskey(ctx, used, key))
		noError(f, tx.UpdateFactorCounts(ctx, ann.ID))
	})
	equal(f, f.factorsOf(ann), 2) // it still counts
	member := f.value(f.Read().User(ctx, acme.ID, ann.ID)).(doorward.User)
	equal(f, []int{member.Factors, member.Passkeys, member.DisabledPasskeys, member.DisabledApps}, []int{2, 1, 1, 0})
	totals := f.value(f.Read().CountFactors(ctx)).(store.FactorTotals)
	equal(f, totals, store.FactorTotals{Apps: 1, Accounts: 1})
	equal(f, f.value(f.Read().FactorTotals(ctx)), store.FactorTotals{})
	for _, written := range []store.FactorTotals{{Apps: 1, Passkeys: 2, Accounts: 3}, totals} {
		f.write(func(tx *store.Tx) { noError(f, tx.PutFactorTotals(ctx, written)) })
		equal(f, f.value(f.Read().FactorTotals(ctx)), written)
	}
	f.write(func(tx *store.Tx) {
		noError(f, tx.SetRecoveryCodes(ctx, ann.ID, [][]byte{[]byte("1"), []byte("2")}))
		for since, want := range map[time.Time][]int64{tx.Now.Add(time.Hour): {0, 0}, noon: {1, 2}} {
			factors, codes, err := tx.DisableFactorsSince(ctx, ann.ID, since)
			noError(f, err)
			equal(f, []int64{factors, codes}, want)
		}
		noError(f, tx.UpdateFactorCounts(ctx, ann.ID))
	})
	member = f.value(f.Read().User(ctx, acme.ID, ann.ID)).(doorward.User)
	equal(f, []int{member.Factors, member.Passkeys, member.DisabledPasskeys, member.DisabledApps}, []int{2, 1, 1, 1})
}

// endOfFactors: unfinished enrolments end, and deleted factors no longer count.
func endOfFactors(f *fixture) {
	ctx := f.Context()
	ann := f.account("ann@acme.example")
	key, begun, old := f.factor(ann, doorward.Passkey), f.factor(ann, doorward.TOTP), f.factor(ann, doorward.TOTP)
	f.write(func(tx *store.Tx) {
		noError(f, tx.UpdateFactorCounts(ctx, ann.ID))
		equal(f, f.value(tx.DeleteOldEnrolments(ctx, old.CreatedAt.Add(-1), 9)), int64(0))
		equal(f, f.value(tx.DeleteOldEnrolments(ctx, old.CreatedAt, 0)), int64(0))
		f.wantChange(tx.DeleteFactor(ctx, ann.ID, begun.ID))
		f.wantNoChange(tx.DeleteFactor(ctx, ann.ID, begun.ID))
		f.wantNoChange(tx.DeleteFactor(ctx, "usr_other", old.ID))
		equal(f, f.value(tx.DeleteOldEnrolments(ctx, old.CreatedAt, 9)), int64(1))
	})
	equal(f, f.value(f.Read().Factors(ctx, ann.ID)), []store.Factor{key})
	f.factor(ann, doorward.TOTP)
	f.write(func(tx *store.Tx) { noError(f, tx.DeleteUnconfirmedFactors(ctx, ann.ID)) })
	equal(f, f.value(f.Read().Factors(ctx, ann.ID)), []store.Factor{key})
	f.write(func(tx *store.Tx) {
		noError(f, tx.SetRecoveryCodes(ctx, ann.ID, [][]byte{[]byte("1"), []byte("2"), []byte("3")}))
		f.wantNoChange(tx.UseRecoveryCode(ctx, "usr_other", []byte("1")))
		f.wantChange(tx.UseRecoveryCode(ctx, ann.ID, []byte("1")))
		f.wantNoChange(tx.UseRecoveryCode(ctx, ann.ID, []byte("1")))
	})
	equal(f, f.value(f.Read().CountRecoveryCodes(ctx, ann.ID)), 2)
	f.write(func(tx *store.Tx) { noError(f, tx.DeleteFactors(ctx, ann.ID)) })
	equal(f, f.value(f.Read().CountRecoveryCodes(ctx, ann.ID)), 0)
	equal(f, f.factorsOf(ann), 0)
}

// challenges can be used once, for one purpose, with some tries, and for a limited time.
func challenges(f *fixture) {
	ctx := f.Context()
	ann := f.account("ann@acme.example")
	end := f.clock.read().Add(time.Minute)
	c := store.Challenge{Purpose: "login", UserID: ann.ID, TenantID: "tnt_1", Generation: 3, Issuer: "con_1", Methods: []string{"totp", "recovery"}, State: []byte("state"), EndsAt: end}
	anybody := store.Challenge{Purpose: "passkey", SessionID: "ses_1", EndsAt: end}
	f.write(func(tx *store.Tx) {
		noError(f, tx.InsertChallenge(ctx, []byte("1"), c))
		noError(f, tx.InsertChallenge(ctx, []byte("2"), anybody))
	})
	read := func(hash, purpose string, tries int, at time.Time) (store.Challenge, error) {
		return f.Read().Challenge(ctx, []byte(hash), purpose, tries, at)
	}
	now := f.clock.read()
	equal(f, f.value(read("1", "login", 2, now)), c)
	equal(f, f.value(read("2", "passkey", 2, now)), anybody)
	f.wantNone(read("1", "passkey", 2, now))
	f.wantNone(read("1", "login", 2, end))
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.TryChallenge(ctx, []byte("1"), 2))
		f.wantChange(tx.TryChallenge(ctx, []byte("1"), 2))
		f.wantNoChange(tx.TryChallenge(ctx, []byte("1"), 2))
		f.wantChange(tx.HoldChallenge(ctx, []byte("1")))
		f.wantNoChange(tx.HoldChallenge(ctx, []byte("none")))
		f.wantChange(tx.TakeChallenge(ctx, []byte("2")))
		f.wantNoChange(tx.TakeChallenge(ctx, []byte("2")))
	})
	f.wantNone(read("1", "login", 2, now))
	equal(f, f.value(read("1", "login", 3, now)), c)
	f.clock.move(time.Minute)
	f.write(func(tx *store.Tx) {
		f.wantNoChange(tx.TryChallenge(ctx, []byte("1"), 9))
		equal(f, f.value(tx.DeleteEndedChallenges(ctx, 0)), int64(0))
		equal(f, f.value(tx.DeleteEndedChallenges(ctx, 1)), int64(1))
		f.wantNoChange(tx.TakeChallenge(ctx, []byte("1")))
		c.EndsAt = tx.Now.Add(time.Minute)
		noError(f, tx.InsertChallenge(ctx, []byte("3"), c))
		noError(f, tx.EndChallenges(ctx, ann.ID))
		f.wantNoChange(tx.TakeChallenge(ctx, []byte("3")))
		for hash, purpose := range map[string]string{"4": "login", "5": "link", "6": "page"} {
			noError(f, tx.InsertChallenge(ctx, []byte(hash), store.Challenge{Purpose: purpose, EndsAt: c.EndsAt}))
		}
		equal(f, f.value(tx.EndChallengesFor(ctx, "link", "page")), int64(2))
		f.wantChange(tx.TakeChallenge(ctx, []byte("4")))
		for hash, tenant := range map[string]string{"7": "tnt_gone", "8": "tnt_other"} {
			noError(f, tx.InsertChallenge(ctx, []byte(hash), store.Challenge{Purpose: "login", TenantID: tenant, EndsAt: c.EndsAt}))
		}
		noError(f, tx.EndChallengesOfTenant(ctx, "tnt_gone"))
		f.wantNoChange(tx.TakeChallenge(ctx, []byte("7")))
		f.wantChange(tx.TakeChallenge(ctx, []byte("8")))
	})
}

// forgottenProofs: a tenant ends the challenges to itself, and forgets browsers. Nothing changes in other tenants and for other members. A new membership remembers
// no browser.
func forgottenProofs(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	ann, bob := f.member(acme, "ann@acme.example", doorward.RoleUser), f.member(acme, "bob@acme.example", doorward.RoleUser)
	f.join(zeta, doorward.Account{ID: ann.ID, Email: ann.Email}, doorward.RoleUser)
	challenges := []store.Challenge{
		{Purpose: "login", UserID: ann.ID, TenantID: acme.ID},
		{Purpose: "login", UserID: ann.ID, TenantID: zeta.ID},
		{Purpose: "login", UserID: bob.ID, TenantID: acme.ID},
	}
	f.write(func(tx *store.Tx) {
		for i, c := range challenges {
			c.EndsAt = tx.Now.Add(2 * time.Hour)
			noError(f, tx.InsertChallenge(ctx, []byte{byte(i)}, c))
		}
	})
	remaining := func() (all []int) {
		for i, c := range challenges {
			if _, err := f.Read().Challenge(ctx, []byte{byte(i)}, c.Purpose, 5, f.clock.read()); err == nil {
				all = append(all, i)
			}
		}
		return all
	}
	forgotten := func(tenant doorward.Tenant, user doorward.User) any {
		return f.value(f.Read().BrowsersForgotten(ctx, tenant.ID, user.ID))
	}
	joined := noon.Add(-time.Microsecond)
	equal(f, []any{forgotten(acme, ann), forgotten(zeta, ann), forgotten(acme, bob)}, []any{joined, joined, joined})
	now := f.clock.move(time.Hour)
	f.write(func(tx *store.Tx) { noError(f, tx.ForgetProofsIn(ctx, acme.ID, ann.ID)) })
	equal(f, remaining(), []int{1, 2})
	equal(f, []any{forgotten(acme, ann), forgotten(zeta, ann), forgotten(acme, bob)}, []any{now, joined, joined})
	f.write(func(tx *store.Tx) { noError(f, tx.ForgetProofsIn(ctx, zeta.ID, ann.ID)) })
	equal(f, remaining(), []int{2})
	f.wantNone(f.Read().BrowsersForgotten(ctx, zeta.ID, bob.ID))
	f.write(func(tx *store.Tx) { noError(f, tx.EndAllTrust(ctx)) })
	equal(f, remaining(), []int(nil))
}

// unprovedSessions: when a tenant demands second factors, sessions without one end: those of
// members who have one of the roles and joined at an instant or before.
func unprovedSessions(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	sessions := map[string]doorward.Session{}
	add := func(name string, role doorward.Role, assurance doorward.Assurance) {
		s := f.session(f.member(acme, name+"@acme.example", role))
		s.Assurance = assurance
		f.write(func(tx *store.Tx) {
			f.wantChange(tx.RenewSession(ctx, s, hashOf(s)))
		})
		sessions[name] = s
	}
	weak, strong := doorward.Assurance{AAL: 1}, doorward.Assurance{AAL: 2}
	add("user", doorward.RoleUser, weak)
	add("admin", doorward.RoleAdmin, weak)
	add("strong", doorward.RoleUser, strong)
	joined := f.clock.read()
	f.clock.move(time.Minute)
	add("late", doorward.RoleUser, weak)
	wantLeft := func(names ...string) {
		f.Helper()
		for name, s := range sessions {
			if _, err := f.Read().Session(ctx, s.ID); (err == nil) != slices.Contains(names, name) {
				f.Errorf("%s: %v", name, err)
			}
		}
	}
	end := func(roles ...doorward.Role) {
		f.write(func(tx *store.Tx) { noError(f, tx.DeleteUnprovedSessions(ctx, acme.ID, roles, joined)) })
	}
	equal(f, f.value(f.Read().CountUnprovedSessions(ctx, acme.ID, nil)), 3)
	equal(f, f.value(f.Read().CountUnprovedSessions(ctx, acme.ID, []doorward.Role{doorward.RoleUser})), 2)
	equal(f, f.value(f.Read().CountUnprovedSessions(ctx, acme.ID, []doorward.Role{"USE"})), 0)
	end(doorward.RoleViewer, "USE") // a part of USER is no role
	wantLeft("user", "admin", "strong", "late")
	end(doorward.RoleOwner, doorward.RoleUser)
	wantLeft("admin", "strong", "late")
	end()
	wantLeft("strong", "late")
}

// latestEvents: events of some actions by the user and about the user are found in any trail.
func latestEvents(f *fixture) {
	ctx := f.Context()
	now := f.clock.read()
	add := func(id string, at time.Duration, action doorward.Action, actor, target, tenant string) {
		f.write(func(tx *store.Tx) {
			tx.InsertPastEvent(doorward.Event{
				ID: id, At: now.Add(at), Action: action, Outcome: doorward.Done, ActorType: doorward.ByUser, ActorID: actor,
				Target: doorward.Object{Type: "user", ID: target, TenantID: tenant},
			})
		})
	}
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	add("evt_1", 0, doorward.MFAEnrol, "usr_ann", "usr_ann", acme.ID)
	add("evt_2", time.Second, doorward.MFAReset, "usr_owner", "usr_ann", zeta.ID)
	add("evt_3", 2*time.Second, doorward.MFARemove, "usr_ann", "usr_ann", zeta.ID)
	add("evt_4", 3*time.Second, doorward.UserRole, "usr_ann", "usr_bob", acme.ID)
	add("evt_5", 4*time.Second, doorward.MFAEnrol, "usr_bob", "usr_bob", acme.ID)
	latest := func(since time.Duration, limit int) (ids string) {
		all, err := f.Read().LatestEvents(ctx, "usr_ann", "", []doorward.Action{doorward.MFAEnrol, doorward.MFAReset, doorward.MFARemove}, now.Add(since), limit)
		noError(f, err)
		for _, e := range all {
			ids += e.ID
		}
		return ids
	}
	equal(f, latest(-time.Second, 5), "evt_3evt_2evt_1")
	equal(f, latest(-time.Second, 2), "evt_3evt_2")
	equal(f, latest(0, 5), "evt_3evt_2")
	here, err := f.Read().LatestEvents(ctx, "usr_ann", acme.ID, []doorward.Action{doorward.MFAEnrol, doorward.MFARemove}, now.Add(-time.Second), 5)
	noError(f, err)
	equal(f, []int{len(here)}, []int{1})
}

// provedSessions: new proofs of a session are stored, and browsers that stand in for a factor.
func provedSessions(f *fixture) {
	ctx := f.Context()
	ann := f.member(f.tenant("Acme"), "ann@acme.example", doorward.RoleUser)
	s := f.session(ann)
	s.Assurance = doorward.Assurance{AAL: 2, AMR: []string{"pwd", "otp", "mfa"}, ProvedAt: noon.Add(time.Minute), FactorAt: noon.Add(time.Second)}
	s.ProvedAt, s.LastSeenAt = noon.Add(time.Hour), noon.Add(time.Hour)
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.RenewSession(ctx, s, []byte("new")))
		f.wantNoChange(tx.RenewSession(ctx, doorward.Session{ID: "ses_none"}, []byte("other")))
	})
	f.wantNone(f.Read().SessionByToken(ctx, hashOf(s)))
	equal(f, f.value(f.Read().SessionByToken(ctx, []byte("new"))), store.Credential{Session: s, User: ann})

	equal(f, f.remember("1", ann.ID), true)
	secondAt := func() time.Time {
		known, err := f.Read().KnownDevices(ctx, ann.Email, [][]byte{[]byte("1")}, time.Time{})
		noError(f, err)
		return known[0].SecondAt
	}
	now := f.clock.read()
	equal(f, secondAt(), time.Time{})
	f.write(func(tx *store.Tx) { noError(f, tx.RememberBrowser(ctx, []byte("1"), "192.0.2.7", "a browser")) })
	equal(f, secondAt().Equal(now), true)
	remembered := []store.RememberedBrowser{{Hash: []byte("1"), ProvedAt: now, IP: "192.0.2.7", UserAgent: "a browser"}}
	equal(f, f.value(f.Read().RememberedBrowsers(ctx, ann.ID, now.Add(-time.Microsecond))), remembered)
	equal(f, f.value(f.Read().RememberedBrowsers(ctx, ann.ID, now)), []store.RememberedBrowser(nil))
	f.write(func(tx *store.Tx) {
		f.wantNoChange(tx.ForgetBrowser(ctx, ann.ID, []byte("2")))
		f.wantNoChange(tx.ForgetBrowser(ctx, "usr_none", []byte("1")))
		f.wantChange(tx.ForgetBrowser(ctx, ann.ID, []byte("1")))
		f.wantNoChange(tx.ForgetBrowser(ctx, ann.ID, []byte("1")))
		noError(f, tx.RememberBrowser(ctx, []byte("1"), "192.0.2.7", "a browser"))
	})
	f.write(func(tx *store.Tx) {
		equal(f, f.value(tx.ForgetBrowsersProvedBefore(ctx, f.clock.read().Add(-time.Second), 9)), int64(0))
	})
	equal(f, len(f.value(f.Read().RememberedBrowsers(ctx, ann.ID, time.Time{})).([]store.RememberedBrowser)), 1)
	f.write(func(tx *store.Tx) {
		equal(f, f.value(tx.ForgetBrowsersProvedBefore(ctx, f.clock.read(), 0)), int64(0))
		equal(f, f.value(tx.ForgetBrowsersProvedBefore(ctx, f.clock.read(), 9)), int64(1))
		noError(f, tx.RememberBrowser(ctx, []byte("1"), "192.0.2.7", "a browser"))
	})
	f.write(func(tx *store.Tx) { noError(f, tx.ForgetBrowsers(ctx, ann.ID)) })
	equal(f, secondAt(), time.Time{})
	known := func(hash string) any {
		return len(f.value(f.Read().KnownDevices(ctx, ann.Email, [][]byte{[]byte(hash)}, time.Time{})).([]store.KnownDevice))
	}
	f.write(func(tx *store.Tx) { noError(f, tx.RenewDevice(ctx, []byte("1"), []byte("renewed"))) })
	equal(f, []any{known("1"), known("renewed")}, []any{0, 1})
	browsers, err := f.Read().Browsers(ctx, ann.ID)
	noError(f, err)
	equal(f, browsers[0].IP+browsers[0].UserAgent, "")
}

// factorWords: words hold for some time, are void together, and end with the membership. Of the codes of
// an account the newest one is open, once.
func factorWords(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	ann := f.member(acme, "ann@acme.example", doorward.RoleUser)
	give := func() (mails int) {
		f.write(func(tx *store.Tx) { mails = f.value(tx.GiveFactorWord(ctx, acme.ID, ann.ID)).(int) })
		return mails
	}
	words := func() int {
		f.Helper()
		byUser, err := f.Read().FactorWordsFor(ctx, ann.ID, f.clock.read())
		noError(f, err)
		byTenant, err := f.Read().FactorWordsOf(ctx, acme.ID, f.clock.read())
		noError(f, err)
		equal(f, byTenant, byUser)
		return len(byUser)
	}
	equal(f, []int{words(), give(), give(), words()}, []int{0, 1, 2, 1})
	f.clock.move(time.Hour)
	equal(f, give(), 1)
	f.clock.move(doorward.FactorWordLife)
	equal(f, words(), 0)
	give()
	f.write(func(tx *store.Tx) { noError(f, tx.VoidFactorWords(ctx, ann.ID)) })
	equal(f, words(), 0)
	sweep := func(until time.Time) (n int64) {
		f.write(func(tx *store.Tx) { n = f.value(tx.DeleteOldFactorWords(ctx, until, 10)).(int64) })
		return n
	}
	equal(f, []int64{sweep(f.clock.read().Add(-time.Minute)), sweep(f.clock.read())}, []int64{0, 1})
	give()
	f.write(func(tx *store.Tx) {
		equal(f, f.value(tx.SetUserStatus(ctx, acme.ID, ann.ID, doorward.UserSuspended)), true)
	})
	equal(f, words(), 0)
	give()
	f.write(func(tx *store.Tx) { equal(f, f.value(tx.DeleteMembership(ctx, acme.ID, ann.ID)), true) })
	equal(f, words(), 0)

	end := f.clock.read().Add(time.Hour)
	f.write(func(tx *store.Tx) {
		noError(f, tx.InsertFactorCode(ctx, []byte("1"), ann.ID, end))
		noError(f, tx.InsertFactorCode(ctx, []byte("2"), ann.ID, end))
		equal(f, f.value(tx.UseFactorCode(ctx, []byte("1"))), false)
		equal(f, f.value(tx.UseFactorCode(ctx, []byte("2"))), true)
		equal(f, f.value(tx.UseFactorCode(ctx, []byte("2"))), false)
	})
	code, err := f.Read().FactorCode(ctx, []byte("2"))
	noError(f, err)
	equal(f, []bool{code.UsedAt != nil, code.ExpiresAt.Equal(end)}, []bool{true, true})
	codes, err := f.Read().FactorCodesFor(ctx, ann.ID)
	noError(f, err)
	equal(f, len(codes), 2)
	f.write(func(tx *store.Tx) { equal(f, f.value(tx.DeleteOldFactorCodes(ctx, end, 10)), int64(2)) })
}

// factorDemands: the members to notify of a demand are taken in parts, each part by one caller; a newer
// demand replaces an older one and begins with the first member.
func factorDemands(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	var ids []string
	for _, name := range []string{"ann", "ben", "cem"} {
		ids = append(ids, f.member(acme, name+"@acme.example", doorward.RoleUser).ID)
	}
	slices.Sort(ids)
	next := func() store.FactorDemand {
		all, err := f.Read().FactorDemands(ctx, 2)
		noError(f, err)
		if len(all) != 1 {
			f.Fatalf("the demands are %+v, want one", all)
		}
		return all[0]
	}
	take := func(d store.FactorDemand, want ...string) {
		f.Helper()
		f.write(func(tx *store.Tx) {
			members, err := tx.TakeFactorDemand(ctx, d, 2)
			noError(f, err)
			var got []string
			for _, m := range members {
				got = append(got, m.ID)
			}
			equal(f, got, want)
		})
	}
	f.write(func(tx *store.Tx) { noError(f, tx.AddFactorDemand(ctx, acme.ID, "evt_1")) })
	first := next()
	take(first, ids[:2]...)
	take(first) // another node was earlier
	f.write(func(tx *store.Tx) { noError(f, tx.AddFactorDemand(ctx, acme.ID, "evt_2")) })
	equal(f, next(), store.FactorDemand{TenantID: acme.ID, EventID: "evt_2"})
	take(next(), ids[:2]...)
	last := next()
	take(last, ids[2:]...)
	take(last)
	left, err := f.Read().FactorDemands(ctx, 2)
	noError(f, err)
	equal(f, len(left), 0)
}
