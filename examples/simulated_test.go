package examples_test

import (
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/waittest"
)

// Traefik and Envoy don't run in these tests. From their configurations the tests build
// the requests that they are documented to send, send them to a real Doorward, and
// apply its answers as documented.

// simulatedGateway is a gateway simulated from its documentation and its example.
type simulatedGateway struct {
	// authRequest returns the request that the gateway sends to Doorward for a client's
	// request to a route that needs the action.
	authRequest func(t *testing.T, server string, action string, r *http.Request) *http.Request
	// pass returns the headers that the service gets after an answer of 200.
	pass func(r *http.Request, answer http.Header) http.Header
}

// clientRequest is a request of a client to the gateway.
func clientRequest(t *testing.T, route, token string, headers ...string) *http.Request {
	t.Helper()
	method, path, _ := strings.Cut(route, " ")
	r, err := http.NewRequestWithContext(t.Context(), method, "http://platform.example"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.RemoteAddr = "192.0.2.7:4711"
	if token != "" {
		r.Header.Set("Cookie", "JSESSIONID="+token)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

// actionOfRoute has the routes of all examples, each with the action that it needs.
var actionOfRoute = map[string]string{
	"GET /messages": "message.read", "HEAD /messages/msg_1": "message.read", "POST /messages": "message.send",
	"GET /reports/daily?format=csv": "report.read",
	// The client's URL must not change the question to Doorward.
	"POST /messages?action=message.read": "message.send", "GET /messages?a=1;b=%zz&original=&action=none": "message.read",
}

func testSimulated(t *testing.T, g simulatedGateway) {
	s := &site{gateway: "platform.example", server: doorwardtest.Start(t, doorwardtest.BaseURL("https://platform.example"), doorwardtest.TrustLoopback(), doorwardtest.Audiences("https://service.example"))}
	s.populate(t)
	send := func(t *testing.T, action string, r *http.Request) answer {
		t.Helper()
		res, err := client.Do(g.authRequest(t, s.server.Node.Address(), action, r))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(io.LimitReader(res.Body, 2048))
		if err != nil || len(body) == 2048 {
			t.Errorf("an answer of %d bytes or more, %v", len(body), err)
		}
		return answer{res.StatusCode, res.Header, body}
	}
	t.Run("roles", func(t *testing.T) { simulateRoles(t, s, g, send) })
	t.Run("refusals", func(t *testing.T) { simulateRefusals(t, s, send) })
	t.Run("spoofing", func(t *testing.T) { simulateSpoofing(t, s, g, send) })
	t.Run("claims of the client", func(t *testing.T) { simulateStated(t, s, send) })
	t.Run("outage", func(t *testing.T) {
		if err := s.server.Node.DB.Close(); err != nil {
			t.Fatal(err)
		}
		var got answer
		waittest.Until(t, "the lease is over", func() bool {
			got = send(t, "message.send", clientRequest(t, "POST /messages", s.people["USER"].Token()))
			return got.status != http.StatusOK
		})
		wantUnavailable(t, got)
	})
}

type sender func(t *testing.T, action string, r *http.Request) answer

func simulateRoles(t *testing.T, s *site, g simulatedGateway, send sender) {
	for route, action := range actionOfRoute {
		for _, role := range roles {
			p := s.people[role]
			r := clientRequest(t, route, p.Token())
			got := send(t, action, r)
			if role == "VIEWER" && action == "message.send" {
				wantProblem(t, got, http.StatusForbidden, "forbidden")
				continue
			}
			if got.status != http.StatusOK || len(got.body) > 0 {
				t.Errorf("%s %s: %d %s", role, route, got.status, got.body)
				continue
			}
			wantPassed(t, g.pass(r, got.header), p.identity)
		}
	}
}

// wantPassed checks that the service gets the true identity and no other.
func wantPassed(t *testing.T, h http.Header, want identity) {
	t.Helper()
	got := identity{h.Get("X-Auth-User"), h.Get("X-Auth-Tenant"), h.Get("X-Auth-Role"), h.Get("X-Auth-Email"), h.Get("X-Auth-Session"), h.Get("X-Auth-Key"), subjectOf(h.Get("X-Auth-Assertion")), h.Get("X-Auth-AAL")}
	if got != want {
		t.Errorf("the service gets %+v, want %+v", got, want)
	}
}

func simulateRefusals(t *testing.T, s *site, send sender) {
	for _, token := range []string{"", "junk", strings.Repeat("A", 43)} {
		got := send(t, "report.read", clientRequest(t, "GET /reports", token))
		wantProblem(t, got, http.StatusUnauthorized, "unauthenticated")
		if challenge := got.header.Get("WWW-Authenticate"); challenge != `Bearer realm="doorward"` {
			t.Errorf("WWW-Authenticate: %q", challenge)
		}
	}
	owner, user := s.people["OWNER"].Token(), s.people["USER"].Token()
	wantProblem(t, send(t, "none", clientRequest(t, "GET /messages", owner)), http.StatusForbidden, "unknown_action")

	for _, headers := range [][]string{
		{"Origin", "https://other.example"},
		{"Sec-Fetch-Site", "cross-site"},
		{"Origin", "https://other.example", "X-Forwarded-Method", "GET", "X-Original-Method", "GET"},
	} {
		wantProblem(t, send(t, "message.send", clientRequest(t, "POST /messages", user, headers...)), http.StatusForbidden, "cross_origin")
		if got := send(t, "message.read", clientRequest(t, "GET /messages", user, headers...)); got.status != http.StatusOK {
			t.Errorf("GET with %q: %d %s", headers, got.status, got.body)
		}
	}
	for origin, refused := range map[string]bool{"https://other.example": true, "https://platform.example": false} {
		got := send(t, "message.read", clientRequest(t, "GET /live", user, append(slices.Clone(handshake), "Origin", origin)...))
		switch {
		case refused:
			wantProblem(t, got, http.StatusForbidden, "cross_origin")
		case got.status != http.StatusOK:
			t.Errorf("a WebSocket from %s: %d %s", origin, got.status, got.body)
		}
	}
	if got := send(t, "message.send", clientRequest(t, "POST /messages", user, "Origin", "https://platform.example")); got.status != http.StatusOK {
		t.Errorf("POST from the own origin: %d %s", got.status, got.body)
	}
	if got := send(t, "message.send", clientRequest(t, "POST /messages", user, "Authorization", "Bearer dwo_x")); got.status != http.StatusUnauthorized {
		t.Errorf("POST with two credentials: %d %s", got.status, got.body)
	}
}

func simulateSpoofing(t *testing.T, s *site, g simulatedGateway, send sender) {
	viewer := s.people["VIEWER"]
	r := clientRequest(
		t, "GET /reports", viewer.Token(),
		"X-Auth-User", "usr_evil", "x-auth-role", "OWNER", "X-AUTH-ROLE", "OWNER", "X-Auth-Key", "key_evil",
		"X-Forwarded-Uri", "/evil", "X-Original-URL", "/evil", "X-Rewrite-URL", "/evil", "X-HTTP-Method-Override", "evil",
		"Forwarded", "for=evil", "Authorization", "Basic evil",
	)
	got := send(t, "report.read", r)
	if got.status != http.StatusOK {
		t.Fatalf("%d %s", got.status, got.body)
	}
	passed := g.pass(r, got.header)
	wantPassed(t, passed, viewer.identity)
	for name, values := range passed {
		checkHeader(t, name, values)
	}
}

// settings is a part of a YAML file.
type settings struct{ node any }

func readSettings(t *testing.T, file string) settings {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var s settings
	if err := yaml.Unmarshal(text, &s.node); err != nil {
		t.Fatal(err)
	}
	return s
}

// at follows keys of maps; a missing one gives nil.
func (s settings) at(names ...string) settings {
	for _, name := range names {
		m, _ := s.node.(map[string]any)
		s.node = m[name]
	}
	return s
}

func (s settings) text() string {
	text, _ := s.node.(string)
	return text
}

func (s settings) list() (all []settings) {
	nodes, _ := s.node.([]any)
	for _, n := range nodes {
		all = append(all, settings{n})
	}
	return all
}

func (s settings) texts() (all []string) {
	for _, item := range s.list() {
		all = append(all, item.text())
	}
	return all
}

// identityHeaders returns the names of the identity headers, sorted.
func identityHeaders() []string {
	all := strings.Split(identityNames, ", ")
	slices.Sort(all)
	return all
}
