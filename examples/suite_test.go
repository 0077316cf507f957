package examples_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/internal/waittest"
)

// testGateway runs the tests for every gateway, and stops Doorward near the end.
func testGateway(t *testing.T, s *site) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, *site)
	}{
		{"roles", testRoles},
		{"refusals", testRefusals},
		{"claims of the client", testStated},
		{"hosts of the client", testStatedHosts},
		{"claims in a client's own check", testStatedDirectly},
		{"bodies", testBodies},
		{"other origins", testOrigins},
		{"WebSockets", testWebSockets},
		{"cookies", testCookies},
		{"bearer sessions", testBearer},
		{"cookies of the service", testServiceCookies},
		{"signing in", testSigningIn},
		{"step-up", testStepUp},
		{"attacks", testAttacks},
		{"doctor", testDoctor},
		{"Doorward itself", testDoorward},
		{"the service's own errors", testOwnErrors},
		{"service down", testServiceDown},
		{"revocation", testRevocation},
		{"outage", testOutage},
		{"too many requests", testTooManyRequests}, // Doorward is stopped
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, s) })
	}
}

func testRoles(t *testing.T, s *site) {
	for _, role := range roles {
		p := s.people[role]
		for _, route := range []string{"POST /messages", "GET /messages", "GET /messages/msg_1?full=1", "GET /reports", "GET /reports/daily"} {
			method, path, _ := strings.Cut(route, " ")
			got := s.ask(t, p.Token(), route, "")
			if role == "VIEWER" && method == http.MethodPost {
				wantProblem(t, got, http.StatusForbidden, "forbidden")
				continue
			}
			if got.status != http.StatusOK {
				t.Errorf("%s %s: %d %s", role, route, got.status, got.body)
				continue
			}
			e := got.echo(t)
			if e.Identity != p.identity || e.Method != method || e.Path != path || !s.isOwnHost(e.Host) {
				t.Errorf("%s %s: the service got %+v, want %+v", role, route, e, p.identity)
			}
			if e.Headers.Get("X-Forwarded-For") != "127.0.0.1" || e.Headers.Get("X-Forwarded-Proto") != "http" || !s.isOwnHost(e.Headers.Get("X-Forwarded-Host")) {
				t.Errorf("%s %s: the service gets %v", role, route, e.Headers)
			}
		}
		if got := s.ask(t, p.Token(), "HEAD /reports", ""); got.status != http.StatusOK || len(got.body) > 0 {
			t.Errorf("%s HEAD /reports: %d and %d bytes", role, got.status, len(got.body))
		}
	}
}

// isOwnHost reports whether the host is the gateway's, with or without its port.
func (s *site) isOwnHost(host string) bool {
	return host == s.gateway || host+port(s.gateway) == s.gateway
}

// wantProblem checks that the answer is this refusal by Doorward, unchanged.
func wantProblem(t *testing.T, got answer, status int, code string) {
	t.Helper()
	if p := got.problem(); got.status != status || p.Code != code || p.Status != status {
		t.Errorf("%d %s %q, want %d %s as a problem", got.status, got.header.Get("Content-Type"), got.body, status, code)
	}
	for name, values := range got.header {
		if strings.HasPrefix(name, "X-Auth-") && strings.Join(values, "") != "" {
			t.Errorf("the client gets %s: %q", name, values)
		}
	}
}

func testRefusals(t *testing.T, s *site) {
	s.reached(t)
	for _, token := range []string{"", strings.Repeat("A", 43), "junk"} {
		for _, route := range []string{"POST /messages", "GET /messages", "GET /reports"} {
			got := s.ask(t, token, route, "")
			wantProblem(t, got, http.StatusUnauthorized, "unauthenticated")
			if challenges := got.header.Values("WWW-Authenticate"); len(challenges) != 1 || challenges[0] != `Bearer realm="doorward"` {
				t.Errorf("WWW-Authenticate: %q", challenges)
			}
		}
	}
	for _, route := range []string{"PUT /messages", "DELETE /messages/msg_1", "POST /reports", "OPTIONS /messages", "PROPFIND /reports"} {
		if got := s.ask(t, s.people["OWNER"].Token(), route, ""); got.status != http.StatusMethodNotAllowed {
			t.Errorf("%s isn't in the table of routes, but got %d %s", route, got.status, got.body)
		}
	}
	if lines := s.reached(t); len(lines) > 0 {
		t.Errorf("these reached the service: %q", lines)
	}
}

// testBodies: the question to Doorward must not consume the body.
func testBodies(t *testing.T, s *site) {
	token := s.people["USER"].Token()
	long := strings.Repeat("x", 200_000)
	if e := s.ask(t, token, "POST /messages", long, "Content-Type", "text/plain").echo(t); e.BodyBytes != len(long) {
		t.Errorf("the service got %d bytes of %d", e.BodyBytes, len(long))
	}
	got := s.raw(t, strings.ReplaceAll(viewerRequest("POST /messages", "Transfer-Encoding: chunked"), "{viewer}", token)+chunked("hello"))
	if len(got) == 0 || got[0].status != http.StatusOK || got[0].echo(t).BodyBytes != 5 {
		t.Errorf("a chunked body: %v", got)
	}
}

// testOrigins: a browser names the origin of a request, and sends the cookie even if
// the person didn't intend the request.
func testOrigins(t *testing.T, s *site) {
	token, own := s.people["USER"].Token(), "http://"+s.gateway
	for _, test := range []struct {
		route   string
		headers []string
		refused bool
	}{
		{"POST /messages", []string{"Origin", own}, false},
		{"POST /messages", []string{"Origin", own, "Sec-Fetch-Site", "same-origin"}, false},
		{"POST /messages", []string{"Origin", "https://other.example"}, true},
		{"POST /messages", []string{"Origin", "null"}, true},
		{"POST /messages", []string{"Sec-Fetch-Site", "cross-site"}, true},
		{"POST /messages", []string{"Sec-Fetch-Site", "same-site", "Origin", own}, true},
		{"POST /messages", []string{"Origin", "https://other.example", "X-Forwarded-Method", "GET"}, true},
		{"POST /messages", []string{"Origin", "https://other.example", "X-Original-Method", "GET"}, true},
		{"POST /messages", []string{"Origin", "https://other.example", "X-Original-Method", "GET", "X-Forwarded-Method", "GET"}, true},
		{"GET /messages", []string{"Origin", "https://other.example", "Sec-Fetch-Site", "cross-site"}, false},
	} {
		got := s.ask(t, token, test.route, "", test.headers...)
		switch {
		case test.refused:
			wantProblem(t, got, http.StatusForbidden, "cross_origin")
		case got.status != http.StatusOK:
			t.Errorf("%s with %q: %d %s", test.route, test.headers, got.status, got.body)
		}
	}
}

// handshake are the headers of a browser's WebSocket handshake.
var handshake = []string{
	"Connection", "Upgrade", "Upgrade", "websocket",
	"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version", "13",
}

// testWebSockets: a handshake is a GET that a page of any origin can send, with the
// cookie, and whose connection it can then read.
func testWebSockets(t *testing.T, s *site) {
	p, own := s.people["VIEWER"], "http://"+s.gateway
	s.reached(t)
	for _, headers := range [][]string{
		{"Origin", "https://other.example"},
		{"Origin", "null"},
		{"Origin", own, "Sec-Fetch-Site", "same-site"},
		{"Origin", "https://other.example", "X-Forwarded-Method", "GET", "X-Original-Method", "GET"},
	} {
		for _, path := range []string{"/live", "/messages"} {
			got := s.ask(t, p.Token(), "GET "+path, "", append(slices.Clone(handshake), headers...)...)
			wantProblem(t, got, http.StatusForbidden, "cross_origin")
		}
	}
	wantProblem(t, s.ask(t, "", "GET /live", "", append(slices.Clone(handshake), "Origin", own)...), http.StatusUnauthorized, "unauthenticated")
	if lines := s.reached(t); len(lines) > 0 {
		t.Errorf("these reached the service: %q", lines)
	}
	for _, headers := range [][]string{{"Origin", own}, {"Origin", own, "Sec-Fetch-Site", "same-origin"}, nil} {
		got := s.ask(t, p.Token(), "GET /live", "", append(slices.Clone(handshake), headers...)...)
		if got.status != http.StatusSwitchingProtocols || len(got.body) < 4 {
			t.Fatalf("%q: %d %s", headers, got.status, got.body)
		}
		got.body = bytes.TrimSuffix(got.body[4:], []byte("\x88\x00")) // one message, and the end
		if e := got.echo(t); e.Identity != p.identity || e.Path != "/live" || e.Headers.Get("Cookie") != "" {
			t.Errorf("the service got %+v, want %+v", e, p.identity)
		}
	}
}

// page are the headers of a browser that opens a page.
var page = []string{"Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Site", "none"}

// testSigningIn: a browser that opens a page is sent to sign in, and comes back with all
// of its query.
func testSigningIn(t *testing.T, s *site) {
	s.reached(t)
	origin := "http://" + s.gateway
	for _, path := range []string{
		"/reports", "/reports/daily?a=b&c=d", "/reports?x=%26&y=%23&z=%2F%2f", "/reports?original=/x&original=https://evil.example/",
		"/reports?return=/docs&lang=de&action=none", "/reports?q=a+b%20c&empty=&bad=%zz&%", "/reports?to=javascript:alert(1)&u=http://h/?x=1",
		"/reports?'\"$request_uri{query}",
	} {
		to := ""
		for _, headers := range [][]string{page, page[:2]} { // over plain HTTP browsers send no Sec-Fetch-Mode
			got := s.raw(t, rawRequest("GET "+path+" HTTP/1.1", append([]string{"Host: " + s.gateway}, headerLines(headers)...)...))
			if len(got) == 0 || got[0].status != http.StatusFound || got[0].header.Get("Cache-Control") != "no-store" {
				t.Fatalf("%s: %+v", path, got)
			}
			if to = strings.TrimPrefix(got[0].header.Get("Location"), origin); to != "/login?original="+origin+path {
				t.Errorf("%s leads to %q", path, to)
			}
		}
		form := url.Values{"email": {"viewer@acme.example"}, "password": {"four quiet green llamas"}}.Encode()
		back := s.raw(t, viewerRequest("POST "+to, "Content-Type: application/x-www-form-urlencoded", "Content-Length: "+fmt.Sprint(len(form)))+form)
		if len(back) == 0 || back[0].status != http.StatusSeeOther || back[0].header.Get("Location") != path {
			t.Errorf("the login for %s answers %+v", path, back)
		}
	}
	foreign := s.raw(t, rawRequest("GET /reports HTTP/1.1", append([]string{"Host: evil.example"}, headerLines(page)...)...))
	if to := strings.TrimPrefix(foreign[0].header.Get("Location"), "http://evil.example"); to != "/login?original=http://evil.example/reports" {
		t.Errorf("another host leads to %q", to)
	}
	for _, headers := range [][]string{
		nil, {"Accept", "application/json"}, {"Accept", "*/*", "Sec-Fetch-Mode", "cors"}, {"Accept", "text/html", "Sec-Fetch-Mode", "cors"},
	} {
		wantProblem(t, s.ask(t, "", "GET /reports?a=b", "", headers...), http.StatusUnauthorized, "unauthenticated")
	}
	wantProblem(t, s.ask(t, "", "POST /messages", "", page...), http.StatusUnauthorized, "unauthenticated")
	viewer := s.people["VIEWER"].Token()
	wantProblem(t, s.ask(t, viewer, "POST /messages", "", page[:2]...), http.StatusForbidden, "forbidden")
	if got := s.ask(t, viewer, "GET /reports", "", page...); got.status != http.StatusOK {
		t.Errorf("a signed-in browser gets %d", got.status)
	}
	for _, line := range s.reached(t) {
		if !strings.HasPrefix(line, "GET /reports usr_") {
			t.Errorf("this reached the service: %q", line)
		}
	}
}

// headerLines returns headers, given as names and values, as lines of a request.
func headerLines(headers []string) (all []string) {
	for i := 0; i < len(headers); i += 2 {
		all = append(all, headers[i]+": "+headers[i+1])
	}
	return all
}

func testCookies(t *testing.T, s *site) {
	user, viewer := s.people["USER"], s.people["VIEWER"]
	mine, other := "JSESSIONID="+user.Token(), "JSESSIONID="+viewer.Token()
	for _, test := range []struct {
		name    string
		path    string
		headers []string
		valid   bool
	}{
		{"the same twice", "/reports", []string{"Cookie: " + mine + "; " + mine}, true},
		{"the same in two headers", "/reports", []string{"Cookie: " + mine, "Cookie: " + mine}, true},
		{"a Tomcat's beside it", "/reports", []string{"Cookie: JSESSIONID=0123456789ABCDEF0123456789ABCDEF; " + mine}, true},
		{"a Tomcat's in front of it", "/reports", []string{"Cookie: JSESSIONID=0123.node1", "Cookie: a=b; " + mine + "; c=d"}, true},
		{"two that differ", "/reports", []string{"Cookie: " + mine + "; " + other}, false},
		{"two that differ, in two headers", "/reports", []string{"Cookie: " + mine, "Cookie: " + other}, false},
		{"with a bearer key", "/reports", []string{"Cookie: " + mine, "Authorization: Bearer dwo_x"}, false},
		{"in quotes", "/reports", []string{"Cookie: JSESSIONID=\"" + user.Token() + "\""}, false},
		{"under another name", "/reports", []string{"Cookie: jsessionid=" + user.Token()}, false},
		{"in another header", "/reports", []string{"Cookie2: " + mine, "X-Cookie: " + mine}, false},
		{"in the query", "/reports?JSESSIONID=" + user.Token(), nil, false},
	} {
		got := s.raw(t, rawRequest("GET "+test.path+" HTTP/1.1", append([]string{"Host: gateway.example"}, test.headers...)...))
		if len(got) == 0 {
			t.Fatalf("%s: no answer", test.name)
		}
		if !test.valid {
			wantProblem(t, got[0], http.StatusUnauthorized, "unauthenticated")
			continue
		}
		if got[0].status != http.StatusOK {
			t.Errorf("%s: %d %s", test.name, got[0].status, got[0].body)
		} else if e := got[0].echo(t); e.Identity != user.identity {
			t.Errorf("%s: the service got %+v", test.name, e.Identity)
		}
	}
}

// testDoorward: Doorward itself is behind the gateway too, on the same origin, so that the
// browser sends its cookie to both.
func testDoorward(t *testing.T, s *site) {
	body := `{"email": "user@acme.example", "password": "four quiet green llamas"}`
	got := s.ask(
		t, "", "POST /api/v2/auth/login", body, "Content-Type", "application/json",
		"Origin", "http://"+s.gateway, "Sec-Fetch-Site", "same-origin", "X-Forwarded-For", "203.0.113.9",
	)
	token := ""
	for _, c := range (&http.Response{Header: got.header}).Cookies() {
		if c.Name == "JSESSIONID" {
			token = c.Value
		}
	}
	if got.status != http.StatusOK || token == "" {
		t.Fatalf("login: %d %s, Set-Cookie %q", got.status, got.body, got.header.Values("Set-Cookie"))
	}
	if got := s.ask(t, token, "POST /messages", ""); got.status != http.StatusOK || got.echo(t).Identity.User != s.people["USER"].User {
		t.Errorf("with the new session: %d %s", got.status, got.body)
	}
	var session struct{ Session struct{ IP string } }
	if got := s.ask(t, token, "GET /api/v2/auth/session", ""); json.Unmarshal(got.body, &session) != nil || session.Session.IP != "127.0.0.1" {
		t.Errorf("the session's address is %q: %d %s", session.Session.IP, got.status, got.body)
	}
	if got := s.ask(t, "", "POST /api/v2/auth/logout", "", "X-Auth-Role", "OWNER"); got.status != http.StatusNoContent {
		t.Errorf("logout: %d %s", got.status, got.body)
	}
	if got := s.ask(t, "", "GET /metrics", ""); got.status != http.StatusNotFound || got.header.Get("X-Request-Id") != "" {
		t.Errorf("the gateway exposes Doorward's metrics: %d %v", got.status, got.header)
	}
	if got := s.ask(t, "", "GET /problems/forbidden", ""); got.status != http.StatusOK {
		t.Errorf("the page behind a problem's type: %d", got.status)
	}
}

// testBearer: a token in Authorization is checked like a cookie, and neither is passed
// to the service.
func testBearer(t *testing.T, s *site) {
	for _, role := range roles {
		p := s.people[role]
		for _, headers := range [][]string{nil, {"Origin", "https://other.example", "Sec-Fetch-Site", "cross-site"}} {
			headers = append(headers, "Authorization", "Bearer "+p.Token())
			got := s.ask(t, "", "POST /messages", "", headers...)
			if role == "VIEWER" {
				wantProblem(t, got, http.StatusForbidden, "forbidden")
				continue
			}
			if got.status != http.StatusOK {
				t.Errorf("%s with %q: %d %s", role, headers[:len(headers)-1], got.status, got.body)
				continue
			}
			e := got.echo(t)
			if e.Identity != p.identity {
				t.Errorf("%s: the service got %+v", role, e.Identity)
			}
			for name, values := range e.Headers {
				if name == "Cookie" || name == "Authorization" || strings.Contains(strings.Join(values, "\n"), p.Token()) {
					t.Errorf("the credential at the service, in %s", name)
				}
			}
		}
	}
	token := s.people["USER"].Token()
	s.reached(t)
	for _, refused := range [][]string{
		{"Authorization", "Bearer " + strings.Repeat("A", 43)},
		{"Authorization", "Bearer " + token, "Cookie", "JSESSIONID=" + token},
		{"Authorization", "Basic " + token},
	} {
		wantProblem(t, s.ask(t, "", "GET /reports", "", refused...), http.StatusUnauthorized, "unauthenticated")
	}
	if lines := s.reached(t); len(lines) > 0 {
		t.Errorf("these reached the service: %q", lines)
	}
}

// testServiceCookies: the service can't set the session cookie.
func testServiceCookies(t *testing.T, s *site) {
	own := []string{"theme=dark; Path=/", "XJSESSIONID=own", "a=JSESSIONID=own", "JSESSIONIDX=own"}
	evil := []string{
		"JSESSIONID=evil", "JSESSIONID=; Max-Age=0; Path=/", "JSESSIONID=evil; Domain=gateway.example; Secure", "JSESSIONID =evil",
		"JSESSIONID\t=evil", "=JSESSIONID=evil", " = JSESSIONID=evil", "JSESSIONID=evil, theme=dark", "JSESSIONID=evil=evil",
	}
	want := own
	if s.example != "caddy" && s.example != "haproxy" { // nginx can drop only all cookies or none
		want = nil
	}
	for _, status := range []string{"200", "401", "404", "500"} {
		query := url.Values{"status": {status}, "set-cookie": slices.Concat(evil[:4], own, evil[4:])}
		got := s.ask(t, s.people["USER"].Token(), "GET /reports?"+query.Encode(), "")
		if got.echo(t); fmt.Sprint(got.status) != status {
			t.Fatalf("the service answered %s, the client got %d", status, got.status)
		}
		// Browsers ignore an empty one.
		set := slices.DeleteFunc(got.header.Values("Set-Cookie"), func(v string) bool { return v == "" })
		if !slices.Equal(set, want) {
			t.Errorf("%s: the client gets the cookies %q, want %q", status, set, want)
		}
	}
}

// testOwnErrors: the service's own errors are passed on unchanged.
func testOwnErrors(t *testing.T, s *site) {
	for _, status := range []int{401, 403, 404, 500, 502, 503} {
		got := s.ask(t, s.people["USER"].Token(), fmt.Sprintf("GET /reports?status=%d", status), "")
		if got.status != status {
			t.Errorf("the service answered %d, the client got %d", status, got.status)
		} else if e := got.echo(t); e.Identity != s.people["USER"].identity {
			t.Errorf("with %d the service got %+v", status, e.Identity)
		}
	}
}

// testServiceDown: an unreachable service isn't reported as Doorward's answer.
func testServiceDown(t *testing.T, s *site) {
	address := s.service.output.lines()[0]
	s.service.end()
	token := s.people["USER"].Token()
	// HAProxy closes the connection if the service ends while it takes the request: net/http
	// repeats a GET then.
	got := s.ask(t, token, "GET /messages", "")
	if (got.status != http.StatusBadGateway && got.status != http.StatusServiceUnavailable) || got.problem().Code != "" {
		t.Errorf("without the service: %d %s", got.status, got.body)
	}
	file, err := upstreamProgram()
	if err != nil {
		t.Fatal(err)
	}
	s.service, s.seen = run(s.test, ".", file, "-listen", address), 1
	waittest.Until(t, "the service is back", func() bool {
		return s.ask(t, token, "POST /messages", "").status == http.StatusOK
	})
}

// testRevocation: a gateway that cached an answer would pass the next request.
func testRevocation(t *testing.T, s *site) {
	for range 20 {
		user := s.people["USER"]
		token := user.Login()
		if got := s.ask(t, token, "POST /messages", ""); got.status != http.StatusOK {
			t.Fatalf("before logout: %d %s", got.status, got.body)
		}
		if got := s.ask(t, token, "POST /api/v2/auth/logout", ""); got.status != http.StatusNoContent {
			t.Fatalf("logout: %d %s", got.status, got.body)
		}
		wantProblem(t, s.ask(t, token, "POST /messages", ""), http.StatusUnauthorized, "unauthenticated")
	}
	s.people["USER"].Login()
}

// testOutage: without an answer from Doorward nothing passes and nobody gets 401, first
// without its database and then without Doorward.
func testOutage(t *testing.T, s *site) {
	token := s.people["USER"].Token()
	if got := s.ask(t, token, "POST /messages", ""); got.status != http.StatusOK {
		t.Fatalf("before: %d %s", got.status, got.body)
	}
	if err := s.server.Node.DB.Close(); err != nil {
		t.Fatal(err)
	}
	// Until its lease is over, Doorward may answer from memory.
	var got answer
	waittest.Until(t, "the lease is over", func() bool {
		got = s.ask(t, token, "POST /messages", "")
		return got.status != http.StatusOK
	})
	s.reached(t)
	wantUnavailable(t, got)
	wantUnavailable(t, s.ask(t, token, "GET /reports", ""))
	s.server.Stop()
	wantUnavailable(t, s.ask(t, token, "POST /messages", ""))
	wantUnavailable(t, s.ask(t, token, "GET /reports", ""))
	wantUnavailable(t, s.ask(t, "", "GET /reports", ""))
	listenWithoutAnswering(t, s.server.Node.Address())
	for range 10 { // the gateway may take a while to notice
		wantUnavailable(t, s.ask(t, token, "POST /messages", ""))
		<-time.After(200 * time.Millisecond)
	}
	if lines := s.reached(t); len(lines) > 0 {
		t.Errorf("these reached the service: %q", lines)
	}
}

// testTooManyRequests: a server in Doorward's place answers each check with 429, as Doorward does
// for a key that is used too often.
func testTooManyRequests(t *testing.T, s *site) {
	l, err := net.Listen("tcp", s.server.Node.Address())
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/login" { // a gateway's health check
			return
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"type":"/problems/rate_limited","status":429,"code":"rate_limited"}`)
	})}
	go server.Serve(l) //nolint:errcheck // closed below
	defer server.Close()
	var got answer
	waittest.Until(t, "the gateway finds the server", func() bool {
		got = s.ask(t, "", "GET /reports", "")
		return got.status != http.StatusServiceUnavailable
	})
	for _, got := range []answer{got, s.ask(t, "", "GET /reports", "", page...), s.ask(t, "", "POST /messages", "")} {
		wantProblem(t, got, http.StatusTooManyRequests, "rate_limited")
		if got.header.Get("Retry-After") != "7" || got.header.Get("Cache-Control") != "no-store" {
			t.Errorf("429 with Retry-After: %q, Cache-Control: %q", got.header.Get("Retry-After"), got.header.Get("Cache-Control"))
		}
	}
}

func wantUnavailable(t *testing.T, got answer) {
	t.Helper()
	wantProblem(t, got, http.StatusServiceUnavailable, "unavailable")
	if got.header.Get("Retry-After") == "" || got.header.Get("Cache-Control") != "no-store" {
		t.Errorf("503 with Retry-After: %q, Cache-Control: %q", got.header.Get("Retry-After"), got.header.Get("Cache-Control"))
	}
}

// listenWithoutAnswering listens on an address and never answers.
func listenWithoutAnswering(t *testing.T, address string) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
}
