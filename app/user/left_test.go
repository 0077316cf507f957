package user_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/roster"
	"github.com/doorward/doorward/app/user"
)

// What is kept of an account without a membership, and how its person returns.

// signInWithBrowser signs in, and returns a caller with the browser that is known from then on.
func signInWithBrowser(f *apptest.Fixture, email, password string) apptest.Person {
	f.Helper()
	r, err := apptest.SignedIn(f.Node(0).Login.WithPassword(f.Context(), apptest.Anonymous(0), email, password, ""))
	f.NoError(err)
	by := apptest.Anonymous(0).As(r.User)
	by.Principal = doorward.PrincipalOf(r.User, r.Session)
	if r.Device != nil {
		hash := r.Device.Hash()
		by.Devices = [][]byte{hash[:]}
	}
	return apptest.Person{Caller: by, User: r.User, Token: r.Token}
}

// credentialsOf describes whether the account has a password, and how many browsers are known.
func credentialsOf(f *apptest.Fixture, p apptest.Person) string {
	f.Helper()
	devices, err := f.DB.Read().CountDevices(f.Context(), p.User.ID, time.Time{})
	f.NoError(err)
	return fmt.Sprintf("password: %v, browsers: %d", f.Account(p).PasswordHash != "", devices)
}

const (
	withCredentials    = "password: true, browsers: 2"
	withoutCredentials = "password: false, browsers: 0"
)

// TestLastMembership: the end of the last membership deletes the password and the known
// browsers at once, and the counters a day later. The end of one of several deletes none.
func TestLastMembership(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.HighLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		_, owner := f.Tenant()
		_, otherOwner := f.Tenant()
		for how, end := range map[string]func(apptest.Person) error{
			"removed": func(p apptest.Person) error {
				_, err := f.Node(0).Users.Remove(f.Context(), owner.Caller, p.User, user.Handover{}, nil)
				return err
			},
			"left": func(p apptest.Person) error {
				_, err := f.Node(0).Users.Leave(f.Context(), p.Caller, p.User.TenantID)
				return err
			},
		} {
			p := f.Join(owner, doorward.RoleUser)
			p = signInWithBrowser(f, p.User.Email, apptest.FirstPassword)
			both := f.Join(owner, doorward.RoleUser)
			both = signInWithBrowser(f, both.User.Email, apptest.FirstPassword)
			_, token := f.Invite(otherOwner, both.User.Email, doorward.RoleUser)
			_, err := f.Node(0).Invitations.Accept(f.Context(), both.Caller, token, "")
			f.NoError(err)
			if got := f.TryLogin(p.User.Email, apptest.Password(1)); got != doorward.CodeInvalidCredentials {
				t.Fatal(got)
			}
			f.NoError(end(both))
			if got := credentialsOf(f, both); got != withCredentials {
				t.Errorf("%s, and in another tenant: %s", how, got)
			}
			_, err = f.Node(0).Users.Suspend(f.Context(), apptest.Operator, p.User)
			f.NoError(err)
			if got := credentialsOf(f, p); got != withCredentials {
				t.Errorf("suspended: %s", got)
			}
			f.NoError(f.Node(0).Users.Resume(f.Context(), apptest.Operator, p.User))
			p = signInWithBrowser(f, p.User.Email, apptest.FirstPassword) // and makes a third browser known
			f.NoError(end(p))
			if got := credentialsOf(f, p); got != withoutCredentials {
				t.Errorf("%s: %s", how, got)
			}
			if got := f.TryLogin(p.User.Email, apptest.FirstPassword); got != doorward.CodeInvalidCredentials {
				t.Errorf("%s: a login is %q", how, got)
			}

			bucket := "account:" + p.User.Email
			clock.Move(24*time.Hour - time.Microsecond)
			f.NoError(f.Node(0).Sweep(f.Context()))
			if f.CountFailures(bucket) == 0 {
				t.Errorf("%s: its counter was deleted within a day", how)
			}
			clock.Move(time.Microsecond)
			f.NoError(f.Node(0).Sweep(f.Context()))
			if n := len(apptest.RowsWith(f.AllRows(), bucket, "newcomers:"+p.User.ID, "devices:"+p.User.ID)); n != 0 {
				t.Errorf("%s: after a day %d of its counters are left", how, n)
			}
			owner, otherOwner = f.SignIn(owner.User.Email, apptest.FirstPassword), f.SignIn(otherOwner.User.Email, apptest.FirstPassword) // the sessions are a day old

			// The person returns with the same account.
			_, token = f.Invite(owner, p.User.Email, doorward.RoleViewer)
			shown, err := f.Node(0).Invitations.Show(f.Context(), token)
			f.NoError(err)
			if shown.HasAccount {
				t.Errorf("%s: a person without a password is asked for one", how)
			}
			again, err := f.Node(0).Invitations.Complete(f.Context(), apptest.Anonymous(0), token, apptest.Password(2), apptest.Password(2))
			f.NoError(err)
			if again.ID != p.User.ID {
				t.Errorf("%s: returns as %s, was %s", how, again.ID, p.User.ID)
			}
			clock.Move(24 * time.Hour)
			f.NoError(f.Node(0).Sweep(f.Context()))
			owner, otherOwner = f.SignIn(owner.User.Email, apptest.FirstPassword), f.SignIn(otherOwner.User.Email, apptest.FirstPassword)
			f.NoError(end(f.SignIn(p.User.Email, apptest.Password(2))))
		}
	})
}

// TestImportOfARemovedPerson: the import of a removed person sets the password, if the list
// has one.
func TestImportOfARemovedPerson(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		acme, owner := f.Tenant()
		p, bare := f.Join(owner, doorward.RoleUser), f.Join(owner, doorward.RoleUser)
		hash := f.Account(p).PasswordHash
		for _, member := range []apptest.Person{p, bare} {
			_, err := f.Node(0).Users.Remove(f.Context(), owner.Caller, member.User, user.Handover{}, nil)
			f.NoError(err)
		}
		list := roster.List{People: []roster.Person{
			{Line: 1, Email: p.User.Email, Role: doorward.RoleUser, Status: doorward.UserActive, PasswordHash: hash},
			{Line: 2, Email: bare.User.Email, Role: doorward.RoleUser, Status: doorward.UserActive},
		}}
		done, err := f.Node(0).Users.Import(f.Context(), apptest.Operator, acme.ID, list, notDry)
		f.NoError(err)
		if done.Members != 2 || done.Accounts != 0 || done.WithoutPassword != 1 || len(done.PasswordKept) != 0 {
			f.Errorf("the import returned %+v", done)
		}
		f.SignIn(p.User.Email, apptest.FirstPassword)
	})
}

// TestRemovalAndReturnAtOnce: a person is removed from the only tenant while becoming a member
// of another, signing in or changing the password. Afterwards a member has a password, a
// non-member has none and no known browsers, and there was no deadlock.
func TestRemovalAndReturnAtOnce(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		globex, otherOwner := f.Tenant()
		returns := map[string]func(i int, p apptest.Person, token string) error{
			"by password": func(i int, _ apptest.Person, token string) error {
				_, err := f.Node(i).Invitations.Accept(f.Context(), apptest.Anonymous(1), token, apptest.FirstPassword)
				return err
			},
			"by session": func(i int, p apptest.Person, token string) error {
				_, err := f.Node(i).Invitations.Accept(f.Context(), p.Caller, token, "")
				return err
			},
			"by registration": func(i int, _ apptest.Person, token string) error {
				_, err := f.Node(i).Invitations.Complete(f.Context(), apptest.Anonymous(1), token, apptest.FirstPassword, apptest.FirstPassword)
				return err
			},
			"by a list": func(i int, p apptest.Person, _ string) error {
				list := roster.List{People: []roster.Person{{
					Line: 1, Email: p.User.Email, Role: doorward.RoleUser, Status: doorward.UserActive, PasswordHash: f.Account(otherOwner).PasswordHash,
				}}}
				_, err := f.Node(i).Users.Import(f.Context(), apptest.Operator, globex.ID, list, notDry)
				return err
			},
			"by signing in": func(i int, p apptest.Person, _ string) error {
				_, err := f.Node(i).Login.WithPassword(f.Context(), apptest.Anonymous(1), p.User.Email, apptest.FirstPassword, "")
				return err
			},
			"by another password": func(i int, p apptest.Person, _ string) error {
				return apptest.ErrorOf(f.Node(i).Passwords.Change(f.Context(), p.Caller, apptest.FirstPassword, apptest.Password(1), apptest.Password(1)))
			},
		}
		for how, comeBack := range returns {
			for round := range 6 {
				p := f.Join(owner, doorward.RoleUser)
				p = signInWithBrowser(f, p.User.Email, apptest.FirstPassword)
				_, token := f.Invite(otherOwner, p.User.Email, doorward.RoleUser)
				errs := apptest.Concurrently(2, func(i int) error {
					if i == round%2 {
						_, err := f.Node(i).Users.Remove(f.Context(), owner.Caller, p.User, user.Handover{}, nil)
						return err
					}
					return comeBack(i, p, token)
				})
				f.NoError(errs[round%2])
				memberships, err := f.DB.Read().CountMemberships(f.Context(), p.User.ID)
				f.NoError(err)
				if member, password := memberships > 0, f.Account(p).PasswordHash != ""; member != password {
					f.Errorf("%s: a member: %v, a password: %v; %v", how, member, password, errs)
				}
				if memberships == 0 && credentialsOf(f, p) != withoutCredentials {
					f.Errorf("%s: a person in no tenant has %s", how, credentialsOf(f, p))
				}
			}
		}
		f.WantNoDeadlocks()
	})
}
