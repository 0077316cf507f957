package edge_test

import (
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/waittest"
	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/web/edge"
	"github.com/doorward/doorward/web/front"
)

// The audiences of a server that signs.
const first, second = "https://messages.example", "https://reports.example/a%20b"

func signing(c *node.Config) { c.Audiences = []string{first, second} }

// claimsOf reads a token without verifying it. The tests of client and examples verify tokens.
func claimsOf(t *testing.T, token string) (claims map[string]any) {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("%q is no token", token)
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err == nil {
		err = json.Unmarshal(text, &claims)
	}
	if err != nil {
		t.Fatal(err)
	}
	return claims
}

func TestEveryPassingCheckIsSigned(t *testing.T) {
	t.Parallel()
	d := start(t, signing)
	user, viewer := d.people["USER"], d.people["VIEWER"]
	// Text after &original= is the client's own query, and isn't read.
	for query, audience := range map[string]string{
		"": first, "action=message.send": first, "action=message.send&original=/m?aud=x&action=billing.read": first,
		"aud=" + first: first, "action=message.send&aud=" + url.QueryEscape(second): second, "aud=" + url.QueryEscape(second) + "&action=message.send": second,
		"action=message.send&aud=" + first:                            first,
		"action=message.send&aud=" + url.QueryEscape(first):           first,
		"action=message.send&%61ud=" + url.QueryEscape(second):        second,
		"action=message.send&aud=" + first + "&original=/m?aud=x&y=%": first,
		"action=message%2Esend&aud=" + first:                          first,
	} {
		a := d.check(t, "GET", query, as(user, "X-Auth-Assertion", "forged"))
		if a.status != http.StatusOK {
			t.Errorf("%s: %d %s", query, a.status, a.body)
			continue
		}
		got := claimsOf(t, a.header.Get("X-Auth-Assertion"))
		if got["aud"] != audience || got["sub"] != user.ID || got["sid"] != user.identity["X-Auth-Session"] || got["role"] != "USER" || got["iss"] != d.URL {
			t.Errorf("%s: the claims are %v", query, got)
		}
	}
	for query, code := range map[string]string{
		"aud=x": "unknown_audience", "aud=": "unknown_audience", "aud": "unknown_audience", "action=message.send&aud=" + second: "unknown_audience",
		"action=message.send&aud=" + first + "/": "unknown_audience", "aud=" + first + "&aud=" + first: "unknown_audience",
		"action=message.send&aud=" + first + "&aud=" + first: "unknown_audience", "aud=" + strings.ToUpper(first): "unknown_audience",
		"aud=" + first + "&action=none": "unknown_action", "action=none&aud=" + first: "unknown_action", "action=&aud=" + first: "unknown_action",
		"action=message.send&aud=" + first + "&action=report.read": "unknown_action", "action=message.send&action=report.read&aud=" + first: "unknown_action",
		"action=message.send&audience=" + first: "invalid_query", "action=message.send&aud=" + first + "&x=1": "invalid_query", "Aud=" + first: "invalid_query",
	} {
		want := http.StatusForbidden
		if code == "invalid_query" {
			want = http.StatusBadRequest
		}
		// check also requires that all identity headers of a refusal are empty.
		d.check(t, "GET", query, as(user, "X-Auth-Assertion", "forged")).fails(want, code)
	}
	d.check(t, "GET", "action=message.send&aud="+first, as(viewer)).fails(http.StatusForbidden, "forbidden")
	d.check(t, "GET", "aud="+first, nil).fails(http.StatusUnauthorized, "unauthenticated")
}

// An assertion states the current role, isn't issued after the end of the session, and isn't
// accepted as a credential.
func TestAssertionsAreNoCredentials(t *testing.T) {
	t.Parallel()
	d := start(t, signing)
	owner, user := d.people["OWNER"], d.people["USER"]
	asserted := func(query string) string { return d.check(t, "GET", query, as(user)).header.Get("X-Auth-Assertion") }
	before := asserted("")
	// An assertion is reused for 10 s, while the node's lease is valid. On a busy machine more time
	// may pass between two checks, or the lease may lapse. Then each check signs a new one.
	waittest.Until(t, "two checks with the same assertion", func() (same bool) {
		again := asserted("action=message.send")
		same, before = again == before && again != "", again
		return same
	})
	d.check(t, "GET", "", headers{"Authorization", "Bearer " + before}).fails(http.StatusUnauthorized, "unauthenticated")
	d.check(t, "GET", "", headers{"Cookie", "JSESSIONID=" + before}).fails(http.StatusUnauthorized, "unauthenticated")
	if a := d.send(t, "PATCH /api/v2/users/"+user.ID, strings.NewReader(`{"role":"ADMIN"}`), as(owner, "Content-Type", "application/json")); a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if got := claimsOf(t, d.check(t, "GET", "", as(user)).header.Get("X-Auth-Assertion")); got["role"] != "ADMIN" {
		t.Errorf("right after the change of the role it states %v", got["role"])
	}
	d.send(t, "POST /api/v2/auth/logout", nil, as(user))
	d.check(t, "GET", "", as(user)).fails(http.StatusUnauthorized, "unauthenticated")
}

func TestToken(t *testing.T) {
	t.Parallel()
	d := start(t, signing)
	user := d.people["USER"]
	post := func(body string, h headers) answer {
		return d.send(t, "POST /api/v2/auth/token", strings.NewReader(body), append(h, "Content-Type", "application/json"))
	}
	a := post(`{"audience":"`+second+`"}`, as(user))
	var got struct {
		Assertion string
		ExpiresAt time.Time
	}
	if err := json.Unmarshal(a.body, &got); a.status != http.StatusOK || err != nil {
		t.Fatalf("%d %s", a.status, a.body)
	}
	claims := claimsOf(t, got.Assertion)
	if claims["aud"] != second || claims["sub"] != user.ID || claims["exp"] != float64(got.ExpiresAt.Unix()) {
		t.Errorf("the claims are %v, until %v", claims, got.ExpiresAt)
	}
	for body, want := range map[string]string{`{"audience":"https://x.example"}`: `"code":"invalid"`, `{}`: `"code":"required"`, `{"audience":""}`: `"code":"required"`} {
		if a := post(body, as(user)); a.status != http.StatusUnprocessableEntity || !strings.Contains(string(a.body), want) || !strings.Contains(string(a.body), `"pointer":"/audience"`) {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
	if a := post(`{"audience":"`+first+`"}`, nil); a.status != http.StatusUnauthorized {
		t.Errorf("without a session: %d", a.status)
	}
	if a := post(`{"audience":"`+first+`"}`, headers{"Authorization", "Bearer " + d.createOperatorKey(t)}); a.status != http.StatusForbidden {
		t.Errorf("with an operator key: %d", a.status)
	}
}

// An API key is stated as itself, not as its owner.
func TestAssertionsOfKeys(t *testing.T) {
	t.Parallel()
	d := start(t, signing)
	status, body := d.people["OWNER"].Post("/api/v2/api-keys", map[string]any{"name": "test", "permissions": []string{"message.send"}})
	var made struct {
		APIKey struct{ ID string }
		Key    string
	}
	if err := json.Unmarshal(body, &made); status != http.StatusCreated || err != nil {
		t.Fatalf("%d %s", status, body)
	}
	bearer := headers{"Authorization", "Bearer " + made.Key}
	a := d.send(t, "POST /api/v2/auth/token", strings.NewReader(`{"audience":"`+first+`"}`), append(bearer, "Content-Type", "application/json"))
	var got struct{ Assertion string }
	if err := json.Unmarshal(a.body, &got); a.status != http.StatusOK || err != nil {
		t.Fatalf("%d %s", a.status, a.body)
	}
	for _, token := range []string{got.Assertion, d.check(t, "GET", "action=message.send", bearer).header.Get("X-Auth-Assertion")} {
		c := claimsOf(t, token)
		if c["sub"] != made.APIKey.ID || c["key"] != made.APIKey.ID || c["role"] != "USER" || c["tenant"] != d.people["OWNER"].identity["X-Auth-Tenant"] || c["sid"] != nil || c["aal"] != nil {
			t.Errorf("the claims are %v", c)
		}
	}
	d.check(t, "GET", "action=report.read", bearer).fails(http.StatusForbidden, "forbidden")
}

func TestJWKS(t *testing.T) {
	t.Parallel()
	// By the number of public keys: the current and the next one, and none without audiences.
	for keys, d := range map[int]*server{2: start(t, signing), 0: start(t)} {
		a := d.send(t, "GET /.well-known/jwks.json", nil, nil)
		var set struct{ Keys []map[string]string }
		if err := json.Unmarshal(a.body, &set); a.status != http.StatusOK || err != nil || len(set.Keys) != keys || strings.Contains(string(a.body), `"d"`) {
			t.Errorf("%d %s", a.status, a.body)
		}
		if got := a.header.Get("Cache-Control"); got != "max-age=300" {
			t.Errorf("Cache-Control: %s", got)
		}
	}
}

// Without audiences nothing is signed, and no audience is known.
func TestNothingIsSignedWithoutAudiences(t *testing.T) {
	t.Parallel()
	d := start(t)
	d.check(t, "GET", "", as(d.people["USER"])).passes(d.people["USER"]) // with an empty assertion
	d.check(t, "GET", "aud="+first, as(d.people["USER"])).fails(http.StatusForbidden, "unknown_audience")
}

// A signed check from memory makes no more allocations than an unsigned one.
func TestSigningAddsNoAllocations(t *testing.T) {
	allocations := func(query string, options ...doorwardtest.Option) float64 {
		d := start(t, options...)
		base, err := url.Parse(d.URL)
		if err != nil {
			t.Fatal(err)
		}
		handler := edge.Check(front.New(d.Node.App, base, nil, slog.New(slog.DiscardHandler)), http.NotFoundHandler())
		req := httptest.NewRequest("GET", edge.Path+query, nil)
		req.Header = http.Header{"Cookie": {"JSESSIONID=" + d.people["USER"].Token()}, "X-Request-Id": {"test"}}
		w := httptest.NewRecorder()
		// The fewest of several runs: a node that gets no CPU for a while loses its lease. Then it
		// reads the session from the database and signs again.
		fewest := math.Inf(1)
		for range 20 {
			fewest = min(fewest, testing.AllocsPerRun(20, func() {
				clear(w.Header())
				if handler.ServeHTTP(w, req); w.Header().Get("X-Auth-User") == "" {
					t.Fatal("the check did not pass")
				}
			}))
		}
		return fewest
	}
	plain := allocations("?action=message.send")
	for _, query := range []string{"?action=message.send", "?action=message.send&aud=" + first, "?action=message.send&aud=" + url.QueryEscape(second) + "&original=/m"} {
		if got := allocations(query, signing); got != plain {
			t.Errorf("%s makes %v allocations, an unsigned check %v", query, got, plain)
		}
	}
}
