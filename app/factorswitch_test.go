package app_test

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/user"
	"github.com/doorward/doorward/store"
)

// factorHolder is a member of two tenants with a second factor, a challenge of a login to each of
// them, an enrolment of another factor, and a browser that both remember.
type factorHolder struct {
	holder
	id              string // of the factor
	here, elsewhere factor.NewChallenge
}

func newFactorHolder(f *apptest.Fixture) factorHolder {
	f.Helper()
	p := factorHolder{holder: newHolder(f, true)} // in two tenants
	p.id = f.Enrol(&p.ann).ID
	other := p.ann
	other.User = p.holder.elsewhere.User
	p.here, p.elsewhere = f.Challenge(apptest.Anonymous(1), p.ann), f.Challenge(apptest.Anonymous(1), other)
	for _, in := range []apptest.Person{p.ann, other} {
		f.EditTenant(in, func(s *doorward.TenantSettings) { s.SecondFactor.RememberDays = 7 })
	}
	_, err := f.Node(0).Factors.Enrol(f.Context(), p.ann.Caller, "")
	f.NoError(err)
	_, err = f.DB.Write(f.Context(), func(tx *store.Tx) error { return tx.RememberBrowser(f.Context(), p.device, "192.0.2.1", "a browser") })
	f.NoError(err)
	return p
}

// remaining returns what is still valid on node i, such as "challenge browser elsewhere enrolment": in
// the first tenant, then in the other one, and the enrolment.
func (p factorHolder) remaining(f *apptest.Fixture, i int) string {
	f.Helper()
	var words []string
	check := func(c factor.NewChallenge, u doorward.User) {
		const remember = false
		_, err := f.Node(i).Login.WithSecond(f.Context(), apptest.Anonymous(1), c.Token.Reveal(), factor.Answer{Code: "000000"}, remember)
		if apptest.Code(err) == doorward.CodeInvalidCode {
			words = append(words, "challenge")
		}
		by := apptest.Anonymous(1)
		by.Devices = [][]byte{p.device}
		in, err := apptest.SignedIn(f.Node(i).Login.WithPassword(f.Context(), by, u.Email, p.password(f), u.TenantID))
		if err == nil && in.Session.Remembered {
			words = append(words, "browser")
		}
	}
	check(p.here, p.ann.User)
	words = append(words, "elsewhere")
	check(p.elsewhere, p.holder.elsewhere.User)
	if f.Int(`SELECT count(*) FROM factors WHERE confirmed_at IS NULL`) == 1 {
		words = append(words, "enrolment")
	}
	return strings.Join(words, " ")
}

// password returns the person's password.
func (p factorHolder) password(f *apptest.Fixture) string {
	f.Helper()
	if f.TryLogin(p.ann.User.Email, apptest.Password(5)) != doorward.CodeInvalidCredentials {
		return apptest.Password(5)
	}
	return apptest.FirstPassword
}

// resume lets the member in again.
func (p factorHolder) resume(f *apptest.Fixture) error {
	return f.Node(0).Users.Resume(f.Context(), p.owner.Caller, p.ann.User)
}

// rejoin invites the former member again, who accepts.
func (p factorHolder) rejoin(f *apptest.Fixture) error {
	_, token := f.Invite(p.owner, p.ann.User.Email, doorward.RoleAdmin)
	return apptest.ErrorOf(f.Node(0).Invitations.Accept(f.Context(), apptest.Anonymous(1), token, apptest.FirstPassword))
}

// TestKillSwitchOfSecondFactors: a change or reset of the factors, a new password, and the end of all
// other sessions end challenges and remembered browsers on all nodes. Enrolments end too, unless the
// person acts in a session. Forgetting browsers ends nothing else. What one tenant does to a member, and
// the end of a membership, end the challenges and remembered browsers of that tenant alone, even if the
// person can soon sign in there again.
func TestKillSwitchOfSecondFactors(t *testing.T) {
	const endsNothing, endsAll = "challenge browser elsewhere challenge browser enrolment", "elsewhere"
	const endsAllButEnrolment, endsBrowser = "elsewhere enrolment", "challenge elsewhere challenge enrolment"
	const endsHere = "elsewhere challenge browser enrolment"
	for name, c := range map[string]struct {
		do   func(*apptest.Fixture, factorHolder) error
		want string
	}{
		"nothing":   {func(*apptest.Fixture, factorHolder) error { return nil }, endsNothing},
		"suspended": {func(f *apptest.Fixture, p factorHolder) error { return edit(byOwner, suspended)(f, p.holder) }, endsHere},
		"suspended and resumed": {func(f *apptest.Fixture, p factorHolder) error {
			return cmp.Or(edit(byOwner, suspended)(f, p.holder), p.resume(f))
		}, endsHere},
		"demoted": {func(f *apptest.Fixture, p factorHolder) error { return edit(byOwner, demoted)(f, p.holder) }, endsNothing},
		"removed": {func(f *apptest.Fixture, p factorHolder) error {
			return apptest.ErrorOf(f.Node(0).Users.Remove(f.Context(), p.owner.Caller, p.ann.User, user.Handover{}, nil))
		}, endsHere},
		"removed and invited again": {func(f *apptest.Fixture, p factorHolder) error {
			return cmp.Or(apptest.ErrorOf(f.Node(0).Users.Remove(f.Context(), p.owner.Caller, p.ann.User, user.Handover{}, nil)), p.rejoin(f))
		}, endsHere},
		"left": {func(f *apptest.Fixture, p factorHolder) error {
			_, err := f.Node(0).Users.Leave(f.Context(), p.ann.Caller, p.ann.User.TenantID)
			return err
		}, endsHere},
		"factors reset by an OWNER": {func(f *apptest.Fixture, p factorHolder) error {
			_, err := f.Node(0).Factors.Reset(f.Context(), p.owner.Caller, p.ann.User)
			return err
		}, endsHere},
		"factors reset by the operator": {func(f *apptest.Fixture, p factorHolder) error {
			return apptest.ErrorOf(f.Node(0).Factors.ResetByAddress(f.Context(), apptest.Operator, p.ann.User.Email))
		}, endsAll},
		"a factor removed": {func(f *apptest.Fixture, p factorHolder) error {
			return apptest.ErrorOf(f.Node(0).Factors.Remove(f.Context(), p.ann.Caller, p.id))
		}, endsAllButEnrolment},
		"browsers forgotten": {func(f *apptest.Fixture, p factorHolder) error {
			return f.Node(0).Factors.ForgetBrowser(f.Context(), p.ann.Caller, "")
		}, endsBrowser},
		"new recovery codes": {func(f *apptest.Fixture, p factorHolder) error {
			return apptest.ErrorOf(f.Node(0).Factors.NewRecoveryCodes(f.Context(), p.ann.Caller))
		}, endsAllButEnrolment},
		"a factor renamed": {func(f *apptest.Fixture, p factorHolder) error {
			return apptest.ErrorOf(f.Node(0).Factors.Rename(f.Context(), p.ann.Caller, p.id, "Phone"))
		}, endsAllButEnrolment},
		"another password": {func(f *apptest.Fixture, p factorHolder) error {
			return apptest.ErrorOf(f.Node(0).Passwords.Change(f.Context(), p.ann.Caller, apptest.FirstPassword, apptest.Password(5), apptest.Password(5)))
		}, endsAllButEnrolment},
		"a password reset by mail": {func(f *apptest.Fixture, p factorHolder) error {
			return apptest.ErrorOf(f.Node(0).Passwords.Reset(f.Context(), apptest.Anonymous(0), p.reset, apptest.Password(5), apptest.Password(5)))
		}, endsAll},
		"signed out elsewhere": {func(f *apptest.Fixture, p factorHolder) error {
			return apptest.ErrorOf(f.Node(0).Sessions.EndOthers(f.Context(), p.ann.Caller))
		}, endsAllButEnrolment},
	} {
		t.Run(name, func(t *testing.T) {
			apptest.OnSQLite(t, func(f *apptest.Fixture) {
				p := newFactorHolder(f)
				f.NoError(c.do(f, p))
				if got := p.remaining(f, 1); got != c.want {
					f.Errorf("challenge, enrolment and browser remain: %s, want %s", got, c.want)
				}
			})
		})
	}
}

// TestFactorsEndWithTheLastMembership: somebody who returns by an invitation, which proves
// only the mailbox, has none of the former factors.
func TestFactorsEndWithTheLastMembership(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		ann := f.Join(owner, doorward.RoleUser)
		f.Enrol(&ann)
		_, err := f.Node(0).Users.Remove(f.Context(), owner.Caller, ann.User, user.Handover{}, nil)
		f.NoError(err)
		if n := f.CountRows("factors") + f.CountRows("recovery_codes"); n != 0 || f.Account(ann).Factors != 0 {
			f.Errorf("%d factors and recovery codes are left", n)
		}
		_, token := f.Invite(owner, ann.User.Email, doorward.RoleUser)
		_, err = f.Node(0).Invitations.Complete(f.Context(), apptest.Anonymous(0), token, apptest.FirstPassword, apptest.FirstPassword)
		f.NoError(err)
		f.SignIn(ann.User.Email, apptest.FirstPassword)
	})
}

// The code in the mail of a reset is not sent to somebody who has since been suspended.
func TestResetOfSuspended(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		_, owner := f.Tenant()
		ann := f.Join(owner, doorward.RoleUser)
		f.Enrol(&ann)
		before := len(f.Subjects(ann.User.Email))
		_, err := f.Node(0).Factors.Reset(f.Context(), owner.Caller, ann.User)
		f.NoError(err)
		_, err = f.Node(0).Users.Suspend(f.Context(), owner.Caller, ann.User)
		f.NoError(err)
		clock.Move(time.Second)
		for _, subject := range f.Subjects(ann.User.Email)[before:] {
			if subject == "Set up your second factor again" {
				f.Error("the code was sent")
			}
		}
	})
}
