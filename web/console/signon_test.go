package console_test

import (
	"crypto/tls"
	"html"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/dnstest"
	"github.com/doorward/doorward/internal/oidcrp/oidctest"
	"github.com/doorward/doorward/node"
)

// signOn is a fixture with a provider and a name server.
type signOn struct {
	fixture
	provider *oidctest.Provider
	dns      *dnstest.Server
}

const providersSecret = "a secret of the provider"

func newSignOn(t *testing.T) signOn {
	t.Helper()
	s := signOn{provider: oidctest.New(""), dns: dnstest.New(t)}
	t.Cleanup(s.provider.Close)
	trusted, ok := s.provider.Client().Transport.(*http.Transport)
	if !ok {
		t.Fatal("the provider's client has no certificates")
	}
	s.fixture = newFixture(t, func(c *node.Config) {
		c.DNSServer = s.dns.Addr
		c.Connections.Allow = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		c.Connections.Authorities = tlsOf(trusted).RootCAs
	})
	s.provider.Change(func(p *oidctest.Settings) {
		p.Apps = []oidctest.App{{ID: "doorward", Secrets: []string{providersSecret}}}
		p.Person = oidctest.Person{Subject: "ann-1", Email: "user@acme.example", IsVerified: true}
		p.Now = s.Node.App.Now
	})
	return s
}

func tlsOf(t *http.Transport) *tls.Config { return t.TLSClientConfig }

var (
	connectionLink = regexp.MustCompile(`/console/sso/connections/(con_[a-z0-9]+)`)
	domainLink     = regexp.MustCompile(`/console/sso/domains/(dom_[a-z0-9]+)`)
	testLink       = regexp.MustCompile(`href="([^"]*/start\?test=tst_[a-z0-9]+)"`)
	tokenOf        = regexp.MustCompile(`(doorward-verification=[a-z0-9]+)`)
)

// made adds a connection with the secret of the provider, and returns the path of its page.
func (s signOn) made(b *browser) string {
	b.Helper()
	page := b.submit("/console/sso/new", url.Values{"product": {"other"}, "name": {"Acme <ID>"}}, "The connection is added, as a draft", "In your provider’s console", "/callback")
	at := "/console/sso/connections/" + b.findOn(connectionLink, page)
	b.submit(at+"/edit", s.parameters(b, at, nil), "The connection is saved")
	b.submit(at+"/secrets?tab=secrets", url.Values{"clientSecret": {providersSecret}, "expiresAt": {s.Node.App.Now().AddDate(0, 0, 12).Format(time.DateOnly)}}, "The client secret is saved", "ider</code>", "The client secret ends on")
	return at
}

// parameters is the form of the connection, with some fields changed.
func (s signOn) parameters(b *browser, at string, change map[string]string) url.Values {
	b.Helper()
	form := url.Values{
		"name": {"Acme <ID>"}, "issuer": {s.provider.Issuer()}, "clientId": {"doorward"}, "clientAuth": {"secret_basic"}, "emailFrom": {"email"},
		"version": {b.version(b.get(at, http.StatusOK))},
	}
	for name, value := range change {
		form.Set(name, value)
	}
	return form
}

// test runs a test of the connection, and returns the page with its result.
func (s signOn) test(b *browser, at string) string {
	b.Helper()
	res, body := b.ask("POST", at+"/test?tab=test", url.Values{})
	if res.StatusCode != http.StatusSeeOther {
		b.Fatalf("the test: %d\n%s", res.StatusCode, body)
	}
	result := res.Header.Get("Location")
	page := b.get(result, http.StatusOK, "Sign in to test", "Show the result")
	s.signIn(b, html.UnescapeString(b.findOn(testLink, page)))
	return b.get(result, http.StatusOK)
}

// signIn follows the address of a start to the provider and back, in the browser, and returns the answer of
// the callback.
func (s signOn) signIn(b *browser, address string) *http.Response {
	b.Helper()
	start, err := url.Parse(address)
	if err != nil {
		b.Fatal(err)
	}
	res, body := b.ask("GET", start.RequestURI(), nil)
	if res.StatusCode != http.StatusSeeOther {
		b.Fatalf("the start: %d\n%s", res.StatusCode, body)
	}
	cookies := []string{"JSESSIONID=" + b.token}
	for _, c := range res.Cookies() {
		if c.Value != "" {
			cookies = append(cookies, c.Name+"="+c.Value)
		}
	}
	callback, err := s.provider.SignIn(res.Header.Get("Location"))
	if err != nil {
		b.Fatal(err)
	}
	res, body = b.ask("GET", callback.RequestURI(), nil, "Cookie", strings.Join(cookies, "; "))
	if res.StatusCode != http.StatusSeeOther {
		b.Fatalf("the callback: %d\n%s", res.StatusCode, body)
	}
	return res
}

// opened enables the connection, with a proved domain, for people with an address there.
func (s signOn) opened(b *browser, at string) {
	b.Helper()
	s.test(b, at)
	b.submit(at+"/enable", url.Values{})
	page := b.submit("/console/sso/domains", url.Values{"domain": {"acme.example"}})
	domain := "/console/sso/domains/" + b.findOn(domainLink, page)
	s.dns.TXT("_doorward.acme.example", b.findOn(tokenOf, page))
	page = b.submit(domain+"/verify", url.Values{})
	b.submit(domain+"/connection", url.Values{"connectionId": {strings.TrimPrefix(at, "/console/sso/connections/")}, "version": {b.version(page)}})
	policy := url.Values{"mode": {"optional"}, "guests": {"allowed"}, "minutes": {"30"}, "version": {b.version(b.get("/console/sso/policy", http.StatusOK))}}
	b.submit("/console/sso/policy", policy, "The policy is saved")
}

// An OWNER adds a connection, sees why a test failed, enables what has passed one, changes it without an
// interruption, and ends it.
func TestConnectionPages(t *testing.T) {
	s := newSignOn(t)
	b := s.browserOf(t, "OWNER")
	b.get("/console/sso", http.StatusOK, "There are no connections yet")
	b.post("/console/sso/new", url.Values{"product": {"other"}, "name": {""}}, http.StatusUnprocessableEntity, "Enter a name")
	at := s.made(b)
	b.get(at, http.StatusOK, "Acme &lt;ID&gt;", ">Draft<", ">Not tested<", `href="`+at+`?tab=test"`)
	b.get("/console/sso", http.StatusOK, "1 connection<", "Acme &lt;ID&gt;", ">Not tested<", ">Secret ends soon<", `data-kind="draft"`)
	b.get(at+"/enable", http.StatusOK, "has not passed a test")
	b.post(at+"/enable", url.Values{}, http.StatusConflict, "has not passed a test")
	b.post(at+"/edit", s.parameters(b, at, map[string]string{"issuer": "https://login.microsoftonline.com/common/v2.0"}), http.StatusUnprocessableEntity, "every directory of the world")
	stale := s.parameters(b, at, map[string]string{"version": "old", "emailFrom": "mail"})
	b.post(at+"/edit", stale, http.StatusPreconditionFailed, "Somebody else has changed this connection", `value="mail"`)

	s.provider.Change(func(p *oidctest.Settings) { p.Lies.Claims = func(c map[string]any) { c["aud"] = "somebody else" } })
	page := s.test(b, at)
	for _, want := range []string{"The test has not passed", "the client that the token is for", "somebody else", "Compare the client ID", ">Not in order<"} {
		if !strings.Contains(page, want) {
			t.Errorf("a failed test doesn't show %q:\n%s", want, page)
		}
	}
	b.get(at+"?tab=protocol", http.StatusOK, "<strong>Test</strong>: the client that the token is for", ">Refused<", "req_")
	s.provider.Change(func(p *oidctest.Settings) { p.Lies.Claims = nil })
	if page = s.test(b, at); !strings.Contains(page, "The test has passed") || !strings.Contains(page, "&#34;sub&#34;: &#34;ann-1&#34;") {
		t.Errorf("a passed test shows\n%s", page)
	}
	b.get(at+"/enable", http.StatusOK, "People sign in by it", "the policy is off")
	b.submit(at+"/enable", url.Values{}, "The connection is enabled", "Nobody signs in by a connection yet", `href="/console/sso/policy"`)

	b.submit(at+"/edit", s.parameters(b, at, map[string]string{"emailFrom": "mail"}), "saved and waits", "A change waits", "<strong><bdi>mail</bdi></strong>", "the same")
	b.get(at+"/switch", http.StatusConflict)
	b.submit(at+"/edit", s.parameters(b, at, map[string]string{"emailFrom": "email", "name": "Acme"}), "saved and waits")
	s.test(b, at)
	b.get(at+"/switch", http.StatusOK, "Switch to what was tested?")
	lacks(t, b.submit(at+"/switch", url.Values{}, "What was tested is in force now"), "A change waits")
	b.submit(at+"/edit", s.parameters(b, at, map[string]string{"emailFrom": "mail", "name": "Acme"}), "A change waits")
	b.get(at+"/discard", http.StatusOK, "What is in force stays")
	lacks(t, b.submit(at+"/discard", url.Values{}, "The change is discarded"), "A change waits")

	b.get(at+"/disable", http.StatusOK, "Nobody signs in by it any more", "No session is open now")
	b.submit(at+"/disable", url.Values{}, "The connection is disabled", ">Disabled<")
	b.get(at+"/dance", http.StatusNotFound)
	b.get(at+"/secret", http.StatusNotFound)
	b.get(at+"/enable/ccs_x", http.StatusNotFound)
	open(t, s.Server, s.other).get(at, http.StatusNotFound)
	b.get(at+"/delete", http.StatusOK, "identities are deleted")
	b.submit(at+"/delete", url.Values{}, "The connection is deleted", "There are no connections yet")
}

// The tab of tests shows the newest one without its address: that of a provider that hasn't led back with what to
// compare, and with the address of its beginning only where it can begin.
func TestUnansweredTestOfAConnection(t *testing.T) {
	s := newSignOn(t)
	b := s.browserOf(t, "OWNER")
	at := s.made(b)
	lacks(t, b.get(at+"?tab=test", http.StatusOK), "compare there")
	b.ask("POST", at+"/test?tab=test", url.Values{})
	page := b.get(at+"?tab=test", http.StatusOK, "Sign in to test", "compare there", "/callback</code>", "doorward</code>", "Assign the person")
	another := &browser{T: t, server: s.Server, token: s.people["OWNER"].Login()}
	lacks(t, another.get(at+"?tab=test", http.StatusOK, "A test begins once", "compare there"), "Sign in to test")
	start, err := url.Parse(html.UnescapeString(b.findOn(testLink, page)))
	if err != nil {
		t.Fatal(err)
	}
	b.ask("GET", start.RequestURI(), nil)
	lacks(t, b.get(at+"?tab=test", http.StatusOK, "A test begins once", "compare there"), "Sign in to test")
	s.Advance(11 * time.Minute)
	b.get(at+"?tab=test", http.StatusOK, "The test has not passed", "compare there", "doorward</code>")
}

// Who gets in, with which role, is in one form, whose rows are removed by emptying them.
func TestAccessOfAConnection(t *testing.T) {
	s := newSignOn(t)
	b := s.browserOf(t, "OWNER")
	at := s.made(b)
	form := func(change url.Values) url.Values {
		f := url.Values{
			"jit": {"domains"}, "jitRole": {"VIEWER"}, "groupsFrom": {"groups"}, "group0": {"ops"}, "groupRole0": {"ADMIN"}, "group1": {"sales"}, "groupRole1": {"USER"},
			"trustFactor": {"1"}, "factorAcr": {"phr phrh"}, "ends": {"connection"}, "endsKeys": {"1"}, "version": {b.version(b.get(at+"?tab=access", http.StatusOK))},
		}
		for name, values := range change {
			f[name] = values
		}
		return f
	}
	page := b.submit(at+"/access?tab=access", form(nil), `name="jit" value="domains" checked`, `value="ops"`, `name="group3" value=""`, `name="trustFactor" value="1" checked`, `value="phr phrh"`,
		`name="ends" value="connection" checked`, `name="endsKeys" value="1" checked`, at[strings.LastIndex(at, "/"):]+"/revoke<", "/backchannel-logout<")
	lacks(t, page, `<option value="OWNER"`)
	lacks(t, b.submit(at+"/access?tab=access", form(url.Values{"group0": {""}}), `name="group0" value="sales"`), `value="ops"`)
	b.post(at+"/access?tab=access", form(url.Values{"groupRole0": {"OWNER"}}), http.StatusUnprocessableEntity, "A connection gives administrator at most", `value="ops"`)
	b.post(at+"/access?tab=access", form(url.Values{"group1": {"ops"}}), http.StatusUnprocessableEntity, "A group is there twice")
	b.post(at+"/access?tab=access", form(url.Values{"jitRole": {"OWNER"}}), http.StatusUnprocessableEntity, "administrator at most")
	b.post(at+"/access?tab=access", form(url.Values{"version": {"old"}, "jit": {"off"}}), http.StatusPreconditionFailed, "Somebody else has changed this connection", `value="off" checked`)
}

// Client secrets are added, up to two, and deleted after a question; with private_key_jwt there are keys
// in their place.
func TestSecretsOfAConnection(t *testing.T) {
	s := newSignOn(t)
	b := s.browserOf(t, "OWNER")
	at := s.made(b)
	b.post(at+"/secrets?tab=secrets", url.Values{"clientSecret": {" "}}, http.StatusUnprocessableEntity, "Copy the secret from the provider")
	refused := b.post(at+"/secrets?tab=secrets", url.Values{"clientSecret": {"not shown again"}, "expiresAt": {"1999-01-01"}}, http.StatusUnprocessableEntity, "A secret ends in the future")
	lacks(t, refused, "not shown again")
	page := b.submit(at+"/secrets?tab=secrets", url.Values{"clientSecret": {"another secret of it"}, "expiresAt": {"2031-05-31"}}, "There are two already", `<time datetime="2031-05-31">31 May 2031</time>`)
	lacks(t, page, "another secret", providersSecret)
	b.post(at+"/secrets?tab=secrets", url.Values{"clientSecret": {"one more"}}, http.StatusConflict, "There are two secrets already")
	secret := b.findOn(regexp.MustCompile(at+`/secret/(ccs_[a-z0-9]+)`), page)
	b.get(at+"/secret/"+secret, http.StatusOK, "Delete the client secret?", "f it</code>")
	lacks(t, b.submit(at+"/secret/"+secret, url.Values{}, "The client secret is deleted"), secret)
	b.get(at+"/secret/"+secret, http.StatusNotFound)
	b.submit(at+"/edit", s.parameters(b, at, map[string]string{"clientAuth": "private_key_jwt"}), `?tab=keys"`)
	b.get(at+"?tab=keys", http.StatusOK, "/jwks</code>", "<dt>ES256</dt>")
}

var scimSecretLink = regexp.MustCompile(`/scim-secret/(scs_[a-z0-9]+)"`)

// A directory alone is made, its secrets are made, shown once and deleted, and what it may do is changed, with roles by its
// groups. It is enabled without a test.
func TestDirectoryPages(t *testing.T) {
	s := newSignOn(t)
	b := s.browserOf(t, "OWNER")
	b.post("/console/sso/new", url.Values{"type": {"saml2"}, "product": {"okta"}, "name": {"x"}}, http.StatusUnprocessableEntity)
	created := b.submit("/console/sso/new", url.Values{"type": {"scim"}, "product": {"okta"}, "name": {"Acme <dir>"}}, "added, as a draft", ">Directory<", "In the console of Okta", s.URL+"/scim/v2</code>", "has not asked yet", "There is none yet")
	lacks(t, created, "Not tested", `?tab=test"`)
	at := "/console/sso/connections/" + b.findOn(connectionLink, created)
	lacks(t, b.get(at, http.StatusOK, "makes the secret for the provider"), "and tests")
	lacks(t, b.get(at+"/setup-link", http.StatusOK, "the instructions, the secrets"), "a test")
	lacks(t, b.post(at+"/setup-link", url.Values{"days": {"1"}}, http.StatusOK, "when the provider has asked"), "a test")
	b.post(at+"/scim-secrets?tab=directory", url.Values{"days": {"9999"}}, http.StatusUnprocessableEntity)
	secret := regexp.MustCompile(`>(dwc_[A-Za-z0-9_-]+)<`)
	made := b.post(at+"/scim-secrets?tab=directory", url.Values{"days": {"90"}}, http.StatusOK, "this once", "It works until")
	first := b.findOn(secret, made)
	second := b.findOn(secret, b.post(at+"/scim-secrets?tab=directory", url.Values{"days": {"0"}}, http.StatusOK, "until you delete it"))
	page := b.get(at, http.StatusOK, "There are two already", "Ends: never")
	lacks(t, page, first, second)
	b.post(at+"/scim-secrets?tab=directory", url.Values{"days": {"0"}}, http.StatusConflict, "There are two secrets already")

	b.get(at+"/enable", http.StatusOK, "the directory makes, changes and ends memberships")
	lacks(t, b.submit(at+"/enable", url.Values{}, "The connection is enabled"), "Nobody signs in by a connection yet")
	lacks(t, b.get(at+"/setup-link", http.StatusOK, "It makes no secrets"), "a test", "the secrets,")
	ask := func(method, path, secret, body string) int {
		req, err := http.NewRequestWithContext(t.Context(), method, s.URL+"/scim/v2"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+secret)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res.StatusCode
	}
	if status := ask("POST", "/Users", first, `{"userName": "nobody"}`); status != http.StatusBadRequest {
		t.Errorf("a userName that is no address is answered %d", status)
	}
	b.get(at, http.StatusOK, "guide-fold", "The provider’s last request came", ">Refused<", "the value of the attribute", "POST /Users (userName)", "Map the person’s e-mail address")
	page = b.get(at+"?tab=protocol", http.StatusOK, "<strong>Directory</strong>: the value of the attribute")
	lacks(t, page, "nobody") // it could be somebody's name, whom no erasure would find

	form := func(change url.Values) url.Values {
		f := url.Values{"name": {"Acme"}, "outside": {"refuse"}, "emptyByRemove": {"1"}, "version": {b.version(b.get(at, http.StatusOK))}}
		for name, values := range change {
			f[name] = values
		}
		return f
	}
	b.submit(at+"/directory?tab=directory", form(nil), "The connection is saved", `name="outside" value="refuse" checked`, `name="emptyByRemove" value="1" checked`, ">Acme<")
	b.post(at+"/directory?tab=directory", form(url.Values{"name": {""}}), http.StatusUnprocessableEntity, "Enter a name")
	b.post(at+"/directory?tab=directory", form(url.Values{"version": {"old"}, "outside": {"invite"}}), http.StatusPreconditionFailed, "Somebody else has changed this connection")
	page = b.submit(at+"/access?tab=access", url.Values{"jitRole": {"VIEWER"}, "group0": {"Sales"}, "groupRole0": {"ADMIN"}, "version": {b.version(b.get(at+"?tab=access", http.StatusOK))}}, "The connection is saved", `value="Sales"`)
	lacks(t, page, `name="jit"`, `name="ends"`)

	id := b.findOn(scimSecretLink, b.get(at, http.StatusOK)) // the newest
	b.get(at+"/scim-secret/"+id, http.StatusOK, "Delete the secret of the directory?")
	b.submit(at+"/scim-secret/"+id, url.Values{}, "The secret of the directory is deleted")
	b.get(at+"/scim-secret/"+id, http.StatusNotFound)
	if status := ask("GET", "/Users", second, ""); status != http.StatusUnauthorized {
		t.Errorf("a deleted secret is answered %d", status)
	}
	b.get(at+"/disable", http.StatusOK, "1 secret of its directory rests", "keep their memberships")
	b.submit(at+"/disable", url.Values{}, "The connection is disabled")
	b.get("/console/sso", http.StatusOK, "Okta · Directory", "Last request")
}

// A run is shown with what it has done, and undone after a page that says what comes back. It takes a recent proof.
func TestUndoOfARun(t *testing.T) {
	s := newSignOn(t)
	b := s.browserOf(t, "OWNER")
	created := b.submit("/console/sso/new", url.Values{"type": {"scim"}, "product": {"okta"}, "name": {"Acme"}})
	at := "/console/sso/connections/" + b.findOn(connectionLink, created)
	secret := b.findOn(regexp.MustCompile(`>(dwc_[A-Za-z0-9_-]+)<`), b.post(at+"/scim-secrets?tab=directory", url.Values{"days": {"0"}}, http.StatusOK))
	b.submit(at+"/enable", url.Values{})
	b.get(at+"/runs", http.StatusOK, "has not changed anything")
	ask := func(method, path, body string) string {
		req, err := http.NewRequestWithContext(t.Context(), method, s.URL+"/scim/v2"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+secret)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		answer, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode/100 != 2 {
			t.Errorf("%s %s: %d, %v", method, path, res.StatusCode, err)
		}
		return string(answer)
	}
	ann, bob := s.people["USER"], s.people["VIEWER"]
	lacks(t, b.get("/console/people/"+ann.ID, http.StatusOK), `?tab=directory"`)
	ask("PATCH", "/Users/"+ann.ID, `{"Operations": [{"op": "replace", "path": "active", "value": false}]}`)
	ask("DELETE", "/Users/"+bob.ID, "")
	invited := b.findOn(regexp.MustCompile(`"id":"(usr_[a-z0-9]+)"`), ask("POST", "/Users", `{"userName": "gus@elsewhere.example"}`))
	ask("PATCH", "/Users/"+invited, `{"Operations": [{"op": "replace", "path": "active", "value": false}]}`)
	ask("PATCH", "/Users/"+invited, `{"Operations": [{"op": "replace", "path": "active", "value": true}]}`)
	ask("DELETE", "/Users/"+invited, "")
	b.get(at, http.StatusOK, "Last run", "1 made", "2 changed", "1 suspended", "2 removed")
	page := b.get(at+"/runs", http.StatusOK, "1 run<", "still going on", "1 suspended")
	run := at + "/runs/" + b.findOn(regexp.MustCompile(`/runs/(run_[a-z0-9]+)"`), page)
	held := "/console/people/" + ann.ID
	b.get(held+"?tab=directory", http.StatusOK, "Switched off by the directory", ">userName</code>", ann.Email, "by hand. The directory’s groups", "Acme</bdi>")
	b.submit(held+"/from-directory", url.Values{}, "groups decide the role now")
	page = b.get(held+"?tab=directory", http.StatusOK, "groups decide the role", "Keep this role by hand")
	b.submit(held+"/keep-role", url.Values{"role": {"USER"}, "version": {b.version(page)}}, "The role stays")
	b.get(held+"?tab=directory", http.StatusOK, s.people["OWNER"].Email+"</bdi></strong> has given", "by hand. The directory’s groups", "Given:")
	b.get("/console/people", http.StatusOK, ">by the directory<")
	b.get(run, http.StatusOK, "6 changes", ">Suspended", ">Removed", ">Invitation revoked<", ">Invited again<", bob.Email, "not undone")
	open(t, s.Server, s.other).get(run, http.StatusNotFound)

	s.Advance(15 * time.Minute)
	if res, asked := b.ask("POST", run+"/undo", url.Values{}); !strings.Contains(res.Header.Get("Location")+asked, "/step-up") {
		t.Errorf("an old session isn't asked for a proof: %d", res.StatusCode)
	}
	b.token = s.people["OWNER"].Login()
	b.get(run+"/undo", http.StatusOK, "Undo this run?", "2 people and groups as before", "no longer suspended", "member again", bob.Email, "at its next run")
	b.submit(run+"/undo", url.Values{}, "The run is being undone")
	if err := s.Node.App.DirectoryRuns.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	lacks(t, b.get(run, http.StatusOK, ">Undone<", "3 are as before the run"), run+`/undo"`)
	b.get(run+"/undo", http.StatusOK, "Somebody has asked for it already")
	b.get("/console/people/"+bob.ID, http.StatusOK)
	b.post(run+"/undo", url.Values{}, http.StatusConflict)
}

// A set-up link is made with its address shown once, shown with its maker, replaced, and ended. Making and ending
// take a recent proof.
func TestSetupLinkPages(t *testing.T) {
	s := newSignOn(t)
	b := s.browserOf(t, "OWNER")
	at := s.made(b)
	b.get(at, http.StatusOK, "Let the customer’s IT set it up", `href="`+at+`/setup-link"`)
	lacks(t, b.get(at+"/setup-link", http.StatusOK, "Acme &lt;ID&gt;", `<option value="7" selected>7 days`, `<option value="1">1 day<`, "No domain belongs to this connection yet"), "ends.</li>")
	for _, days := range []string{"0", "8", "x", ""} {
		b.post(at+"/setup-link", url.Values{"days": {days}}, http.StatusUnprocessableEntity, "number of days")
	}
	made := b.post(at+"/setup-link", url.Values{"days": {"3"}}, http.StatusOK, "/setup#token=", "shown only here", "It works until")
	code := b.findOn(regexp.MustCompile(`/setup#token=([A-Za-z0-9_-]+)`), made)
	lacks(t, b.get(at, http.StatusOK, s.people["OWNER"].Email, "Nobody has begun by it yet", "End the link"), code)
	b.get(at+"/setup-link", http.StatusOK, "The link of <strong><bdi>"+s.people["OWNER"].Email)
	b.ask("POST", "/setup/begin", url.Values{"token": {code}})
	b.get(at, http.StatusOK, "The set-up was begun")
	b.get("/console/audit", http.StatusOK, "<bdi>set-up link of "+s.people["OWNER"].Email+"</bdi>")
	b.get(at+"/setup-end", http.StatusOK, "End the set-up link?", "What was saved by it stays")
	b.submit(at+"/setup-end", url.Values{}, "The set-up link has ended", "Make a link")
	lacks(t, b.get("/console/audit", http.StatusOK, "<bdi>set-up link of "+s.people["OWNER"].Email+"</bdi>"), "<bdi>stl_")
	s.Node.App.Connections.Record(t.Context(), doorward.Attempt{ConnectionID: strings.TrimPrefix(at, "/console/sso/connections/"), Kind: doorward.AttemptSignIn, Outcome: doorward.AttemptRefused, Check: "client"})
	b.get("/console/audit?action=connection.secret", http.StatusOK, "The provider refuses the client of a connection")
	b.post(at+"/setup-end", url.Values{}, http.StatusNotFound)
	open(t, s.Server, s.other).get(at+"/setup-link", http.StatusNotFound)
	s.Advance(16 * time.Minute)
	b.post(at+"/setup-link", url.Values{"days": {"3"}}, http.StatusForbidden, "/step-up", `<option value="3" selected>`)
	b.post(at+"/setup-end", url.Values{}, http.StatusForbidden, "/step-up")
}

// A domain is added, not proved until its record is there, given to a connection, and deleted.
func TestDomainPages(t *testing.T) {
	s := newSignOn(t)
	b := s.browserOf(t, "OWNER")
	at := s.made(b)
	b.get("/console/sso/domains", http.StatusOK, "There are no domains yet")
	b.post("/console/sso/domains", url.Values{"domain": {"gmail.com"}}, http.StatusUnprocessableEntity, "Use one of your own")
	page := b.submit("/console/sso/domains", url.Values{"domain": {"Acme.example "}}, "Publish its record", "_doorward.acme.example", "enter only <strong><bdi>_doorward</bdi></strong>", ">Not proved<")
	domain := "/console/sso/domains/" + b.findOn(domainLink, page)
	b.post("/console/sso/domains", url.Values{"domain": {"acme.example"}}, http.StatusConflict, "in the list already")
	s.dns.Fail("_doorward.acme.example", true)
	b.post(domain+"/verify", url.Values{}, http.StatusServiceUnavailable, "The name servers of the domain don’t answer", ">Not proved<")
	s.dns.Fail("_doorward.acme.example", false)
	s.dns.TXT("_doorward.acme.example", "doorward-verification=wrong", "v=spf1")
	lacks(t, b.post(domain+"/verify", url.Values{}, http.StatusConflict, "The record was not found", "<code dir=\"ltr\">doorward-verification=wrong</code>"), "spf1")
	s.dns.TXT("_doorward.acme.example", b.findOn(tokenOf, page))
	b.submit(domain+"/verify", url.Values{}, "the domain is proved", ">Proved<")
	con := strings.TrimPrefix(at, "/console/sso/connections/")
	version := b.version(b.get(domain, http.StatusOK))
	b.submit(domain+"/connection", url.Values{"connectionId": {con}, "version": {version}}, "The connection of the domain is saved", `value="`+con+`" selected`)
	lacks(t, b.get(at+"/setup-link", http.StatusOK), "No domain belongs")
	b.post(domain+"/connection", url.Values{"connectionId": {""}, "version": {version}}, http.StatusPreconditionFailed)
	b.get("/console/sso/domains", http.StatusOK, "1 domain<", "Acme &lt;ID&gt;")
	b.get("/console/sso", http.StatusOK, "<bdi>acme.example</bdi>")
	b.get("/console/find?q=acme", http.StatusOK, `href="`+domain+`"`, `href="`+at+`"`)
	lacks(t, s.browserOf(t, "ADMIN").get("/console/find?q=acme", http.StatusOK), domain, at)
	open(t, s.Server, s.other).get(domain, http.StatusNotFound)
	b.get(domain+"/delete", http.StatusOK, "Nobody is recognised by an address there", "Acme &lt;ID&gt;")
	b.submit(domain+"/delete", url.Values{}, "The domain is deleted", "There are no domains yet")
}

// The policy shows whom a demand would shut out, asks before it shuts out or ends, and is provisional.
func TestSignOnPolicy(t *testing.T) {
	s := newSignOn(t)
	b := s.browserOf(t, "OWNER")
	put := func(mode string, more ...string) url.Values {
		f := url.Values{"mode": {mode}, "guests": {"allowed"}, "minutes": {"30"}, "version": {b.version(b.get("/console/sso/policy", http.StatusOK))}}
		for i := 0; i+1 < len(more); i += 2 {
			f.Set(more[i], more[i+1])
		}
		return f
	}
	b.get("/console/sso/policy", http.StatusOK, `value="off" checked`, "<span>Active members</span> <strong>4</strong>", "Only by it")
	b.post("/console/sso/policy", put("required", "confirmed", "1"), http.StatusConflict, "Enable a connection first")
	b.post("/console/sso/policy", put("optional", "guests", "x"), http.StatusUnprocessableEntity)
	b.post("/console/sso/policy", put("required", "guests", "x"), http.StatusUnprocessableEntity)
	b.post("/console/sso/policy", put("required", "minutes", "4", "confirmed", "1"), http.StatusUnprocessableEntity, "Give 5 to 60 minutes")
	b.submit("/console/sso/policy", put("optional"), "The policy is saved", `value="optional" checked`)
	b.post("/console/sso/policy", put("off"), http.StatusOK, "Turn sign-on off?", "end at once")
	b.post("/console/sso/policy", put("required", "version", "0", "confirmed", "1"), http.StatusPreconditionFailed, "Somebody else has changed the policy")

	s.opened(b, s.made(b))
	b.post("/console/sso/policy", put("required", "confirmed", "1"), http.StatusConflict, "An active owner needs a way back first")
	b.token = enrolTOTP(t, s.fixture)
	b.post("/console/sso/policy", put("required", "minutes", "5"), http.StatusOK, "Require sign-on?", "within 5 minutes", `name="confirmed" value="1"`)
	b.submit("/console/sso/policy", put("required", "minutes", "5", "confirmed", "1"), "Confirm it in time", "undone in 5 minutes", "Then it is optional again", "Sign in by Acme", ">Gets in<")
	b.post("/console/sso/policy/confirm", url.Values{}, http.StatusForbidden, "confirm it in that session")
	b.get("/console", http.StatusOK, "Required sign-on is undone on")
	b.get("/console/sso/policy?lang=de", http.StatusOK, "wird in 5 Minuten zurückgenommen")
	s.Advance(6 * time.Minute)
	b.get("/console/sso/policy?lang=en", http.StatusOK, `value="optional" checked`)
}

// Who has signed in by a connection is on its page and on the person's, with the sessions, and is unlinked.
func TestPeopleOfAConnection(t *testing.T) {
	s := newSignOn(t)
	b := s.browserOf(t, "OWNER")
	at := s.made(b)
	s.opened(b, at)
	b.get(at+"?tab=identities", http.StatusOK, "Nobody has signed in by this connection yet")
	res := s.signIn(&browser{T: t, server: s.Server}, "/api/v2/auth/sso/"+strings.TrimPrefix(at, "/console/sso/connections/")+"/start")
	if to := res.Header.Get("Location"); to != "/account" {
		t.Fatalf("the sign-in leads to %q", to)
	}
	person := "/console/people/" + s.people["USER"].ID
	b.get(at+"?tab=protocol", http.StatusOK, ">Signed in<", `href="`+person+`"`)
	b.get(person+"?tab=sessions", http.StatusOK, "by Acme &lt;ID&gt;")
	b.get(person+"?tab=security", http.StatusOK, `<code dir="ltr">ann-1</code>`, at+"/unlink/idn_")
	lacks(t, s.browserOf(t, "ADMIN").get(person+"?tab=security", http.StatusOK), "ann-1")
	b.get("/console", http.StatusOK, "The client secret of Acme &lt;ID&gt; ends on")
	page := b.get(at+"?tab=identities", http.StatusOK, "1 identity<", "user@acme.example", "ann-1")
	unlink := at + "/unlink/" + b.findOn(regexp.MustCompile(`/unlink/(idn_[a-z0-9]+)`), page)
	b.get(unlink, http.StatusOK, "Unlink this identity?", "user@acme.example")
	b.submit(unlink, url.Values{}, "The identity is unlinked. 1 session has ended.", "Nobody has signed in by this connection yet")
	b.get(unlink, http.StatusNotFound)
}
