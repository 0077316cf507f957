package login_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/internal/secret"
)

// Values of the argument remember of WithSecond.
const rememberBrowser, forgetBrowser = true, false

// withSecond answers the challenge on node i.
func withSecond(f *apptest.Fixture, i int, by doorward.Caller, b factor.NewChallenge, a factor.Answer) (login.SignedIn, error) {
	return apptest.SignedIn(f.Node(i).Login.WithSecond(f.Context(), by, b.Token.Reveal(), a, forgetBrowser))
}

// resultOfSecond answers the challenge on node i, and returns the code of the error, empty for
// success.
func resultOfSecond(f *apptest.Fixture, i int, b factor.NewChallenge, a factor.Answer) doorward.Code {
	return apptest.Code(apptest.ErrorOf(withSecond(f, i, apptest.Anonymous(i), b, a)))
}

// signInByCode signs in with the password and a code, and returns the caller.
func signInByCode(f *apptest.Fixture, p apptest.Person, a *apptest.Authenticator) doorward.Caller {
	f.Helper()
	in, err := withSecond(f, 0, apptest.Anonymous(1), f.Challenge(apptest.Anonymous(1), p), factor.Answer{Code: a.Code(f.DB.Now())})
	f.NoError(err)
	by := apptest.Anonymous(1).As(in.User)
	by.Principal = doorward.PrincipalOf(in.User, in.Session)
	return by
}

// signInRemembered signs in with the password and a code in a browser that is remembered, and
// returns a caller in that browser who isn't signed in, and the outcome.
func signInRemembered(f *apptest.Fixture, p apptest.Person, a *apptest.Authenticator) (doorward.Caller, login.SignedIn) {
	f.Helper()
	token := f.Challenge(apptest.Anonymous(1), p).Token.Reveal()
	in, err := apptest.SignedIn(f.Node(0).Login.WithSecond(f.Context(), apptest.Anonymous(1), token, factor.Answer{Code: a.Code(f.DB.Now())}, rememberBrowser))
	f.NoError(err)
	hash, browser := in.Device.Hash(), apptest.Anonymous(1)
	browser.Devices = [][]byte{hash[:]}
	return browser, in
}

// onThreeNodes runs the test on SQLite and on three nodes over PostgreSQL.
func onThreeNodes(t *testing.T, test func(*apptest.Fixture, *apptest.MovedClock)) {
	for _, e := range apptest.Engines {
		if e.Name == apptest.Postgres.Name {
			e.Nodes = 3
		}
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			clock := apptest.NewMovedClock()
			test(apptest.New(t, e, apptest.ProductionLimits, clock.Now), clock)
		})
	}
}

// TestSecondStep: the password leads to a challenge, and the code to a session of assurance
// level 2. A challenge works once, and so does a code.
func TestSecondStep(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.ProductionLimits, apptest.NewMovedClock, func(f *apptest.Fixture, _ *apptest.MovedClock) {
		_, ann := f.Tenant()
		a := f.Enrol(&ann)
		refused := f.Int(`SELECT count(*) FROM events WHERE outcome = 'refused'`)
		b := f.Challenge(apptest.Anonymous(1), ann)
		if fmt.Sprint(b.Methods) != "[totp recovery]" || b.ExpiresAt.Sub(f.DB.Now()) > doorward.ChallengeLife {
			f.Errorf("the challenge is %+v", b)
		}
		answer := factor.Answer{Code: a.Code(f.DB.Now())}
		in, err := withSecond(f, 1, apptest.Anonymous(1), b, answer)
		if err != nil || in.Session.AAL != 2 || fmt.Sprint(in.Session.AMR) != "[pwd otp mfa]" || in.Device == nil {
			f.Fatalf("the session is %+v, %v", in.Session, err)
		}
		for i := range f.Nodes {
			if p, err := f.Node(i).Sessions.Check(f.Context(), in.Token); err != nil || p.AAL != 2 || p.FactorAt.IsZero() {
				f.Errorf("node %d: %+v, %v", i, p, err)
			}
		}
		if got := resultOfSecond(f, 2, b, factor.Answer{Code: a.Code(f.DB.Now())}); got != doorward.CodeChallengeOver {
			f.Errorf("the challenge again: %q", got)
		}
		if got := resultOfSecond(f, 0, f.Challenge(apptest.Anonymous(1), ann), answer); got != doorward.CodeInvalidCode {
			f.Errorf("the code again: %q", got)
		}
		f.RecordDue()
		if got := f.Int(`SELECT count(*) FROM events WHERE outcome = 'refused'`) - refused; got != 1 {
			f.Errorf("%d refusals are recorded, want only that of the code", got)
		}
		if got := f.Int(`SELECT count(*) FROM events WHERE action = 'mfa.refuse'`); got != 1 {
			f.Errorf("%d events mfa.refuse", got)
		}
		if got := f.Int(`SELECT count(*) FROM events WHERE action = 'mfa.challenge'`); got != 2 {
			f.Errorf("%d events mfa.challenge", got)
		}
		if n := inFlight(f); n != 0 {
			f.Errorf("%d attempts are in flight", n)
		}
	})
}

// TestRaceOneCodeAtOnce: of 32 uses of one code at once, over all nodes and with a challenge
// each, exactly one passes. The same holds for a recovery code, and for 32 answers to one
// challenge.
func TestRaceOneCodeAtOnce(t *testing.T) {
	for _, e := range apptest.Engines {
		if e.Name == apptest.Postgres.Name {
			e.Nodes = 3
		}
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			f := apptest.New(t, e, proof.Limits{PerAccount: 1000, PerIP: 1000}, time.Now)
			_, ann := f.Tenant()
			a := f.Enrol(&ann)
			var challenges []factor.NewChallenge
			for range 32 {
				challenges = append(challenges, f.Challenge(apptest.Anonymous(1), ann))
			}
			for name, answer := range map[string]factor.Answer{"code": {Code: a.Code(f.DB.Now())}, "recovery code": {RecoveryCode: a.Recovery[0]}} {
				got := apptest.CountCodes(apptest.Concurrently(32, func(i int) error {
					return apptest.ErrorOf(withSecond(f, i, apptest.Anonymous(i), challenges[i], answer))
				}))
				if got[""] != 1 || got[doorward.CodeInvalidCode]+got[doorward.CodeChallengeOver] != 31 {
					f.Errorf("%s: %v", name, got)
				}
			}
			one := f.Challenge(apptest.Anonymous(1), ann)
			got := apptest.CountCodes(apptest.Concurrently(32, func(i int) error {
				return apptest.ErrorOf(withSecond(f, i, apptest.Anonymous(i), one, factor.Answer{RecoveryCode: a.Recovery[1+i%9]}))
			}))
			if got[""] != 1 || got[doorward.CodeChallengeOver] != 31 {
				f.Errorf("one challenge: %v", got)
			}
			if n := f.Int(`SELECT count(*) FROM recovery_codes`); n != doorward.RecoveryCodes-2 {
				f.Errorf("%d recovery codes are left", n)
			}
			f.WantNoDeadlocks()
		})
	}
}

// TestRaceOneCodeForAllUses: of 16 concurrent confirmations of an app with one code, one passes,
// and no login accepts this code. Of 16 concurrent logins and step-ups with the next code,
// one passes.
func TestRaceOneCodeForAllUses(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, ann := f.Tenant()
		f.UseMasterKey()
		e, err := f.Node(0).Factors.Enrol(f.Context(), ann.Caller, "")
		f.NoError(err)
		a := &apptest.Authenticator{ID: e.ID, Seed: e.Seed}
		first := a.Code(f.DB.Now())
		got := apptest.CountCodes(apptest.Concurrently(16, func(i int) error {
			return apptest.ErrorOf(f.Node(i).Factors.Confirm(f.Context(), ann.Caller, e.ID, first))
		}))
		if n := f.CountRows("recovery_codes"); got[""] != 1 || got[doorward.CodeNotFound] != 15 || n != doorward.RecoveryCodes {
			f.Errorf("confirming: %v, %d recovery codes", got, n)
		}
		if got := resultOfSecond(f, 0, f.Challenge(apptest.Anonymous(1), ann), factor.Answer{Code: first}); got != doorward.CodeInvalidCode {
			f.Errorf("the code that has confirmed: %q", got)
		}
		next := a.Code(f.DB.Now())
		var uses []func() error
		for i := range 8 {
			b, up := f.Challenge(apptest.Anonymous(1), ann), beginStepUp(f, ann.Caller)
			uses = append(uses, func() error { return errorOfSecond(f, i, b, factor.Answer{Code: next}) }, func() error {
				return apptest.ErrorOf(stepUp(f, i, ann.Caller, up, byCode(next)))
			})
		}
		got = apptest.CountCodes(apptest.Concurrently(16, func(i int) error { return uses[i]() }))
		if got[""] != 1 || got[""]+got[doorward.CodeInvalidCode]+got[doorward.CodeValidationFailed] != 16 {
			f.Errorf("logins and step-ups: %v", got)
		}
	})
}

// TestFiveTries: a challenge has five tries, over all nodes; after them even the right code is
// refused. Each wrong code counts in the limit of the account, and right passwords in between
// don't clear the count.
func TestFiveTries(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.ProductionLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		_, ann := f.Tenant()
		a := f.Enrol(&ann)
		b := f.Challenge(apptest.Anonymous(1), ann)
		for i := range doorward.ChallengeTries {
			if got := resultOfSecond(f, i, b, factor.Answer{Code: "000000"}); got != doorward.CodeInvalidCode {
				f.Fatalf("try %d: %q", i, got)
			}
		}
		if got := resultOfSecond(f, 0, b, factor.Answer{Code: a.Code(f.DB.Now())}); got != doorward.CodeChallengeOver {
			f.Errorf("the sixth try: %q", got)
		}
		if n := f.CountFailures("account:" + ann.User.Email); n != doorward.ChallengeTries {
			f.Errorf("%d failures are counted", n)
		}
		clock.Move(time.Minute)
		b = f.Challenge(apptest.Anonymous(2), ann)
		if n := f.CountFailures("account:" + ann.User.Email); n != doorward.ChallengeTries {
			f.Errorf("after the right password %d failures are counted", n)
		}
		if got := resultOfSecond(f, 1, b, factor.Answer{Code: "000000"}); got != doorward.CodeInvalidCode {
			f.Errorf("a wrong code for the new challenge: %q", got)
		}
		if got := f.TryLogin(ann.User.Email, apptest.FirstPassword); got != doorward.CodeTooManyAttempts {
			f.Errorf("a password right after too many wrong codes: %q", got)
		}
		clock.Move(time.Hour)
		if got := resultOfSecond(f, 2, f.Challenge(apptest.Anonymous(2), ann), factor.Answer{Code: a.Code(f.DB.Now())}); got != "" {
			f.Errorf("the right code: %q", got)
		}
		if n := f.CountFailures("account:" + ann.User.Email); n != 0 {
			f.Errorf("after the sign-in %d failures are counted", n)
		}
	})
}

// TestHundredWrongCodes: after 100 wrong codes even the right one is refused, also after a
// password reset by mail. A recovery code is accepted, and so are codes afterwards.
func TestHundredWrongCodes(t *testing.T) {
	limits := proof.Limits{PerAccount: 1000, PerIP: 1000}
	f := apptest.New(t, apptest.SQLite, limits, time.Now)
	_, ann := f.Tenant()
	a := f.Enrol(&ann)
	for range 100 / doorward.ChallengeTries {
		b := f.Challenge(apptest.Anonymous(1), ann)
		for range doorward.ChallengeTries {
			if got := resultOfSecond(f, 0, b, factor.Answer{Code: "000000"}); got != doorward.CodeInvalidCode {
				f.Fatalf("a wrong code: %q", got)
			}
		}
	}
	f.NoError(apptest.ErrorOf(f.Node(0).Passwords.Reset(f.Context(), apptest.Anonymous(0), f.ResetToken(ann), apptest.FirstPassword, apptest.FirstPassword)))
	answer := func(a factor.Answer, want doorward.Code) {
		f.Helper()
		if got := resultOfSecond(f, 0, f.Challenge(apptest.Anonymous(1), ann), a); got != want {
			f.Errorf("%q, want %q", got, want)
		}
	}
	right := a.Code(f.DB.Now())
	answer(factor.Answer{Code: right}, doorward.CodeTooManyAttempts)
	var refused *doorward.Error
	_, err := f.Node(0).Login.WithSecond(f.Context(), apptest.Anonymous(1), f.Challenge(apptest.Anonymous(1), ann).Token.Reveal(), factor.Answer{Code: right}, forgetBrowser)
	if !errors.As(err, &refused) || len(refused.Fields) != 1 || refused.Fields[0].Pointer != "/code" || refused.Fields[0].Code != "closed" {
		f.Errorf("%v with %v, want /code closed, or a page tells the person to wait", err, refused)
	}
	if n := f.CountFailures("account:" + ann.User.Email); n != 0 {
		f.Errorf("a code that was not checked counts: %d", n)
	}
	if n := inFlight(f); n != 0 {
		f.Errorf("%d attempts are in flight", n)
	}
	answer(factor.Answer{RecoveryCode: a.Recovery[0]}, "")
	answer(factor.Answer{Code: right}, "")
	if n := f.CountFailures("codes:"); n != 0 {
		f.Errorf("%d codes are counted after a right one", n)
	}
	answer(factor.Answer{Code: "000000"}, doorward.CodeInvalidCode)
	f.NoError(apptest.ErrorOf(f.Node(0).Factors.ResetByAddress(f.Context(), apptest.Operator, ann.User.Email)))
	if n := f.CountFailures("codes:"); n != 0 {
		f.Errorf("%d codes are counted after the reset", n)
	}
}

// TestFalseChallenges: a challenge works only for its purpose and its account, and until its
// end. It doesn't work after a change of the password or of the factors.
func TestFalseChallenges(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.ProductionLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		_, owner := f.Tenant()
		ann, bob, eve := f.Join(owner, doorward.RoleUser), f.Join(owner, doorward.RoleUser), f.Join(owner, doorward.RoleUser)
		a := f.Enrol(&ann)
		f.Enrol(&bob)
		wantOver := func(why string, b factor.NewChallenge) {
			f.Helper()
			if got := resultOfSecond(f, 1, b, factor.Answer{RecoveryCode: a.Recovery[0]}); got != doorward.CodeChallengeOver {
				f.Errorf("%s: %q", why, got)
			}
		}
		if got := resultOfSecond(f, 0, f.Challenge(apptest.Anonymous(1), bob), factor.Answer{RecoveryCode: a.Recovery[0]}); got != doorward.CodeInvalidCode {
			f.Errorf("another account's challenge: %q", got)
		}
		f.EditTenant(owner, func(s *doorward.TenantSettings) { s.SecondFactor.Since = f.DB.Now().Add(-time.Second) })
		wantOver("of another purpose", f.Challenge(apptest.Anonymous(1), eve))
		b := f.Challenge(apptest.Anonymous(1), ann)
		clock.Move(doorward.ChallengeLife)
		wantOver("late", b)
		b = f.Challenge(apptest.Anonymous(1), ann)
		_, err := f.Node(0).Factors.NewRecoveryCodes(f.Context(), ann.Caller)
		f.NoError(err)
		wantOver("after a change of the factors", b)
		b = f.Challenge(apptest.Anonymous(1), ann)
		_, err = f.Node(0).Passwords.Change(f.Context(), ann.Caller, apptest.FirstPassword, apptest.Password(7), apptest.Password(7))
		f.NoError(err)
		wantOver("after a change of the password", b)
		clock.Move(doorward.ChallengeLife)
		f.NoError(f.Node(0).Sweep(f.Context()))
		if n := f.CountRows("challenges"); n != 0 {
			f.Errorf("%d challenges are left", n)
		}
	})
}

// TestRememberedBrowser: a remembered browser stands in for the factor for as many days as the
// tenant allows. Its session has assurance level 1. It doesn't stand in if the tenant allows no
// days, or after a change of the factors.
func TestRememberedBrowser(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.ProductionLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		_, ann := f.Tenant()
		a := f.Enrol(&ann)
		allowDays := func(n int) {
			f.EditTenant(ann, func(s *doorward.TenantSettings) { s.SecondFactor.RememberDays = n })
		}
		remember := func() doorward.Caller {
			f.Helper()
			by, _ := signInRemembered(f, ann, a)
			return by
		}
		wantSignedIn := func(by doorward.Caller, want bool) {
			f.Helper()
			o, err := f.Node(1).Login.WithPassword(f.Context(), by, ann.User.Email, apptest.FirstPassword, "")
			f.NoError(err)
			in, isSignedIn := o.(login.SignedIn)
			if isSignedIn != want || isSignedIn && (in.Session.AAL != 1 || !in.Session.Remembered || !in.Session.FactorAt.IsZero()) {
				f.Errorf("the login ends in %T with the session %+v, want a session: %v", o, in.Session, want)
			}
		}
		wantSignedIn(remember(), false) // the tenant allows none
		allowDays(2)
		clock.Move(time.Hour)
		by := remember()
		wantSignedIn(by, true)
		wantSignedIn(apptest.Anonymous(1), false)
		allowDays(0)
		wantSignedIn(by, false)
		allowDays(1)
		clock.Move(24*time.Hour - time.Minute)
		wantSignedIn(by, true)
		clock.Move(time.Minute)
		wantSignedIn(by, false)
		allowDays(30)
		wantSignedIn(by, true)
		_, err := f.Node(0).Factors.NewRecoveryCodes(f.Context(), signInByCode(f, ann, a))
		f.NoError(err)
		wantSignedIn(by, false)
	})
}

// TestNewPasswordForgetsBrowsers: after a change of the password, not even the browser in which it
// was changed stands in for the factor. It is still a known browser.
func TestNewPasswordForgetsBrowsers(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.ProductionLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		_, ann := f.Tenant()
		a := f.Enrol(&ann)
		f.EditTenant(ann, func(s *doorward.TenantSettings) { s.SecondFactor.RememberDays = 30 })
		browser, in := signInRemembered(f, ann, a)
		by := browser.As(in.User)
		by.Principal = doorward.PrincipalOf(in.User, in.Session)
		next := apptest.Password(1)
		f.NoError(apptest.ErrorOf(f.Node(0).Passwords.Change(f.Context(), by, apptest.FirstPassword, next, next)))
		o, err := f.Node(1).Login.WithPassword(f.Context(), browser, ann.User.Email, next, "")
		f.NoError(err)
		if _, ok := o.(login.SecondNeeded); !ok {
			f.Errorf("a login in that browser with the new password ends in %T, want a challenge", o)
		}
		if known := f.Int(`SELECT count(*) FROM devices d JOIN users u ON u.id = d.user_id AND u.credential_generation = d.credential_generation WHERE u.email = '` + ann.User.Email + `'`); known != 1 {
			f.Errorf("%d browsers are known, want 1", known)
		}
	})
}

// TestEnrolmentAtLogin: where the tenant demands a factor, somebody without one sets it up
// between the password and the session. A second factor can't be added by the password alone.
func TestEnrolmentAtLogin(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.ProductionLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		_, owner := f.Tenant()
		ann := f.Join(owner, doorward.RoleUser)
		f.UseMasterKey()
		f.EditTenant(owner, func(s *doorward.TenantSettings) {
			s.SecondFactor = doorward.SecondFactor{Since: f.DB.Now(), Roles: []doorward.Role{doorward.RoleUser}, GraceDays: 2}
		})
		f.SignIn(ann.User.Email, apptest.FirstPassword)
		clock.Move(48 * time.Hour)
		f.SignIn(owner.User.Email, apptest.FirstPassword)
		first, other := f.Challenge(apptest.Anonymous(1), ann), f.Challenge(apptest.Anonymous(2), ann)
		enrol := func(b factor.NewChallenge) *apptest.Authenticator {
			f.Helper()
			e, err := f.Node(1).Factors.EnrolWithChallenge(f.Context(), apptest.Anonymous(1), b.Token.Reveal(), "")
			f.NoError(err)
			return &apptest.Authenticator{ID: e.ID, Seed: e.Seed}
		}
		confirm := func(i int, b factor.NewChallenge, id, code string) (login.SignedIn, factor.Confirmed, error) {
			o, done, err := f.Node(i).Login.WithFirst(f.Context(), apptest.Anonymous(i), b.Token.Reveal(), id, code)
			in, err := apptest.SignedIn(o, err)
			return in, done, err
		}
		a := enrol(first)
		if _, _, err := confirm(0, first, a.ID, "000000"); apptest.Code(err) != doorward.CodeInvalidCode {
			f.Errorf("a wrong code: %v", err)
		}
		in, done, err := confirm(1, first, a.ID, a.Code(f.DB.Now()))
		if err != nil || in.Session.AAL != 2 || len(done.RecoveryCodes) != doorward.RecoveryCodes {
			f.Fatalf("the confirmation ends in %+v, %+v, %v", in.Session, done, err)
		}
		if p, err := f.Node(2).Sessions.Check(f.Context(), in.Token); err != nil || p.AAL != 2 || !p.HasFactor {
			f.Errorf("node 2: the principal is %+v, %v", p, err)
		}
		if _, err := f.Node(0).Factors.EnrolWithChallenge(f.Context(), apptest.Anonymous(2), other.Token.Reveal(), ""); apptest.Code(err) != doorward.CodeChallengeOver {
			f.Errorf("a second factor by the password alone: %v", err)
		}
		if got := resultOfSecond(f, 0, f.Challenge(apptest.Anonymous(1), ann), factor.Answer{Code: a.Code(f.DB.Now())}); got != "" {
			f.Errorf("the next login: %q", got)
		}
	})
}

// TestGraceEnds: if the tenant demands a factor of the members with a role, their sessions of
// assurance level 1 end when the days of grace are over, on all nodes. Other sessions stay.
func TestGraceEnds(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.ProductionLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		_, owner := f.Tenant()
		ann, bob := f.Join(owner, doorward.RoleUser), f.Join(owner, doorward.RoleViewer)
		a := f.Enrol(&owner)
		f.EditTenant(owner, func(s *doorward.TenantSettings) {
			s.SecondFactor = doorward.SecondFactor{Since: f.DB.Now(), Roles: []doorward.Role{doorward.RoleUser, doorward.RoleOwner}, GraceDays: 1}
		})
		clock.Move(23*time.Hour + 30*time.Minute)
		in, err := withSecond(f, 0, apptest.Anonymous(1), f.Challenge(apptest.Anonymous(1), owner), factor.Answer{Code: a.Code(f.DB.Now())})
		f.NoError(err)
		covered, spared := f.SignIn(ann.User.Email, apptest.FirstPassword), f.SignIn(bob.User.Email, apptest.FirstPassword)
		want := func(left int) {
			f.Helper()
			for i := range f.Nodes {
				for _, token := range []secret.Token{in.Token, spared.Token} {
					if _, err := f.Node(i).Sessions.Check(f.Context(), token); err != nil {
						f.Errorf("node %d has ended a session that may stay: %v", i, err)
					}
				}
				if _, err := f.Node(i).Sessions.Check(f.Context(), covered.Token); (err == nil) != (left > 0) {
					f.Errorf("node %d: the session of a covered role ends with %v, want it valid: %v", i, err, left > 0)
				}
			}
			if got, err := f.Node(0).Sessions.Own(f.Context(), covered.Caller); err != nil || len(got) != left {
				f.Errorf("%d sessions are listed, %v", len(got), err)
			}
		}
		want(1)
		clock.Move(29 * time.Minute)
		want(1)
		clock.Move(time.Minute)
		want(0)
	})
}

// TestSwitchIntoStricterTenant: a switch to a tenant that asks for a factor leads to a
// challenge, whose answer completes the switch. The session stays until then.
func TestSwitchIntoStricterTenant(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.ProductionLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		_, ann := f.Tenant()
		_, otherOwner := f.Tenant()
		_, token := f.Invite(otherOwner, ann.User.Email, doorward.RoleUser)
		_, err := f.Node(0).Invitations.Accept(f.Context(), ann.Caller, token, "")
		f.NoError(err)
		a := f.Enrol(&ann)
		f.EditTenant(ann, func(s *doorward.TenantSettings) { s.SecondFactor.RememberDays = 30 })
		by, _ := signInRemembered(f, ann, a)
		weak, err := apptest.SignedIn(f.Node(0).Login.WithPassword(f.Context(), by, ann.User.Email, apptest.FirstPassword, ann.User.TenantID))
		f.NoError(err)
		as := by.As(weak.User)
		as.Principal = doorward.PrincipalOf(weak.User, weak.Session)
		o, err := f.Node(1).Login.Switch(f.Context(), as, otherOwner.User.TenantID)
		needed, ok := o.(login.SecondNeeded)
		if err != nil || !ok || !f.IsValid(weak.Token) {
			f.Fatalf("the switch ends in %T, %v, want a challenge; the session is valid: %v", o, err, f.IsValid(weak.Token))
		}
		done, err := withSecond(f, 2, apptest.Anonymous(1), needed.NewChallenge, factor.Answer{RecoveryCode: a.Recovery[0]})
		if err != nil || done.Session.TenantID != otherOwner.User.TenantID || done.Session.AAL != 2 || !done.Session.CreatedAt.Equal(weak.Session.CreatedAt) {
			f.Fatalf("after the challenge the session is %+v, %v", done.Session, err)
		}
		if f.IsValid(weak.Token) || !f.IsValid(done.Token) {
			f.Error("the former session is valid, or the new one is not")
		}
		strong := by.As(done.User)
		strong.Principal = doorward.PrincipalOf(done.User, done.Session)
		back, err := apptest.SignedIn(f.Node(0).Login.Switch(f.Context(), strong, ann.User.TenantID))
		if err != nil || back.Session.AAL != 2 {
			f.Errorf("back with the factor: %+v, %v", back.Session, err)
		}
	})
}

// TestTallies: a node counts, for metrics, the challenges that it has made and the answers to
// them.
func TestTallies(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		_, ann := f.Tenant()
		a := f.Enrol(&ann)
		n := f.Node(0)
		before := map[factor.Metric]uint64{}
		want := func(m factor.Metric, times uint64) {
			f.Helper()
			if got := n.Factors.Tallied(m) - before[m]; got != times {
				f.Errorf("metric %d is counted %d times, want %d", m, got, times)
			}
		}
		for m := factor.Passed; m <= factor.Refused; m++ {
			before[m] = n.Factors.Tallied(m)
		}
		answer := func(a factor.Answer) {
			f.Helper()
			o, err := n.Login.WithPassword(f.Context(), apptest.Anonymous(1), ann.User.Email, apptest.FirstPassword, "")
			f.NoError(err)
			_, _ = n.Login.WithSecond(f.Context(), apptest.Anonymous(1), o.(login.SecondNeeded).Token.Reveal(), a, forgetBrowser)
		}
		answer(factor.Answer{Code: "000000"})
		answer(factor.Answer{RecoveryCode: a.Recovery[0]})
		answer(factor.Answer{Code: a.Code(f.DB.Now())})
		clock.Move(time.Minute)
		by := signInByCode(f, ann, a)
		clock.Move(time.Minute)
		begun, err := n.Login.BeginStepUp(f.Context(), by)
		f.NoError(err)
		_, err = n.Login.StepUp(f.Context(), by, begun.Token.Reveal(), login.Evidence{Answer: factor.Answer{Code: a.Code(f.DB.Now())}})
		f.NoError(err)
		want(factor.Refused, 1)
		want(factor.Recovered, 1)
		want(factor.Passed, 2)
		want(factor.Proved, 1)
		want(factor.Asked, 5)
	})
}
