package password_test

import (
	"testing"
	"time"

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
			var o apptest.OpenedSessions
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
				return o.Add(f.Enter(i, account, ann.User.TenantID))
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

// TestResetAgainstOtherChanges: a reset is used at once with what ends it. Either order is
// right, and no deadlock decides which.
func TestResetAgainstOtherChanges(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		for round := range apptest.Rounds(8, 30) {
			ann := f.Join(owner, doorward.RoleUser)
			token, next := f.ResetToken(ann), apptest.Password(1)
			to := f.NewEmail("new")
			f.NoError(f.Node(0).Accounts.ChangeEmail(f.Context(), ann.Caller, to, false))
			code := f.MailToken(to)
			errs := apptest.Concurrently(2, func(i int) error {
				switch {
				case i == 0:
					return apptest.ErrorOf(f.Node(0).Passwords.Reset(f.Context(), apptest.Anonymous(1), token, next, next))
				case round%2 == 0:
					return apptest.ErrorOf(f.Node(1).Passwords.Change(f.Context(), ann.Caller, apptest.FirstPassword, apptest.Password(2), apptest.Password(2)))
				}
				return apptest.ErrorOf(f.Node(1).Accounts.ConfirmEmail(f.Context(), ann.Caller, code))
			})
			f.WantOnly(errs[:1], "", doorward.CodeResetExpired)
			f.WantOnly(errs[1:], "", doorward.CodeValidationFailed, doorward.CodeUnauthenticated, doorward.CodeEmailChangeOver)
			if won := errs[0] == nil; won == (errs[1] == nil) {
				f.Fatalf("reset: %v; the other: %v", errs[0], errs[1])
			}
		}
		f.WantNoDeadlocks()
	})
}

// TestResetEndsForSlowClocks: an undo ends the reset that a thief has got at the new address,
// also for a node whose clock is a little behind.
func TestResetEndsForSlowClocks(t *testing.T) {
	engine := apptest.Postgres
	engine.Nodes = 1
	clock := apptest.NewMovedClock()
	f := apptest.New(t, engine, apptest.NoLimits, clock.Now)
	_, owner := f.Tenant()
	ann := f.Join(owner, doorward.RoleUser)
	to := f.NewEmail("thief")
	f.NoError(f.Node(0).Accounts.ChangeEmail(f.Context(), ann.Caller, to, false))
	confirm, undo := f.MailToken(to), f.MailToken(ann.User.Email)
	f.NoError(apptest.ErrorOf(f.Node(0).Accounts.ConfirmEmail(f.Context(), ann.Caller, confirm)))
	f.NoError(f.Node(0).Passwords.Forgot(f.Context(), apptest.Anonymous(0), to, ""))
	token := f.MailToken(to)
	clock.Move(time.Minute)
	f.NoError(apptest.ErrorOf(f.Node(0).Accounts.UndoEmail(f.Context(), apptest.Anonymous(0), undo)))
	f.AddNode(apptest.NoLimits, func() time.Time { return clock.Now().Add(-5 * time.Second) })
	err := apptest.ErrorOf(f.Nodes[1].Passwords.Reset(f.Context(), apptest.Anonymous(1), token, apptest.Password(1), apptest.Password(1)))
	f.WantCodes([]error{err}, apptest.Codes{doorward.CodeResetExpired: 1})
}

// TestAddressOfAnotherAccount: while a request to change the password waits, its account gets
// another address, and somebody else gets that one. Their password is not the caller's.
func TestAddressOfAnotherAccount(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		ann := f.Join(owner, doorward.RoleUser)
		change := func(p apptest.Person, to string) {
			f.Helper()
			f.NoError(f.Node(0).Accounts.ChangeEmail(f.Context(), p.Caller, to, false))
			f.NoError(apptest.ErrorOf(f.Node(0).Accounts.ConfirmEmail(f.Context(), p.Caller, f.MailToken(to))))
		}
		change(ann, f.NewEmail("moved"))
		f.Subjects(ann.User.Email) // sends the notices first
		change(owner, ann.User.Email)
		next := apptest.Password(1)
		err := apptest.ErrorOf(f.Node(0).Passwords.Change(f.Context(), ann.Caller, apptest.FirstPassword, next, next)) // ann.Caller was read before
		f.WantCodes([]error{err}, apptest.Codes{doorward.CodeValidationFailed: 1})
		f.WantPassword(ann.User.Email, 0, 2) // the owner's, which is unchanged
	})
}
