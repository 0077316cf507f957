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
	"github.com/doorward/doorward/app/samlprovider"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/samlsp"
	"github.com/doorward/doorward/internal/samlsp/samltest"
	"github.com/doorward/doorward/internal/seal"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/web/front"
)

// samlSite is a tenant whose connection signs people in by SAML.
type samlSite struct {
	*server
	t        *testing.T
	tenant   *doorwardtest.Tenant
	owner    opt
	provider *samltest.Provider
	con      string
}

// samlSite makes a tenant with a connection that makes members of the people of a proved domain, acme.example.
func (s *server) samlSite(t *testing.T) *samlSite {
	t.Helper()
	acme := s.Tenant("Acme")
	f := &samlSite{server: s, t: t, tenant: acme, owner: as(acme.Owner.Token()), provider: samltest.New("https://idp.acme.example/saml")}
	f.con = f.ask("POST "+connectionsPath, m{"type": "saml", "name": "ADFS", "metadata": string(f.provider.Metadata()), "jit": "domains"}).ok(http.StatusCreated).text("id")
	s.markTested(t, f.con)
	f.ask("PATCH "+connectionsPath+"/"+f.con, m{"status": "active"}).ok(http.StatusOK)
	domain := f.ask("POST "+domainsPath, m{"domain": "acme.example"}).ok(http.StatusCreated)
	s.publish(domain)
	f.ask("POST "+domainsPath+"/"+domain.text("id")+"/verify", nil).ok(http.StatusOK)
	f.ask("PATCH "+domainsPath+"/"+domain.text("id"), m{"connectionId": f.con}).ok(http.StatusOK)
	f.ask("PUT "+ssoPolicyPath, m{"mode": "optional", "guests": "allowed"}, with("If-Match", "*")).ok(http.StatusOK)
	return f
}

func (f *samlSite) ask(route string, body any, opts ...opt) answer {
	f.t.Helper()
	return f.send(f.t, route, body, append(opts, f.owner)...)
}

func (f *samlSite) at(what string) string { return "/api/v2/auth/sso/" + f.con + "/" + what }

// begin begins a sign-in with the query, and returns the form of the provider, and the browser's cookies.
func (f *samlSite) begin(query string, change func(*samltest.Answer)) (form url.Values, cookies []opt) {
	f.t.Helper()
	begun := f.send(f.t, "GET "+f.at("start")+query, nil).ok(http.StatusSeeOther)
	request, err := samltest.Read(begun.header.Get("Location"))
	if err != nil {
		f.t.Fatal(err)
	}
	a := f.provider.Answer(request, f.clock.now())
	a.Attributes = []samltest.Attribute{{Name: "email", Values: []string{"ann@acme.example"}}}
	if change != nil {
		change(&a)
	}
	if form, err = f.provider.Form(a); err != nil {
		f.t.Fatal(err)
	}
	for _, set := range begun.cookies() {
		pair, _, _ := strings.Cut(set, ";")
		cookies = append(cookies, cookie(pair))
	}
	return form, cookies
}

// ofProvider are the headers of a browser that a page of the provider sends here: without cookies. It doesn't ask for pages,
// so that errors are problems.
func ofProvider(r *http.Request) {
	r.Header.Set("Origin", "https://idp.acme.example")
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	r.Header.Set("Sec-Fetch-Dest", "document")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
}

// post posts the form from a page of the provider.
func (f *samlSite) post(form url.Values, opts ...opt) answer {
	f.t.Helper()
	return f.send(f.t, "POST "+f.at("acs"), form.Encode(), append([]opt{ofProvider}, opts...)...)
}

// goOn posts the form, and follows to the callback.
func (f *samlSite) goOn(form url.Values, cookies []opt) answer {
	f.t.Helper()
	a := f.post(form).ok(http.StatusSeeOther)
	to := a.header.Get("Location")
	if !strings.HasPrefix(to, f.at("callback")+"?") || len(a.cookies()) > 0 {
		f.t.Fatalf("acs leads to %s, with the cookies %v", to, a.cookies())
	}
	return f.send(f.t, "GET "+to, nil, append([]opt{with("Sec-Fetch-Site", "cross-site"), with("Sec-Fetch-Dest", "document")}, cookies...)...)
}

// TestSignInBySAML: a form that a page of another origin has the browser post, without cookies, signs in the browser that
// began, until the provider's session ends.
func TestSignInBySAML(t *testing.T) {
	onBoth(t, func(t *testing.T, d *server) {
		f := d.samlSite(t)
		until := d.clock.now().Add(30 * time.Minute).UTC().Truncate(time.Second)
		form, cookies := f.begin("?return=/account", func(a *samltest.Answer) {
			a.SessionNotOnOrAfter = until
			a.Attributes = append(a.Attributes, samltest.Attribute{Name: "http://schemas.microsoft.com/identity/claims/displayname", Values: []string{"Ann Lee"}})
		})
		in := f.goOn(form, cookies).ok(http.StatusSeeOther)
		if to := in.header.Get("Location"); !strings.HasSuffix(to, "/account") {
			t.Errorf("the sign-in leads to %s", to)
		}
		var session opt
		for _, set := range in.cookies() {
			if pair, _, _ := strings.Cut(set, ";"); strings.Contains(pair, "SESSIONID=") {
				session = cookie(pair)
			}
		}
		if session == nil {
			t.Fatalf("there is no session: %v", in.cookies())
		}
		got := d.send(t, "GET /api/v2/auth/session", nil, session).ok(http.StatusOK)
		got.is("user.email", "ann@acme.example").is("user.name", "Ann Lee").is("session.connectionId", f.con).is("session.expiresAt", until.Format(time.RFC3339))
		// Once more, in the same browser and in another one.
		f.goOn(form, cookies).fails(http.StatusBadRequest, "sign_on_state")
		f.goOn(form, nil).fails(http.StatusBadRequest, "sign_on_state")
	}, withProviders())
}

// TestResponsesAtACS: what acs takes and refuses, and what it counts.
func TestResponsesAtACS(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		f := d.samlSite(t)
		form, cookies := f.begin("", nil)
		d.send(t, "GET "+f.at("acs")+"?"+form.Encode(), nil).fails(http.StatusMethodNotAllowed, "method_not_allowed")
		d.send(t, "POST "+f.at("acs"), m{"SAMLResponse": "x"}).fails(http.StatusUnsupportedMediaType, "unsupported_media_type")
		d.send(t, "POST "+f.at("acs"), "SAMLResponse=%zz", ofProvider).fails(http.StatusBadRequest, "invalid_body")
		f.post(url.Values{"SAMLResponse": {strings.Repeat("A", samlsp.FormMax)}}).fails(http.StatusRequestEntityTooLarge, "body_too_large")
		for _, dest := range []string{"iframe", "empty", "image"} {
			f.post(form, func(r *http.Request) { r.Header.Set("Sec-Fetch-Dest", dest) }).fails(http.StatusBadRequest, "sign_on_state")
		}
		// A page of the provider can send a form to nothing else.
		d.send(t, "POST "+f.at("revoke"), form.Encode(), ofProvider).fails(http.StatusForbidden, "cross_origin")
		d.send(t, "POST /api/v2/auth/logout", form.Encode(), ofProvider).fails(http.StatusForbidden, "cross_origin")

		lists := func(check string, form url.Values, cookies []opt) {
			t.Helper()
			f.goOn(form, cookies).fails(http.StatusForbidden, "sign_on_refused")
			if last := f.ask("GET "+connectionsPath+"/"+f.con+"/attempts?limit=1", nil).at("items").([]any)[0].(m); last["check"] != check || last["kind"] != "sign_in" {
				t.Errorf("the protocol has %v, want %s", last, check)
			}
		}
		for _, name := range []string{"SAMLart", "SigAlg"} {
			other, cookies := f.begin("", nil)
			other.Set(name, "x")
			lists("structure", other, cookies)
		}
		other, cookiesOfOther := f.begin("", nil)
		lists("structure", url.Values{"RelayState": other["RelayState"]}, cookiesOfOther)
		other, cookiesOfOther = f.begin("", func(a *samltest.Answer) { a.Audience = "another" })
		lists("audience", other, cookiesOfOther)
		f.goOn(other, nil).fails(http.StatusBadRequest, "sign_on_state") // listed with those without a cookie
		f.goOn(form, cookies).ok(http.StatusSeeOther)
		d.send(t, "GET "+f.at("callback")+"?received=forged", nil, cookies...).fails(http.StatusBadRequest, "sign_on_state")
		d.send(t, "GET "+f.at("callback")+"?state=forged&code=x", nil, cookies...).fails(http.StatusBadRequest, "sign_on_state")
		d.send(t, "POST "+f.at("revoke"), m{"sub_id": m{"format": "email", "email": "ann@acme.example"}}, with("Authorization", "Bearer x.y.z")).fails(http.StatusNotFound, "not_found")
		d.send(t, "POST "+f.at("backchannel-logout"), url.Values{"logout_token": {"x"}}.Encode(), typed("application/x-www-form-urlencoded")).fails(http.StatusNotFound, "not_found")
	}, withProviders())
}

// TestRefusedAtACS: a client address is refused after sixty responses that were.
func TestRefusedAtACS(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		f := d.samlSite(t)
		form, _ := f.begin("", func(a *samltest.Answer) { a.Audience = "another" })
		for range 60 {
			f.post(form).ok(http.StatusSeeOther)
		}
		f.post(form).fails(http.StatusTooManyRequests, "too_many_attempts")
	}, append(defaultLimits, withProviders())...)
}

// TestSAMLWithoutMasterKey: a connection whose key is sealed with a master key that the server doesn't have refuses nobody.
func TestSAMLWithoutMasterKey(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		f := d.samlSite(t)
		form, _ := f.begin("", nil)
		f.ask("PATCH "+connectionsPath+"/"+f.con, m{"encrypt": true}).ok(http.StatusOK)
		err := d.Node.App.Access.Upkeep(t.Context(), func(tx *store.Tx) error {
			key, err := tx.SAMLKey(t.Context(), f.con, store.SAMLDecrypt)
			if err != nil {
				return err
			}
			if _, err = tx.LoseSAMLKey(t.Context(), key.ID); err != nil {
				return err
			}
			key.Sealed = seal.NewKey().Seal(seal.Place{Table: samlprovider.Table, ID: key.ID, Column: "private_sealed"}, []byte("key"))
			_, err = tx.InsertSAMLKey(t.Context(), key)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		f.post(form).fails(http.StatusConflict, "master_key_missing")
		d.send(t, "GET "+f.at("metadata"), nil).fails(http.StatusConflict, "master_key_missing")
	}, withProviders())
}

// TestUnsolicitedResponse: a response that nobody has asked for signs nobody in; a page says to start here.
func TestUnsolicitedResponse(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		f := d.samlSite(t)
		form, cookies := f.begin("", func(a *samltest.Answer) {
			a.InResponseTo, a.AssertionInResponseTo, a.RelayState = "", "", "https://evil.example/"
		})
		for range 61 {
			a := f.goOn(form, cookies).ok(http.StatusOK)
			text := string(a.body)
			if !strings.Contains(text, f.at("start")+`"`) || strings.Contains(text, "evil.example") || len(a.cookies()) > 0 {
				t.Fatalf("the page is %s, with the cookies %v", text, a.cookies())
			}
		}
		if n := f.ask("GET "+connectionsPath+"/"+f.con+"/attempts", nil).at("items").([]any); len(n) != 0 {
			t.Errorf("the protocol has %v", n)
		}
		form, cookies = f.begin("", nil)
		f.goOn(form, cookies).ok(http.StatusSeeOther)
		f.ask("PATCH "+connectionsPath+"/"+f.con, m{"status": "disabled"}).ok(http.StatusOK)
		d.send(t, "GET "+f.at("callback")+"?unsolicited=true", nil).fails(http.StatusNotFound, "not_found")
	}, withProviders())
}

// TestWaitingSignInIsOver: what a provider has said waits for the person's word. If it is worth nothing by then, the page
// says so, with the id of the request, and has no form that can't work any more.
func TestWaitingSignInIsOver(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		f := d.samlSite(t)
		form, cookies := f.begin("", nil)
		cookies = append(cookies, cookie(front.SessionCookie+"="+f.tenant.Owner.Token()))
		asked := f.goOn(form, cookies).ok(http.StatusSeeOther)
		page := "/sso/" + f.con
		if to := asked.header.Get("Location"); !strings.HasSuffix(to, page+"/continue") {
			t.Fatalf("the sign-in of another person leads to %s", to)
		}
		for _, set := range asked.cookies() {
			pair, _, _ := strings.Cut(set, ";")
			cookies = append(cookies, cookie(pair))
		}
		f.ask("PATCH "+connectionsPath+"/"+f.con, m{"status": "disabled"}).ok(http.StatusOK)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.URL+page+"/agree", nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, set := range append(cookies, typed("application/x-www-form-urlencoded"), with("Accept", "text/html"), with("Sec-Fetch-Site", "same-origin")) {
			set(req)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		text := string(body)
		if res.StatusCode != http.StatusForbidden || strings.Contains(text, "{check}") || strings.Contains(text, `action="`+page+`/agree"`) || !strings.Contains(text, res.Header.Get("X-Request-Id")) {
			t.Errorf("the page is %s", text)
		}
	}, withProviders())
}

// TestIdentitySubjects: subjects that were read from different attributes are told apart.
func TestIdentitySubjects(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		f := d.samlSite(t)
		owner := f.tenant.Owner
		if _, err := d.Node.DB.Write(t.Context(), func(tx *store.Tx) error {
			for _, from := range []string{"", "objectidentifier"} {
				of := doorward.ConnectionParameters{Issuer: f.provider.EntityID, SubjectFrom: from}
				added, err := tx.InsertIdentity(t.Context(), doorward.Identity{
					ID: doorward.NewID(doorward.PrefixIdentity), ConnectionID: f.con, TenantID: f.tenant.ID, Issuer: of.IdentityIssuer(), Subject: "ann",
					UserID: owner.ID, CreatedAt: tx.Now, LastUsedAt: tx.Now,
				})
				if err != nil || !added {
					return errors.Join(err, errors.New("there is one already"))
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		from := map[any]bool{}
		for _, item := range f.ask("GET "+connectionsPath+"/"+f.con+"/identities", nil).ok(http.StatusOK).at("items").([]any) {
			one := item.(m)
			from[one["subjectFrom"]] = one["issuer"] == f.provider.EntityID && one["subject"] == "ann"
		}
		if len(from) != 2 || !from[nil] || !from["objectidentifier"] {
			t.Errorf("the identities are by %v", from)
		}
	}, withProviders())
}
