package invite_test

import (
	"errors"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/key"
	"github.com/doorward/doorward/app/role"
	"github.com/doorward/doorward/store"
)

// TestAcceptedWhileItsServiceIsRevoked: an acceptance that waits for the revocation of the service
// key that invited says that the invitation is revoked, and leaves no member.
func TestAcceptedWhileItsServiceIsRevoked(t *testing.T) {
	f := apptest.New(t, apptest.Postgres, apptest.NoLimits, time.Now)
	acme, _ := f.Tenant()
	_, invitee := f.Tenant()
	bearer, err := f.Node(0).Keys.CreateService(f.Context(), apptest.Operator, key.ServiceDraft{Name: "signup", May: []string{"user.invite"}})
	f.NoError(err)
	service, err := f.Node(0).Keys.Check(f.Context(), apptest.Anonymous(0), bearer.Reveal())
	f.NoError(err)
	inTenant, err := f.Node(0).Keys.InTenant(f.Context(), service, acme.ID)
	f.NoError(err)
	_, token := f.Invite(apptest.Person{Caller: inTenant}, invitee.User.Email, doorward.RoleUser)
	var refused error
	done := make(chan struct{})
	f.WhileLocked(func(tx *store.Tx) error { // as package key revokes the key
		_, err := tx.DeleteServiceKey(f.Context(), service.ID)
		return errors.Join(err, apptest.ErrorOf(tx.RevokeInvitationsOfService(f.Context(), service.ID)))
	}, func(waitFor func(int, <-chan struct{})) {
		go func() {
			defer close(done)
			_, refused = f.Node(0).Invitations.Accept(f.Context(), invitee.Caller, token, "")
		}()
		waitFor(1, done)
	})
	<-done
	f.WantCodes([]error{refused}, apptest.Codes{doorward.CodeInvitationRevoked: 1})
	if n := f.Int(`SELECT count(*) FROM memberships WHERE tenant_id = $1 AND user_id = $2`, acme.ID, invitee.User.ID); n != 0 {
		t.Error("the invitee is a member")
	}
}

// TestServiceIsJudgedAgain: an invitation that a service sent can be accepted only while its key
// could send it.
func TestServiceIsJudgedAgain(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		other, _ := f.Tenant()
		for _, test := range []struct {
			change, permission string        // what is done to the key, and what the role gets
			code               doorward.Code // empty: it is accepted
		}{
			{`SELECT 1`, "audit.read", ""},
			{`UPDATE service_keys SET may = 'user.invite user.read'`, "audit.read", ""},
			{`UPDATE service_keys SET may = 'user.read'`, "audit.read", doorward.CodeInvitationRevoked},
			{`UPDATE service_keys SET tenants = '` + other.ID + `'`, "audit.read", doorward.CodeInvitationRevoked},
			{`SELECT 1`, "tenant.destroy", doorward.CodeInvitationRevoked}, // above an ADMIN
		} {
			acme, owner := f.Tenant()
			_, invitee := f.Tenant()
			desk, err := f.Node(0).Roles.Create(f.Context(), owner.Caller, role.Draft{Name: "DESK", Permissions: []string{"tenant.read"}})
			f.NoError(err)
			bearer, err := f.Node(0).Keys.CreateService(f.Context(), apptest.Operator, key.ServiceDraft{Name: acme.ID, May: []string{"user.invite", "user.read"}})
			f.NoError(err)
			service, err := f.Node(0).Keys.Check(f.Context(), apptest.Anonymous(0), bearer.Reveal())
			f.NoError(err)
			inTenant, err := f.Node(0).Keys.InTenant(f.Context(), service, acme.ID)
			f.NoError(err)
			_, token := f.Invite(apptest.Person{Caller: inTenant}, invitee.User.Email, "DESK")
			f.Exec(test.change)
			_, _, err = f.Node(0).Roles.Edit(f.Context(), owner.Caller, desk.ID, role.Edit{Permissions: &[]string{test.permission}})
			f.NoError(err)
			_, err = f.Node(0).Invitations.Accept(f.Context(), invitee.Caller, token, "")
			if got := apptest.Code(err); got != test.code {
				t.Errorf("after %s, and with %s, the acceptance is %q: %v, want %q", test.change, test.permission, got, err, test.code)
			}
		}
	})
}
