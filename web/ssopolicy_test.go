package web_test

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

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
		d.send(t, "PUT "+ssoPolicyPath, m{"mode": "off", "guests": "allowed"}, as(owner)).fails(http.StatusPreconditionRequired, "precondition_required")
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

// identify gives the member the subject of the site's provider.
func (f *signOnSite) identify(userID, subject string) {
	f.t.Helper()
	err := f.Node.App.Access.Upkeep(f.t.Context(), func(tx *store.Tx) error {
		_, err := tx.InsertIdentity(f.t.Context(), doorward.Identity{
			ID: doorward.NewID(doorward.PrefixIdentity), ConnectionID: f.con, TenantID: f.tenant.ID, Issuer: f.provider.Issuer(), Subject: subject,
			UserID: userID, CreatedAt: tx.Now, LastUsedAt: tx.Now,
		})
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

// TestSSOConfirmedInTheConsole: an OWNER's own session can't confirm a demand, nor can one that the provider has
// opened before. The page leads to the provider, and the session that comes back from there confirms.
func TestSSOConfirmedInTheConsole(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		f := d.signOnSite(t)
		d.enrolTOTP(t, f.tenant.Owner.Token())
		f.identify(f.tenant.Owner.ID, "owner")
		f.says("owner", f.tenant.Owner.Email)
		own := as(f.tenant.Owner.Token())
		before := cookie(sessionOf(f.begin()().ok(http.StatusSeeOther)))
		d.Advance(time.Second)
		f.ask("PUT "+ssoPolicyPath, m{"mode": "required", "guests": "allowed"}, with("If-Match", "*")).ok(http.StatusOK)
		confirm := func(who opt) (status int, location, page string) {
			t.Helper()
			version := strings.Trim(f.ask("GET "+ssoPolicyPath, nil).ok(http.StatusOK).header.Get("ETag"), `"`)
			return d.postForm(t, "/console/sso/policy/confirm", url.Values{"version": {version}}, who, with("Accept", "text/html"))
		}
		leads := `href="` + d.URL + f.signOnPath("start") + `?return=%2Fconsole%2Fsso%2Fpolicy"`
		if status, _, page := confirm(own); status != http.StatusForbidden || !strings.Contains(page, leads) || strings.Contains(page, "/console/sso/policy/confirm") {
			t.Errorf("an own session is answered %d %s", status, page)
		}
		if status, _, _ := confirm(before); status != http.StatusForbidden {
			t.Errorf("a session from before the demand is answered %d", status)
		}
		if d.confirmBy(t, own) == "" {
			t.Fatal("the demand is confirmed")
		}
		after := cookie(sessionOf(f.begin()().ok(http.StatusSeeOther)))
		if status, location, page := confirm(after); status != http.StatusSeeOther || !strings.Contains(location, "/console/sso/policy?done=ssopolicy-confirm") {
			t.Errorf("the provider's session is answered %d to %q %s", status, location, page)
		}
		if d.confirmBy(t, after) != "" {
			t.Error("the demand is still provisional")
		}
	}, withProviders())
}

// sessionOf returns the cookie with the session that was opened.
func sessionOf(a answer) string {
	for _, set := range a.cookies() {
		if pair, _, _ := strings.Cut(set, ";"); strings.HasPrefix(pair, "JSESSIONID=") {
			return pair
		}
	}
	return ""
}

// confirmBy returns until when the demand for sign-on is provisional; empty: it isn't.
func (s *server) confirmBy(t *testing.T, who opt) string {
	t.Helper()
	return s.send(t, "GET "+ssoPolicyPath, nil, who).ok(http.StatusOK).text("confirmBy")
}

// postForm sends the form of a page as a browser without scripts does.
func (s *server) postForm(t *testing.T, path string, form url.Values, opts ...opt) (status int, location, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", s.URL)
	for _, o := range opts {
		o(req)
	}
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
			return d.postForm(t, "/login?return=/docs", form)
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
