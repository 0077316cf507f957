package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/store"
)

// enterFrom signs the person in by the word of another issuer, and returns the session's token.
func (s *server) enterFrom(t *testing.T, who *doorwardtest.Person, tenantID string, issuer doorward.Issuer) string {
	t.Helper()
	s.letSignIn(t, tenantID, string(issuer))
	account, err := s.Node.DB.Read().AccountByEmail(t.Context(), who.Email)
	if err != nil {
		t.Fatal(err)
	}
	outcome, err := s.Node.App.Login.Enter(t.Context(), doorward.Caller{IP: "127.0.0.1"}, proof.Proof{Account: account, Issuer: issuer, TenantID: tenantID, Methods: []string{"fed"}}, tenantID)
	if err != nil {
		t.Fatal(err)
	}
	return outcome.(login.SignedIn).Token.Reveal()
}

// letSignIn makes the connection sign people in, with the mode optional unless the tenant demands its sign-on.
func (s *server) letSignIn(t *testing.T, tenantID, connectionID string) {
	t.Helper()
	err := s.Node.App.Access.Upkeep(t.Context(), func(tx *store.Tx) error {
		isActive, err := tx.ConnectionIsActive(t.Context(), connectionID, tenantID)
		if err == nil && !isActive {
			err = tx.InsertConnection(t.Context(), doorward.Connection{
				ID: connectionID, TenantID: tenantID, Type: doorward.OpenIDConnect, Name: "Okta", Product: doorward.Okta, Status: doorward.ConnectionActive, CreatedAt: tx.Now,
				JIT: doorward.JITOff, JITRole: doorward.RoleUser, InForce: doorward.ConnectionParameters{ClientAuth: doorward.SecretBasic, EmailFrom: "email"},
			})
		}
		if err != nil {
			return err
		}
		policy, err := tx.SSOPolicy(t.Context(), tenantID, tx.Now)
		if err != nil || policy.SignsIn() {
			return err
		}
		return tx.SetSSOPolicy(t.Context(), doorward.SSOPolicy{TenantID: tenantID, Mode: doorward.SSOOptional, Revision: policy.Revision + 1, ChangedAt: tx.Now})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestAnotherIssuer: routes that act on the account, or on its other tenants, refuse a session that a
// tenant's own sign-on has opened with sign_in_required. All other routes accept it.
func TestAnotherIssuer(t *testing.T) {
	ofAccount := map[string]any{ // with the body of a request that takes more than the sample's
		"POST /api/v2/auth/change-password": nil, "POST /api/v2/auth/change-email": nil,
		"POST /api/v2/auth/factors/totp": m{}, "POST /api/v2/auth/factors/passkey/begin": m{}, "POST /api/v2/auth/factors/recovery": nil,
		"PATCH /api/v2/auth/factors/{id}": nil, "DELETE /api/v2/auth/factors/{id}": nil, "DELETE /api/v2/auth/factors/reset": nil,
		"GET /api/v2/auth/account/export": nil, "DELETE /api/v2/auth/account": nil,
		"GET /api/v2/auth/factors":        nil,
		"POST /api/v2/auth/switch-tenant": nil, "DELETE /api/v2/auth/memberships/{tenantId}": nil,
		"POST /api/v2/auth/accept-invitation": m{},
	}
	onSQLite(t, func(t *testing.T, d *server) {
		acme, _, ann := d.inTwoTenants(t, "OWNER", "OWNER")
		ofAccount["POST /api/v2/auth/accept-invitation"] = m{"token": d.invite(t, d.Tenant("Initech").Owner, ann.Email, "USER")}
		for _, e := range d.operations(t, checkPath) {
			body, isOfAccount := ofAccount[e.route.Method+" "+e.route.Path]
			if !isOfAccount && e.Who != "OWNER" {
				continue
			}
			if body == nil {
				body = e.Body
			}
			a := d.try(t, e, body, as(d.enterFrom(t, ann, acme.ID, "con_acme"))) // a new one, since some end it
			if got := a.text("code") == "sign_in_required"; got != isOfAccount {
				t.Errorf("%s is answered %d %s", e.Request, a.status, a.text("code"))
			}
		}
	})
}

// TestStepUpByAConnection: the refusal names what counts, and its challenge takes that alone. The session
// goes on to name the connection; what the provider said is shown beside.
func TestStepUpByAConnection(t *testing.T) {
	onBoth(t, func(t *testing.T, d *server) {
		methods := func(a answer) string { return fmt.Sprint(a.at("methods")) }
		acme := d.Tenant("Acme")
		ann := acme.Join("ann@acme.example", "OWNER")
		token := d.enterFrom(t, ann, acme.ID, "con_acme")
		d.Advance(20 * time.Minute)
		webhook := m{"url": "https://hooks.example.com/doorward", "events": []string{"*"}}
		refused := d.send(t, "POST /api/v2/webhooks", webhook, as(token)).fails(http.StatusForbidden, "step_up_required")
		if got := methods(refused); got != "[sso]" || refused.text("startUrl") != d.URL+"/api/v2/auth/sso/con_acme/start?stepup="+refused.text("challenge") {
			t.Errorf("methods %v, startUrl %s", got, refused.text("startUrl"))
		}
		d.send(t, "POST /api/v2/auth/step-up/finish", m{"challenge": refused.text("challenge"), "password": password}, as(token)).invalid("/password", "wrong")

		bob := acme.Join("bob@acme.example", "USER")
		raise := func(token string) answer {
			return d.send(t, "PATCH /api/v2/users/"+bob.ID, m{"role": "OWNER"}, as(token))
		}
		refused = raise(token).fails(http.StatusForbidden, "step_up_required")
		if got := methods(refused); got != "[password]" || refused.at("startUrl") != nil {
			t.Errorf("methods %v, startUrl %v", got, refused.at("startUrl"))
		}
		proved := d.send(t, "POST /api/v2/auth/step-up/finish", m{"challenge": refused.text("challenge"), "password": password}, as(token)).ok(http.StatusOK)
		token = proved.text("token")
		if proved.text("session.connectionId") != "con_acme" || proved.text("session.authAt") != proved.text("session.createdAt") {
			t.Errorf("the session is %v", proved.at("session"))
		}
		raise(token).ok(http.StatusOK)
		d.send(t, "POST /api/v2/webhooks", webhook, as(token)).fails(http.StatusForbidden, "step_up_required")
		begun := d.send(t, "POST /api/v2/auth/step-up/begin", nil, as(token)).ok(http.StatusOK)
		if got := methods(begun); got != "[sso password]" || begun.text("startUrl") == "" {
			t.Errorf("methods %v, startUrl %q", got, begun.text("startUrl"))
		}
	})
}

// TestAccountNamesTheConnection: /account says which connection vouches for a session, in that session and in an
// own one.
func TestAccountNamesTheConnection(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann := acme.Join("ann@acme.example", "USER")
		const path = "/account?tab=sessions"
		if page := d.pageHTML(t, path, as(ann.Token())); strings.Contains(page, "Okta") {
			t.Error("an own session is said to be by a connection")
		}
		byOkta := d.enterFrom(t, ann, acme.ID, "con_acme")
		for _, token := range []string{byOkta, ann.Token()} {
			if page := d.pageHTML(t, path, as(token)); strings.Count(page, "Okta") != 1 {
				t.Errorf("the connection isn't named once: %s", page)
			}
		}
	})
}
