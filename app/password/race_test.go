package password_test

import (
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
)

// TestOneReset: a reset that many callers use at once succeeds once.
func TestOneReset(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		const callers = 16
		_, owner := f.Tenant()
		email := owner.User.Email
		f.NoError(f.Node(0).Passwords.Forgot(f.Context(), apptest.Anonymous(0), email, ""))
		token := f.MailToken(email)
		errs := apptest.Concurrently(callers, func(i int) error {
			return apptest.ErrorOf(f.Node(i).Passwords.Reset(f.Context(), apptest.Anonymous(i), token, apptest.Password(i+1), apptest.Password(i+1)))
		})
		winner := f.WantCodes(errs, apptest.Codes{"": 1, doorward.CodeResetUsed: callers - 1})
		f.WantPassword(email, winner+1, callers+1)
		if f.IsValid(owner.Token) {
			f.Error("a session from before the reset is valid")
		}
	})
}

// TestNewPasswordOutrunsLogin: once a new password is set, no session opened with
// the old one is valid.
func TestNewPasswordOutrunsLogin(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		ann := f.Join(owner, doorward.RoleUser)
		for round := range apptest.Rounds(12, 40) {
			var o apptest.Opened
			account := f.Account(ann)
			old, next := apptest.Password(round), apptest.Password(round+1)
			change := changeOrReset(f, round, ann, old, next)
			errs := apptest.Concurrently(6, func(i int) error {
				switch i {
				case 5:
					return change()
				case 0:
					r, err := apptest.SignedIn(f.Node(i).Login.WithPassword(f.Context(), apptest.Anonymous(i), ann.User.Email, old, ""))
					return o.Add(r.Opened, err)
				}
				return o.Add(f.Node(i).Sessions.Open(f.Context(), apptest.Anonymous(i), account, ann.User.TenantID, doorward.Assurance{}, apptest.NoExtraWrites))
			})
			f.NoError(errs[5])
			f.WantOnly(errs, "", doorward.CodeInvalidCredentials)
			if n := f.CountValid(&o); n > 0 {
				f.Fatalf("%d sessions opened with the old password are valid", n)
			}
			if got := f.TryLogin(ann.User.Email, old); got != doorward.CodeInvalidCredentials {
				f.Fatalf("a login with the old password: %q", got)
			}
			ann = f.SignIn(ann.User.Email, next)
		}
	})
}

// changeOrReset prepares a password change or a reset, to be run later.
func changeOrReset(f *apptest.Fixture, round int, p apptest.Person, old, next string) func() error {
	f.Helper()
	if round%2 == 0 {
		return func() error {
			return apptest.ErrorOf(f.Node(0).Passwords.Change(f.Context(), p.Caller, old, next, next))
		}
	}
	token := f.ResetToken(p)
	return func() error {
		return apptest.ErrorOf(f.Node(1).Passwords.Reset(f.Context(), apptest.Anonymous(9), token, next, next))
	}
}

// TestOnePasswordChange: one session changes the password many times at once.
// Exactly one of the new passwords works.
func TestOnePasswordChange(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		const callers = 16
		_, ann := f.Tenant()
		errs := apptest.Concurrently(callers, func(i int) error {
			return apptest.ErrorOf(f.Node(i).Passwords.Change(f.Context(), ann.Caller, apptest.FirstPassword, apptest.Password(i+1), apptest.Password(i+1)))
		})
		winner := f.WantCodes(errs, apptest.Codes{"": 1, doorward.CodeValidationFailed: callers - 1})
		f.WantPassword(ann.User.Email, winner+1, callers+1)
		if !f.IsValid(ann.Token) {
			f.Error("the session that changed the password has ended")
		}
	})
}
