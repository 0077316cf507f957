package examples_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/waittest"
	"github.com/doorward/doorward/node"
)

// site is a gateway with Doorward and the service behind it. All three run as in
// production, on free ports of loopback.
type site struct {
	test    *testing.T // ends the programs when it ends
	example string     // the folder of the gateway
	gateway string     // host:port
	server  *doorwardtest.Server
	service *program
	seen    int // lines of the service's log that reached has returned or skipped
	marks   int // requests that reached has sent
	people  map[string]person
}

// person is a person with a role and a session.
type person struct {
	*doorwardtest.Person
	identity
}

// identity is the caller as the service sees it.
type identity struct {
	User, Tenant, Role, Email, Session, Key string
	Assertion                               subject
	AAL                                     string
}

// subject is the person or key that a signed assertion is about. TestVerifiers tests the
// signatures.
type subject string

// UnmarshalText is for encoding/json.
func (s *subject) UnmarshalText(assertion []byte) error {
	*s = subjectOf(string(assertion))
	return nil
}

func subjectOf(assertion string) subject {
	var claims struct{ Sub subject }
	parts := strings.Split(assertion, ".")
	if len(parts) != 3 {
		return subject(assertion)
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(text, &claims) != nil {
		return subject(assertion)
	}
	return claims.Sub
}

// roles are all roles.
var roles = []string{"OWNER", "ADMIN", "USER", "VIEWER"}

// The ports in the examples.
const (
	gatewayPort  = ":8000"
	doorwardPort = ":8080"
	servicePort  = ":9000"
)

// open starts a site with the gateway of an example; launch starts the gateway in the
// folder with the copied files.
func open(t *testing.T, example string, launch func(t *testing.T, folder string)) *site {
	t.Helper()
	file, err := upstreamProgram()
	if err != nil {
		t.Fatal(err)
	}
	s := &site{test: t, example: example, gateway: freeAddress(t), service: run(t, ".", file, "-listen", "127.0.0.1:0")}
	s.server = doorwardtest.Start(t, doorwardtest.BaseURL("http://"+s.gateway), doorwardtest.TrustLoopback(), doorwardtest.Audiences("https://service.example"), listenOn("127.0.0.1:0"))
	waittest.Until(t, "the service says its address", func() bool { return len(s.service.output.lines()) > 0 })
	launch(t, copyExample(t, example, map[string]string{
		gatewayPort: port(s.gateway), doorwardPort: port(s.server.Node.Address()), servicePort: port(s.service.output.lines()[0]),
	}))
	waittest.Until(t, "the gateway listens", func() bool { return isListening(s.gateway) })
	s.seen = 1
	s.populate(t)
	return s
}

// port returns the last part of an address of loopback, as ":8080".
func port(address string) string { return address[strings.LastIndexByte(address, ':'):] }

func listenOn(address string) doorwardtest.Option {
	return func(c *node.Config) { c.Listen = address }
}

// populate creates a person for each role.
func (s *site) populate(t *testing.T) {
	t.Helper()
	acme := s.server.Tenant("Acme")
	s.people = map[string]person{"OWNER": s.signIn(t, acme, acme.Owner, "OWNER")}
	for _, role := range roles[1:] {
		s.people[role] = s.signIn(t, acme, acme.Join(strings.ToLower(role)+"@acme.example", role), role)
	}
}

func (s *site) signIn(t *testing.T, in *doorwardtest.Tenant, p *doorwardtest.Person, role string) person {
	t.Helper()
	p.Login()
	return person{p, identity{User: p.ID, Tenant: in.ID, Role: role, Email: p.Email, Session: sessionOf(t, p), Assertion: subject(p.ID), AAL: "1"}}
}

func sessionOf(t *testing.T, p *doorwardtest.Person) string {
	t.Helper()
	var answer struct{ Session struct{ ID string } }
	status, body := p.Get("/api/v2/auth/session")
	if status != http.StatusOK || json.Unmarshal(body, &answer) != nil || answer.Session.ID == "" {
		t.Fatalf("session: %d %s", status, body)
	}
	return answer.Session.ID
}

// answer is a response.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// echo is the request as the service received it.
type echo struct {
	Method, Path, Host string
	Identity           identity
	Headers            http.Header
	BodyBytes          int
	Trailers           http.Header
}

func (a answer) echo(t *testing.T) echo {
	t.Helper()
	var e echo
	if err := json.Unmarshal(a.body, &e); err != nil || e.Method == "" {
		t.Fatalf("%d, and not from the service: %s", a.status, a.body)
	}
	return e
}

// problem is the body of a refusal.
type problem struct {
	Code   string
	Status int
}

func (a answer) problem() problem {
	var p problem
	if strings.HasPrefix(a.header.Get("Content-Type"), "application/problem+json") {
		_ = json.Unmarshal(a.body, &p) // other bodies have no code
	}
	return p
}

// ask sends a request such as "GET /reports" to the gateway, with headers as
// names and values in turn.
func (s *site) ask(t *testing.T, token, route, body string, headers ...string) answer {
	t.Helper()
	method, path, _ := strings.Cut(route, " ")
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.gateway+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Cookie", "JSESSIONID="+token)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, text}
}

// client keeps connections, like a browser, and follows no redirects.
var client = &http.Client{
	Timeout:       waittest.Limit,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// last asks the gateway to close the connection, which it does after it has answered
// everything before.
const last = "GET /healthz HTTP/1.1\r\nHost: last.example\r\nConnection: close\r\n\r\n"

// raw sends arbitrary bytes and returns all answers before the gateway closed the
// connection.
func (s *site) raw(t *testing.T, text string) []answer {
	t.Helper()
	conn, err := net.Dial("tcp", s.gateway)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(waittest.Deadline()); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, text+last) // the gateway may close after the first bytes
	return answers(conn)
}

// answers reads the answers that are HTTP: closing the connection on invalid input is
// also an answer.
func answers(from io.Reader) (all []answer) {
	reader := bufio.NewReader(from)
	for {
		res, err := http.ReadResponse(reader, nil)
		if err != nil {
			return all
		}
		body, _ := io.ReadAll(res.Body) // cut short by the deadline at worst
		all = append(all, answer{res.StatusCode, res.Header, bytes.TrimSpace(body)})
	}
}

// reached returns the service's log lines since the last call: the requests that reached it.
// A line may follow the answer, so it sends a request of its own and waits for its line.
func (s *site) reached(t *testing.T) []string {
	t.Helper()
	s.marks++
	mark := fmt.Sprintf("GET /mark/%d  ", s.marks)
	res, err := client.Get(fmt.Sprintf("http://%s/mark/%d", s.service.output.lines()[0], s.marks))
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	var fresh []string
	waittest.Until(t, "the service logs "+mark, func() bool {
		fresh = s.service.output.lines()[s.seen:]
		return slices.Contains(fresh, mark)
	})
	s.seen += len(fresh)
	return fresh[:slices.Index(fresh, mark)]
}
