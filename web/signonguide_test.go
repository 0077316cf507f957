package web_test

import (
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/oidcrp/oidctest"
)

// guide follows docs/sign-on.md, and notes which of its requests were made.
type guide struct {
	t        *testing.T
	d        *server
	provider *oidctest.Provider
	made     map[string]bool
}

// send sends a request of the page. as is how the page writes it.
func (g *guide) send(as, route string, body any, opts ...opt) answer {
	g.t.Helper()
	g.made[as] = true
	return g.d.send(g.t, route, body, opts...)
}

// browse opens an address that begins a sign-in, signs in at the provider, and returns the last answer.
func (g *guide) browse(address string, opts ...opt) answer {
	g.t.Helper()
	at, err := url.Parse(address)
	if err != nil {
		g.t.Fatal(err)
	}
	begun := g.d.send(g.t, "GET "+at.RequestURI(), nil, opts...).ok(http.StatusSeeOther)
	back, err := g.provider.SignIn(begun.header.Get("Location"))
	if err != nil {
		g.t.Fatal(err)
	}
	for _, set := range begun.cookies() {
		pair, _, _ := strings.Cut(set, ";")
		opts = append(opts, cookie(pair))
	}
	return g.d.send(g.t, "GET "+back.RequestURI(), nil, opts...).ok(http.StatusSeeOther)
}

// keys returns the public keys of the connection, as its provider reads them.
func (g *guide) keys(con string) [][]byte {
	var keys [][]byte
	for _, key := range g.d.send(g.t, "GET /api/v2/auth/sso/"+con+"/jwks", nil).ok(http.StatusOK).at("keys").([]any) {
		text, _ := encode(g.t, key)
		keys = append(keys, []byte(text))
	}
	return keys
}

// TestSignOnGuide follows docs/sign-on.md from the draft to the confirmed demand, against a provider, and each
// request that the page names is made.
func TestSignOnGuide(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		g := &guide{t, d, newProvider(t), map[string]bool{}}
		acme := d.Tenant("Acme")
		owner := as(acme.Owner.Token())
		con := g.setUp(owner)
		session := g.signIn(con)
		g.demand(acme, con, owner, session)
		page, err := os.ReadFile("../docs/sign-on.md")
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile("`((?:GET|POST|PUT|PATCH) [^ `]+)").FindAllStringSubmatch(string(page), -1) {
			if !g.made[found[1]] {
				t.Errorf("the page has %s, which this test doesn't send", found[1])
			}
		}
	}, withProviders())
}

// setUp makes, tests, enables and offers a connection, and returns its id.
func (g *guide) setUp(owner opt) string {
	t, d := g.t, g.d
	t.Helper()
	made := g.send("POST /api/v2/sso/connections", "POST /api/v2/sso/connections",
		m{"type": "oidc", "name": "Acme Okta", "product": "okta", "issuer": g.provider.Issuer(), "clientId": "doorward"}, owner).ok(http.StatusCreated)
	con := made.text("id")
	path := "/api/v2/sso/connections/" + con
	g.send("POST /api/v2/sso/connections/{id}/setup-link", "POST "+path+"/setup-link", m{"days": 7}, owner).ok(http.StatusCreated)
	g.send("POST …/{id}/secrets", "POST "+path+"/secrets", m{"clientSecret": "as the provider shows it"}, owner).ok(http.StatusCreated)
	keys := g.keys(con)
	g.provider.Change(func(s *oidctest.Settings) {
		s.Now = d.clock.now
		s.Apps = []oidctest.App{{
			ID: "doorward", Auth: "private_key_jwt", AudienceIsTokenEndpoint: true, RedirectURIs: []string{made.text("callbackUrl")},
			Keys: func() [][]byte { return keys },
		}}
		s.Person = oidctest.Person{Subject: "1", Email: "ann@acme-people.example"}
	})
	test := g.send("POST …/{id}/test", "POST "+path+"/test", nil, owner).ok(http.StatusCreated)
	g.browse(test.text("url"), owner)
	g.send("GET …/tests/{testId}", "GET "+path+"/tests/"+test.text("testId"), nil, owner).ok(http.StatusOK).is("status", "passed")
	g.send("POST …/{id}/refresh", "POST "+path+"/refresh", nil, owner).ok(http.StatusOK)
	g.send("PATCH …/{id}", "PATCH "+path, m{"status": "active", "jit": "domains"}, owner).ok(http.StatusOK).is("connection.status", "active")

	added := g.send("POST /api/v2/domains", "POST /api/v2/domains", m{"domain": "acme-people.example"}, owner).ok(http.StatusCreated)
	d.publish(added)
	domain := "/api/v2/domains/" + added.text("id")
	g.send("POST …/{id}/verify", "POST "+domain+"/verify", nil, owner).ok(http.StatusOK).is("status", "verified")
	d.send(t, "PATCH "+domain, m{"connectionId": con}, owner).ok(http.StatusOK)
	g.send("PUT /api/v2/sso/policy", "PUT /api/v2/sso/policy", m{"mode": "optional", "guests": "allowed"}, owner, with("If-Match", "*")).ok(http.StatusOK)
	return con
}

// signIn signs a new person in, and returns the session.
func (g *guide) signIn(con string) opt {
	g.t.Helper()
	end := g.browse("/api/v2/auth/sso/" + con + "/start")
	pair, _, _ := strings.Cut(cookieNamed(end, "JSESSIONID"), ";")
	session := cookie(pair)
	g.d.send(g.t, "GET /api/v2/auth/session", nil, session).ok(http.StatusOK).is("session.connectionId", con).is("user.email", "ann@acme-people.example")
	return session
}

// demand demands the sign-on, and confirms it as an OWNER who has signed in by it.
func (g *guide) demand(acme *doorwardtest.Tenant, con string, owner, session opt) {
	t, d := g.t, g.d
	t.Helper()
	g.send("GET …/{id}/attempts", "GET /api/v2/sso/connections/"+con+"/attempts", nil, owner).ok(http.StatusOK)
	g.send("GET /api/v2/sso/readiness", "GET /api/v2/sso/readiness", nil, owner).ok(http.StatusOK).is("bySso30d", 1.0)
	required := m{"mode": "required", "guests": "allowed"}
	d.send(t, "PUT /api/v2/sso/policy", required, owner, with("If-Match", "*")).fails(http.StatusConflict, "no_way_back")
	d.enrolTOTP(t, acme.Owner.Token())
	ann := d.send(t, "GET /api/v2/auth/session", nil, session).text("user.id")
	d.send(t, "PATCH /api/v2/users/"+ann, m{"role": "OWNER"}, owner).ok(http.StatusOK)
	d.send(t, "PUT /api/v2/sso/policy", required, owner, with("If-Match", "*")).ok(http.StatusOK)
	g.send("POST /api/v2/sso/policy/confirm", "POST /api/v2/sso/policy/confirm", nil, owner).fails(http.StatusForbidden, "sign_in_required")
	d.send(t, "POST /api/v2/sso/policy/confirm", nil, session).fails(http.StatusForbidden, "sign_in_required") // of before
	d.Advance(time.Second)
	d.send(t, "POST /api/v2/sso/policy/confirm", nil, g.signIn(con)).ok(http.StatusOK)
	g.send("POST …/{id}/switch", "POST /api/v2/sso/connections/"+con+"/switch", m{"dryRun": true}, owner).fails(http.StatusConflict, "nothing_pending")
}
