package invite_test

import (
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/invite"
	"github.com/doorward/doorward/app/user"
	"github.com/doorward/doorward/store"
)

// askSecond accepts with the password alone, and returns the challenge that this must lead to.
func askSecond(f *apptest.Fixture, token string) string {
	f.Helper()
	o, err := f.Node(0).Invitations.Accept(f.Context(), apptest.Anonymous(1), token, apptest.FirstPassword)
	needed, ok := o.(invite.SecondNeeded)
	if err != nil || !ok {
		f.Fatalf("the password alone ends in %T, %v, want a challenge", o, err)
	}
	return needed.Token.Reveal()
}

func answerSecond(f *apptest.Fixture, n int, token, challenge string, a factor.Answer) error {
	return apptest.ErrorOf(f.Node(n).Invitations.AcceptSecond(f.Context(), apptest.Anonymous(n), token, challenge, a))
}

func wantCode(f *apptest.Fixture, what string, err error, want doorward.Code) {
	f.Helper()
	if got := apptest.Code(err); got != want {
		f.Errorf("%s: %q (%v), want %q", what, got, err, want)
	}
}

// TestAcceptAsksForTheFactor: the password of an account with a second factor leads to a challenge, which
// is good for this invitation only. Until it is answered nobody has joined and no counter is cleared.
func TestAcceptAsksForTheFactor(t *testing.T) {
	apptest.OnEachClock(t, apptest.ProductionLimits, apptest.NewMovedClock, func(f *apptest.Fixture, _ *apptest.MovedClock) {
		acme, owner := f.Tenant()
		_, ann := f.Tenant()
		app := f.Enrol(&ann)
		inv, token := f.Invite(owner, ann.User.Email, doorward.RoleAdmin)
		_, other := f.Tenant()
		_, otherToken := f.Invite(other, ann.User.Email, doorward.RoleUser)
		_, err := f.Node(0).Invitations.Accept(f.Context(), apptest.Anonymous(1), token, apptest.Password(9))
		wantCode(f, "a wrong password", err, doorward.CodeInvalidCredentials)

		challenge := askSecond(f, token)
		if n, inFlight := f.CountFailures("account:"), f.CountRows("attempts"); n != 1 || inFlight != 0 {
			f.Errorf("after the right password %d failures are counted and %d attempts in flight, want one and none", n, inFlight)
		}
		if _, err := f.DB.Read().User(f.Context(), acme.ID, ann.User.ID); err != store.ErrNone {
			f.Errorf("the person has joined with the password alone: %v", err)
		}
		for _, tenant := range []string{acme.ID, ann.User.TenantID} {
			if n := f.Int(`SELECT count(*) FROM events WHERE action = 'mfa.challenge' AND tenant_id = '` + tenant + `'`); (n == 1) != (tenant == ann.User.TenantID) {
				f.Errorf("%d challenges in a trail; the person's own tenant has it, the inviting one doesn't", n)
			}
		}
		code := factor.Answer{Code: app.Code(f.DB.Now())}
		wantCode(f, "another invitation", answerSecond(f, 0, otherToken, challenge, code), doorward.CodeChallengeOver)
		wantCode(f, "the challenge of a login", answerSecond(f, 0, token, f.Challenge(apptest.Anonymous(1), ann).Token.Reveal(), code), doorward.CodeChallengeOver)
		_, err = f.Node(0).Login.WithSecond(f.Context(), apptest.Anonymous(1), challenge, code, false)
		wantCode(f, "as a login", err, doorward.CodeChallengeOver)
		wantCode(f, "a wrong code", answerSecond(f, 0, token, challenge, factor.Answer{Code: "000000"}), doorward.CodeInvalidCode)
		if n := f.CountFailures("account:"); n != 2 {
			f.Errorf("%d failures are counted, want two", n)
		}
		wantCode(f, "the right code", answerSecond(f, 1, token, challenge, code), "")
		wantCode(f, "once more", answerSecond(f, 1, token, challenge, code), doorward.CodeInvitationUsed)
		joined, err := f.DB.Read().User(f.Context(), inv.TenantID, ann.User.ID)
		if err != nil || joined.Role != doorward.RoleAdmin || f.CountFailures("account:") != 0 {
			f.Errorf("joined as %q, %v; %d failures are left", joined.Role, err, f.CountFailures("account:"))
		}
	})
}

// TestAcceptBySession: a session accepts only with the account's factor, read under the account's lock:
// the factor may have been set up after the request has begun.
func TestAcceptBySession(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		_, ann := f.Tenant()
		weak := f.SignIn(ann.User.Email, apptest.FirstPassword)
		f.Enrol(&ann)
		_, token := f.Invite(owner, ann.User.Email, doorward.RoleUser)
		accept := func(by doorward.Caller) error {
			return apptest.ErrorOf(f.Node(0).Invitations.Accept(f.Context(), by, token, ""))
		}
		wantCode(f, "a session without the factor", accept(weak.Caller), doorward.CodeStepUpRequired)
		f.Exec(`UPDATE sessions SET issuer = 'con_other' WHERE id = '` + ann.Caller.SessionID + `'`)
		wantCode(f, "a session of another issuer", accept(ann.Caller), doorward.CodeSignInRequired)
		f.Exec(`UPDATE sessions SET issuer = '' WHERE id = '` + ann.Caller.SessionID + `'`)
		wantCode(f, "a session with the factor", accept(ann.Caller), "")
	})
}

// TestChallengeOfChangedAccount: a challenge ends when the password, the address or the factors change.
func TestChallengeOfChangedAccount(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		for name, change := range map[string]func(ann *apptest.Person){
			"password": func(ann *apptest.Person) {
				f.NoError(apptest.ErrorOf(f.Node(0).Passwords.Change(f.Context(), ann.Caller, apptest.FirstPassword, apptest.Password(7), apptest.Password(7))))
			},
			"factors": func(ann *apptest.Person) { f.Enrol(ann) },
			"address": func(ann *apptest.Person) {
				f.Exec(`UPDATE users SET email = 'moved@example.com' WHERE id = '` + ann.User.ID + `'`)
			},
		} {
			_, owner := f.Tenant()
			_, ann := f.Tenant()
			app := f.Enrol(&ann)
			_, token := f.Invite(owner, ann.User.Email, doorward.RoleUser)
			challenge := askSecond(f, token)
			as := f.DB.Read()
			current, err := as.Session(f.Context(), ann.Caller.SessionID)
			f.NoError(err)
			ann.Caller.Principal = doorward.PrincipalOf(current.User, current.Session)
			change(&ann)
			wantCode(f, "after a change of the "+name, answerSecond(f, 0, token, challenge, factor.Answer{Code: app.Code(f.DB.Now())}), doorward.CodeChallengeOver)
		}
	})
}

// TestRaceOneAcceptanceBySecond: of many answers at once, by several challenges of one invitation and of
// another one, each invitation is accepted once and each code is good once.
func TestRaceOneAcceptanceBySecond(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		_, other := f.Tenant()
		_, ann := f.Tenant()
		app := f.Enrol(&ann)
		var tokens, challenges []string
		for i, by := range []apptest.Person{owner, other} {
			_, token := f.Invite(by, ann.User.Email, doorward.RoleUser)
			tokens = append(tokens, token)
			for range 2 {
				challenges = append(challenges, askSecond(f, tokens[i]))
			}
		}
		code := factor.Answer{Code: app.Code(f.DB.Now())}
		errs := apptest.Concurrently(16, func(i int) error {
			return answerSecond(f, i, tokens[i%4/2], challenges[i%4], code)
		})
		if got := apptest.CountCodes(errs); got[""] != 1 {
			f.Errorf("16 answers with one code: %v, want one success", got)
		}
		f.WantOnly(errs, "", doorward.CodeInvalidCode, doorward.CodeChallengeOver, doorward.CodeInvitationUsed)
		recovery := apptest.Concurrently(8, func(i int) error {
			return answerSecond(f, i, tokens[i%4/2], challenges[i%4], factor.Answer{RecoveryCode: app.Recovery[i]})
		})
		f.WantOnly(recovery, "", doorward.CodeInvalidCode, doorward.CodeChallengeOver, doorward.CodeInvitationUsed)
		if got := apptest.CountCodes(recovery); got[""] != 1 {
			f.Errorf("8 answers by recovery codes: %v, want one success", got)
		}
		if n := f.Int(`SELECT count(*) FROM memberships WHERE user_id = '` + ann.User.ID + `'`); n != 3 {
			f.Errorf("the person is in %d tenants, want 3", n)
		}
		f.WantNoDeadlocks()
	})
}

// TestManagedAccountIsInvited: the mail of an invitation gives a managed account no password, nor does its
// session accept; after a reset of the password it does.
func TestManagedAccountIsInvited(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		_, other := f.Tenant()
		ann := f.Managed(owner, doorward.RoleUser)
		_, token := f.Invite(other, ann.User.Email, doorward.RoleUser)
		want := func(err error, code doorward.Code) {
			f.Helper()
			if got := apptest.Code(err); got != code {
				t.Errorf("%q, want %q", got, code)
			}
		}
		next := apptest.Password(1)
		shown, err := f.Node(0).Invitations.Show(f.Context(), token)
		f.NoError(err)
		if !shown.IsManaged || shown.HasAccount {
			t.Errorf("the page is told %+v", shown)
		}
		want(apptest.ErrorOf(f.Node(0).Invitations.Complete(f.Context(), apptest.Anonymous(0), token, next, next)), doorward.CodeManagedAccount)
		want(apptest.ErrorOf(f.Node(0).Invitations.Accept(f.Context(), ann.Caller, token, "")), doorward.CodeManagedAccount)
		f.NoError(apptest.ErrorOf(f.Node(0).Passwords.Reset(f.Context(), apptest.Anonymous(0), f.ResetToken(ann), next, next)))
		f.NoError(apptest.ErrorOf(f.Node(0).Invitations.Accept(f.Context(), apptest.Anonymous(0), token, next)))

		// Whom the tenant has removed comes to another by an invitation alone, as everybody without a membership.
		bob := f.Managed(owner, doorward.RoleUser)
		f.NoError(apptest.ErrorOf(f.Node(0).Users.Remove(f.Context(), owner.Caller, bob.User, user.Handover{}, nil)))
		_, token = f.Invite(other, bob.User.Email, doorward.RoleUser)
		f.NoError(apptest.ErrorOf(f.Node(0).Invitations.Complete(f.Context(), apptest.Anonymous(0), token, next, next)))
		if a := f.Account(bob); a.ManagedBy != "" {
			t.Errorf("the account is still managed by %s", a.ManagedBy)
		}
	})
}
