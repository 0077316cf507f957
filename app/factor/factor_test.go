package factor_test

import (
	"encoding/base32"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/store"
)

// TestFirstFactor: a TOTP counts once it is confirmed. The first one makes recovery codes and
// raises the assurance level of the session, on all nodes at once.
func TestFirstFactor(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, ann := f.Tenant()
		before := len(f.Subjects(ann.User.Email))
		if _, err := f.Node(0).Factors.Enrol(f.Context(), ann.Caller, ""); apptest.Code(err) != doorward.CodeMasterKeyMissing {
			f.Fatalf("without a master key: %v", err)
		}
		f.UseMasterKey()
		replaced, err := f.Node(0).Factors.Enrol(f.Context(), ann.Caller, "")
		f.NoError(err)
		e, err := f.Node(1).Factors.Enrol(f.Context(), ann.Caller, "")
		f.NoError(err)
		f.SignIn(ann.User.Email, apptest.FirstPassword) // nothing is confirmed
		a := &apptest.Authenticator{Seed: e.Seed}
		confirm := func(id, code string) (factor.Confirmed, doorward.Code) {
			done, err := f.Node(1).Factors.Confirm(f.Context(), ann.Caller, id, code)
			return done, apptest.Code(err)
		}
		if _, got := confirm(replaced.ID, a.Code(f.DB.Now())); got != doorward.CodeNotFound {
			f.Errorf("the enrolment that was replaced: %q", got)
		}
		if _, got := confirm(e.ID, "000000"); got != doorward.CodeValidationFailed {
			f.Errorf("a wrong code: %q", got)
		}
		done, got := confirm(e.ID, a.Code(f.DB.Now()))
		if got != "" || len(done.RecoveryCodes) != doorward.RecoveryCodes || !done.Factor.Usable() {
			f.Fatalf("confirming: %q, %+v", got, done)
		}
		for i := range f.Nodes {
			if _, err := f.Node(i).Sessions.Check(f.Context(), ann.Token); apptest.Code(err) != doorward.CodeUnauthenticated {
				f.Errorf("node %d, with the token of before: %v", i, err)
			}
			p, err := f.Node(i).Sessions.Check(f.Context(), done.Raised.Token)
			if err != nil || p.AAL != 2 || !p.HasFactor || p.FactorAt.IsZero() {
				f.Errorf("node %d: %+v, %v", i, p, err)
			}
		}
		f.Enrol(&ann)
		own, err := f.Node(0).Factors.OfCaller(f.Context(), ann.Caller)
		if err != nil || len(own.Factors) != 2 || own.RecoveryCodes != doorward.RecoveryCodes {
			f.Errorf("the factors are %+v, %v", own, err)
		}
		if got := f.Subjects(ann.User.Email)[before:]; len(got) != 2 {
			f.Errorf("mails: %q", got)
		}
	})
}

// TestRecoveryCodesAreRandom: codes have 120 bits each, in groups, and each works once, until
// it is replaced.
func TestRecoveryCodesAreRandom(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, ann := f.Tenant()
		codes := f.Enrol(&ann).Recovery
		more, err := f.Node(0).Factors.NewRecoveryCodes(f.Context(), ann.Caller)
		f.NoError(err)
		seen := map[string]bool{}
		for _, code := range append(codes, more...) {
			bits, err := base32.StdEncoding.DecodeString(strings.ReplaceAll(code, "-", ""))
			if err != nil || len(bits) != 15 || len(strings.Split(code, "-")) != 6 || seen[code] {
				f.Errorf("%q: %v", code, err)
			}
			seen[code] = true
		}
		if got := tryAnswer(f, ann, factor.Answer{RecoveryCode: codes[0]}); got != doorward.CodeInvalidCode {
			f.Errorf("a code that was replaced: %q", got)
		}
		if got := tryAnswer(f, ann, factor.Answer{RecoveryCode: strings.ToLower(strings.ReplaceAll(more[0], "-", " "))}); got != "" {
			f.Errorf("typed in another way: %q", got)
		}
		if got := tryAnswer(f, ann, factor.Answer{RecoveryCode: more[0]}); got != doorward.CodeInvalidCode {
			f.Errorf("a second time: %q", got)
		}
	})
}

// rememberDevice says that the logins here don't remember the browser.
const rememberDevice = false

// tryAnswer answers a new challenge.
func tryAnswer(f *apptest.Fixture, p apptest.Person, a factor.Answer) doorward.Code {
	f.Helper()
	challenge := f.Challenge(apptest.Anonymous(1), p)
	return apptest.Code(apptest.ErrorOf(f.Node(1).Login.WithSecond(f.Context(), apptest.Anonymous(1), challenge.Token.Reveal(), a, rememberDevice)))
}

// TestLastFactor: the last factor can't be removed while a tenant of the person demands one,
// whichever tenant the session is in. The recovery codes are removed with it.
func TestLastFactor(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		ann := f.Join(owner, doorward.RoleUser)
		_, otherOwner := f.Tenant()
		_, token := f.Invite(otherOwner, ann.User.Email, doorward.RoleViewer)
		_, err := f.Node(0).Invitations.Accept(f.Context(), ann.Caller, token, "")
		f.NoError(err)
		a, b := f.Enrol(&ann), f.Enrol(&ann)
		remove := func(id string) doorward.Code {
			return apptest.Code(apptest.ErrorOf(f.Node(0).Factors.Remove(f.Context(), ann.Caller, id)))
		}
		demand := func(roles ...doorward.Role) {
			f.EditTenant(otherOwner, func(s *doorward.TenantSettings) {
				s.SecondFactor = doorward.SecondFactor{Since: f.DB.Now(), Roles: roles, GraceDays: 30}
			})
		}
		demand(doorward.RoleViewer)
		if got := remove(a.ID); got != "" {
			f.Errorf("one of two: %q", got)
		}
		if got := remove(b.ID); got != doorward.CodeMFARequiredHere {
			f.Errorf("the last one: %q", got)
		}
		demand(doorward.RoleOwner)
		if got := remove(b.ID); got != "" {
			f.Errorf("the last one, not demanded of the role: %q", got)
		}
		if got := remove(b.ID); got != doorward.CodeNotFound {
			f.Errorf("again: %q", got)
		}
		if n := f.CountRows("recovery_codes"); n != 0 {
			f.Errorf("%d recovery codes are left", n)
		}
		f.SignIn(ann.User.Email, apptest.FirstPassword)
	})
}

// TestOthersFactors: nobody can rename, remove or confirm a factor of somebody else.
func TestOthersFactors(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, ann := f.Tenant()
		_, bob := f.Tenant()
		a := f.Enrol(&ann)
		factors := f.Node(0).Factors
		pending, err := factors.Enrol(f.Context(), ann.Caller, "")
		f.NoError(err)
		next := &apptest.Authenticator{Seed: pending.Seed}
		for name, err := range map[string]error{
			"rename":  apptest.ErrorOf(factors.Rename(f.Context(), bob.Caller, a.ID, "mine")),
			"remove":  apptest.ErrorOf(factors.Remove(f.Context(), bob.Caller, a.ID)),
			"confirm": apptest.ErrorOf(factors.Confirm(f.Context(), bob.Caller, pending.ID, next.Code(f.DB.Now()))),
			"codes":   apptest.ErrorOf(factors.NewRecoveryCodes(f.Context(), bob.Caller)),
		} {
			if apptest.Code(err) != doorward.CodeNotFound {
				f.Errorf("%s: %v", name, err)
			}
		}
		for name, want := range map[string]doorward.Code{"": doorward.CodeValidationFailed, "a\nb": doorward.CodeValidationFailed, "Phone": ""} {
			if got := apptest.Code(apptest.ErrorOf(factors.Rename(f.Context(), ann.Caller, a.ID, name))); got != want {
				f.Errorf("%q: %q", name, got)
			}
		}
	})
}

// TestMaxFactors: an account has doorward.MaxFactors factors at most.
func TestMaxFactors(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, ann := f.Tenant()
		f.Enrol(&ann)
		for i := range doorward.MaxFactors - 1 {
			at := f.DB.Now()
			_, err := f.DB.Write(f.Context(), func(tx *store.Tx) error {
				_, err := tx.InsertFactor(f.Context(), store.Factor{CredentialID: fmt.Append(nil, i), Factor: doorward.Factor{
					ID: fmt.Sprint("mfa_", i), UserID: ann.User.ID, Kind: doorward.Passkey, CreatedAt: at, ConfirmedAt: &at,
				}})
				return err
			})
			f.NoError(err)
		}
		if _, err := f.Node(0).Factors.Enrol(f.Context(), ann.Caller, ""); apptest.Code(err) != doorward.CodeTooManyFactors {
			f.Errorf("one more than the limit: %v, want too_many_factors", err)
		}
	})
}

// TestOldEnrolments: an enrolment ends after an hour. The sweep deletes it and counts the
// factors.
func TestOldEnrolments(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		_, ann := f.Tenant()
		f.UseMasterKey()
		e, err := f.Node(0).Factors.Enrol(f.Context(), ann.Caller, "")
		f.NoError(err)
		clock.Move(factor.EnrolmentLife)
		a := &apptest.Authenticator{Seed: e.Seed}
		if _, err := f.Node(0).Factors.Confirm(f.Context(), ann.Caller, e.ID, a.Code(f.DB.Now())); apptest.Code(err) != doorward.CodeNotFound {
			f.Errorf("after an hour: %v", err)
		}
		f.NoError(f.Node(0).Sweep(f.Context()))
		if n := f.CountRows("factors"); n != 0 {
			f.Errorf("%d enrolments are left", n)
		}
		here := f.SignIn(ann.User.Email, apptest.FirstPassword)
		f.Enrol(&here)
		f.NoError(f.Node(0).Sweep(f.Context()))
		if got := f.Node(0).Factors.Totals(); got != (store.FactorTotals{Apps: 1, Accounts: 1}) {
			f.Errorf("the factors are counted as %+v", got)
		}
	})
}

// TestReset: an administrator's reset ends the sessions in the tenant, the same for members
// without a factor. Only the code of the mail and the password remove the factors.
func TestReset(t *testing.T) {
	apptest.OnEachClock(t, apptest.HighLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		_, owner := f.Tenant()
		ann, bob := f.Join(owner, doorward.RoleUser), f.Join(owner, doorward.RoleUser)
		f.Enrol(&ann)
		for _, p := range []apptest.Person{ann, bob} {
			ended, err := f.Node(1).Factors.Reset(f.Context(), owner.Caller, p.User)
			if err != nil || ended.Sessions != 1 || f.IsValid(p.Token) {
				f.Fatalf("the reset has ended %+v, %v; the session is valid: %v", ended, err, f.IsValid(p.Token))
			}
		}
		for name, by := range map[string]apptest.Person{"oneself": owner, "above": f.Join(owner, doorward.RoleAdmin)} {
			if _, err := f.Node(0).Factors.Reset(f.Context(), by.Caller, owner.User); apptest.Code(err) != doorward.CodeForbidden {
				f.Errorf("%s: %v", name, err)
			}
		}
		token := f.MailToken(ann.User.Email)
		confirm := func(token, password string) doorward.Code {
			return apptest.Code(apptest.ErrorOf(f.Node(0).Factors.ConfirmReset(f.Context(), apptest.Anonymous(3), token, password)))
		}
		if got := confirm(token, apptest.Password(9)); got != doorward.CodeInvalidCredentials {
			f.Errorf("a wrong password: %q", got)
		}
		if f.Challenge(apptest.Anonymous(3), ann).Token.Reveal() == "" || f.Account(ann).Factors != 1 {
			f.Error("the factor is gone before the person has confirmed it")
		}
		clock.Move(doorward.FactorResetLife - time.Minute)
		f.WantCodes(apptest.Concurrently(8, func(i int) error {
			return apptest.ErrorOf(f.Node(i).Factors.ConfirmReset(f.Context(), apptest.Anonymous(i), token, apptest.FirstPassword))
		}), apptest.Codes{"": 1, doorward.CodeResetUsed: 7})
		f.SignIn(ann.User.Email, apptest.FirstPassword)
		expired := f.MailToken(bob.User.Email)
		clock.Move(time.Minute + time.Second)
		if got := confirm(expired, apptest.FirstPassword); got != doorward.CodeResetExpired {
			f.Errorf("after a day: %q", got)
		}
	})
}

// TestOperatorsReset: the operator's reset removes the factors at once, and ends all sessions.
func TestOperatorsReset(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, ann := f.Tenant()
		f.Enrol(&ann)
		ended, err := f.Node(0).Factors.ResetByAddress(f.Context(), apptest.Operator, strings.ToUpper(ann.User.Email))
		if err != nil || ended.Sessions != 1 || f.IsValid(ann.Token) {
			f.Errorf("the reset has ended %+v, %v; the session is valid: %v", ended, err, f.IsValid(ann.Token))
		}
		f.SignIn(ann.User.Email, apptest.FirstPassword)
		for address, want := range map[string]doorward.Code{"nobody@example.com": doorward.CodeNotFound, "nobody": doorward.CodeValidationFailed} {
			if _, err := f.Node(0).Factors.ResetByAddress(f.Context(), apptest.Operator, address); apptest.Code(err) != want {
				f.Errorf("%s: %v", address, err)
			}
		}
	})
}

// TestEveryChangeSendsAMail: each change of the factors sends the person a mail. A call that
// changes nothing sends none.
func TestEveryChangeSendsAMail(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		ann := f.Join(owner, doorward.RoleUser)
		factors := f.Node(0).Factors
		var a *apptest.Authenticator
		for _, step := range []struct {
			do   func() error
			want string
		}{
			{func() error { a = f.Enrol(&ann); return nil }, "A second factor was added to your account"},
			{func() error { return apptest.ErrorOf(factors.Rename(f.Context(), ann.Caller, a.ID, "Phone")) }, "A second factor of your account has another name"},
			{func() error { return apptest.ErrorOf(factors.Rename(f.Context(), ann.Caller, a.ID, "Phone")) }, ""},
			{func() error { return apptest.ErrorOf(factors.NewRecoveryCodes(f.Context(), ann.Caller)) }, "New recovery codes for your account"},
			{func() error { return apptest.ErrorOf(factors.Remove(f.Context(), ann.Caller, a.ID)) }, "A second factor was removed from your account"},
			{func() error { f.Enrol(&ann); return nil }, "A second factor was added to your account"},
			{func() error { return apptest.ErrorOf(factors.Reset(f.Context(), owner.Caller, ann.User)) }, "Set up your second factor again"},
			{func() error {
				return apptest.ErrorOf(factors.ResetByAddress(f.Context(), apptest.Operator, ann.User.Email))
			}, "All second factors were removed from your account"},
		} {
			before := len(f.Subjects(ann.User.Email))
			f.NoError(step.do())
			if got := strings.Join(f.Subjects(ann.User.Email)[before:], ", "); got != step.want {
				f.Errorf("the mails are %q, want %q", got, step.want)
			}
		}
	})
}

// TestNewCodesAtOnce: recovery codes that are renewed at once on several nodes are those of
// one call, and one of them, used at once in several sign-ins, completes one.
func TestNewCodesAtOnce(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		const callers = 4
		_, ann := f.Tenant()
		f.Enrol(&ann)
		sets := make([][]string, callers)
		f.WantCodes(apptest.Concurrently(callers, func(i int) (err error) {
			sets[i], err = f.Node(i).Factors.NewRecoveryCodes(f.Context(), ann.Caller)
			return err
		}), apptest.Codes{"": callers})
		if n := f.CountRows("recovery_codes"); n != doorward.RecoveryCodes {
			f.Fatalf("%d codes are stored", n)
		}
		valid := 0
		for _, codes := range sets {
			challenges := make([]factor.NewChallenge, callers)
			for i := range challenges {
				challenges[i] = f.Challenge(apptest.Anonymous(i), ann)
			}
			errs := apptest.Concurrently(callers, func(i int) error {
				answer := factor.Answer{RecoveryCode: codes[0]}
				return apptest.ErrorOf(f.Node(i).Login.WithSecond(f.Context(), apptest.Anonymous(i), challenges[i].Token.Reveal(), answer, rememberDevice))
			})
			f.WantOnly(errs, "", doorward.CodeInvalidCode)
			valid += apptest.CountCodes(errs)[""]
		}
		if valid != 1 {
			f.Errorf("%d sign-ins were completed by %d sets", valid, callers)
		}
	})
}
