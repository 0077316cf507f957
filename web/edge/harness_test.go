package edge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/waittest"
)

// server is a Doorward with a person of each role, called over HTTP.
type server struct {
	*doorwardtest.Server
	people map[string]person
	keys   atomic.Int32 // number of keys created; makes their names unique
}

type person struct {
	*doorwardtest.Person
	identity map[string]string // the eight headers
}

var roles = []string{"OWNER", "ADMIN", "USER", "VIEWER"}

var identityNames = []string{"X-Auth-User", "X-Auth-Tenant", "X-Auth-Role", "X-Auth-Email", "X-Auth-Session", "X-Auth-Key", "X-Auth-Assertion", "X-Auth-Aal"}

func start(t *testing.T, options ...doorwardtest.Option) *server {
	t.Helper()
	d := &server{Server: doorwardtest.Start(t, options...), people: map[string]person{}}
	acme := d.Tenant("Acme")
	for _, role := range roles {
		p := acme.Owner
		if role != "OWNER" {
			p = acme.Join(strings.ToLower(role)+"@acme.example", role)
		}
		d.people[role] = person{p, map[string]string{
			"X-Auth-User": p.ID, "X-Auth-Tenant": acme.ID, "X-Auth-Role": role, "X-Auth-Email": p.Email,
			"X-Auth-Session": sessionOf(t, p), "X-Auth-Key": "", "X-Auth-Assertion": "", "X-Auth-Aal": "1",
		}}
	}
	return d
}

func sessionOf(t *testing.T, p *doorwardtest.Person) string {
	t.Helper()
	var answer struct{ Session struct{ ID string } }
	status, body := p.Get("/api/v2/auth/session")
	if err := json.Unmarshal(body, &answer); status != http.StatusOK || err != nil || answer.Session.ID == "" {
		t.Fatalf("session: %d %s", status, body)
	}
	return answer.Session.ID
}

func (d *server) createOperatorKey(t *testing.T) string {
	t.Helper()
	key, err := d.Node.App.Keys.CreateOperator(context.Background(), doorward.OperatorAtTerminal(), fmt.Sprintf("test %d", d.keys.Add(1)))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// answer is the response to a request.
type answer struct {
	t       *testing.T
	request string // method and target
	status  int
	header  http.Header
	body    []byte
}

// headers are pairs of name and value; a name may occur twice.
type headers []string

// as returns headers with the session of a person.
func as(p person, more ...string) headers {
	return append(headers{"Cookie", "JSESSIONID=" + p.Token()}, more...)
}

// send sends a request such as "GET /api/v2/access/check?action=message.send".
func (d *server) send(t *testing.T, route string, body io.Reader, h headers) answer {
	t.Helper()
	method, target, _ := strings.Cut(route, " ")
	req, err := http.NewRequestWithContext(t.Context(), method, d.URL, body)
	if err != nil {
		t.Fatal(err)
	}
	req.URL.Opaque = "//" + req.URL.Host + target // sent unchanged, even if malformed
	for i := 0; i < len(h); i += 2 {
		req.Header[h[i]] = append(req.Header[h[i]], h[i+1])
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatalf("%s: %v", route, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s: %v", route, err)
	}
	return answer{t, route, res.StatusCode, res.Header, text}
}

var client = &http.Client{Timeout: waittest.Limit, Transport: &http.Transport{DisableCompression: true}}

const checkPath = "/api/v2/access/check"

// check sends a check with a query such as "action=message.send", and requires the
// conventions for every answer.
func (d *server) check(t *testing.T, method, query string, h headers) answer {
	t.Helper()
	target := checkPath
	if query != "" {
		target += "?" + query
	}
	a := d.send(t, method+" "+target, nil, h)
	a.requireConventions(method)
	return a
}

// maxAnswer is the documented limit in bytes, including the headers.
const maxAnswer = 2 << 10

// requireConventions requires what is true of every answer to a check.
func (a answer) requireConventions(method string) {
	a.t.Helper()
	size := len(a.body) + len("HTTP/1.1 503 Service Unavailable\r\n\r\n")
	for name, values := range a.header {
		for _, v := range values {
			size += len(name) + len(v) + len(": \r\n")
		}
	}
	if size >= maxAnswer {
		a.t.Errorf("%s: an answer of %d bytes", a.request, size)
	}
	for _, name := range identityNames {
		if values := a.header[name]; len(values) != 1 || a.status != http.StatusOK && values[0] != "" {
			a.t.Errorf("%s: %d with %s: %q", a.request, a.status, name, values)
		}
	}
	a.requireHeaders()
	switch {
	case a.status == http.StatusOK && len(a.body) > 0:
		a.t.Errorf("%s: 200 with a body: %s", a.request, a.body)
	case a.status != http.StatusOK && method != http.MethodHead && a.problem().Status != a.status:
		a.t.Errorf("%s: %d without a problem: %s", a.request, a.status, a.body)
	}
	if cookies := a.header.Values("Set-Cookie"); len(cookies) > 0 {
		a.t.Errorf("%s: Set-Cookie: %q", a.request, cookies)
	}
}

// requireHeaders requires the headers that every answer has.
func (a answer) requireHeaders() {
	a.t.Helper()
	for name, want := range map[string]string{
		"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
	} {
		if got := a.header.Values(name); !slices.Equal(got, []string{want}) {
			a.t.Errorf("%s: %s: %q", a.request, name, got)
		}
	}
	if len(a.header.Get("X-Request-Id")) == 0 {
		a.t.Errorf("%s: no X-Request-Id", a.request)
	}
}

type problem struct {
	Status int
	Code   string
}

func (a answer) problem() (p problem) {
	if a.header.Get("Content-Type") == "application/problem+json" {
		_ = json.Unmarshal(a.body, &p) // a body that isn't a problem has no code
	}
	return p
}

// passes requires that the person is allowed.
func (a answer) passes(p person) {
	a.t.Helper()
	if a.status != http.StatusOK {
		a.t.Errorf("%s: %d %s, want 200", a.request, a.status, a.body)
		return
	}
	for name, want := range p.identity {
		if got := a.header.Get(name); got != want {
			a.t.Errorf("%s: %s: %q, want %q", a.request, name, got, want)
		}
	}
}

// fails requires a refusal with the status and the code.
func (a answer) fails(status int, code string) {
	a.t.Helper()
	if a.status != status || a.problem().Code != code {
		a.t.Errorf("%s: %d %s, want %d %s", a.request, a.status, a.body, status, code)
	}
	challenge := a.header.Values("WWW-Authenticate")
	if want := status == http.StatusUnauthorized; want != slices.Equal(challenge, []string{`Bearer realm="doorward"`}) || !want && len(challenge) > 0 {
		a.t.Errorf("%s: %d with WWW-Authenticate: %q", a.request, a.status, challenge)
	}
	if want := status == http.StatusServiceUnavailable; want != (a.header.Get("Retry-After") != "") {
		a.t.Errorf("%s: %d with Retry-After: %q", a.request, a.status, a.header.Get("Retry-After"))
	}
}
