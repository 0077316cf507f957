package signon_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/clientsecret"
	"github.com/doorward/doorward/app/connection"
	"github.com/doorward/doorward/app/signon"
	"github.com/doorward/doorward/app/user"
	"github.com/doorward/doorward/internal/oidcrp/oidctest"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/storetest"
)

// mistake is one that people make at a provider or here, or something that a provider does wrong.
type mistake struct {
	name          string
	check, advice string // of the test; without a check it passes
	product       doorward.Product
	provider      func(*oidctest.Settings)
	draft         connection.Draft // of what is typed here
	isFault       bool             // of the provider: nothing was refused
}

func typed[T any](v T) *T { return &v }

func asks(code, description string) func(*oidctest.Settings) {
	return func(p *oidctest.Settings) { p.Person.Error, p.Person.Description = code, description }
}

func says(name string, value any) func(*oidctest.Settings) {
	return func(p *oidctest.Settings) { p.Lies.Claims = func(c map[string]any) { c[name] = value } }
}

func lacks(name string) func(*oidctest.Settings) {
	return func(p *oidctest.Settings) { p.Lies.Claims = func(c map[string]any) { delete(c, name) } }
}

func header(name string, value any) func(*oidctest.Settings) {
	return func(p *oidctest.Settings) { p.Lies.Header = func(h map[string]any) { h[name] = value } }
}

func callback(change func(url.Values)) func(*oidctest.Settings) {
	return func(p *oidctest.Settings) { p.Lies.Callback = change }
}

// answers makes an endpoint answer in its own way.
func answers(path string, answer func(http.ResponseWriter)) func(*oidctest.Settings) {
	return func(p *oidctest.Settings) {
		p.Lies.Answer = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == path {
				answer(w)
			}
			return r.URL.Path == path
		}
	}
}

// tokenSays makes the token endpoint refuse in the words of a product.
func tokenSays(status int, code, description string) func(*oidctest.Settings) {
	return answers(oidctest.TokenPath, func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error": %q, "error_description": %q}`, code, description)
	})
}

// document makes the provider's document name another address of an endpoint.
func document(name, address string) func(*oidctest.Settings) {
	return func(p *oidctest.Settings) { p.Lies.Discovery = func(d map[string]any) { d[name] = address } }
}

func clockOff(by time.Duration) func(*oidctest.Settings) {
	return func(p *oidctest.Settings) {
		now := p.Now
		p.Now = func() time.Time { return now().Add(by) }
	}
}

// mistakes are those that end a test. Descriptions are as the products write them.
var mistakes = []mistake{
	{name: "wrong secret", check: "client", advice: "client_secret", provider: func(p *oidctest.Settings) { p.Apps[0].Secrets = []string{"another"} }},
	{name: "secret of another application", check: "client", advice: "client_secret", provider: func(p *oidctest.Settings) {
		p.Apps[0].Secrets = []string{"another"}
		p.Apps = append(p.Apps, oidctest.App{ID: "other", Secrets: []string{clientSecret}})
	}},
	{
		name: "the id of the secret at Entra", check: "client", advice: "client_secret", product: doorward.Entra,
		provider: tokenSays(http.StatusUnauthorized, "invalid_client", "AADSTS7000215: Invalid client secret provided."),
	},
	{name: "expired secret", check: "client", advice: "client_secret", provider: tokenSays(http.StatusUnauthorized, "invalid_client", "AADSTS7000222: The provided client secret keys for app are expired.")},
	{name: "wrong secret at Keycloak", check: "client", advice: "client_secret", provider: tokenSays(http.StatusUnauthorized, "unauthorized_client", "Invalid client or Invalid client credentials")},
	{name: "keys that the provider doesn't know", check: "client", advice: "client_key", draft: connection.Draft{ClientAuth: typed("private_key_jwt")}},
	{name: "secret in the header, wanted in the body", check: "client", advice: "client_secret", provider: func(p *oidctest.Settings) { p.Apps[0].Auth = "client_secret_post" }},
	{name: "wrong redirect address", check: "provider_error", advice: "redirect_uri", provider: asks("invalid_request", "AADSTS50011: The redirect URI specified in the request does not match.")},
	{name: "wrong redirect address at Google", check: "provider_error", advice: "redirect_uri", provider: asks("redirect_uri_mismatch", "")},
	{name: "wrong redirect address, seen late", check: "provider_error", advice: "redirect_uri", provider: tokenSays(http.StatusBadRequest, "invalid_grant", "Incorrect redirect_uri")},
	{name: "no consent", check: "provider_error", advice: "consent", provider: asks("access_denied", "AADSTS65001: The user or administrator has not consented to use the application.")},
	{name: "no consent, by the standard", check: "provider_error", advice: "consent", provider: asks("consent_required", "")},
	{name: "person not assigned", check: "provider_error", advice: "assignment", provider: asks("access_denied", "User is not assigned to the client application.")},
	{name: "person not assigned at Entra", check: "provider_error", advice: "assignment", provider: asks("interaction_required", "AADSTS50105: Your administrator has configured the application to block users")},
	{name: "account of another organisation at Google", check: "provider_error", advice: "assignment", provider: asks("org_internal", "")},
	{name: "PKCE is refused", check: "provider_error", advice: "pkce", provider: asks("invalid_request", "Invalid parameter: code_challenge_method")},
	{name: "PKCE is dropped", check: "provider_error", advice: "pkce", provider: tokenSays(http.StatusBadRequest, "invalid_grant", "PKCE verification failed")},
	{name: "unknown application", check: "provider_error", advice: "client_id", provider: asks("unauthorized_client", "AADSTS700016: Application with identifier was not found in the directory")},
	{name: "scopes not allowed", check: "provider_error", advice: "scope", provider: asks("invalid_scope", "Invalid scopes: openid profile email")},
	{name: "no ID token", check: "provider_error", advice: "scope", provider: func(p *oidctest.Settings) { p.Lies.Token = func(a map[string]any) { delete(a, "id_token") } }},
	{name: "an answer that isn't OpenID Connect", check: "provider_error", advice: "provider", provider: callback(func(q url.Values) { q.Del("code") })},
	{name: "provider down", check: "provider_error", advice: "retry", isFault: true, provider: answers(oidctest.TokenPath, func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) })},
	{name: "nothing answers", check: "provider_error", advice: "retry", isFault: true, provider: document("token_endpoint", "https://127.0.0.1:1/token")},
	{name: "too long an answer", check: "provider_error", advice: "provider", isFault: true, provider: answers(oidctest.TokenPath, func(w http.ResponseWriter) { fmt.Fprint(w, `{"id_token": "`+strings.Repeat("a", 257<<10)+`"}`) })},
	{name: "a page in place of JSON", check: "provider_error", advice: "provider", isFault: true, provider: answers(oidctest.TokenPath, func(w http.ResponseWriter) { fmt.Fprint(w, "<html>") })},
	{name: "an endpoint that moved", check: "provider_error", advice: "redirect", isFault: true, provider: answers(oidctest.TokenPath, func(w http.ResponseWriter) {
		w.Header().Set("Location", "https://moved.example")
		w.WriteHeader(http.StatusPermanentRedirect)
	})},
	{name: "an internal endpoint", check: "provider_error", advice: "network", isFault: true, provider: document("token_endpoint", "https://10.0.0.1/token")},
	{name: "callback of another provider", check: "iss_parameter", advice: "another_provider", provider: callback(func(q url.Values) { q.Set("iss", "https://other.example") })},
	{name: "callback without the issuer that was promised", check: "iss_parameter", advice: "provider", provider: callback(func(q url.Values) { q.Del("iss") })},
	{name: "HS256", check: "alg", advice: "signing_algorithm", provider: header("alg", "HS256")},
	{name: "not signed", check: "alg", advice: "signing_algorithm", provider: header("alg", "none")},
	{name: "a key that isn't published", check: "kid", advice: "keys", provider: header("kid", "rotated")},
	{name: "a signature of another key", check: "signature", advice: "keys", provider: func(p *oidctest.Settings) { p.Lies.Signature = func(b []byte) []byte { b[0] ^= 1; return b } }},
	{name: "issuer with a slash", check: "iss", advice: "issuer", provider: func(p *oidctest.Settings) {
		p.Lies.Claims = func(c map[string]any) { c["iss"] = fmt.Sprint(c["iss"], "/") }
	}},
	{name: "wrong audience", check: "aud", advice: "client_id", provider: says("aud", "another")},
	{name: "authorized party of another", check: "azp", advice: "client_id", provider: says("azp", "another")},
	{name: "nonce missing", check: "nonce", advice: "provider", provider: lacks("nonce")},
	{name: "nonce of another sign-in", check: "nonce", advice: "start_again", provider: says("nonce", "another")},
	{name: "clock slow", check: "exp", advice: "clock", provider: clockOff(-10 * time.Minute)},
	{name: "clock fast", check: "iat", advice: "clock", provider: clockOff(10 * time.Minute)},
	{name: "good for too long", check: "lifetime", advice: "provider", provider: says("exp", time.Now().Add(48*time.Hour).Unix())},
	{name: "no subject", check: "sub", advice: "provider", provider: lacks("sub")},
	{name: "directory of others at Entra", check: "tid", advice: "own_directory", product: doorward.Entra, provider: says("tid", "9188040d-6c67-4c5b-b112-36a304b66dad")},
	{name: "private account at Google", check: "hd", advice: "hosted_domain", product: doorward.Google},
	{name: "organisation of others at Google", check: "hd", advice: "hosted_domain", product: doorward.Google, provider: says("hd", "other.example")},
	{name: "address missing", check: "email", advice: "email_claim", provider: lacks("email")},
	{name: "address at the userinfo endpoint alone", check: "email", advice: "email_claim", draft: connection.Draft{EmailFrom: typed("upn")}},
	{name: "address that is none", check: "email", advice: "email_claim", provider: says("email", "ann")},
	{name: "email_verified as a text", provider: says("email_verified", "true")},
	{name: "domain not proved", advice: "domain", provider: func(p *oidctest.Settings) { p.Person.Email = "ann@other.example" }},
	{name: "too many groups", advice: "groups_claim", draft: connection.Draft{GroupsFrom: typed("groups")}, provider: says("_claim_names", map[string]string{"groups": "src1"})},
	{name: "groups as one text", advice: "groups_claim", draft: connection.Draft{GroupsFrom: typed("groups")}, provider: says("groups", "admins, users")},
}

// TestMistakes: each mistake ends a test with its check and with advice that helps; the protocol says the same.
func TestMistakes(t *testing.T) {
	onSQLite(t, func(w *world) {
		s := w.site("acme.example", doorward.JITDomains)
		s.says("subject-1", "ann@acme.example", nil)
		var plain oidctest.Settings
		s.provider.Change(func(p *oidctest.Settings) { plain = *p })
		for _, m := range mistakes {
			s.provider.Change(func(p *oidctest.Settings) {
				*p = plain
				p.Apps = slices.Clone(plain.Apps)
				if m.provider != nil {
					m.provider(p)
				}
			})
			s.make(m)
		}
	})
}

// make makes the mistake, and judges the test.
func (s *site) make(m mistake) {
	w := s.w
	w.Helper()
	product := m.product
	if product == "" {
		product = doorward.OtherProduct
	}
	storetest.Exec(w.T, storetest.Raw(w.T, w.DSN), `UPDATE connections SET groups_from = '', product = $1 WHERE id = $2`, string(product), s.conID)
	if err := w.Node(0).Connections.DropPending(w.Context(), s.owner.Caller, s.conID); err != nil && apptest.Code(err) != doorward.CodeNothingPending {
		w.Fatal(err)
	}
	_, _, err := w.Node(0).Connections.Edit(w.Context(), s.owner.Caller, s.conID, connection.Change{Draft: m.draft})
	w.NoError(err)
	test := s.test(nil)
	check, advice := notable(test)
	want := doorward.TestPassed
	if m.check != "" {
		want = doorward.TestFailed
	} else if m.advice != "" {
		check = ""
	}
	if test.Status != want || check != m.check || advice != m.advice {
		w.Errorf("%s: the test ends with %s, check %q, advice %q: %+v", m.name, test.Status, check, advice, test.Checks)
	}
	outcome := doorward.AttemptDone
	if m.isFault {
		outcome = doorward.AttemptUnavailable
	} else if m.check != "" {
		outcome = doorward.AttemptRefused
	}
	got, err := w.DB.Read().LastAttempt(w.Context(), s.conID, doorward.AttemptTest)
	if err != nil || got.Outcome != outcome || got.Check != m.check || m.check != "" && got.Advice != m.advice {
		w.Errorf("%s: the protocol has %s, check %q, advice %q, %v", m.name, got.Outcome, got.Check, got.Advice, err)
	}
}

// test tests the connection; meanwhile runs while the person is at the provider.
func (s *site) test(meanwhile func()) doorward.ConnectionTest {
	w := s.w
	w.Helper()
	test, err := w.Node(0).Tests.Make(w.Context(), s.owner.Caller, s.conID)
	w.NoError(err)
	b := s.browser().as(s.owner)
	address, err := b.start(signon.Ask{Test: test.ID})
	w.NoError(err)
	if meanwhile != nil {
		meanwhile()
	}
	_, err = b.finish(b.callback(address))
	w.NoError(err)
	test, err = w.Node(0).Tests.Show(w.Context(), s.owner.Caller, s.conID, test.ID)
	w.NoError(err)
	return test
}

// notable returns the check that failed, or else the one with advice.
func notable(test doorward.ConnectionTest) (check, advice string) {
	for _, c := range test.Checks {
		if !c.OK || c.Advice != "" {
			check, advice = c.Name, c.Advice
		}
	}
	return check, advice
}

// refusedPeople are what refuses people at a sign-in, with its advice.
var refusedPeople = []struct{ check, advice string }{
	{"domain", "domain"},
	{"jit", "invite"},
	{"removed", "invite"},
	{"suspended", "reinstate"},
	{"joining", "joining"},
	{"factor", "factor"},
	{"email", "email_claim"},
}

// TestAdviceOfRefusals: who is refused after the provider has signed them in finds advice in the protocol, too.
func TestAdviceOfRefusals(t *testing.T) {
	for _, one := range refusedPeople {
		if got := signon.AdviceOf(one.check); got != one.advice {
			t.Errorf("the check %s advises %q", one.check, got)
		}
	}
	byBoth(t, func(w *world) {
		s := w.site("acme.example", doorward.JITOff)
		refused := func(check, advice, email string) {
			t.Helper()
			s.says("subject-"+check, email, nil)
			s.refused(check, s.browser().signIn)
			got, err := w.DB.Read().LastAttempt(w.Context(), s.conID, doorward.AttemptSignIn)
			if err != nil || got.Check != check || got.Advice != advice {
				t.Errorf("the protocol has check %q, advice %q, %v", got.Check, got.Advice, err)
			}
		}
		refused("jit", "invite", "ann@acme.example")
		if n := w.Node(0).SignOn.Tallied(signon.Metric{Outcome: doorward.AttemptRefused, Check: "jit"}); n != 1 {
			t.Errorf("%d refusals by the check jit are counted", n)
		}
		s.edit(func(c *doorward.Connection) { c.JIT = doorward.JITDomains })
		refused("domain", "domain", "ann@other.example")
		if got, err := w.DB.Read().LastAttempt(w.Context(), s.conID, doorward.AttemptSignIn); err != nil || got.Seen != "other.example" {
			t.Errorf("the protocol has seen %q, %v", got.Seen, err)
		}
		refused("email", "email_claim", "")
		ben := s.member("ben", doorward.RoleUser)
		w.NoError(apptest.ErrorOf(w.Node(0).Users.Suspend(w.Context(), s.owner.Caller, ben.User)))
		refused("suspended", "reinstate", ben.User.Email)
	})
}

// TestAddressOfRefused: the protocol shows the address of people who have no account, marked if the provider doesn't
// call it verified; a set-up link sees the domain alone.
func TestAddressOfRefused(t *testing.T) {
	onSQLite(t, func(w *world) {
		s := w.site("acme.example", doorward.JITOff)
		seen := func(check, email string, claims map[string]any, want string) {
			t.Helper()
			s.says("subject-"+check, email, claims)
			s.refused(check, s.browser().signIn)
			got, err := w.DB.Read().LastAttempt(w.Context(), s.conID, doorward.AttemptSignIn)
			if err != nil || got.Check != check || got.Seen != want {
				t.Errorf("%s: the protocol has check %q, seen %q, %v", check, got.Check, got.Seen, err)
			}
		}
		seen("jit", "Ann@acme.example", map[string]any{"email_verified": false}, "unverified: ann@acme.example")
		seen("jit", "ann@acme.example", map[string]any{"email_verified": "true"}, "unverified: ann@acme.example")
		seen("jit", "ann@acme.example", map[string]any{"email_verified": true}, "ann@acme.example")
		s.edit(func(c *doorward.Connection) { c.JIT = doorward.JITDomains })
		ben := s.member("ben", doorward.RoleUser)
		_, err := w.Node(0).Users.Remove(w.Context(), s.owner.Caller, ben.User, user.Handover{}, nil)
		w.NoError(err)
		seen("removed", ben.User.Email, map[string]any{"email_verified": true}, ben.User.Email)

		link := doorward.Caller{Principal: doorward.Principal{Kind: doorward.BySetupLink, ID: "stl_1", TenantID: s.owner.User.TenantID, ConnectionID: s.conID}}
		page, err := w.Node(0).Connections.Attempts(w.Context(), link, s.conID, doorward.Window{Limit: 10})
		w.NoError(err)
		for _, a := range page.Items {
			if a.Kind == doorward.AttemptSignIn && a.Seen != "acme.example" {
				t.Errorf("the set-up link sees %q", a.Seen)
			}
		}
	})
}

// TestTestThatNeverEnds: a provider that doesn't know the redirect address keeps the browser; ten minutes later
// the test says so.
func TestTestThatNeverEnds(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		w := &world{Fixture: f}
		s := w.site("acme.example", doorward.JITDomains)
		s.provider.Change(func(p *oidctest.Settings) { p.Apps[0].RedirectURIs = []string{"https://doorward.example/callback"} })
		wait := func(begins bool, advice string) {
			t.Helper()
			test, err := w.Node(0).Tests.Make(w.Context(), s.owner.Caller, s.conID)
			w.NoError(err)
			if begins {
				address, err := s.browser().as(s.owner).start(signon.Ask{Test: test.ID})
				w.NoError(err)
				if _, err := s.provider.SignIn(address); err == nil {
					t.Fatal("the provider knows the address")
				}
			}
			clock.Move(doorward.TestLife)
			test, err = w.Node(0).Tests.Show(w.Context(), s.owner.Caller, s.conID, test.ID)
			w.NoError(err)
			if check, got := notable(test); test.Status != doorward.TestFailed || check != "callback" || got != advice {
				t.Errorf("the test ends with %s, %+v", test.Status, test.Checks)
			}
		}
		wait(true, "redirect_uri")
		wait(false, "start_again")
	})
}

// TestClaimsOfTestsEnd: what a provider said at a test is gone a day later, and what the
// protocol has of it once who tested is erased.
func TestClaimsOfTestsEnd(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		w := &world{Fixture: f}
		s := w.site("acme.example", doorward.JITDomains)
		tester := s.member("tester", doorward.RoleOwner)
		s.says("veravanish", "veravanish@elsewhere.example", map[string]any{"name": "Veravanish"}) // no random text has it
		test, err := w.Node(0).Tests.Make(w.Context(), tester.Caller, s.conID)
		w.NoError(err)
		b := s.browser().as(tester)
		address, err := b.start(signon.Ask{Test: test.ID})
		w.NoError(err)
		w.NoError(apptest.ErrorOf(b.finish(b.callback(address))))
		left := func() (tables []string) {
			for _, row := range w.AllRows() {
				if strings.Contains(strings.ToLower(row), "veravanish") {
					table, _, _ := strings.Cut(row, ":")
					tables = append(tables, table)
				}
			}
			return tables
		}
		if got := left(); !slices.Equal(got, []string{"connection_attempts", "connection_tests"}) {
			t.Fatalf("the claims are in %v", got)
		}
		w.NoError(apptest.ErrorOf(w.Node(0).Users.EraseAddress(w.Context(), apptest.Operator, tester.User.Email)))
		if got := left(); !slices.Equal(got, []string{"connection_tests"}) {
			t.Errorf("after the erasure of who tested they are in %v", got)
		}
		clock.Move(doorward.TestsKept)
		if _, err := w.Node(0).Tests.Show(w.Context(), s.owner.Caller, s.conID, test.ID); apptest.Code(err) != doorward.CodeNotFound {
			t.Errorf("a day later the test is answered %v", err)
		}
		w.NoError(w.Node(0).Connections.Sweep(w.Context()))
		if got := left(); len(got) > 0 {
			t.Errorf("a day later they are in %v", got)
		}
	})
}

// TestMistakesHere: what is wrong with what was typed is refused when it is typed, with a sentence.
func TestMistakesHere(t *testing.T) {
	onSQLite(t, func(w *world) {
		s := w.site("acme.example", doorward.JITDomains)
		issuer := s.provider.Issuer()
		for _, one := range []struct {
			name, issuer, code string
			lie                func(map[string]any)
			says               string // in the sentence
		}{
			{"Entra's common issuer", "https://login.microsoftonline.com/common/v2.0", "multi_tenant_issuer", nil, ""},
			{"Entra's issuer of organisations", "https://login.microsoftonline.com/organizations/v2.0", "multi_tenant_issuer", nil, ""},
			{"no https", "http://provider.example", "invalid", nil, ""},
			{"a fragment", issuer + "#", "invalid", nil, ""},
			{"an internal address", "https://10.0.0.1", "address_refused", nil, "--sso-allow"},
			{"nobody there", "https://127.0.0.1:1", "unreachable", nil, "connection is refused"},
			{"another name on the certificate", strings.Replace(issuer, "127.0.0.1", "localhost", 1), "unreachable", nil, "for another name"},
			{"no document there", issuer + "/elsewhere", "unreachable", nil, "HTTP 404 Not Found"},
			{"a slash too many", issuer, "issuer_mismatch", func(d map[string]any) { d["issuer"] = issuer + "/" }, "calls itself " + issuer + "/."},
			{"document of another issuer", issuer, "issuer_mismatch", func(d map[string]any) { d["issuer"] = "https://other.example" }, "calls itself https://other.example."},
			{"document of any directory", issuer, "multi_tenant_issuer", func(d map[string]any) { d["issuer"] = "https://login.microsoftonline.com/{tenantid}/v2.0" }, ""},
			{"a document without an issuer", issuer, "issuer_mismatch", func(d map[string]any) { delete(d, "issuer") }, "names no issuer"},
			{"an endpoint without https", issuer, "invalid", func(d map[string]any) { d["token_endpoint"] = "http://provider.example/token" }, ""},
		} {
			s.provider.Change(func(p *oidctest.Settings) { p.Lies.Discovery = one.lie })
			_, err := w.Node(0).Connections.Create(w.Context(), s.owner.Caller, connection.Draft{Type: "oidc", Name: typed("Mistake"), Issuer: &one.issuer, ClientID: typed("a")})
			if got := faultsOf(err); len(got) != 1 || got[0].Pointer != "/issuer" || got[0].Code != one.code || got[0].Message == "" || !strings.Contains(got[0].Message, one.says) {
				t.Errorf("%s: %+v, %v", one.name, got, err)
			}
		}
	})
}

func faultsOf(err error) []doorward.FieldError {
	var e *doorward.Error
	if !errors.As(err, &e) {
		return nil
	}
	return e.Fields
}

// TestChangedDuringTest: a test says that the connection has changed since.
func TestChangedDuringTest(t *testing.T) {
	onSQLite(t, func(w *world) {
		s := w.site("acme.example", doorward.JITDomains)
		w.write(func(tx *store.Tx) error {
			return apptest.ErrorOf(tx.SetConnectionStatus(w.Context(), s.conID, doorward.ConnectionDraft))
		})
		s.says("subject-1", "ann@acme.example", nil)
		test := s.test(func() {
			_, _, err := w.Node(0).Connections.Edit(w.Context(), s.owner.Caller, s.conID, connection.Change{Draft: connection.Draft{EmailFrom: typed("upn")}})
			w.NoError(err)
			s.says("subject-1", "ann@acme.example", map[string]any{"upn": "ann@acme.example"})
		})
		if check, advice := notable(test); test.Status != doorward.TestFailed || check != "changed" || advice != "changed" {
			t.Errorf("the test ends with %s, %+v", test.Status, test.Checks)
		}
	})
}

// adviceElsewhere are those whose mistakes are not in a list here, with the test that makes them.
var adviceElsewhere = map[string]string{
	"changed": "TestChangedDuringTest",
	"fresh":   "TestFreshSignIn of internal/oidcrp",
	"tls":     "TestUnknownAuthority of internal/oidcrp",

	"context":           "TestStepUpBySAML",
	"metadata_entity":   "TestMetadataAreReadDaily of app/provider",
	"sign_response":     "TestEncryption of internal/samlsp",
	"subject":           "TestSAMLTest",
	"subject_attribute": "TestSubjectFrom of internal/samlsp",
	"taken_away":        "TestAllTakenAway of app/provider",
}

// TestEachAdviceHasAMistake: there is no advice that nothing leads to.
func TestEachAdviceHasAMistake(t *testing.T) {
	seen := map[string]bool{}
	for advice := range adviceElsewhere {
		seen[advice] = true
	}
	for _, m := range mistakes {
		seen[m.advice] = true
	}
	for _, one := range refusedPeople {
		seen[one.advice] = true
	}
	for _, l := range samlLies {
		seen[l.advice] = true
	}
	for _, advice := range signon.Advices {
		if !seen[advice] {
			t.Errorf("no mistake leads to the advice %q", advice)
		}
	}
}

// TestLastSecretIsKept: while sign-on is demanded, the last secret of a connection by which people of a domain
// sign in can't be deleted: nobody would get in any more. One that has been replaced can.
func TestLastSecretIsKept(t *testing.T) {
	onSQLite(t, func(w *world) {
		s := w.site("acme.example", doorward.JITDomains)
		s.says("subject-1", "ann@acme.example", nil)
		first, err := w.Node(0).Connections.Connection(w.Context(), s.owner.Caller, s.conID)
		w.NoError(err)
		remove := func(secretID string) doorward.Code {
			return apptest.Code(w.Node(0).ClientSecrets.Delete(w.Context(), s.owner.Caller, s.conID, secretID))
		}
		w.write(func(tx *store.Tx) error { return s.setMode(tx, doorward.SSORequired) })
		if code := remove(first.Secrets[0].ID); code != doorward.CodeSSORequiredHere {
			t.Errorf("the last secret is answered %q", code)
		}
		s.in(s.browser().signIn())
		next, err := w.Node(0).ClientSecrets.Add(w.Context(), s.owner.Caller, s.conID, clientsecret.Typed{Secret: "the next one"})
		w.NoError(err)
		if code := remove(first.Secrets[0].ID); code != "" {
			t.Errorf("the one that was replaced is answered %q", code)
		}
		w.write(func(tx *store.Tx) error { return s.setMode(tx, doorward.SSOOptional) })
		if code := remove(next.ID); code != "" {
			t.Errorf("the last one where nothing is demanded is answered %q", code)
		}
	})
}
