package storetest

import (
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// future: times further ahead than ClockTolerance become now, expiries now plus their
// lifetime; other times stay.
func future(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	ann := f.member(acme, "ann@acme.example", doorward.RoleOwner)
	past := f.session(ann)
	f.clock.move(store.ClockTolerance)
	near := f.session(ann)
	f.clock.move(26 * time.Hour)
	ahead := f.session(ann)
	wantProofsAt := f.proveAhead(ann, past)
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
	equal(f, f.markCall(underWay), true)
	equal(f, f.markCall(answered), true)
	equal(f, f.keepAnswer(answered, "kept"), true)
	now := f.clock.move(-26*time.Hour - store.ClockTolerance)
	for _, sessions := range []int{2, 0} { // ahead, and past with its proofs; the second time none
		f.write(func(tx *store.Tx) {
			n, err := tx.ClampFuture(ctx)
			equal(f, f.value(n, err), sessions)
		})
	}
	for id, want := range map[string]time.Time{past.ID: past.CreatedAt, near.ID: near.CreatedAt, ahead.ID: now} {
		cred, err := f.Read().Session(ctx, id)
		equal(f, f.value(cred.Session.CreatedAt, err), want)
		equal(f, f.value(cred.Session.LastSeenAt, err), want)
	}
	wantProofsAt(now)
	key, err := f.Read().APIKey(ctx, made.ID, now)
	equal(f, f.value([]time.Time{key.CreatedAt, key.ExpiresAt}, err), []time.Time{now, now.Add(made.ExpiresAt.Sub(made.CreatedAt))})
	inv, err := f.Read().Invitation(ctx, offer.ID)
	equal(f, f.value(inv.ExpiresAt, err), now.Add(time.Duration(offer.Days)*24*time.Hour))
	r, err := f.Read().ResetByToken(ctx, []byte("a link"))
	equal(f, f.value(r.ExpiresAt, err), now.Add(30*time.Minute))
	f.write(func(tx *store.Tx) {
		t, err := tx.HitThrottle(ctx, "account:ann", time.Minute)
		equal(f, f.value(t, err), store.Throttle{Hits: 2, Since: now, Until: now.Add(time.Minute)})
	})
	equal(f, len(f.due()), 1) // the queued mail
	// A mark of a call lasts 4 s, a kept answer 24 h, both from now.
	f.clock.move(4 * time.Second)
	equal(f, []bool{f.markCall(attemptAt("a", "two")), f.markCall(attemptAt("b", "two"))}, []bool{true, false})
	f.clock.move(24*time.Hour - 4*time.Second)
	equal(f, f.markCall(attemptAt("b", "two")), true)
}

// proveAhead makes, while the clock is ahead, all that second factors store: a proof in an
// older session, challenges, a remembered browser, a begun enrolment, the tenant's demand. The
// returned function checks that their times were set to now.
func (f *fixture) proveAhead(ann doorward.User, past doorward.Session) func(now time.Time) {
	ctx, at := f.Context(), f.clock.read()
	login, mailed, device := []byte("a challenge"), []byte("the code of a mail"), []byte("a browser")
	challenge := store.Challenge{Purpose: "login", UserID: ann.ID, Methods: []string{"totp"}, EndsAt: at.Add(doorward.ChallengeLife)}
	begun := store.Factor{SeedSealed: []byte("sealed"), Factor: doorward.Factor{ID: f.id("mfa_"), UserID: ann.ID, Kind: doorward.TOTP, CreatedAt: at}}
	f.write(func(tx *store.Tx) {
		cred, err := tx.Session(ctx, past.ID)
		noError(f, err)
		cred.Session.Assurance = doorward.Assurance{AAL: 2, AMR: []string{"pwd", "otp"}, ProvedAt: at, FactorAt: at, PasswordAt: at}
		_, err = tx.RenewSession(ctx, cred.Session, []byte("another token"))
		noError(f, err)
		noError(f, tx.InsertChallenge(ctx, login, challenge))
		noError(f, tx.InsertFactorCode(ctx, mailed, ann.ID, at.Add(doorward.FactorResetLife)))
		equal(f, f.value(tx.GiveFactorWord(ctx, ann.TenantID, ann.ID)), 1)
		_, err = tx.InsertDevice(ctx, device, ann.ID, 20, at.Add(-time.Hour))
		noError(f, err)
		noError(f, tx.RememberBrowser(ctx, device, "192.0.2.1", "a browser"))
		noError(f, tx.ForgetProofsIn(ctx, ann.TenantID, ann.ID))
		_, err = tx.InsertFactor(ctx, begun)
		noError(f, err)
		tenant, err := tx.Tenant(ctx, ann.TenantID)
		noError(f, err)
		tenant.Settings.SecondFactor.Since = at
		noError(f, tx.EditTenant(ctx, tenant))
	})
	return func(now time.Time) {
		f.Helper()
		cred, err := f.Read().Session(ctx, past.ID)
		equal(f, f.value([]time.Time{cred.Session.ProvedAt, cred.Session.FactorAt, cred.Session.PasswordAt}, err), []time.Time{now, now, now})
		c, err := f.Read().Challenge(ctx, login, "login", 5, now)
		equal(f, f.value(c.EndsAt, err), now.Add(doorward.ChallengeLife))
		code, err := f.Read().FactorCode(ctx, mailed)
		equal(f, f.value(code.ExpiresAt, err), now.Add(doorward.FactorResetLife))
		words, err := f.Read().FactorWordsFor(ctx, ann.ID, now)
		equal(f, f.value(words[0].AskedAt, err), now)
		remembered, err := f.Read().RememberedBrowsers(ctx, ann.ID, time.Time{})
		equal(f, f.value(remembered[0].ProvedAt, err), now)
		equal(f, f.value(f.Read().BrowsersForgotten(ctx, ann.TenantID, ann.ID)), now)
		factors, err := f.Read().Factors(ctx, ann.ID)
		equal(f, f.value(factors[0].CreatedAt, err), now)
		tenant, err := f.Read().Tenant(ctx, ann.TenantID)
		equal(f, f.value(tenant.Settings.SecondFactor.Since, err), now)
	}
}
