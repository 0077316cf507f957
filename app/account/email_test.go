package account_test

import (
	"slices"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
)

func changeEmail(f *apptest.Fixture, p apptest.Person, to string) error {
	return f.Node(0).Accounts.ChangeEmail(f.Context(), p.Caller, to)
}

// requested asks for the change and returns the codes to confirm and to undo it.
func requested(f *apptest.Fixture, p apptest.Person, from, to string) (confirm, undo string) {
	f.Helper()
	f.NoError(changeEmail(f, p, to))
	return f.MailToken(to), f.MailToken(from)
}

func confirm(f *apptest.Fixture, node int, token string) doorward.Code {
	return apptest.Code(apptest.ErrorOf(f.Node(node).Accounts.Confirm(f.Context(), apptest.Anonymous(1), token)))
}

func undo(f *apptest.Fixture, node int, token string) doorward.Code {
	return apptest.Code(apptest.ErrorOf(f.Node(node).Accounts.Undo(f.Context(), apptest.Anonymous(1), token)))
}

func want(f *apptest.Fixture, what string, got, want doorward.Code) {
	f.Helper()
	if got != want {
		f.Errorf("%s: %q, want %q", what, got, want)
	}
}

// TestChangeAndUndo: an address changes when it is confirmed, on every node at once, and
// changes back with the code in the old mailbox, whatever happened in between.
func TestChangeAndUndo(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		ann := f.Join(owner, doorward.RoleUser)
		from, to, thief := ann.User.Email, f.NewEmail("new"), f.NewEmail("thief")
		for n := range f.Nodes {
			f.NoError(apptest.ErrorOf(f.Node(n).Sessions.Check(f.Context(), ann.Token)))
		}
		reset := f.ResetToken(ann)
		code, back := requested(f, ann, from, to)
		want(f, "a login with the old address before the confirmation", f.TryLogin(from, apptest.FirstPassword), "")
		want(f, "the confirmation", confirm(f, 0, code), "")
		for n := range f.Nodes {
			p, err := f.Node(n).Sessions.Check(f.Context(), ann.Token)
			if err != nil || p.Email != to {
				f.Errorf("node %d: %v, %v", n, p.Email, err)
			}
		}
		if page, err := f.Node(0).Users.Find(f.Context(), to, ""); err != nil || len(page) != 1 {
			f.Errorf("the members with the new address: %v, %v", page, err)
		}
		want(f, "a login with the old address", f.TryLogin(from, apptest.FirstPassword), doorward.CodeInvalidCredentials)
		want(f, "a login with the new address", f.TryLogin(to, apptest.FirstPassword), "")
		_, err := f.Node(0).Passwords.Reset(f.Context(), apptest.Anonymous(1), reset, apptest.Password(3), apptest.Password(3))
		want(f, "a reset sent to the old address", apptest.Code(err), doorward.CodeResetExpired)
		want(f, "the same code again", confirm(f, 1, code), doorward.CodeEmailChangeOver)

		ann = f.SignIn(to, apptest.FirstPassword)
		second, secondBack := requested(f, ann, to, thief)
		want(f, "a second change", confirm(f, 1, second), "")
		f.NoError(apptest.ErrorOf(f.Node(0).Passwords.Change(f.Context(), f.SignIn(thief, apptest.FirstPassword).Caller, apptest.FirstPassword, apptest.Password(1), apptest.Password(1))))
		want(f, "the first is undone", undo(f, 1, back), "")
		if f.IsValid(ann.Token) {
			f.Error("a session from before has not ended")
		}
		want(f, "the later one can't be undone", undo(f, 0, secondBack), doorward.CodeEmailChangeOver)
		want(f, "undone again", undo(f, 0, back), doorward.CodeEmailChangeOver)
		want(f, "a login with the old address at the end", f.TryLogin(from, apptest.Password(1)), "")
		want(f, "a login with the thief's", f.TryLogin(thief, apptest.Password(1)), doorward.CodeInvalidCredentials)
		_, err = f.Node(0).Passwords.Reset(f.Context(), apptest.Anonymous(1), f.MailToken(from), apptest.Password(2), apptest.Password(2))
		want(f, "the reset that was sent", apptest.Code(err), "")
		if subjects := f.Subjects(thief); !slices.Contains(subjects, "The change of your address has been undone") {
			f.Errorf("the mails to the thief: %q", subjects)
		}
	})
}

// TestChangeVoided: a code confirms nothing after a newer request, a change of the
// password, the end of all other sessions, an undo, or half an hour.
func TestChangeVoided(t *testing.T) {
	apptest.OnEachClock(t, apptest.ProductionLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		_, owner := f.Tenant()
		for what, void := range map[string]func(p apptest.Person, back string) error{
			"newer": func(p apptest.Person, _ string) error { return changeEmail(f, p, f.NewEmail("newer")) },
			"password": func(p apptest.Person, _ string) error {
				return apptest.ErrorOf(f.Node(0).Passwords.Change(f.Context(), p.Caller, apptest.FirstPassword, apptest.Password(1), apptest.Password(1)))
			},
			"others": func(p apptest.Person, _ string) error {
				return apptest.ErrorOf(f.Node(0).Sessions.EndOthers(f.Context(), p.Caller))
			},
			"undo": func(_ apptest.Person, back string) error {
				return apptest.ErrorOf(f.Node(0).Accounts.Undo(f.Context(), apptest.Anonymous(1), back))
			},
			"late": func(apptest.Person, string) error { clock.Move(30 * time.Minute); return nil },
		} {
			ann := f.Join(owner, doorward.RoleUser)
			code, back := requested(f, ann, ann.User.Email, f.NewEmail("new"))
			f.NoError(void(ann, back))
			want(f, what, confirm(f, 0, code), doorward.CodeEmailChangeOver)
			if got := f.Account(ann).Email; got != ann.User.Email {
				f.Errorf("%s: the address is %s", what, got)
			}
		}
		ann := f.Join(owner, doorward.RoleUser)
		_, back := requested(f, ann, ann.User.Email, f.NewEmail("new"))
		clock.Move(7 * 24 * time.Hour)
		want(f, "an undo after 7 days", undo(f, 0, back), doorward.CodeEmailChangeOver)
		f.NoError(f.Node(0).Sweep(f.Context()))
		if n := f.CountRows("email_changes"); n != 0 {
			f.Errorf("%d changes are left", n)
		}
		want(f, "an undo after the sweep", undo(f, 0, back), doorward.CodeEmailChangeNotFound)
	})
}

// TestOneAddress: of several people who confirm one address at once, one gets it.
func TestOneAddress(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		var people []apptest.Person
		for range 3 {
			people = append(people, f.Join(owner, doorward.RoleUser))
		}
		for range apptest.Rounds(3, 20) {
			to := f.NewEmail("wanted")
			var codes []string
			for _, p := range people {
				f.Exec(`DELETE FROM throttles`)
				f.NoError(changeEmail(f, p, to))
				codes = append(codes, f.MailToken(to))
			}
			errs := apptest.Concurrently(len(codes), func(i int) error {
				return apptest.ErrorOf(f.Node(i).Accounts.Confirm(f.Context(), apptest.Anonymous(i), codes[i]))
			})
			f.WantCodes(errs, apptest.Codes{"": 1, doorward.CodeAccountExists: len(codes) - 1})
		}
		f.WantNoDeadlocks()
	})
}

// TestConfirmAgainstUndo: whichever comes first, in the end the account has the address
// that the undo gives back.
func TestConfirmAgainstUndo(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		for range apptest.Rounds(4, 30) {
			ann := f.Join(owner, doorward.RoleUser)
			code, back := requested(f, ann, ann.User.Email, f.NewEmail("new"))
			errs := apptest.Concurrently(2, func(i int) error {
				if i == 0 {
					return apptest.ErrorOf(f.Node(0).Accounts.Confirm(f.Context(), apptest.Anonymous(0), code))
				}
				return apptest.ErrorOf(f.Node(1).Accounts.Undo(f.Context(), apptest.Anonymous(1), back))
			})
			f.NoError(errs[1])
			f.WantOnly(errs, "", doorward.CodeEmailChangeOver)
			if got := f.Account(ann).Email; got != ann.User.Email {
				f.Fatalf("the address is %s, want %s", got, ann.User.Email)
			}
			if f.IsValid(ann.Token) {
				f.Fatal("the session has not ended")
			}
		}
		f.WantNoDeadlocks()
	})
}

// TestChangeLimits: mails to one address, and mails about one account, are limited, for
// addresses with and without an account alike.
func TestChangeLimits(t *testing.T) {
	apptest.OnEachClock(t, apptest.ProductionLimits, apptest.NewMovedClock, func(f *apptest.Fixture, _ *apptest.MovedClock) {
		_, owner := f.Tenant()
		ann := f.Join(owner, doorward.RoleUser)
		for _, to := range []string{owner.User.Email, f.NewEmail("free"), ann.User.Email} {
			for n := range 4 {
				expected := doorward.Code("")
				if n == 3 {
					expected = doorward.CodeTooManyAttempts
				}
				want(f, to, apptest.Code(changeEmail(f, ann, to)), expected)
			}
		}
		want(f, "the tenth of the account", apptest.Code(changeEmail(f, ann, f.NewEmail("x"))), "")
		want(f, "one more", apptest.Code(changeEmail(f, ann, f.NewEmail("x"))), doorward.CodeTooManyAttempts)
	})
}

// TestTakenAddress: who proves to read the mail of an address with an account learns that
// it has one, and nothing changes. The same goes for one's own.
func TestTakenAddress(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		ann := f.Join(owner, doorward.RoleUser)
		for _, to := range []string{owner.User.Email, ann.User.Email} {
			f.NoError(changeEmail(f, ann, to))
			f.NoError(f.Node(0).Mail.Deliver(f.Context()))
			code := f.MailTokenUnder(to, "/confirm-email")
			want(f, to, confirm(f, 0, code), doorward.CodeAccountExists)
			want(f, to+" again", confirm(f, 0, code), doorward.CodeAccountExists)
		}
		if got := f.Account(ann).Email; got != ann.User.Email {
			f.Errorf("the address is %s", got)
		}
	})
}

// TestChangeOfEndedSession: a session that has ended asks for nothing, even if its request
// had begun.
func TestChangeOfEndedSession(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		ann := f.Join(owner, doorward.RoleUser)
		other := f.SignIn(ann.User.Email, apptest.FirstPassword)
		f.NoError(apptest.ErrorOf(f.Node(1).Sessions.EndOthers(f.Context(), other.Caller)))
		want(f, "a request of the ended session", apptest.Code(changeEmail(f, ann, f.NewEmail("new"))), doorward.CodeUnauthenticated)
		if n := f.CountRows("email_changes"); n != 0 {
			f.Errorf("%d changes", n)
		}
	})
}
