package directory_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/directory"
	"github.com/doorward/doorward/internal/scim"
)

// directoryOf gives the owner's tenant a connection with the proved domain, and returns its id and callers with its secret.
func directoryOf(f *apptest.Fixture, owner apptest.Person, domain string) (con string, by func(node int) doorward.Caller) {
	f.Helper()
	con = f.Connection(owner, domain)
	made, err := f.Node(0).Directories.AddSecret(f.Context(), owner.Caller, con, nil)
	f.NoError(err)
	return con, func(node int) doorward.Caller {
		f.Helper()
		caller, err := f.Node(node).Directories.Check(f.Context(), apptest.Anonymous(node), made.Text)
		f.NoError(err)
		return caller
	}
}

func said(userName string, active bool) scim.User {
	return scim.User{UserName: userName, Active: &active}
}

// A person who is switched off by one node has no session on any when that is answered, also one that was being opened, and
// also if the rest of the request is refused.
func TestRaceSwitchedOff(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		con, by := directoryOf(f, owner, "acme.example")
		bob := f.Join(owner, doorward.RoleUser)
		for round := range apptest.Rounds(2, 20) {
			var o apptest.OpenedSessions
			account, userName := f.Account(bob), bob.User.Email
			if round%2 == 1 {
				userName = "x-" + userName // the account is the person's own
			}
			errs := apptest.Concurrently(5, func(i int) error {
				if i == 4 {
					_, err := f.Node(0).Directories.Replace(f.Context(), by(0), bob.User.ID, said(userName, false))
					return err
				}
				return o.Add(f.Enter(i, account, bob.User.TenantID))
			})
			f.NoError(errs[4])
			f.WantOnly(errs, "", doorward.CodeMembershipSuspended)
			if n := f.CountValid(&o); n > 0 || f.IsValid(bob.Token) {
				f.Fatalf("%d sessions are valid after the directory has switched the person off", n)
			}
			u, err := f.Node(1).Directories.Replace(f.Context(), by(1), bob.User.ID, said(bob.User.Email, true))
			f.NoError(err)
			if !*u.Active {
				f.Fatal("the person isn't active again")
			}
			if n := f.CountValid(&o); n > 0 || f.IsValid(bob.Token) {
				f.Fatalf("%d sessions were revived", n)
			}
		}
		f.NoError(apptest.ErrorOf(f.Node(0).Users.Suspend(f.Context(), owner.Caller, bob.User)))
		u, err := f.Node(1).Directories.Replace(f.Context(), by(1), bob.User.ID, said(bob.User.Email, true))
		f.NoError(err)
		m, err := f.Node(0).Users.Get(f.Context(), owner.Caller, bob.User.ID)
		f.NoError(err)
		if *u.Active || !slices.Equal(m.Suspensions(), []string{doorward.ByAdministrator}) {
			f.Fatalf("the directory %s has lifted the administrator's suspension: %q", con, m.Suspensions())
		}
	})
}

// Of several POSTs of one person on different nodes one makes them.
func TestRaceMake(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		_, by := directoryOf(f, owner, "acme.example")
		for round := range apptest.Rounds(2, 10) {
			name := fmt.Sprintf("ann%d@acme.example", round)
			callers := []doorward.Caller{by(0), by(1), by(2)}
			made := 0
			for _, err := range apptest.Concurrently(8, func(i int) error {
				_, err := f.Node(i).Directories.Make(f.Context(), callers[i%3], said(name, true))
				return err
			}) {
				var refused *scim.Error
				switch {
				case err == nil:
					made++
				case !errors.As(err, &refused) || refused.Status != http.StatusConflict:
					f.Errorf("a POST at the same time ends with %v", err)
				}
			}
			if made != 1 {
				f.Fatalf("%d POSTs have made the person", made)
			}
		}
	})
}

// Somebody who accepts the directory's invitation keeps the id of the POST, and the directory decides on them.
func TestInvitedByDirectory(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		_, other := f.Tenant()
		_, by := directoryOf(f, owner, "acme.example")
		u, err := f.Node(0).Directories.Make(f.Context(), by(0), said(other.User.Email, true))
		f.NoError(err)
		if u.State != directory.Invited {
			f.Fatalf("the person is %q", u.State)
		}
		made := u.Created
		_, err = f.Node(1).Invitations.Accept(f.Context(), other.Caller, f.MailToken(other.User.Email), "")
		f.NoError(err)
		u, err = f.Node(1).Directories.User(f.Context(), by(1), u.ID)
		f.NoError(err)
		if !u.Created.Equal(made) {
			f.Errorf("after the acceptance the User was made at %s, and before at %s", u.Created, made)
		}
		moved, err := f.Node(0).Directories.Make(f.Context(), by(0), said("lea@partner.example", true))
		f.NoError(err)
		joined, err := f.Node(0).Directories.Replace(f.Context(), by(0), moved.ID, said("lea@acme.example", true))
		f.NoError(err)
		if joined.State != "" || !joined.Created.Equal(moved.Created) {
			f.Errorf("a member by a rename was made at %s, and before at %s: %q", joined.Created, moved.Created, joined.State)
		}
		if u.State != "" || u.ID == other.User.ID || !*u.Active {
			f.Errorf("after the acceptance it is %+v", u)
		}
		if _, err = f.Node(2).Directories.User(f.Context(), by(2), other.User.ID); apptest.Code(err) != doorward.CodeNotFound { // see TestFormerID
			f.Errorf("by the id of the account: %v", err)
		}
		f.NoError(f.Node(2).Directories.Remove(f.Context(), by(2), u.ID))
		if !f.IsValid(other.Token) {
			f.Error("the removal has ended a session elsewhere")
		}
	})
}

// OWNERs get one mail, whichever nodes sweep, before a secret ends.
func TestSecretEndsSoon(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		con, days := f.Connection(owner), int64(1)
		_, err := f.Node(0).Directories.AddSecret(f.Context(), owner.Caller, con, &days)
		f.NoError(err)
		for i := range f.Nodes {
			f.NoError(f.Node(i).Directories.Sweep(f.Context()))
		}
		told := slices.DeleteFunc(f.Subjects(owner.User.Email), func(s string) bool { return !strings.Contains(s, "directory") })
		if len(told) != 1 {
			f.Errorf("the OWNER got %q", told)
		}
	})
}
