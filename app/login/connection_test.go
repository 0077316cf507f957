package login_test

import (
	"slices"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/app/proof"
)

// TestSessionsOfAConnection: they have a limit of their own, which ends no other session; they make no
// browser a known one, and lead to no other tenant.
func TestSessionsOfAConnection(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		ann := f.Join(owner, doorward.RoleUser)
		devices := f.CountRows("devices")
		first := f.ByConnection(ann)
		for range doorward.ConnectionSessionsMax - 1 {
			f.ByConnection(ann)
		}
		if !f.IsValid(first.Token) {
			t.Error("the first session has ended before the limit")
		}
		outcome, err := f.EnterBy(0, ann)
		f.NoError(err)
		last := outcome.(login.SignedIn)
		if f.IsValid(first.Token) || !f.IsValid(last.Token) || !f.IsValid(ann.Token) {
			t.Error("beyond the limit another session than the oldest of the connection has ended")
		}
		if last.Device != nil || last.CanSwitch || f.CountRows("devices") != devices {
			t.Errorf("device %v, can switch %v", last.Device, last.CanSwitch)
		}
		if got := f.Int(`SELECT count(*) FROM events WHERE action = 'session.open' AND target_id = $1 AND changes LIKE $2`, last.Session.ID, "%"+string(last.Session.Issuer)+"%"); got != 1 {
			t.Errorf("%d events name the connection", got)
		}
		// Nor does the limit of other sessions, 10 here, count or end these.
		for range 20 {
			f.SignIn(ann.User.Email, apptest.FirstPassword)
		}
		if !f.IsValid(last.Token) {
			t.Error("a sign-in by the password has ended a session of the connection")
		}
	})
}

// TestMethodsOfAConnection: what the provider said is kept apart, also after the second step; its second
// factor raises the level and is no factor of the account.
func TestMethodsOfAConnection(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		ann := f.Join(owner, doorward.RoleUser)
		app := f.Enrol(&ann)
		f.EditTenant(owner, func(s *doorward.TenantSettings) { s.SecondFactor.Since = time.Unix(1, 0) })
		outcome, err := f.EnterBy(0, ann, doorward.MethodPassword)
		f.NoError(err)
		in, err := apptest.SignedIn(f.Node(0).Login.WithSecond(f.Context(), apptest.Anonymous(0), outcome.(login.SecondNeeded).Token.Reveal(), factor.Answer{Code: app.Code(f.DB.Now())}, true))
		f.NoError(err)
		s := in.Session
		if !slices.Equal(s.AMR, []string{"fed", "otp", "mfa"}) || !slices.Equal(s.ProviderAMR, []string{"pwd", "sms"}) || s.AAL != 2 || s.PasswordAt.IsZero() || in.Device != nil {
			t.Errorf("after the second step the session has %+v, device %v", s.Assurance, in.Device)
		}
		trusted := proof.Proof{Account: f.Account(ann), Issuer: f.IssuerOf(ann), TenantID: ann.User.TenantID, Methods: []string{"fed", "mfa"}}
		in, err = apptest.SignedIn(f.Node(0).Login.Enter(f.Context(), apptest.Anonymous(0), trusted, ann.User.TenantID))
		f.NoError(err)
		if s := in.Session; s.AAL != 2 || !s.FactorAt.IsZero() || !slices.Equal(s.AMR, trusted.Methods) {
			t.Errorf("by a trusted factor the session has %+v", s.Assurance)
		}
	})
}

// TestFirstFactorByAConnection: where the tenant demands a factor, a managed account enrols one; another
// account only after its password was proved.
func TestFirstFactorByAConnection(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		f.UseMasterKey()
		_, owner := f.Tenant()
		ann, bob := f.Managed(owner, doorward.RoleUser), f.Join(owner, doorward.RoleUser)
		f.EditTenant(owner, func(s *doorward.TenantSettings) { s.SecondFactor.Since = time.Unix(1, 0) })
		enrols := func(p apptest.Person, own ...string) bool {
			f.Helper()
			outcome, err := f.EnterBy(0, p, own...)
			if err != nil {
				wantCode(f, err, doorward.CodeSignInRequired)
				return false
			}
			_, ok := outcome.(login.EnrolmentNeeded)
			return ok
		}
		if !enrols(ann) || enrols(bob) || !enrols(bob, doorward.MethodPassword) {
			t.Error("the wrong ones enrol a factor")
		}
	})
}

// TestOwnProofsInAConnectionsSession: the password and a factor of the account prove what is the account's,
// and not the session in the connection's name; only where the tenant manages the account a factor does.
func TestOwnProofsInAConnectionsSession(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		_, owner := f.Tenant()
		ann := f.ByConnection(f.Join(owner, doorward.RoleUser))
		at := ann.Caller.AuthAt
		clock.Move(time.Minute)
		opened, err := stepUp(f, 0, ann.Caller, beginStepUp(f, ann.Caller), byPassword(apptest.FirstPassword))
		f.NoError(err)
		if s := opened.Session; !s.AuthAt().Equal(at) || !s.PasswordAt.Equal(f.DB.Now()) || s.AAL != 1 || !slices.Equal(s.AMR, []string{"fed"}) {
			t.Errorf("after the password the session has %+v", s.Assurance)
		}
		p, err := f.Node(1).Sessions.Check(f.Context(), opened.Token)
		f.NoError(err)
		if !p.PasswordAt.Equal(f.DB.Now()) || !p.AuthAt.Equal(at) || !p.HasPassword || p.IsManaged {
			t.Errorf("the principal is %+v", p)
		}

		begun := beginStepUp(f, ann.Caller)
		clock.Move(time.Minute)
		opened, err = f.Node(0).Login.StepUpBySSO(f.Context(), ann.Caller, begun, doorward.Assurance{ProviderAMR: []string{"hwk"}}, always)
		f.NoError(err)
		if s := opened.Session; !s.AuthAt().Equal(f.DB.Now()) || !slices.Equal(s.ProviderAMR, []string{"hwk"}) || s.FactorAt != (time.Time{}) {
			t.Errorf("after another sign-in the session has %+v", s.Assurance)
		}
		_, err = f.Node(0).Login.StepUpBySSO(f.Context(), ann.Caller, begun, doorward.Assurance{}, always)
		wantCode(f, err, doorward.CodeChallengeOver)
		_, err = f.Node(0).Login.StepUpBySSO(f.Context(), owner.Caller, beginStepUp(f, owner.Caller), doorward.Assurance{}, always) // it is Doorward's own session
		wantCode(f, err, doorward.CodeChallengeOver)

		managed := f.Managed(owner, doorward.RoleUser)
		app := f.Enrol(&managed)
		clock.Move(time.Minute)
		opened, err = stepUp(f, 0, managed.Caller, beginStepUp(f, managed.Caller), byCode(app.Code(f.DB.Now())))
		f.NoError(err)
		if s := opened.Session; !s.AuthAt().Equal(f.DB.Now()) || s.AAL != 2 {
			t.Errorf("after the factor of a managed account the session has %+v", s.Assurance)
		}
		f.Exec(`UPDATE users SET managed_by = '', password_hash = 'x' WHERE id = $1`, managed.User.ID)
		at = f.DB.Now()
		clock.Move(time.Minute)
		opened, err = stepUp(f, 0, managed.Caller, beginStepUp(f, managed.Caller), byCode(app.Code(f.DB.Now())))
		f.NoError(err)
		if s := opened.Session; !s.AuthAt().Equal(at) || !s.FactorAt.Equal(f.DB.Now()) {
			t.Errorf("after the factor of another account the session has %+v", s.Assurance)
		}
	})
}

// TestOfferedMethods: the challenge of a refusal takes what the refusal names, and no more.
func TestOfferedMethods(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		ann := f.ByConnection(f.Join(owner, doorward.RoleUser))
		needed := &doorward.ProofNeeded{Methods: []string{doorward.BySSO}}
		offered, err := f.Node(0).Login.OfferStepUp(f.Context(), ann.Caller, needed)
		f.NoError(err)
		if !slices.Equal(offered.Methods, needed.Methods) || offered.ConnectionID != string(f.IssuerOf(ann)) {
			t.Errorf("offered are %v by %q", offered.Methods, offered.ConnectionID)
		}
		_, err = stepUp(f, 0, ann.Caller, offered.Token.Reveal(), byPassword(apptest.FirstPassword))
		wantCode(f, err, doorward.CodeValidationFailed)
		needed.Methods = []string{doorward.ByPassword}
		offered, err = f.Node(0).Login.OfferStepUp(f.Context(), ann.Caller, needed)
		f.NoError(err)
		_, err = f.Node(0).Login.StepUpBySSO(f.Context(), ann.Caller, offered.Token.Reveal(), doorward.Assurance{}, always)
		wantCode(f, err, doorward.CodeChallengeOver)
		if offered.ConnectionID != "" {
			t.Errorf("the provider can answer a challenge for the password: %q", offered.ConnectionID)
		}
	})
}

// TestPasswordOfAManagedAccount: it ends the sessions, the factors and the management, and opens no session
// in the tenant before the person has signed in by the connection; off the connection it does.
func TestPasswordOfAManagedAccount(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		acme, owner := f.Tenant()
		con := f.SignOn(owner, doorward.SSOOptional)
		ann := f.Managed(owner, doorward.RoleUser)
		f.Enrol(&ann)
		next := apptest.Password(1)
		_, err := f.Node(0).Passwords.Reset(f.Context(), apptest.Anonymous(0), f.ResetToken(ann), next, next)
		f.NoError(err)
		if a := f.Account(ann); f.IsValid(ann.Token) || a.ManagedBy != "" || a.Factors != 0 || f.CountRows("recovery_codes") != 0 {
			t.Errorf("after the first password: %+v", a)
		}
		signIn := func() error {
			return apptest.ErrorOf(f.Node(0).Login.WithPassword(f.Context(), apptest.Anonymous(0), ann.User.Email, next, acme.ID))
		}
		err = signIn()
		wantCode(f, err, doorward.CodeSSORequired)
		if e := new(doorward.Error); !asError(err, &e) || e.ConnectionID != con {
			t.Errorf("the error names %+v", e)
		}
		_, other := f.Tenant() // in another tenant it opens one, which doesn't lead there
		_, code := f.Invite(other, ann.User.Email, doorward.RoleUser)
		f.NoError(apptest.ErrorOf(f.Node(0).Invitations.Accept(f.Context(), apptest.Anonymous(0), code, next)))
		in, err := apptest.SignedIn(f.Node(0).Login.WithPassword(f.Context(), apptest.Anonymous(0), ann.User.Email, next, other.User.TenantID))
		f.NoError(err)
		wantCode(f, apptest.ErrorOf(f.Node(0).Login.Switch(f.Context(), apptest.PersonOf(in).Caller, acme.ID)), doorward.CodeSSORequired)
		if !f.IsValid(in.Token) {
			t.Error("a refused switch has ended the session")
		}
		f.Exec(`UPDATE sso_policies SET mode = 'off'`)
		f.NoError(apptest.ErrorOf(f.Node(0).Login.Switch(f.Context(), apptest.PersonOf(in).Caller, acme.ID)))
		f.Exec(`UPDATE sso_policies SET mode = 'optional'`)
		wantCode(f, signIn(), doorward.CodeSSORequired)
		f.ByConnection(ann)
		f.NoError(signIn())
	})
}

func asError(err error, e **doorward.Error) bool {
	found, ok := err.(*doorward.Error) //nolint:errorlint // features return it unwrapped
	if ok {
		*e = found
	}
	return ok
}

// TestRaceFirstPassword: a factor that is enrolled while a managed account gets its first password, and a
// sign-in by the connection at that time, leave no factor and no session from before.
func TestRaceFirstPassword(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		f.UseMasterKey()
		for range apptest.Rounds(3, 20) {
			ann := f.Managed(owner, doorward.RoleUser)
			e, err := f.Node(0).Factors.Enrol(f.Context(), ann.Caller, "")
			f.NoError(err)
			app := apptest.Authenticator{ID: e.ID, Seed: e.Seed}
			code, reset, next := app.Code(f.DB.Now()), f.ResetToken(ann), apptest.Password(1)
			begun := beginStepUp(f, ann.Caller)
			errs := apptest.Concurrently(3, func(i int) error {
				switch i {
				case 0:
					return apptest.ErrorOf(f.Node(i).Passwords.Reset(f.Context(), apptest.Anonymous(i), reset, next, next))
				case 1:
					return apptest.ErrorOf(f.Node(i).Factors.Confirm(f.Context(), ann.Caller, e.ID, code))
				}
				return apptest.ErrorOf(f.Node(i).Login.StepUpBySSO(f.Context(), ann.Caller, begun, doorward.Assurance{}, always))
			})
			f.NoError(errs[0])
			f.WantOnly(errs[1:], "", doorward.CodeUnauthenticated, doorward.CodeNotFound, doorward.CodeChallengeOver)
			if a := f.Account(ann); a.Factors != 0 || a.ManagedBy != "" || a.PasswordHash == "" {
				t.Errorf("the account is %+v", a)
			}
			if got := f.Int(`SELECT count(*) FROM factors WHERE user_id = $1`, ann.User.ID) + f.Int(`SELECT count(*) FROM sessions WHERE user_id = $1`, ann.User.ID); got != 0 {
				t.Errorf("%d factors and sessions are left", got)
			}
		}
	})
}

// TestManagedPasskey: a passkey of a managed account is a second factor, and signs nobody in by itself.
func TestManagedPasskey(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		ann := f.Managed(owner, doorward.RoleUser)
		a, _ := addPasskey(f, 0, 1, ann.Caller)
		alone := func() error {
			begun := beginAlone(f, 0)
			return apptest.ErrorOf(finishAlone(f, 0, begun, answerTo(f, a, begun)))
		}
		f.Exec(`UPDATE sso_policies SET mode = 'off'`)
		wantCode(f, alone(), doorward.CodeManagedAccount)
		f.SignOn(owner, doorward.SSOOptional)
		wantCode(f, alone(), doorward.CodeSSORequired)
		f.EditTenant(owner, func(s *doorward.TenantSettings) { s.SecondFactor.Since = time.Unix(1, 0) })
		outcome, err := f.EnterBy(0, ann)
		f.NoError(err)
		asked := outcome.(login.SecondNeeded).NewChallenge
		_, err = f.Node(0).Login.WithSecond(f.Context(), apptest.Anonymous(0), asked.Token.Reveal(), answerTo(f, a, asked), false)
		f.NoError(err)
	})
}

// TestRememberedBrowserOfAConnection: a browser in which the factor was proved stands in for it at a sign-in
// by the password, and not at one by a connection.
func TestRememberedBrowserOfAConnection(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		con := f.SignOn(owner, doorward.SSOOptional)
		ann := f.Join(owner, doorward.RoleUser)
		app := f.Enrol(&ann)
		f.EditTenant(owner, func(s *doorward.TenantSettings) {
			s.SecondFactor = doorward.SecondFactor{Since: time.Unix(1, 0), RememberDays: 30}
		})
		by := apptest.Anonymous(0)
		in, err := apptest.SignedIn(f.Node(0).Login.WithSecond(f.Context(), by, f.Challenge(by, ann).Token.Reveal(), factor.Answer{Code: app.Code(f.DB.Now())}, true))
		f.NoError(err)
		hash := in.Device.Hash()
		by.Devices = [][]byte{hash[:]}
		f.NoError(apptest.ErrorOf(apptest.SignedIn(f.Node(0).Login.WithPassword(f.Context(), by, ann.User.Email, apptest.FirstPassword, ""))))
		proved := proof.Proof{Account: f.Account(ann), Issuer: doorward.Issuer(con), TenantID: ann.User.TenantID, Methods: []string{"fed"}}
		outcome, err := f.Node(0).Login.Enter(f.Context(), by, proved, ann.User.TenantID)
		f.NoError(err)
		if _, ok := outcome.(login.SecondNeeded); !ok {
			t.Errorf("by a connection the outcome is %T", outcome)
		}
	})
}

// TestRaceSessionsOfAConnection: sign-ins at once on all nodes don't pass the limit together.
func TestRaceSessionsOfAConnection(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		ann := f.Join(owner, doorward.RoleUser)
		f.ByConnection(ann) // makes the connection
		f.WantCodes(apptest.Concurrently(16, func(i int) error { return apptest.ErrorOf(f.EnterBy(i, ann)) }), apptest.Codes{"": 16})
		if got := f.Int(`SELECT count(*) FROM sessions WHERE user_id = $1 AND issuer = $2`, ann.User.ID, f.IssuerOf(ann)); got != doorward.ConnectionSessionsMax {
			t.Errorf("%d sessions of the connection", got)
		}
		if !f.IsValid(ann.Token) {
			t.Error("another session has ended")
		}
		f.WantNoDeadlocks()
	})
}

// always is a step-up that nothing else speaks against.
func always(*access.Tx) error { return nil }
