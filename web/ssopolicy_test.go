package web_test

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/store"
)

const ssoPolicyPath = "/api/v2/sso/policy"

// connect gives the tenant an active connection with a proved domain, and returns its id.
func (s *server) connect(t *testing.T, tenant *doorwardtest.Tenant, domain string) string {
	t.Helper()
	id, domainID := doorward.NewID(doorward.PrefixConnection), doorward.NewID(doorward.PrefixDomain)
	err := s.Node.App.Access.Upkeep(t.Context(), func(tx *store.Tx) error {
		_, made := tx.InsertDomain(t.Context(), doorward.Domain{ID: domainID, TenantID: tenant.ID, Name: domain, Token: domainID, CreatedAt: tx.Now})
		inserted := tx.InsertConnection(t.Context(), doorward.Connection{
			ID: id, TenantID: tenant.ID, Type: doorward.OpenIDConnect, Name: "Okta", Product: doorward.Okta, Status: doorward.ConnectionDraft, CreatedAt: tx.Now,
			JIT: doorward.JITOff, JITRole: doorward.RoleUser, InForce: doorward.ConnectionParameters{ClientAuth: doorward.SecretBasic, EmailFrom: "email"},
		})
		_, status := tx.SetConnectionStatus(t.Context(), id, doorward.ConnectionActive)
		return errors.Join(made, inserted, status, tx.VerifyDomain(t.Context(), domainID, tx.Now), tx.SetDomainConnection(t.Context(), domainID, id))
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestSSOPolicy: a demand from outside, from its first refusal to the confirmation.
func TestSSOPolicy(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann := acme.Join("ann@acme.example", "USER")
		owner := acme.Owner.Token()
		put := func(token, mode, guests string, opts ...opt) answer {
			t.Helper()
			return d.send(t, "PUT "+ssoPolicyPath, m{"mode": mode, "guests": guests}, append(opts, as(token), with("If-Match", "*"))...)
		}
		d.send(t, "GET "+ssoPolicyPath, nil, as(owner)).ok(http.StatusOK).is("mode", "off")
		put(owner, "required", "allowed").fails(http.StatusConflict, "connection_needed")
		con := d.connect(t, acme, "acme.example")
		put(owner, "required", "allowed").fails(http.StatusConflict, "no_way_back")
		discover := func() answer { return d.send(t, "POST /api/v2/auth/discover", m{"email": ann.Email}) }
		if got := discover().ok(http.StatusOK).text("startUrl"); got != "" {
			t.Errorf("with the mode off the sign-on is at %q", got)
		}
		d.enrolTOTP(t, owner)
		put(owner, "required", "allowed").ok(http.StatusOK)
		if d.send(t, "GET "+ssoPolicyPath, nil, as(owner)).ok(http.StatusOK).text("confirmBy") == "" {
			t.Error("the demand isn't provisional")
		}
		start := d.URL + "/api/v2/auth/sso/" + con + "/start"
		d.login(t, ann.Email, password).fails(http.StatusForbidden, "sso_required").is("connectionId", con).is("startUrl", start)
		d.login(t, ann.Email, "another").fails(http.StatusUnauthorized, "invalid_credentials")
		discover().ok(http.StatusOK).is("connectionId", con).is("startUrl", start)
		d.send(t, "GET /api/v2/sso/readiness", nil, as(owner)).ok(http.StatusOK)
		d.send(t, "POST "+ssoPolicyPath+"/confirm", nil, as(owner)).fails(http.StatusForbidden, "sign_in_required")
		d.login(t, acme.Owner.Email, password).fails(http.StatusForbidden, "mfa_required")
	})
}

// postLogin sends the form of a page as a browser without scripts does.
func (s *server) postLogin(t *testing.T, path string, form url.Values) (status int, location, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", s.URL)
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header.Get("Location"), string(text)
}

// TestSSOLoginPage: an address of a domain whose tenant demands its sign-on leads there, whatever the password;
// other passwords stay reachable.
func TestSSOLoginPage(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		acme.Join("ann@acme.example", "USER")
		con := d.connect(t, acme, "acme.example")
		setMode := func(mode doorward.SSOMode) {
			t.Helper()
			err := d.Node.App.Access.Upkeep(t.Context(), func(tx *store.Tx) error {
				return tx.SetSSOPolicy(t.Context(), doorward.SSOPolicy{TenantID: acme.ID, Mode: mode, Revision: 1, ChangedAt: tx.Now})
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		post := func(form url.Values) (status int, location, body string) {
			t.Helper()
			return d.postLogin(t, "/login?return=/docs", form)
		}
		start := "/api/v2/auth/sso/" + con + "/start?"
		setMode(doorward.SSORequired)
		for _, typed := range []string{"", password, "wrong"} {
			if status, location, _ := post(url.Values{"email": {"ann@acme.example"}, "password": {typed}}); status != http.StatusSeeOther || !strings.Contains(location, start) ||
				!strings.Contains(location, "loginHint=ann%40acme.example") || !strings.Contains(location, "return=%2Fdocs") {
				t.Errorf("with the password %q: %d to %q", typed, status, location)
			}
		}
		if status, _, body := post(url.Values{"email": {"ann@acme.example"}, "password": {password}, "own": {"1"}}); status != http.StatusForbidden || !strings.Contains(body, start) {
			t.Errorf("with the own account: %d", status)
		}
		setMode(doorward.SSOOptional)
		if status, _, body := post(url.Values{"email": {"ann@acme.example"}, "password": {""}}); status != http.StatusOK || !strings.Contains(body, "Continue with Okta") || !strings.Contains(body, `name="password"`) {
			t.Errorf("where it is optional: %d", status)
		}
		if status, location, _ := post(url.Values{"email": {"ann@acme.example"}, "password": {""}, "signon": {"1"}}); status != http.StatusSeeOther || !strings.Contains(location, start) {
			t.Errorf("asked for: %d to %q", status, location)
		}
		if status, location, _ := post(url.Values{"email": {"ann@acme.example"}, "password": {password}}); status != http.StatusSeeOther || strings.Contains(location, "/sso/") {
			t.Errorf("with the password: %d to %q", status, location)
		}
	})
}
