package account_test

import (
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
)

// requestChange requests a change of the person's address to to, and returns the codes that confirm
// and undo it.
func requestChange(f *apptest.Fixture, p apptest.Person, to string) (confirmCode, undoCode string) {
	f.Helper()
	current := f.Account(p).Email
	f.NoError(f.Node(0).Accounts.ChangeEmail(f.Context(), p.Caller, to, false))
	return f.MailToken(to), f.MailToken(current)
}

func confirm(f *apptest.Fixture, i int, p apptest.Person, code string) error {
	return apptest.ErrorOf(f.Node(i).Accounts.ConfirmEmail(f.Context(), p.Caller, code))
}

func undo(f *apptest.Fixture, i int, code string) error {
	return apptest.ErrorOf(f.Node(i).Accounts.UndoEmail(f.Context(), apptest.Anonymous(i), code))
}

// TestNewEmailOnAllNodes: when the call returns, every node knows the new address.
func TestNewEmailOnAllNodes(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, ann := f.Tenant()
		for i := range f.Nodes {
			_, err := f.Node(i).Sessions.Check(f.Context(), ann.Token)
			f.NoError(err)
		}
		to := f.NewEmail("new")
		code, _ := requestChange(f, ann, to)
		f.NoError(confirm(f, 0, ann, code))
		for i := range f.Nodes {
			got, err := f.Node(i).Sessions.Check(f.Context(), ann.Token)
			f.NoError(err)
			if got.Email != to {
				f.Errorf("node %d: the session is of %s, want %s", i, got.Email, to)
			}
		}
	})
}

// TestOneConfirmation: a code that many callers use at once works once.
func TestOneConfirmation(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		const callers = 16
		_, ann := f.Tenant()
		code, _ := requestChange(f, ann, f.NewEmail("new"))
		f.WantCodes(apptest.Concurrently(callers, func(i int) error { return confirm(f, i, ann, code) }),
			apptest.Codes{"": 1, doorward.CodeEmailChangeOver: callers - 1})
	})
}

// TestTwoConfirmOneAddress: if two people confirm the same address at once, one gets it.
func TestTwoConfirmOneAddress(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		for range apptest.Rounds(3, 10) {
			people := []apptest.Person{f.Join(owner, doorward.RoleUser), f.Join(owner, doorward.RoleUser)}
			to := f.NewEmail("wanted")
			var codes []string
			for _, p := range people {
				code, _ := requestChange(f, p, to)
				codes = append(codes, code)
			}
			winner := f.WantCodes(apptest.Concurrently(2, func(i int) error { return confirm(f, i, people[i], codes[i]) }),
				apptest.Codes{"": 1, doorward.CodeAccountExists: 1})
			loser := people[1-winner]
			if got := f.Account(loser).Email; got != loser.User.Email {
				f.Errorf("the other one has the address %s", got)
			}
			if got := f.TryLogin(to, apptest.FirstPassword); got != "" {
				f.Errorf("a login with the new address: %s", got)
			}
		}
	})
}

// TestConfirmAgainstUndo: when the address is confirmed and the change undone at once,
// the account has its old address, and no session is left.
func TestConfirmAgainstUndo(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		for range apptest.Rounds(5, 20) {
			ann := f.Join(owner, doorward.RoleUser)
			confirmCode, undoCode := requestChange(f, ann, f.NewEmail("new"))
			errs := apptest.Concurrently(2, func(i int) error {
				if i == 0 {
					return confirm(f, i, ann, confirmCode)
				}
				return undo(f, i, undoCode)
			})
			f.NoError(errs[1])
			f.WantOnly(errs, "", doorward.CodeEmailChangeOver, doorward.CodeUnauthenticated)
			if got := f.Account(ann).Email; got != ann.User.Email {
				f.Errorf("the address is %s, want the old one", got)
			}
			if f.IsValid(ann.Token) {
				f.Error("a session is left")
			}
		}
	})
}

// TestUndoBeatsAThief: a thief changes the address twice. The first undo code gives the
// account back, and the codes that were mailed to the thief stop working.
func TestUndoBeatsAThief(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, ann := f.Tenant()
		first, undoFirst := requestChange(f, ann, f.NewEmail("thief"))
		f.NoError(confirm(f, 0, ann, first))
		second, undoSecond := requestChange(f, ann, f.NewEmail("thief"))
		f.NoError(confirm(f, 0, ann, second))
		third, _ := requestChange(f, ann, f.NewEmail("thief"))
		f.UseMasterKey()
		_, err := f.Node(0).Factors.Enrol(f.Context(), ann.Caller, "")
		f.NoError(err)
		f.NoError(undo(f, 0, undoFirst))
		if n := f.CountRows("factors"); n != 0 {
			f.Error("a factor can still be set up")
		}
		if got := f.Account(ann).Email; got != ann.User.Email {
			f.Fatalf("the address is %s", got)
		}
		for name, err := range map[string]error{
			"the same undo": undo(f, 0, undoFirst), "an undo by the thief": undo(f, 0, undoSecond), "a confirmation": confirm(f, 0, f.SignIn(ann.User.Email, apptest.FirstPassword), third),
		} {
			if got := apptest.Code(err); got != doorward.CodeEmailChangeOver {
				f.Errorf("%s answers %q after the undo", name, got)
			}
		}
		if f.IsValid(ann.Token) {
			f.Error("a session is left")
		}
		token := f.MailToken(ann.User.Email)
		_, err = f.Node(0).Passwords.Reset(f.Context(), apptest.Anonymous(0), token, apptest.Password(2), apptest.Password(2))
		f.NoError(err)
	})
}

// TestInvalidChanges: a requested change becomes invalid when the password is changed or reset,
// when all other sessions are ended, when a newer change is requested, and after 30 minutes. A
// confirmed change makes resets mailed to the old address invalid, and can't be undone after a
// week.
func TestInvalidChanges(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		_, owner := f.Tenant()
		for event, do := range map[string]func(p *apptest.Person){
			"a new password": func(p *apptest.Person) {
				f.NoError(apptest.ErrorOf(f.Node(0).Passwords.Change(f.Context(), p.Caller, apptest.FirstPassword, apptest.Password(1), apptest.Password(1))))
			},
			"a reset": func(p *apptest.Person) {
				f.NoError(apptest.ErrorOf(f.Node(0).Passwords.Reset(f.Context(), apptest.Anonymous(0), f.ResetToken(*p), apptest.Password(1), apptest.Password(1))))
				*p = f.SignIn(p.User.Email, apptest.Password(1))
			},
			"the end of all other sessions": func(p *apptest.Person) {
				f.NoError(apptest.ErrorOf(f.Node(0).Sessions.EndOthers(f.Context(), p.Caller)))
			},
			"a newer change": func(p *apptest.Person) { requestChange(f, *p, f.NewEmail("newer")) },
			"half an hour":   func(*apptest.Person) { clock.Move(30 * time.Minute) },
		} {
			ann := f.Join(owner, doorward.RoleUser)
			code, _ := requestChange(f, ann, f.NewEmail("new"))
			do(&ann)
			if got := apptest.Code(confirm(f, 0, ann, code)); got != doorward.CodeEmailChangeOver {
				f.Errorf("after %s a confirmation answers %q", event, got)
			}
		}
		ann := f.Join(owner, doorward.RoleUser)
		reset := f.ResetToken(ann)
		code, undoCode := requestChange(f, ann, f.NewEmail("new"))
		f.NoError(confirm(f, 0, ann, code))
		if _, err := f.Node(0).Passwords.Reset(f.Context(), apptest.Anonymous(0), reset, apptest.Password(1), apptest.Password(1)); apptest.Code(err) != doorward.CodeResetExpired {
			f.Errorf("a reset mailed to the old address: %v", err)
		}
		clock.Move(7 * 24 * time.Hour)
		if got := apptest.Code(undo(f, 0, undoCode)); got != doorward.CodeEmailChangeOver {
			f.Errorf("an undo after a week: %q", got)
		}
		f.NoError(f.Node(0).Sweep(f.Context()))
		if n := f.CountRows("email_changes"); n != 0 {
			f.Errorf("%d changes are left", n)
		}
	})
}

// TestConfirmingNeedsASessionOfTheAccount: somebody gives an account, with factors of their own, the
// address of a victim, who opens the link of the mail. That alone must not move the account.
func TestConfirmingNeedsASessionOfTheAccount(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		ann, bob := f.Join(owner, doorward.RoleUser), f.Join(owner, doorward.RoleUser)
		code, _ := requestChange(f, ann, f.NewEmail("victim"))
		elsewhere, ended := ann, f.SignIn(ann.User.Email, apptest.FirstPassword)
		elsewhere.Issuer = "con_1"
		f.NoError(apptest.ErrorOf(f.Node(0).Sessions.EndOwn(f.Context(), ended.Caller, ended.SessionID)))
		for _, c := range []struct {
			by   doorward.Caller
			want doorward.Code
		}{
			{apptest.Anonymous(0), doorward.CodeUnauthenticated},
			{ended.Caller, doorward.CodeUnauthenticated},
			{bob.Caller, doorward.CodeWrongAccount},
			{elsewhere.Caller, doorward.CodeSignInRequired},
			{ann.Caller, ""},
		} {
			err := apptest.ErrorOf(f.Node(0).Accounts.ConfirmEmail(f.Context(), c.by, code))
			if got := apptest.Code(err); got != c.want {
				f.Errorf("%s %s, issuer %q: %q, want %q", c.by.Kind, c.by.ID, c.by.Issuer, got, c.want)
			}
		}
	})
}

// TestSessionThatHasEnded: a session that ended after its request was authenticated can't
// change the address.
func TestSessionThatHasEnded(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, ann := f.Tenant()
		f.NoError(apptest.ErrorOf(f.Node(0).Sessions.EndOwn(f.Context(), ann.Caller, ann.SessionID)))
		if got := apptest.Code(f.Node(0).Accounts.ChangeEmail(f.Context(), ann.Caller, f.NewEmail("new"), false)); got != doorward.CodeUnauthenticated {
			f.Errorf("the change answers %q, want unauthenticated", got)
		}
		if n := f.CountRows("email_changes"); n != 0 {
			f.Errorf("%d changes are stored, want none", n)
		}
	})
}

// TestFactorResetsOfAnotherAddress: a code that removes the factors works only while the account
// has the address that it was mailed to.
func TestFactorResetsOfAnotherAddress(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		ann := f.Join(owner, doorward.RoleUser)
		app := f.Enrol(&ann)
		reset := func(address string) string {
			f.NoError(apptest.ErrorOf(f.Node(0).Factors.Reset(f.Context(), owner.Caller, ann.User)))
			return f.MailToken(address)
		}
		wantOver := func(event, code string) {
			_, err := f.Node(1).Factors.ConfirmReset(f.Context(), apptest.Anonymous(1), code, apptest.FirstPassword)
			if got := apptest.Code(err); got != doorward.CodeResetExpired {
				f.Errorf("after %s the code of the other address answers %q, want reset_expired", event, got)
			}
		}
		to := f.NewEmail("new")
		confirmCode, undoCode := requestChange(f, ann, to)
		old := reset(ann.User.Email)
		f.NoError(confirm(f, 0, f.SignInWith(ann, app), confirmCode)) // the reset has ended the first session
		wantOver("a change of the address", old)
		code := reset(to)
		f.NoError(undo(f, 0, undoCode))
		wantOver("the undo", code)
	})
}
