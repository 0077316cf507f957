package app_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apikey"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/role"
	"github.com/doorward/doorward/app/tenant"
	"github.com/doorward/doorward/app/user"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/storetest"
)

// TestRaceDemotedWhileWaiting: an ADMIN who is demoted while a request waits for a
// lock is refused, whatever the request, and nothing is changed.
func TestRaceDemotedWhileWaiting(t *testing.T) {
	f := apptest.New(t, apptest.Postgres, apptest.NoLimits, time.Now)
	acme, owner := f.Tenant()
	bob := f.Join(owner, doorward.RoleViewer)
	inv, _ := f.Invite(owner, "pending@example.com", doorward.RoleUser)
	brief, err := f.Node(0).Roles.Create(f.Context(), owner.Caller, role.Draft{Name: "BRIEF", Permissions: []string{"message.read"}})
	f.NoError(err)
	key, _, err := f.Node(0).APIKeys.Create(f.Context(), owner.Caller, apikey.Draft{Name: "key", Permissions: []string{"message.read"}})
	f.NoError(err)
	newName, disabled, users, keys := "Renamed", "disabled", f.Node(0).Users, f.Node(0).APIKeys
	actions := map[string]func(by apptest.Person) error{
		"role": func(by apptest.Person) error {
			return users.SetRole(f.Context(), by.Caller, bob.User, doorward.RoleUser)
		},
		"suspend": func(by apptest.Person) error { _, err := users.Suspend(f.Context(), by.Caller, bob.User); return err },
		"rename": func(by apptest.Person) error {
			_, _, err := users.Edit(f.Context(), by.Caller, bob.User, user.Edit{Name: &newName})
			return err
		},
		"nothing": func(by apptest.Person) error {
			_, _, err := users.Edit(f.Context(), by.Caller, bob.User, user.Edit{})
			return err
		},
		"remove": func(by apptest.Person) error {
			_, err := users.Remove(f.Context(), by.Caller, bob.User, user.Handover{}, nil)
			return err
		},
		"sign out": func(by apptest.Person) error { _, err := users.SignOut(f.Context(), by.Caller, bob.User); return err },
		"invite": func(by apptest.Person) error {
			_, err := f.Node(0).Invitations.Send(f.Context(), by.Caller, apptest.Offer("new@example.com", doorward.RoleUser))
			return err
		},
		"resend": func(by apptest.Person) error {
			_, err := f.Node(0).Invitations.Resend(f.Context(), by.Caller, inv.ID)
			return err
		},
		"revoke": func(by apptest.Person) error { return f.Node(0).Invitations.Revoke(f.Context(), by.Caller, inv.ID) },
		"key": func(by apptest.Person) error {
			_, _, err := keys.Create(f.Context(), by.Caller, apikey.Draft{Name: "k", Permissions: []string{"message.read"}})
			return err
		},
		"edit of a key": func(by apptest.Person) error {
			_, _, err := keys.Edit(f.Context(), by.Caller, key.ID, apikey.Edit{Status: &disabled})
			return err
		},
		"rotation of a key": func(by apptest.Person) error {
			return apptest.ErrorOf(keys.Rotate(f.Context(), by.Caller, key.ID, nil))
		},
		"end of a key": func(by apptest.Person) error { return apptest.ErrorOf(keys.Revoke(f.Context(), by.Caller, key.ID)) },
		"new role": func(by apptest.Person) error {
			return apptest.ErrorOf(f.Node(0).Roles.Create(f.Context(), by.Caller, role.Draft{Name: "NEW", Permissions: []string{"message.read"}}))
		},
		"end of a role": func(by apptest.Person) error {
			return apptest.ErrorOf(f.Node(0).Roles.Delete(f.Context(), by.Caller, brief.ID, ""))
		},
		"end of a session": func(by apptest.Person) error {
			return apptest.ErrorOf(f.Node(0).Sessions.EndOf(f.Context(), by.Caller, bob.User, bob.SessionID))
		},
		"settings": func(by apptest.Person) error {
			_, err := f.Node(0).Tenants.Edit(f.Context(), by.Caller, tenant.Edit{Name: &newName})
			return err
		},
	}
	for name, action := range actions {
		admin := f.Join(owner, doorward.RoleAdmin)
		var err error
		done := make(chan struct{})
		f.WhileLocked(func(tx *store.Tx) error {
			_, err := tx.SetUserRole(f.Context(), acme.ID, admin.User.ID, doorward.RoleViewer)
			return errors.Join(err, tx.LockTenant(f.Context(), acme.ID))
		}, func(waitFor func(n int, stop <-chan struct{})) {
			go func() { defer close(done); err = action(admin) }()
			waitFor(1, done) // until one connection waits for a lock
		})
		<-done
		if apptest.Code(err) != doorward.CodeForbidden {
			t.Errorf("%s: %v, want forbidden", name, err)
		}
	}
	wantUnchanged(f, acme, bob, inv)
	if n := f.Int(`SELECT (SELECT count(*) FROM api_key_secrets) + (SELECT count(*) FROM api_keys WHERE status = 'active') + (SELECT count(*) FROM roles)`); n != 3 {
		t.Error("a key or a role was changed")
	}
}

// wantUnchanged fails unless the tenant, the person and the invitation are unchanged.
func wantUnchanged(f *apptest.Fixture, acme doorward.Tenant, bob apptest.Person, inv doorward.Invitation) {
	f.Helper()
	currentBob, err := f.DB.Read().User(f.Context(), acme.ID, bob.User.ID)
	f.NoError(err)
	currentInv, err := f.DB.Read().Invitation(f.Context(), inv.ID)
	f.NoError(err)
	currentAcme, err := f.DB.Read().Tenant(f.Context(), acme.ID)
	f.NoError(err)
	if currentBob.Version() != bob.User.Version() || currentInv.State != doorward.InvitationPending || !currentInv.ExpiresAt.Equal(inv.ExpiresAt) ||
		currentAcme.Name != acme.Name || !f.IsValid(bob.Token) {
		f.Errorf("something was changed: %+v, %+v, %+v, the session is valid: %v", currentBob, currentInv, currentAcme, f.IsValid(bob.Token))
	}
	if _, err := f.DB.Read().PendingInvitation(f.Context(), acme.ID, "new@example.com"); !errors.Is(err, store.ErrNone) {
		f.Errorf("somebody was invited: %v", err)
	}
}

// TestAdministrationIsRecorded: a call is recorded as one event for each thing that it changed,
// with that change. A call that changes nothing isn't recorded, a refused one is.
func TestAdministrationIsRecorded(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		acme, owner := f.Tenant()
		bob := f.Join(owner, doorward.RoleUser)
		inv, _ := f.Invite(owner, "new@example.com", doorward.RoleUser)
		users, invitations, tenants, ctx := f.Node(0).Users, f.Node(0).Invitations, f.Node(0).Tenants, f.Context()
		role, status, name, days, domains := doorward.RoleAdmin, doorward.UserSuspended, "Bob", int64(9), []string{"x.example"}
		allFields := user.Edit{Role: &role, Status: &status, Name: &name}
		wantForbidden := func(err error) error {
			if apptest.Code(err) != doorward.CodeForbidden {
				return fmt.Errorf("%v, want forbidden", err)
			}
			return nil
		}
		for _, action := range []struct {
			do   func() error
			want []string
		}{
			{func() error { _, _, err := users.Edit(ctx, owner.Caller, bob.User, allFields); return err }, []string{
				"done user.rename user name  Bob", "done user.role user role USER ADMIN", "done user.suspend user status active suspended sessionsEnded  1",
			}},
			{func() error { _, _, err := users.Edit(ctx, owner.Caller, bob.User, allFields); return err }, nil},
			{func() error { return users.Resume(ctx, owner.Caller, bob.User) }, []string{"done user.resume user status suspended active"}},
			{func() error { _, err := users.SignOut(ctx, owner.Caller, bob.User); return err }, []string{"done user.signout user"}},
			{func() error { bob = f.SignIn(bob.User.Email, apptest.FirstPassword); return nil }, []string{"done session.open session userAgent  "}},
			// SetRole and Edit first ask for user.manage, so that is the action that is refused.
			{func() error { return wantForbidden(users.SetRole(ctx, bob.Caller, owner.User, doorward.RoleUser)) }, []string{"refused user.manage user reason  forbidden role OWNER USER"}},
			{func() error {
				_, err := users.Remove(ctx, bob.Caller, owner.User, user.Handover{}, nil)
				return wantForbidden(err)
			}, []string{"refused user.remove user reason  forbidden"}},
			{func() error { _, err := invitations.Resend(ctx, owner.Caller, inv.ID); return err }, []string{"done invitation.resend invitation expiresAt"}},
			{func() error { return invitations.Revoke(ctx, owner.Caller, inv.ID) }, []string{"done invitation.revoke invitation status PENDING REVOKED"}},
			{func() error {
				_, err := tenants.Edit(ctx, bob.Caller, tenant.Edit{Settings: map[string]any{"invitationDays": days, doorward.SettingDomains: domains}})
				return err
			}, []string{"done tenant.update tenant invitationDays 30 9 allowedEmailDomains  x.example"}},
			{func() error { _, err := users.Remove(ctx, owner.Caller, bob.User, user.Handover{}, nil); return err }, []string{"done user.remove user email " + bob.User.Email + "  name Bob  role ADMIN  sessionsEnded  1"}},
			{func() error { _, _, err := tenants.Close(ctx, owner.Caller, acme.Name); return err }, []string{"done tenant.close tenant status active closing sessionsEnded  1"}},
		} {
			before, err := storetest.Events(ctx, f.DB.Read(), acme.ID)
			f.NoError(err)
			f.NoError(action.do())
			f.RecordPending()
			after, err := storetest.Events(ctx, f.DB.Read(), acme.ID)
			f.NoError(err)
			if diff := cmp.Diff(action.want, formatEvents(after[len(before):])); diff != "" {
				f.Errorf("recorded (-want +got):\n%s", diff)
			}
		}
	})
}

// formatEvents formats each event as outcome, action, type of the object and changes. It sorts
// the results, since events of one transaction have the same time.
func formatEvents(events []doorward.Event) (all []string) {
	for _, e := range events {
		line := fmt.Sprint(e.Outcome, " ", e.Action, " ", e.Target.Type)
		for _, c := range e.Changes {
			line += " " + c.Field
			if c.Field != "expiresAt" { // the test doesn't know this time
				line += " " + c.From + " " + c.To
			}
		}
		all = append(all, line)
	}
	slices.Sort(all)
	return all
}
