package hosted_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/store"
)

// TestFirstSignIn: who accepts an invitation with a new password is signed in to that tenant. The session is a new
// one, whatever the browser had; somebody else's goes on elsewhere, as after a login.
func TestFirstSignIn(t *testing.T) {
	s := doorwardtest.Start(t)
	acme := s.Tenant("Acme")
	other := acme.Join(ann, "USER").Token()
	b := open(t, s)
	b.setSession(other)
	code := invite(t, s, acme.Owner, "ben@acme.example")
	b.send("/accept", "token", code).is(t, 200, "", "You are signed in as", ann, "signed out here")
	a := b.send("/accept/register", "token", code, "password", fresh, "confirmPassword", fresh)
	a.is(t, 303, "/account")
	set := strings.Join(a.header.Values("Set-Cookie"), "\n")
	if !strings.Contains(set, "JSESSIONID=") || strings.Contains(set, other) || !strings.Contains(set, "doorward_device=") {
		t.Errorf("the answer sets %q", set)
	}
	b.get("/account").is(t, 200, "", "ben@acme.example")
	b.check(map[string]int{other: http.StatusOK}, "after somebody else's first sign-in")

	b = open(t, s)
	b.setSession(absent) // planted: the new session isn't it
	b.send("/accept/register", "token", invite(t, s, acme.Owner, "cid@acme.example"), "password", fresh, "confirmPassword", fresh).is(t, 303, "/account")
	b.get("/account").is(t, 200, "", "cid@acme.example")
	b.check(map[string]int{absent: http.StatusUnauthorized}, "the planted one")

	closed := invite(t, s, acme.Owner, "dan@acme.example")
	if status, body := acme.Owner.Do("PATCH", "/api/v2/tenant", []byte(`{"settings":{"mfa":"required","mfaRoles":["USER"]}}`)); status != 200 {
		t.Fatal(string(body))
	}
	b = open(t, s)
	b.send("/accept/register", "token", closed, "password", fresh, "confirmPassword", fresh, "return", "/docs").is(t, 303, "/login/enrol?return=%2Fdocs")
	b.get("/login/enrol?return=%2Fdocs").is(t, 200, "", "demands a second factor")
	b.get("/account").is(t, 303, "/login?return=%2Faccount")
}

// demandSignOn has people of acme.example sign in by the connection con_acme of the tenant, and by it alone.
func demandSignOn(t *testing.T, s *doorwardtest.Server, tenant *doorwardtest.Tenant) {
	t.Helper()
	err := s.Node.App.Access.Upkeep(t.Context(), func(tx *store.Tx) error {
		_, made := tx.InsertDomain(t.Context(), doorward.Domain{ID: "dom_acme", TenantID: tenant.ID, Name: "acme.example", Token: "t", CreatedAt: tx.Now})
		return errors.Join(
			tx.InsertConnection(t.Context(), doorward.Connection{
				ID: "con_acme", TenantID: tenant.ID, Type: doorward.OpenIDConnect, Name: "Okta", Product: doorward.Okta, Status: doorward.ConnectionActive, CreatedAt: tx.Now,
				JIT: doorward.JITOff, JITRole: doorward.RoleUser, InForce: doorward.ConnectionParameters{ClientAuth: doorward.SecretBasic, EmailFrom: "email"},
			}),
			made, tx.VerifyDomain(t.Context(), "dom_acme", tx.Now.Add(time.Hour)), tx.SetDomainConnection(t.Context(), "dom_acme", "con_acme"),
			tx.SetSSOPolicy(t.Context(), doorward.SSOPolicy{TenantID: tenant.ID, Mode: doorward.SSORequired, Revision: 1, ChangedAt: tx.Now}),
		)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What the login refuses, the first sign-in refuses, too; the account is there.
func TestRefusedFirstSignIn(t *testing.T) {
	s := doorwardtest.Start(t, doorwardtest.LoginLimits(5, 30))
	acme := s.Tenant("Acme")
	code := invite(t, s, acme.Owner, "ben@acme.example")
	demandSignOn(t, s, acme)
	b := open(t, s)
	b.send("/accept", "token", code).is(t, 200, "", `action="/accept/register"`)
	b.send("/accept/register", "token", code, "password", fresh, "confirmPassword", fresh, "return", "/docs").
		is(t, 303, "/api/v2/auth/sso/con_acme/start?loginHint=ben%40acme.example&return=%2Fdocs")
	b.get("/account").is(t, 303, "/login?return=%2Faccount")

	for range 6 { // as somebody who guesses, before there is an account
		b.send("/login", "email", "cid@globex.example", "password", "wrong")
	}
	b.send("/accept/register", "token", invite(t, s, s.Tenant("Globex").Owner, "cid@globex.example"), "password", fresh, "confirmPassword", fresh, "return", "/docs").
		is(t, 303, "/login?done=registered&return=%2Fdocs")
	b.get("/login?done=registered&return=%2Fdocs").is(t, 200, "", "Your account is ready", `value="cid@globex.example"`, `value="/docs"`)
	b.get("/account").is(t, 303, "/login?return=%2Faccount")
}
