package hosted_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/store"
)

// TestStepUpByAConnectionOnPages: the page leads to the provider and back, and takes the password for what
// belongs to the account. Without scripts, too.
func TestStepUpByAConnectionOnPages(t *testing.T) {
	s := doorwardtest.Start(t)
	acme := s.Tenant("Acme")
	acme.Join(ann, "USER")
	err := s.Node.App.Access.Upkeep(t.Context(), func(tx *store.Tx) error {
		return errors.Join(
			tx.InsertConnection(t.Context(), doorward.Connection{
				ID: "con_acme", TenantID: acme.ID, Type: doorward.OpenIDConnect, Name: "Okta", Product: doorward.Okta, Status: doorward.ConnectionActive, CreatedAt: tx.Now,
				JIT: doorward.JITOff, JITRole: doorward.RoleUser, InForce: doorward.ConnectionParameters{ClientAuth: doorward.SecretBasic, EmailFrom: "email"},
			}),
			tx.SetSSOPolicy(t.Context(), doorward.SSOPolicy{TenantID: acme.ID, Mode: doorward.SSOOptional, Revision: 1, ChangedAt: tx.Now}),
		)
	})
	if err != nil {
		t.Fatal(err)
	}
	account, err := s.Node.DB.Read().AccountByEmail(t.Context(), ann)
	if err != nil {
		t.Fatal(err)
	}
	proved := proof.Proof{Account: account, Issuer: "con_acme", TenantID: acme.ID, Methods: []string{doorward.MethodFederated}}
	outcome, err := s.Node.App.Login.Enter(t.Context(), doorward.Caller{IP: "127.0.0.1"}, proved, acme.ID)
	if err != nil {
		t.Fatal(err)
	}
	b := open(t, s)
	b.setSession(outcome.(login.SignedIn).Token.Reveal())
	s.Advance(11 * time.Minute)
	b.get("/step-up?return=/account/erase").is(t, 200, "", "Sign in again at your organisation", `name="password"`, `value="/account/erase"`)
	to := b.send("/step-up", "with", "sso", "return", "/account/erase")
	start := s.URL + "/api/v2/auth/sso/con_acme/start?stepup="
	if to.status != 303 || !strings.HasPrefix(to.to, start) || !strings.HasSuffix(to.to, "&return=%2Faccount%2Ferase") {
		t.Errorf("the form leads to %d %s", to.status, to.to)
	}
	b.send("/step-up", "with", "password", "password", "wrong").is(t, 422, "")
	b.send("/step-up", "with", "password", "password", secret).is(t, 303, "/step-up?done=proved")
	b.get("/account/security").is(t, 403, "", "Sign in with your password")
}
