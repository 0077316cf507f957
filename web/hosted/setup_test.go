package hosted_test

import (
	"encoding/json"
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
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/dnstest"
	"github.com/doorward/doorward/internal/oidcrp/oidctest"
	"github.com/doorward/doorward/node"
)

const providersSecret = "a secret of the provider"

// setup is a server with a provider and a name server, and a connection with a domain.
type setup struct {
	*doorwardtest.Server
	provider    *oidctest.Provider
	dns         *dnstest.Server
	tenant      *doorwardtest.Tenant
	con, domain string
	record      string // that proves the domain
}

func newSetup(t *testing.T) setup {
	t.Helper()
	s := setup{provider: oidctest.New(""), dns: dnstest.New(t)}
	t.Cleanup(s.provider.Close)
	trusted, ok := s.provider.Client().Transport.(*http.Transport)
	if !ok {
		t.Fatal("the provider's client has no certificates")
	}
	s.Server = doorwardtest.Start(t, func(c *node.Config) {
		c.DNSServer = s.dns.Addr
		c.Connections.Allow = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		c.Connections.Authorities = trusted.TLSClientConfig.RootCAs
	})
	s.provider.Change(func(p *oidctest.Settings) {
		p.Apps = []oidctest.App{{ID: "doorward", Secrets: []string{providersSecret}}}
		p.Person = oidctest.Person{Subject: "ann-1", Email: ann, IsVerified: true}
		p.Now = s.Node.App.Now
	})
	s.tenant = s.Tenant("Acme")
	made := s.api(t, "POST", "/api/v2/sso/connections", map[string]any{"type": "oidc", "name": "Acme <ID>", "product": "other"})
	s.con, _ = made["id"].(string)
	domain := s.api(t, "POST", "/api/v2/domains", map[string]any{"domain": "acme.example"})
	s.domain, _ = domain["id"].(string)
	record, _ := domain["record"].(map[string]any)
	s.record, _ = record["value"].(string)
	return s
}

// api sends a request as the OWNER, and returns the answer, which must be a success.
func (s setup) api(t *testing.T, method, path string, body map[string]any) (answer map[string]any) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	status, got := s.tenant.Owner.Do(method, path, text)
	if status < 200 || status > 299 {
		t.Fatalf("%s %s: %d %s", method, path, status, got)
	}
	if len(got) > 0 {
		if err := json.Unmarshal(got, &answer); err != nil {
			t.Fatal(err)
		}
	}
	return answer
}

// request sends a request as the OWNER with headers, given as pairs of name and value.
func (s setup) request(t *testing.T, method, path, body string, headers ...string) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.tenant.Owner.Token())
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// giveDomain gives the domain to the connection.
func (s setup) giveDomain(t *testing.T) {
	t.Helper()
	s.api(t, "PATCH", "/api/v2/domains/"+s.domain, map[string]any{"connectionId": s.con})
}

// link makes a set-up link, and returns its code.
func (s setup) link(t *testing.T) string {
	t.Helper()
	made := s.api(t, "POST", "/api/v2/sso/connections/"+s.con+"/setup-link", map[string]any{"days": 2})
	text, _ := made["url"].(string)
	at, code, found := strings.Cut(text, "#token=")
	if !found || at != s.URL+"/setup" {
		t.Fatalf("the link is %q", text)
	}
	return code
}

// begun returns a browser that has begun by a new link.
func (s setup) begun(t *testing.T) browser {
	t.Helper()
	b := open(t, s.Server)
	b.send("/setup/begin", "token", s.link(t)).is(t, 303, "/setup/provider")
	return b
}

var formVersion = regexp.MustCompile(`name="version" value="([^"]+)"`)

// save sends the form of the provider's step, with some fields changed.
func (s setup) save(b browser, change ...string) answer {
	b.Helper()
	form := []string{
		"issuer", s.provider.Issuer(), "clientId", "doorward", "clientAuth", "secret_basic", "emailFrom", "email",
		"version", formVersion.FindStringSubmatch(b.get("/setup/provider").body)[1],
	}
	return b.send("/setup/provider", append(form, change...)...)
}

// test signs in at the provider to test, and returns the page with the result.
func (s setup) test(b browser) answer {
	b.Helper()
	began := b.send("/setup/test")
	start, err := url.Parse(began.to)
	if began.status != http.StatusSeeOther || err != nil {
		b.Fatalf("the test: %d to %q\n%s", began.status, began.to, began.body)
	}
	callback, err := s.provider.SignIn(b.get(start.RequestURI()).to)
	if err != nil {
		b.Fatal(err)
	}
	back := b.get(callback.RequestURI())
	if back.status != http.StatusSeeOther || !strings.HasPrefix(back.to, "/setup/test?test=tst_") {
		b.Fatalf("the callback: %d to %q\n%s", back.status, back.to, back.body)
	}
	return b.get(back.to)
}

// lacks requires that the page has none of the texts.
func (a answer) lacks(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(a.body, text) {
			t.Errorf("the page has %q:\n%s", text, a.body)
		}
	}
}

// Nothing but the button Begin binds a link, and it binds it to one browser.
func TestSetupLinkIsBoundByBegin(t *testing.T) {
	s := newSetup(t)
	code := s.link(t)
	b, other := open(t, s.Server), open(t, s.Server)
	for range 2 {
		b.get("/setup").is(t, 200, "", "Open the link that you were sent", "Code from the link").lacks(t, "Code from the mail")
		b.send("/setup", "token", code).is(t, 200, "", "Acme &lt;ID&gt;", s.tenant.Owner.Email, "Begin")
	}
	b.send("/setup").is(t, 422, "")
	b.send("/setup", "token", absent).is(t, 410, "", "This link no longer works")
	b.get("/setup/provider").is(t, 303, "/setup")
	b.send("/setup/begin", "token", s.URL+"/setup#token="+code).is(t, 303, "/setup/provider")
	b.get("/setup/provider").is(t, 200, "", "Acme &lt;ID&gt;", "works until")
	b.get("/setup").is(t, 200, "", `href="/setup/provider"`)
	b.send("/setup", "token", code).is(t, 303, "/setup/provider")
	b.send("/setup/begin", "token", code).is(t, 303, "/setup/provider") // once more, after going back

	other.send("/setup", "token", code).is(t, 409, "", "The link is in use elsewhere")
	other.send("/setup/begin", "token", code).is(t, 409, "", "The link is in use elsewhere")
	for _, name := range []string{"provider", "domains", "test", "protocol"} {
		other.get("/setup/"+name).is(t, 303, "/setup")
	}
	other.send("/setup/provider", "issuer", "https://evil.example").is(t, 303, "/setup")
}

// A link that is over is a page that says so, at each step.
func TestSetupLinkIsOver(t *testing.T) {
	s := newSetup(t)
	b := s.begun(t)
	s.link(t) // ends the first
	for _, name := range []string{"provider", "domains", "test", "protocol"} {
		at := open(t, s.Server)
		at.Jar = b.Jar
		at.get("/setup/"+name).is(t, 410, "", "This link no longer works").lacks(t, "Acme")
		b = s.begun(t)
		s.api(t, "DELETE", "/api/v2/sso/connections/"+s.con+"/setup-link", nil)
	}
	b.send("/setup/test").is(t, 410, "", "This link no longer works")
	b = s.begun(t)
	s.Advance(49 * time.Hour)
	b.get("/setup/domains").is(t, 410, "", "This link no longer works")
}

// By the link alone a connection is set up, and tested.
func TestSetupByLink(t *testing.T) {
	s := newSetup(t)
	b := s.begun(t)
	b.get("/setup/provider").is(t, 200, "", "/api/v2/auth/sso/"+s.con+"/callback</code>", "In your provider’s console", "once a test has passed", `<div class="by-key">`, `class="pair by-secret"`).lacks(t, "Still missing", `required maxlength="1000" aria-describedby="clientSecret-hint`)
	b.get("/setup/domains").is(t, 200, "", "No domain belongs to this connection", s.tenant.Owner.Email)
	b.get("/setup/test").is(t, 200, "", "Still missing for a test: <strong>Issuer</strong>, <strong>Client ID</strong>, <strong>Client secret</strong>")
	b.get("/setup/protocol").is(t, 200, "", "No test was made yet")
	b.send("/setup/test").is(t, 422, "")

	s.save(b, "clientSecret", "never shown again", "expiresAt", "1999-01-01").is(t, 422, "", "A secret ends in the future", `value="doorward"`, "Enter it once more").lacks(t, "never shown again")
	s.save(b, "expiresAt", "2099-01-01").is(t, 422, "", "Copy the secret from the provider")
	s.save(b, "version", "old", "emailFrom", "mail").is(t, 412, "", "Somebody else has changed the connection", `value="mail"`)
	s.save(b).is(t, 303, "/setup/provider?done=setup-incomplete")
	b.get("/setup/provider?done=setup-incomplete").is(t, 200, "", ">Saved.<", "Still missing for a test: <strong>Client secret</strong>")
	s.save(b, "clientSecret", "a wrong secret").is(t, 303, "/setup/test?done=setup-saved-test")
	b.get("/setup/test?done=setup-saved-test").is(t, 200, "", "Saved. The test comes next.")

	s.test(b).is(t, 200, "", "The test has not passed", "the client’s authentication", "The secret is wrong")
	page := b.get("/setup/provider").is(t, 200, "", "Works until", "Added: ", "Last used: never")
	secret := regexp.MustCompile(`/setup/secrets/(ccs_[a-z0-9]+)/delete`).FindStringSubmatch(page.body)[1]
	b.send("/setup/secrets/"+secret+"/delete").is(t, 303, "/setup/provider?done=setup-secret-deleted")
	b.send("/setup/secrets/"+secret+"/delete").is(t, 404, "", "deleted before")
	s.save(b, "clientSecret", providersSecret).is(t, 303, "/setup/test?done=setup-saved-test")
	s.test(b).is(t, 200, "", "The test has passed", "acme.example").lacks(t, ann, "ann-1", "&#34;sub&#34;")
	b.get("/setup/provider").is(t, 200, "", "Last used: <time").lacks(t, "Last used: never")
	b.get("/setup/protocol").is(t, 200, "", "<strong>Test</strong>", "the client’s authentication", ">Done<", ">Refused<")

	for outcome, subject := range map[doorward.AttemptOutcome]string{doorward.AttemptSignedIn: "came-in", doorward.AttemptRefused: "refused-one"} {
		s.Node.App.Connections.Record(t.Context(), doorward.Attempt{
			ConnectionID: s.con, Kind: doorward.AttemptSignIn, Outcome: outcome, Subject: subject, RequestIDs: []string{"req_" + subject}, UserID: s.tenant.Owner.ID,
		})
	}
	b.get("/setup/protocol").is(t, 200, "", "<strong>Sign-in</strong>", "<code>req_refused-one</code>").lacks(t, "came-in", ">refused-one", s.tenant.Owner.ID, "Provider’s document")

	s.api(t, "PATCH", "/api/v2/sso/connections/"+s.con, map[string]any{"status": "active"})
	b.get("/setup/provider").is(t, 200, "", ">Active<", "Nobody signs in by this connection now")
	start := "/api/v2/auth/sso/" + s.con + "/start"
	for path, want := range map[string]string{
		"/sso/" + s.con: "hasn’t turned this sign-in on", start: "hasn’t turned this sign-in on", start + "?test=tst_6tqm7x3yh4n6rj7wd2c5tpae7k": "This test can’t begin",
	} {
		if status, page := s.request(t, "GET", path, "", "Accept", "text/html"); status != 404 || !strings.Contains(page, want) {
			t.Errorf("%s: %d without %q:\n%s", path, status, want, page)
		}
	}
	s.giveDomain(t)
	if status, got := s.request(t, "PUT", "/api/v2/sso/policy", `{"mode":"optional","guests":"allowed"}`, "If-Match", "*", "Content-Type", "application/json"); status != 200 {
		t.Fatalf("the policy: %d %s", status, got)
	}
	b.get("/setup/provider").is(t, 200, "", ">Active<", "People sign in by this connection")
	s.save(b, "emailFrom", "mail").is(t, 303, "/setup/domains?done=setup-saved")
	b.get("/setup/domains?done=setup-saved").is(t, 200, "", "Saved. The domains come next.")
	b.get("/setup/provider").is(t, 200, "", "switches to it", `value="mail"`)
	s.provider.Close()
	b.send("/setup/test").is(t, 503, "", "The connection is refused there")
}

// A client secret isn't lost with a refused form: it is saved first, with the day as it was typed, unless it is what was
// refused.
func TestSetupKeepsASecretOfARefusedForm(t *testing.T) {
	s := newSetup(t)
	b := s.begun(t)
	refused := s.save(b, "issuer", "https://login.microsoftonline.com/common/v2.0", "clientId", "mine", "clientSecret", "never shown again", "expiresAt", "2031-05-31")
	refused.is(t, 422, "", "every directory of the world", `value="mine"`, "The client secret is saved", "gain</code>", ">31 May 2031<").lacks(t, "never shown again", "Enter it once more", "2031-06-01")
	version := formVersion.FindStringSubmatch(refused.body)[1]
	s.save(b, "version", version, "clientId", "mine").is(t, 303, "/setup/test?done=setup-saved-test")
	for _, until := range []string{"", "2031-05-31"} { // typed again, it fills no second place
		s.save(b, "issuer", "https://login.microsoftonline.com/common/v2.0", "clientSecret", "never shown again", "expiresAt", until).is(t, 422, "", "The client secret is saved", ">31 May 2031<").lacks(t, "Enter it once more")
		if n := strings.Count(b.get("/setup/provider").body, "gain</code>"); n != 1 {
			t.Errorf("a secret that is typed again with the end %q is shown %d times", until, n)
		}
	}
	s.save(b, "version", version, "clientSecret", "another secret of it").is(t, 412, "", "Enter it once more").lacks(t, "The client secret is saved")
	s.save(b, "expiresAt", "31.5.2031").is(t, 422, "", `id="expiresAt" name="expiresAt" type="date" autocomplete="off" value="31.5.2031"`)
	s.save(b, "clientAuth", "private_key_jwt", "clientSecret", "of no use with a key").is(t, 303, "/setup/test?done=setup-saved-test")
	b.get("/setup/provider").is(t, 200, "", "/jwks</code>", "ES256").lacks(t, "gain</code>", "a key</code>")
	s.save(b, "clientSecret", "never shown again", "expiresAt", "2032-05-31").is(t, 303, "/setup/test?done=setup-saved-test")
	b.get("/setup/provider").is(t, 200, "", ">31 May 2031<", ">31 May 2032<") // another end isn't dropped
}

// A provider that doesn't know the redirect address or the client shows an error of its own and doesn't lead back. The
// step shows the newest test without its address, and what to compare; after ten minutes, too.
func TestSetupByAProviderThatDoesNotLeadBack(t *testing.T) {
	s := newSetup(t)
	b := s.begun(t)
	s.save(b, "clientId", "a-mistyped-client", "clientSecret", providersSecret)
	b.get("/setup/test").is(t, 200, "").lacks(t, "a-mistyped-client")
	start, err := url.Parse(b.send("/setup/test").to)
	if err != nil {
		t.Fatal(err)
	}
	if at := b.get(start.RequestURI()).to; !strings.HasPrefix(at, s.provider.Issuer()) { // where the browser stays
		t.Fatalf("the test begins at %q", at)
	}
	compare := []string{"compare there", "/api/v2/auth/sso/" + s.con + "/callback</code>", "a-mistyped-client</code>", "Register the redirect address", "Compare the client ID", "Assign the person"}
	b.get("/setup/test").is(t, 200, "", append(compare, "has not led back yet")...)
	b.get("/setup/test?test=mistyped").is(t, 200, "").lacks(t, "has not led back")
	s.Advance(11 * time.Minute)
	b.get("/setup/test").is(t, 200, "", append(compare, "The test has not passed", "11 minutes ago")...).lacks(t, "something was changed")
	s.save(b, "clientId", "doorward")
	b.get("/setup/test").is(t, 200, "", "something was changed: test again")
	s.test(b).is(t, 200, "", "The test has passed")
	b.get("/setup/test").is(t, 200, "", "The test has passed").lacks(t, "compare there")
	s.Advance(25 * time.Hour)
	b.get("/setup/test").is(t, 200, "").lacks(t, "The test has passed")
}

// The step of domains shows the records of the connection's own, and looks at them.
func TestSetupDomains(t *testing.T) {
	s := newSetup(t)
	b := s.begun(t)
	verify := "/setup/domains/" + s.domain + "/verify"
	b.send(verify).is(t, 404, "").lacks(t, s.record)
	s.giveDomain(t)
	b.get("/setup/domains").is(t, 200, "", "<code", "_doorward.acme.example", s.record, ">Not proved<")
	s.dns.Fail("_doorward.acme.example", true)
	b.send(verify).is(t, 503, "", "The name servers of the domain don’t answer", s.record)
	s.dns.Fail("_doorward.acme.example", false)
	s.dns.TXT("_doorward.acme.example", "doorward-verification=wrong")
	b.send(verify).is(t, 409, "", "The record was not found", "doorward-verification=wrong")
	s.dns.TXT("_doorward.acme.example", s.record)
	b.send(verify).is(t, 303, "/setup/domains?done=setup-proved")
	b.get("/setup/domains?done=setup-proved").is(t, 200, "", "The domain is proved", ">Proved<")
	b.send("/setup/domains/x/verify").is(t, 404, "")
}

// Long lists have pages.
func TestSetupPagesOfLists(t *testing.T) {
	s := newSetup(t)
	s.giveDomain(t)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		made := s.api(t, "POST", "/api/v2/domains", map[string]any{"domain": name + ".acme.example"})
		id, _ := made["id"].(string)
		s.api(t, "PATCH", "/api/v2/domains/"+id, map[string]any{"connectionId": s.con})
		s.domain = id
	}
	b := s.begun(t)
	b.get("/setup/domains").is(t, 200, "", "_doorward.acme.example", `href="/setup/domains?page=2"`).lacks(t, "e.acme.example", `rel="prev"`)
	b.get("/setup/domains?page=2").is(t, 200, "", "_doorward.e.acme.example", `href="/setup/domains?page=1"`).lacks(t, `rel="next"`)
	b.get("/setup/domains?page=99").is(t, 200, "", "_doorward.e.acme.example")
	b.get("/setup/domains?page=-1").is(t, 200, "", "_doorward.acme.example")
	b.send("/setup/domains/"+s.domain+"/verify").is(t, 409, "", "_doorward.e.acme.example", "No record for us was found")
	b.get("/setup/protocol?page=7").is(t, 200, "", "No test was made yet")
}

// A fault of the database is neither an end of the link nor of the browser's cookie.
func TestSetupWithoutTheDatabase(t *testing.T) {
	s := newSetup(t)
	b := s.begun(t)
	if err := s.Node.DB.Close(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/setup/provider", "/setup/test", "/setup"} {
		if got := b.get(path); got.status != http.StatusServiceUnavailable || len(got.header.Values("Set-Cookie")) > 0 {
			t.Errorf("%s: %d with the cookies %q", path, got.status, got.header.Values("Set-Cookie"))
		}
	}
}

// A second link in the same browser says that the first can't go on there.
func TestSetupOfTwoConnections(t *testing.T) {
	s := newSetup(t)
	b := s.begun(t)
	made := s.api(t, "POST", "/api/v2/sso/connections", map[string]any{"type": "oidc", "name": "Second", "product": "okta"})
	s.con, _ = made["id"].(string)
	code := s.link(t)
	b.send("/setup", "token", code).is(t, 200, "", "Second", "Okta", "has begun the set-up of", html.EscapeString("Acme <ID>"))
	b.send("/setup/begin", "token", code).is(t, 303, "/setup/provider")
	b.get("/setup/provider").is(t, 200, "", "Second", "In the console of Okta", "/jwks</code>", "ES256", "“Logout endpoint URL”: the revocation address",
		`<li class="by-key">“Client Credentials” → “Edit”: “Public key / Private key”`, `<li class="by-secret">“Client Credentials” → “Edit”: “Client secret”`, "<li>“Assignments”")
}

// By the link of a directory alone its holder gets the base URL and a secret, and sees whether the provider has asked. Once
// the connection is enabled the secrets are the OWNER's.
func TestSetupOfADirectory(t *testing.T) {
	s := newSetup(t)
	made := s.api(t, "POST", "/api/v2/sso/connections", map[string]any{"type": "scim", "name": "Acme dir", "product": "entra"})
	s.con, _ = made["id"].(string)
	b := s.begun(t)
	b.get("/setup/provider").is(t, 303, "/setup/directory")
	b.get("/setup/test").is(t, 303, "/setup/directory")
	b.get("/setup/directory").is(t, 200, "", s.URL+"/scim/v2</code>", "In the console of Microsoft Entra ID", "Secret Token", "has not asked yet", "There is none yet", "Until then the directory sees nobody").lacks(t, `href="/setup/test"`)
	b.send("/setup/directory/secrets", "days", "9999").is(t, 422, "")
	shown := b.send("/setup/directory/secrets", "days", "180").is(t, 200, "", "this once")
	found := regexp.MustCompile(`>(dwc_[A-Za-z0-9_-]+)<`).FindStringSubmatch(shown.body)
	if found == nil {
		t.Fatalf("no secret is shown:\n%s", shown.body)
	}
	page := b.get("/setup/directory")
	page.lacks(t, found[1])
	ask := func(want int) {
		t.Helper()
		if status, body := s.request(t, "POST", "/scim/v2/Users", `{"userName": "zoe@acme.example"}`, "Authorization", "Bearer "+found[1]); status != want {
			t.Errorf("the directory is answered %d %s", status, body)
		}
	}
	ask(http.StatusForbidden)
	if status, body := s.request(t, "GET", "/scim/v2/Users", "", "Authorization", "Bearer "+found[1]); status != 200 || !strings.Contains(string(body), `"totalResults":0`) {
		t.Errorf("by a secret of a link the people are answered %d %s", status, body)
	}
	b.get("/setup/directory").is(t, 200, "", "The provider’s last request came", ">Refused<", "when all is ready").lacks(t, "zoe@")
	b.get("/setup/protocol").is(t, 200, "", "an enabled connection").lacks(t, "zoe@")
	id := regexp.MustCompile(`/setup/directory/secrets/(scs_[a-z0-9]+)/delete`).FindStringSubmatch(page.body)[1]
	s.api(t, "PATCH", "/api/v2/sso/connections/"+s.con, map[string]any{"status": "active"})
	b.get("/setup/directory").is(t, 200, "", "only while the connection is a draft").lacks(t, `action="/setup/directory/secrets"`, "/delete")
	b.send("/setup/directory/secrets", "days", "0").is(t, 403, "", "The link for this set-up does not allow it").lacks(t, "Your role")
	b.send("/setup/directory/secrets/"+id+"/delete").is(t, 403, "")
	s.api(t, "PATCH", "/api/v2/sso/connections/"+s.con, map[string]any{"status": "disabled"})
	ask(http.StatusUnauthorized)
}
