package login_test

import (
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/app/proof"
)

// enterFrom signs the person in to a tenant by the word of the sign-on of the person's own.
func enterFrom(f *apptest.Fixture, p apptest.Person, con, tenantID string) (login.Outcome, error) {
	f.Helper()
	proved := proof.Proof{Account: f.Account(p), Issuer: doorward.Issuer(con), TenantID: p.User.TenantID, Methods: []string{"fed"}}
	return f.Node(0).Login.Enter(f.Context(), apptest.Anonymous(0), proved, tenantID)
}

// TestAnotherIssuer: by the word of a tenant's own sign-on a person signs in to that tenant and no other,
// with the second factor of the account where there is one. It can't set one up.
func TestAnotherIssuer(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		_, other := f.Tenant()
		con := f.SignOn(owner, doorward.SSOOptional)
		ann := f.Join(owner, doorward.RoleUser)
		_, code := f.Invite(other, ann.User.Email, doorward.RoleUser)
		_, err := f.Node(0).Invitations.Accept(f.Context(), ann.Caller, code, "")
		f.NoError(err)
		requireIssuer := func(outcome login.Outcome, err error) {
			f.Helper()
			in, err := apptest.SignedIn(outcome, err)
			f.NoError(err)
			if string(in.Session.Issuer) != con || in.Session.TenantID != ann.User.TenantID {
				t.Errorf("the session is of %q in %s", in.Session.Issuer, in.Session.TenantID)
			}
			if got := apptest.Code(apptest.ErrorOf(f.Node(0).Login.Switch(f.Context(), apptest.PersonOf(in).Caller, other.User.TenantID))); got != doorward.CodeSignInRequired {
				t.Errorf("a switch is answered %q", got)
			}
		}

		requireIssuer(enterFrom(f, ann, con, ann.User.TenantID))
		if got := apptest.Code(apptest.ErrorOf(enterFrom(f, ann, con, other.User.TenantID))); got != doorward.CodeSignInRequired {
			t.Errorf("another tenant is answered %q", got)
		}

		f.EditTenant(owner, func(s *doorward.TenantSettings) { s.SecondFactor.Since = time.Unix(1, 0) })
		if got := apptest.Code(apptest.ErrorOf(enterFrom(f, ann, con, ann.User.TenantID))); got != doorward.CodeSignInRequired {
			t.Errorf("without the factor that is demanded: %q", got)
		}
		app := f.Enrol(&ann)
		outcome, err := enterFrom(f, ann, con, ann.User.TenantID)
		f.NoError(err)
		asked, ok := outcome.(login.SecondNeeded)
		if !ok {
			t.Fatalf("with a factor the outcome is %T", outcome)
		}
		requireIssuer(f.Node(0).Login.WithSecond(f.Context(), apptest.Anonymous(0), asked.Token.Reveal(), factor.Answer{Code: app.Code(f.DB.Now())}, false))
	})
}

// TestRaceAnotherIssuer: on each of three nodes, from memory and read again after changes, such a session
// is of its issuer and its tenant, and opens none in another tenant; it never becomes Doorward's own.
func TestRaceAnotherIssuer(t *testing.T) {
	t.Parallel()
	e := apptest.SQLite
	e.Nodes = 3
	f := apptest.New(t, e, apptest.NoLimits, time.Now)
	_, owner := f.Tenant()
	_, other := f.Tenant()
	con := f.SignOn(owner, doorward.SSOOptional)
	ann := f.Join(owner, doorward.RoleUser)
	_, code := f.Invite(other, ann.User.Email, doorward.RoleUser)
	f.NoError(apptest.ErrorOf(f.Node(0).Invitations.Accept(f.Context(), ann.Caller, code, "")))
	in, err := apptest.SignedIn(enterFrom(f, ann, con, ann.User.TenantID))
	f.NoError(err)
	var all sync.WaitGroup
	for node := range f.Nodes {
		all.Go(func() {
			for range apptest.Rounds(20, 200) {
				p, err := f.Node(node).Sessions.Check(f.Context(), in.Token)
				if err != nil || string(p.Issuer) != con || p.TenantID != ann.User.TenantID {
					t.Errorf("node %d: %q in %s, %v", node, p.Issuer, p.TenantID, err)
				}
				by := apptest.Anonymous(node)
				by.Principal = p
				if got := apptest.Code(apptest.ErrorOf(f.Node(node).Login.Switch(f.Context(), by, other.User.TenantID))); got != doorward.CodeSignInRequired {
					t.Errorf("node %d: a switch is answered %q", node, got)
				}
			}
		})
	}
	for range apptest.Rounds(10, 100) { // each makes all nodes read the session again
		for _, role := range []doorward.Role{doorward.RoleViewer, doorward.RoleUser} {
			f.NoError(f.Node(1).Users.SetRole(f.Context(), owner.Caller, ann.User, role))
		}
	}
	all.Wait()
}
