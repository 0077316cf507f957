// The contract of the HTTP API, tested from outside: the tests here start real servers, on
// SQLite or on both databases, and send requests. They use the server's node only for
// what no endpoint does, such as suspending as the operator or closing the database.
//
// Each answer in these tests is checked against the conventions
// (conventions_test.go) and the server's own OpenAPI document (openapi_test.go).
// After a full run TestMain requires that every documented status and code was
// seen.
package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/dnstest"
	"github.com/doorward/doorward/internal/waittest"
	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/dbtest"
)

// m is a JSON object.
type m = map[string]any

// clock moves by a microsecond at each reading, so that all instants differ, and by
// what a test advances it.
type clock struct {
	mu      sync.Mutex
	instant time.Time
}

func (c *clock) now() time.Time { return c.advance(time.Microsecond) }

func (c *clock) advance(by time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.instant = c.instant.Add(by)
	return c.instant
}

// server is a server whose answers are all checked.
type server struct {
	*doorwardtest.Server
	t      *testing.T
	base   string // the base URL
	path   string // of the base URL
	clock  *clock
	dns    *dnstest.Server // that the server asks for records of domains
	client *http.Client
	spec   *spec
	keys   atomic.Int32 // number of keys created; makes their names unique
	// sharedWith is the other origin whose pages may use the API, if any.
	sharedWith string
}

// onSQLite runs a test on a new server. It is for behaviour that doesn't depend on
// the database: formats, refusals, headers. storetest covers the rows.
func onSQLite(t *testing.T, test func(*testing.T, *server), options ...doorwardtest.Option) {
	t.Helper()
	t.Parallel()
	test(t, start(t, options...))
}

// onBoth runs a test on a new server for each database. It is for locks, races, clocks and faults
// of the database, and for TestOneEventForEachOperation, which calls each feature.
func onBoth(t *testing.T, test func(*testing.T, *server), options ...doorwardtest.Option) {
	t.Helper()
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, start(t, options...))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, start(t, append(options[:len(options):len(options)], doorwardtest.Database(dbtest.Postgres(t)))...))
	})
}

func start(t *testing.T, options ...doorwardtest.Option) *server {
	t.Helper()
	d := &server{t: t, clock: &clock{instant: time.Now()}, dns: dnstest.New(t)}
	d.Server = doorwardtest.Start(t, append(options[:len(options):len(options)], func(c *node.Config) { c.Clock, c.DNSServer = d.clock.now, d.dns.Addr })...)
	d.base = d.Node.URL()
	if u, err := url.Parse(d.base); err == nil {
		d.path = u.Path
	}
	d.client = &http.Client{Transport: &http.Transport{DisableCompression: true}, Timeout: waittest.Limit}
	d.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	t.Cleanup(d.client.CloseIdleConnections)
	d.spec = readSpec(t, d)
	return d
}

// Advance moves the server's clock after mail in transit has arrived: otherwise the
// mail server would seem silent for minutes, and the mail would be sent twice.
func (s *server) Advance(by time.Duration) {
	s.t.Helper()
	s.deliver(s.t)
	s.clock.advance(by)
}

// Tenant creates a tenant and waits for the mail to its OWNER.
func (s *server) Tenant(name string) *doorwardtest.Tenant {
	s.t.Helper()
	tenant := s.Server.Tenant(name)
	s.deliver(s.t)
	return tenant
}

// opt changes a request before it is sent.
type opt func(*http.Request)

// as adds a session cookie to the cookies of the request. A token that follow knows to be replaced
// stands for the new one, as in a browser.
func as(token string) opt {
	return func(r *http.Request) {
		for next, replaced := renewed.Load(token); replaced; next, replaced = renewed.Load(token) {
			token = next.(string)
		}
		cookie("JSESSIONID=" + token)(r)
	}
}

// renewed maps tokens of sessions to those that have replaced them.
var renewed sync.Map

// follow makes as send the new token of the answer in place of the old one.
func (a answer) follow(old string) answer {
	renewed.Store(old, a.text("token"))
	return a
}

func cookie(pair string) opt {
	return func(r *http.Request) {
		if had := r.Header.Get("Cookie"); had != "" {
			pair = had + "; " + pair
		}
		r.Header.Set("Cookie", pair)
	}
}

// with adds a value to a header; without removes the header.
func with(name, value string) opt { return func(r *http.Request) { r.Header.Add(name, value) } }

func without(name string) opt { return func(r *http.Request) { r.Header.Del(name) } }

func bearer(key string) opt { return with("Authorization", "Bearer "+key) }

// from simulates a client at an address, on servers that trust loopback.
func from(ip string) opt { return with("X-Forwarded-For", ip) }

// send sends a request such as "POST /api/v2/auth/login" and checks the conventions
// for every answer. A string is sent unchanged, nil is no body, and anything else is
// encoded; the Content-Type is JSON.
func (s *server) send(t *testing.T, route string, body any, opts ...opt) (a answer) {
	t.Helper()
	s.Repeat(func() int {
		a = s.sendOnce(t, route, body, opts...)
		return a.status
	})
	return a
}

func (s *server) sendOnce(t *testing.T, route string, body any, opts ...opt) answer {
	t.Helper()
	method, path, _ := strings.Cut(route, " ")
	text, hasBody := encode(t, body)
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if hasBody {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, change := range opts {
		change(req)
	}
	res, err := s.client.Do(req)
	if err != nil {
		t.Fatalf("%s: %v", route, err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s: %v", route, err)
	}
	a := answer{t: t, route: route, sent: text, status: res.StatusCode, header: res.Header, body: got}
	for _, fault := range s.faults(req, a) {
		t.Errorf("%s: %s\nin the answer %d %s", route, fault, a.status, a.body)
	}
	return a
}

func encode(t *testing.T, body any) (text string, hasBody bool) {
	t.Helper()
	switch body := body.(type) {
	case nil:
		return "", false
	case string:
		return body, true
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(body); err != nil {
		t.Fatal(err)
	}
	return out.String(), true
}

// answer is the response to a request.
type answer struct {
	t           *testing.T
	route, sent string
	status      int
	header      http.Header
	body        []byte
}

// ok ends the test when the answer has another status.
func (a answer) ok(status int) answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("%s %s\nanswered %d %s\nwant %d", a.route, a.sent, a.status, a.body, status)
	}
	return a
}

// fails ends the test unless the answer is this problem.
func (a answer) fails(status int, code string) answer {
	a.t.Helper()
	if a.status != status || a.text("code") != code {
		a.t.Fatalf("%s %s\nanswered %d %s\nwant %d %s", a.route, a.sent, a.status, a.body, status, code)
	}
	return a
}

// invalid ends the test unless the answer is 422 with exactly these faults, given as
// pairs of pointer and code.
func (a answer) invalid(pointersAndCodes ...string) answer {
	a.t.Helper()
	a.fails(http.StatusUnprocessableEntity, "validation_failed")
	var got []string
	faults, _ := a.at("errors").([]any)
	for _, f := range faults {
		f := f.(m)
		pointer, _ := f["pointer"].(string)
		got = append(got, pointer, f["code"].(string))
	}
	if strings.Join(got, " ") != strings.Join(pointersAndCodes, " ") {
		a.t.Fatalf("%s %s\nhas the faults %q, want %q", a.route, a.sent, got, pointersAndCodes)
	}
	return a
}

// at returns the member at a path such as "user.role", or nil; the empty path is the
// complete body.
func (a answer) at(path string) any {
	var v any
	if json.Unmarshal(a.body, &v) != nil || path == "" {
		return v
	}
	for name := range strings.SplitSeq(path, ".") {
		object, _ := v.(m)
		v = object[name]
	}
	return v
}

// text returns a string member, or "".
func (a answer) text(path string) string {
	s, _ := a.at(path).(string)
	return s
}

// instant returns a member as a time.
func (a answer) instant(path string) time.Time {
	a.t.Helper()
	at, err := time.Parse(time.RFC3339, a.text(path))
	if err != nil || !strings.HasSuffix(a.text(path), "Z") {
		a.t.Fatalf("%s: %s is %q, want RFC 3339 in UTC", a.route, path, a.text(path))
	}
	return at
}

// is ends the test when a member differs.
func (a answer) is(path string, want any) answer {
	a.t.Helper()
	if got := a.at(path); got != want {
		a.t.Fatalf("%s: %s is %v, want %v, in %s", a.route, path, got, want, a.body)
	}
	return a
}

// members ends the test unless the object has exactly these members.
func (a answer) members(path string, want ...string) answer {
	a.t.Helper()
	object, _ := a.at(path).(m)
	differs := len(object) != len(want)
	for _, name := range want {
		_, has := object[name]
		differs = differs || !has
	}
	if differs {
		a.t.Fatalf("%s: %q has other members than %q: %s", a.route, path, want, a.body)
	}
	return a
}

// cookies are the Set-Cookie headers.
func (a answer) cookies() []string { return a.header.Values("Set-Cookie") }

// withoutIDs returns the answer's text without the request's id, to compare two answers that
// must not differ.
func (a answer) withoutIDs() string {
	return requestIDs.ReplaceAllString(string(a.body), "ID")
}

var requestIDs = regexp.MustCompile(`req_[a-z2-7]{26}`)

// The people and the tenants of a test.

const password = doorwardtest.Password

// login signs a person in and returns the answer.
func (s *server) login(t *testing.T, email, password string, opts ...opt) answer {
	t.Helper()
	return s.send(t, "POST /api/v2/auth/login", m{"email": email, "password": password}, opts...)
}

// token signs a person in and returns the session token.
func (s *server) token(t *testing.T, email string, opts ...opt) string {
	t.Helper()
	return s.login(t, email, password, opts...).ok(http.StatusOK).text("token")
}

// invite sends an invitation and returns the code in its mail.
func (s *server) invite(t *testing.T, by *doorwardtest.Person, email, role string) string {
	t.Helper()
	s.send(t, "POST /api/v2/auth/invite", m{"email": email, "role": role}, as(by.Token())).ok(http.StatusCreated)
	return s.code(t, email)
}

// addMember makes a person with an account a member of another tenant.
func (s *server) addMember(t *testing.T, in *doorwardtest.Tenant, who *doorwardtest.Person, role string) {
	t.Helper()
	code := s.invite(t, in.Owner, who.Email, role)
	s.send(t, "POST /api/v2/auth/accept-invitation", m{"token": code, "password": password}).ok(http.StatusOK)
}

// inTwoTenants makes the tenants Acme and Globex, and somebody who has a role in each.
func (s *server) inTwoTenants(t *testing.T, inAcme, inGlobex string) (acme, globex *doorwardtest.Tenant, ann *doorwardtest.Person) {
	t.Helper()
	acme, globex = s.Tenant("Acme"), s.Tenant("Globex")
	ann = acme.Join("ann@acme.example", inAcme)
	s.addMember(t, globex, ann, inGlobex)
	return acme, globex, ann
}

func (s *server) suspend(t *testing.T, tenantID, userID string) {
	t.Helper()
	target := doorward.User{ID: userID, TenantID: tenantID}
	if _, err := s.Node.App.Users.Suspend(context.Background(), doorward.OperatorAtTerminal(), target); err != nil {
		t.Fatal(err)
	}
}

func (s *server) freeze(t *testing.T, tenantID string) {
	t.Helper()
	if _, err := s.Node.App.Tenants.Freeze(context.Background(), doorward.OperatorAtTerminal(), tenantID); err != nil {
		t.Fatal(err)
	}
}

// setTenantStatus sets only the status of a tenant, without the other effects.
func (s *server) setTenantStatus(t *testing.T, tenant *doorwardtest.Tenant, to doorward.TenantStatus) {
	t.Helper()
	err := s.Node.App.Access.Upkeep(t.Context(), func(tx *store.Tx) error {
		_, thawErr := tx.ThawTenant(t.Context(), tenant.ID, tx.Now)
		_, restoreErr := tx.RestoreTenant(t.Context(), tenant.ID)
		var err error
		switch to {
		case doorward.TenantFrozen:
			_, err = tx.FreezeTenant(t.Context(), tenant.ID)
		case doorward.TenantClosing:
			_, err = tx.CloseTenant(t.Context(), tenant.ID, tx.Now.Add(time.Hour))
		}
		return errors.Join(thawErr, restoreErr, err)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (s *server) operatorKey(t *testing.T) string {
	t.Helper()
	key, err := s.Node.App.Keys.CreateOperator(context.Background(), doorward.OperatorAtTerminal(), fmt.Sprintf("test %d", s.keys.Add(1)))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// deliver sends all queued mail but digests whose hour isn't over, and fails the test if some is still
// queued after a minute.
func (s *server) deliver(t *testing.T) {
	t.Helper()
	s.Node.App.Inbox.RecordPending(t.Context())
	waittest.Until(t, "all mail to be sent", func() bool { // the server's worker may be sending some
		if err := s.Node.App.Mail.Deliver(t.Context()); err != nil {
			t.Fatal(err)
		}
		vitals, err := s.Node.DB.Read().Vitals(t.Context(), s.Node.DB.Now())
		if err != nil {
			t.Fatal(err)
		}
		return vitals.MailsQueued == 0
	})
}

// code delivers all mail and returns the newest code that was mailed to the address.
func (s *server) code(t *testing.T, to string) string {
	t.Helper()
	s.deliver(t)
	for _, mail := range s.Mails(to) {
		if code := codeLine.FindString(mail.Text); code != "" {
			return code
		}
	}
	t.Fatalf("no mail with a code to %s", to)
	return ""
}

// codeLine is the code of a mail, alone on its line.
var codeLine = regexp.MustCompile(`(?m)^[A-Za-z0-9_-]{43}$`)

// forged has the format of a token but isn't valid.
const forged = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
