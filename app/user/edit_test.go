package user_test

import (
	"crypto/rand"
	"encoding/base64"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/user"
)

// TestRemoveAsSeen: of a concurrent edit and removal of a member only one succeeds: the
// removal fails if the member has changed since the caller read it.
func TestRemoveAsSeen(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		for round := range apptest.Rounds(15, 40) {
			bob := f.Join(owner, doorward.RoleViewer)
			seen, err := f.Node(round).Users.Get(f.Context(), owner.Caller, bob.User.ID)
			f.NoError(err)
			errs := apptest.Concurrently(2, func(i int) error {
				if i == 0 {
					return f.Node(round).Users.SetRole(f.Context(), owner.Caller, bob.User, doorward.RoleUser)
				}
				_, err := f.Node(round+i).Users.Remove(f.Context(), owner.Caller, bob.User, user.Handover{}, []string{seen.Version()})
				return err
			})
			switch {
			case errs[0] == nil && apptest.Code(errs[1]) == doorward.CodePreconditionFailed:
			case errs[1] == nil && apptest.Code(errs[0]) == doorward.CodeNotFound:
			default:
				f.Fatalf("round %d: the edit ended with %v, the removal with %v", round, errs[0], errs[1])
			}
		}
	})
}

// TestEditIsDecidedBeforehand: an edit is authorised by the roles before it, so one request
// may give up a role and still use it, and may raise its target out of the caller's reach.
func TestEditIsDecidedBeforehand(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		role, status, name := doorward.RoleViewer, doorward.UserSuspended, "Gone"
		self := f.Join(owner, doorward.RoleOwner)
		after, ended, err := f.Node(0).Users.Edit(f.Context(), self.Caller, self.User, user.Edit{Role: &role, Status: &status, Name: &name})
		f.NoError(err)
		if after.Role != role || after.Status != status || after.Name != name || ended.Sessions != 1 || f.IsValid(self.Token) {
			f.Errorf("the edit of oneself results in %+v and ended %+v", after, ended)
		}
		admin, bob := f.Join(owner, doorward.RoleAdmin), f.Join(owner, doorward.RoleUser)
		role = doorward.RoleAdmin
		after, _, err = f.Node(0).Users.Edit(f.Context(), admin.Caller, bob.User, user.Edit{Role: &role, Name: &name})
		f.NoError(err)
		if after.Role != role || after.Name != name {
			f.Errorf("the edit results in %+v", after)
		}
	})
}

// TestRefusedRolesOfAnyLength: a refusal is recorded even if the name of the requested role is
// too long for an index of PostgreSQL.
func TestRefusedRolesOfAnyLength(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		bob := f.Join(owner, doorward.RoleUser)
		random := make([]byte, 6000) // PostgreSQL compresses what repeats
		_, _ = rand.Read(random)
		role := doorward.Role(base64.StdEncoding.EncodeToString(random))
		_, _, err := f.Node(0).Users.Edit(f.Context(), bob.Caller, owner.User, user.Edit{Role: &role})
		f.WantCodes([]error{err}, apptest.Codes{doorward.CodeForbidden: 1})
	})
}

// TestSuspensionOutrunsLogin: once the suspension has returned, no session of the person is
// valid, even if a concurrent login has opened it. Resuming the membership revives none.
func TestSuspensionOutrunsLogin(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		bob := f.Join(owner, doorward.RoleUser)
		account := f.Account(bob)
		for range apptest.Rounds(25, 100) {
			var o apptest.OpenedSessions
			const suspension = 4 // the others sign in
			errs := apptest.Concurrently(5, func(i int) error {
				switch i {
				case suspension:
					_, err := f.Node(0).Users.Suspend(f.Context(), owner.Caller, bob.User)
					return err
				case 0:
					r, err := apptest.SignedIn(f.Node(i).Login.WithPassword(f.Context(), apptest.Anonymous(i), bob.User.Email, apptest.FirstPassword, ""))
					return o.Add(r.Opened, err)
				}
				return o.Add(f.Enter(i, account, bob.User.TenantID))
			})
			f.NoError(errs[suspension])
			f.WantOnly(errs, "", doorward.CodeMembershipSuspended)
			if n := f.CountValid(&o); n > 0 {
				f.Fatalf("%d sessions are valid after the suspension", n)
			}
			f.NoError(f.Node(1).Users.Resume(f.Context(), owner.Caller, bob.User))
			if n := f.CountValid(&o); n > 0 {
				f.Fatalf("%d sessions were revived", n)
			}
		}
	})
}

// A dry run returns what would end and changes no row.
func TestDryRunWritesNothing(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		bob := f.Join(owner, doorward.RoleAdmin)
		f.Invite(bob, f.NewEmail("guest"), doorward.RoleUser)
		f.RecordPending()
		before := f.RowsWithoutNodes()

		role, status := doorward.RoleViewer, doorward.UserSuspended
		after, ended, err := f.Node(0).Users.Edit(f.Context(), owner.Caller, bob.User, user.Edit{Role: &role, Status: &status, DryRun: true})
		f.NoError(err)
		if after.Role != role || after.Status != status || ended.Sessions != 1 || ended.Invitations != 1 {
			f.Errorf("the edit would leave %v, %v and end %+v", after.Role, after.Status, ended)
		}
		ended, err = f.Node(1).Users.TryRemove(f.Context(), owner.Caller, bob.User, user.Handover{}, nil)
		f.NoError(err)
		if ended.Sessions != 1 || ended.Invitations != 1 {
			f.Errorf("the removal would end %+v", ended)
		}
		f.RecordPending()
		if diff := cmp.Diff(before, f.RowsWithoutNodes()); diff != "" {
			f.Errorf("a dry run has written:\n%s", diff)
		}
		if !f.IsValid(bob.Token) {
			f.Error("a dry run has ended a session")
		}
	})
}
