package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/doorward/doorward/client"
	"github.com/doorward/doorward/doorwardtest"
)

func TestDoorwardDown(t *testing.T) {
	server := doorwardtest.Start(t)
	token := server.Tenant("Acme").Owner.Token()
	var log bytes.Buffer
	s := startService(t, newClient(t, server.URL, client.Logger(slog.New(slog.NewJSONHandler(&log, nil)))))
	if res, body := get(t, s.URL+"/message.send", session(token)); res.StatusCode != http.StatusOK {
		t.Fatalf("before: %d %s", res.StatusCode, body)
	}
	server.Stop()
	res, body := get(t, s.URL+"/message.send", withHeader(session(token), "X-Request-Id", "req-1"))
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") != "1" || res.Header.Get("WWW-Authenticate") != "" {
		t.Errorf("%d with Retry-After %q, want 503 with 1: %s", res.StatusCode, res.Header.Get("Retry-After"), body)
	}
	if !bytes.Contains(body, []byte(`"code":"unavailable"`)) || !bytes.Contains(body, []byte(`"requestId":"req-1"`)) {
		t.Errorf("no problem of unavailability: %s", body)
	}
	if address := strings.TrimPrefix(server.URL, "http://"); bytes.Contains(body, []byte(address)) || !strings.Contains(log.String(), "refused") {
		t.Errorf("the cause belongs in the log and not in the answer:\n%s\n%s", body, log.String())
	}
	if strings.Contains(log.String(), token) {
		t.Errorf("the log has the token: %s", log.String())
	}
}

// startFake starts a server in Doorward's place that isn't Doorward, or is broken. It returns its
// address and the number of calls.
func startFake(t *testing.T, h http.HandlerFunc) (url string, calls *atomic.Int64) {
	t.Helper()
	calls = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		h(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, calls
}

func TestFaultsAreNeverRefusals(t *testing.T) {
	setIdentity := func(w http.ResponseWriter) {
		for _, name := range []string{"User", "Tenant", "Role", "Email", "Session"} {
			w.Header().Set("X-Auth-"+name, "x")
		}
	}
	problem := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	text := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "nginx", status) }
	}
	tests := map[string]struct {
		answer http.HandlerFunc
		calls  int64
	}{
		"200 that names nobody": {func(http.ResponseWriter, *http.Request) {}, 1},
		"200 without a role":    {func(w http.ResponseWriter, _ *http.Request) { setIdentity(w); w.Header().Del("X-Auth-Role") }, 1},
		"200 that names two":    {func(w http.ResponseWriter, _ *http.Request) { setIdentity(w); w.Header().Add("X-Auth-User", "y") }, 1},
		"204":                   {func(w http.ResponseWriter, _ *http.Request) { setIdentity(w); w.WriteHeader(204) }, 1},
		"redirect to a page": {func(w http.ResponseWriter, r *http.Request) {
			setIdentity(w)
			http.Redirect(w, r, "/x", http.StatusFound)
		}, 1},
		"401 of a proxy":            {text(401), 1},
		"403 of a proxy":            {text(403), 1},
		"404 of another program":    {text(404), 1},
		"431":                       {text(431), 1},
		"500":                       {text(500), 1},
		"502 of a proxy":            {text(502), 1},
		"503 of a proxy":            {text(503), 3},
		"problem cut short":         {problem(401, `{"status":401,"code":"unauth`), 1},
		"problem of another status": {problem(401, `{"status":403,"code":"forbidden"}`), 1},
		"problem without a code":    {problem(403, `{"status":403}`), 1},
		"problem that is JSON only": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(401)
			fmt.Fprint(w, `{"status":401,"code":"x"}`)
		}, 1},
		"500 problem":          {problem(500, `{"status":500,"code":"internal_error"}`), 1},
		"404 problem":          {problem(404, `{"status":404,"code":"not_found"}`), 1},
		"422 problem":          {problem(422, `{"status":422,"code":"validation_failed"}`), 1},
		"connection closed":    {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 3},
		"body that breaks off": {breakOff, 3},
		"body of megabytes":    {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401); _, _ = w.Write(make([]byte, 3<<20)) }, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			url, calls := startFake(t, tt.answer)
			c := newClient(t, url)
			id, err := c.Check(t.Context(), client.Request{Action: "message.send", Header: session("x")})
			if !errors.Is(err, client.ErrUnavailable) || id != (client.Identity{}) {
				t.Errorf("Check = %v, %v, want ErrUnavailable", id, err)
			}
			if got := calls.Load(); got != tt.calls {
				t.Errorf("%d tries, want %d", got, tt.calls)
			}
			if res, body := get(t, startService(t, c).URL+"/message.send", session("x")); res.StatusCode != http.StatusServiceUnavailable {
				t.Errorf("the service answers %d %s", res.StatusCode, body)
			}
		})
	}
}

func breakOff(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "100")
	w.WriteHeader(http.StatusUnauthorized)
	fmt.Fprint(w, "{")
}

func TestIncompleteIntrospectionIsAnError(t *testing.T) {
	const complete = `{"active":true,"user":{"id":"u","tenantId":"t","role":"USER","email":"e"},"session":{"id":"s"},"allowed":true}`
	tests := map[string]string{
		"no JSON":          `<html>`,
		"no items":         `{}`,
		"too few":          `{"items":[]}`,
		"too many":         `{"items":[` + complete + `,` + complete + `]}`,
		"nobody":           `{"items":[{"active":true,"allowed":true}]}`,
		"no tenant":        `{"items":[` + strings.Replace(complete, `"tenantId":"t",`, "", 1) + `]}`,
		"no decision":      `{"items":[` + strings.Replace(complete, `,"allowed":true`, "", 1) + `]}`,
		"another decision": `{"items":[` + strings.Replace(complete, `true}`, `"yes"}`, 1) + `]}`,
	}
	for name, body := range tests {
		t.Run(name, func(t *testing.T) {
			url, _ := startFake(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) })
			a, err := newClient(t, url, client.OperatorKey("dwo_x")).Introspect(t.Context(), "x", "message.send")
			if !errors.Is(err, client.ErrUnavailable) || a != (client.Answer{}) {
				t.Errorf("Introspect = %+v, %v, want ErrUnavailable", a, err)
			}
		})
	}
	url, _ := startFake(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"items":[`+complete+`]}`) })
	if a, err := newClient(t, url, client.OperatorKey("dwo_x")).Introspect(t.Context(), "x", "message.send"); err != nil || !a.Allowed {
		t.Errorf("a complete answer: %+v, %v", a, err)
	}
}

// Of the request's headers, the client sends only those that a check needs, and only to
// Doorward.
func TestOnlyWhatIsNeededIsSent(t *testing.T) {
	var got http.Header
	url, _ := startFake(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header })
	jar := &leakyJar{}
	c := newClient(t, url, client.HTTPClient(&http.Client{Jar: jar}))
	token := strings.Repeat("A", 43)
	h := http.Header{
		"Cookie":        {"theme=dark; JSESSIONID=" + token + "; JSESSIONID=node1; doorward_device=x"},
		"Authorization": {"Basic YTpi", "Bearer k"}, "Origin": {"null"}, "Sec-Fetch-Site": {"none"}, "X-Request-Id": {"r1"},
		"X-Auth-User": {"usr_1"}, "X-Auth-Key": {"key_1"}, "X_auth_role": {"OWNER"}, "X-Forwarded-Method": {"GET"},
		"X-Original-Method": {"GET"}, "X-Forwarded-For": {"10.0.0.1"}, "Connection": {"X-Auth-User"}, "Content-Type": {"text/plain"},
		"Proxy-Authorization": {"Basic YTpi"},
	}
	_, _ = c.Check(t.Context(), client.Request{Method: "PUT", Header: h})
	if forged := got["X-Forwarded-For"]; forged != nil {
		t.Errorf("without the address of the peer %q is sent", forged)
	}
	_, _ = c.Check(t.Context(), client.Request{Method: "PUT", Header: h, IP: "192.0.2.7"})
	want := http.Header{
		"X-Forwarded-For": {"10.0.0.1, 192.0.2.7"},
		"Cookie":          {"JSESSIONID=" + token}, "Authorization": {"Bearer k", "Bearer"}, "Origin": {"null"}, "Sec-Fetch-Site": {"none"},
		"X-Request-Id": {"r1"}, "X-Forwarded-Method": {"PUT"}, "User-Agent": {"Go-http-client/1.1"}, "Accept-Encoding": {"gzip"},
	}
	for name := range got {
		if fmt.Sprint(got[name]) != fmt.Sprint(want[name]) {
			t.Errorf("%s: %q is sent, want %q", name, got[name], want[name])
		}
	}
	if len(got) != len(want) {
		t.Errorf("sent: %v\nwant: %v", got, want)
	}
}

// The addresses on the left can be forged, so those on the right are kept.
func TestLastAddressesAreSent(t *testing.T) {
	var got string
	url, _ := startFake(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get("X-Forwarded-For") })
	s := startService(t, newClient(t, url))
	send(t, "GET", s.URL+"/message.send", http.Header{"X-Forwarded-For": {strings.Repeat("192.0.2.7, ", 800), "198.51.100.1"}})
	if want := strings.Repeat("192.0.2.7, ", 6) + "198.51.100.1, 127.0.0.1"; got != want {
		t.Errorf("sent: %q, want %q", got, want)
	}
}

// leakyJar is a cookie jar that panics if it is used: a shared jar would mix callers.
type leakyJar struct{ http.CookieJar }

// clientInBubble returns a client of a server whose answers come from h. They are connected
// by pipes, since a synctest bubble, in which waits take no time, can't wait for sockets.
func clientInBubble(t *testing.T, h http.HandlerFunc, options ...client.Option) *client.Client {
	t.Helper()
	pipes := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: h}
	go func() { _ = server.Serve(pipes) }()
	transport := &http.Transport{DialContext: pipes.dial}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = server.Close()
	})
	return newClient(t, "http://doorward.example", append(options, client.HTTPClient(&http.Client{Transport: transport}))...)
}

// pipes is a listener and its dialer.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// allow answers like Doorward to an allowed caller.
func allow(w http.ResponseWriter, _ *http.Request) {
	for _, name := range []string{"User", "Tenant", "Role", "Email", "Session"} {
		w.Header().Set("X-Auth-"+name, "x")
	}
}

func TestSlowDoorwardTimesOut(t *testing.T) {
	for _, limit := range []time.Duration{0, 3 * time.Second, 250 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			var options []client.Option
			if limit > 0 {
				options = append(options, client.Timeout(limit))
			}
			c := clientInBubble(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, options...)
			began := time.Now()
			_, err := c.Check(t.Context(), client.Request{Header: session("x")})
			want := limit
			if want == 0 {
				want = 3 * time.Second // the default
			}
			if took := time.Since(began); took != want {
				t.Errorf("the answer took %v, want %v", took, want)
			}
			if !errors.Is(err, client.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestCancelledCheckReturnsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clientInBubble(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) })
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Millisecond, cancel)
		began := time.Now()
		_, err := c.Check(ctx, client.Request{})
		if took := time.Since(began); took != 10*time.Millisecond {
			t.Errorf("the answer took %v, want 10ms", took)
		}
		if !errors.Is(err, client.ErrUnavailable) {
			t.Errorf("error %v", err)
		}
	})
}

func TestRetries(t *testing.T) {
	const ms = time.Millisecond
	tests := []struct {
		name            string
		retryAfter      string // of Doorward's answer
		failures        int64
		wantCalls       int64
		wantOK          bool
		atLeast, atMost time.Duration
		wantRetryAfter  time.Duration // of the error
	}{
		{"after one failure", "", 1, 2, true, 50 * ms, 75 * ms, 0},
		{"after two", "", 2, 3, true, 150 * ms, 225 * ms, 0},
		{"three calls at most", "", 3, 3, false, 150 * ms, 225 * ms, time.Second},
		{"not before Retry-After", "1", 1, 2, true, 1000 * ms, 1500 * ms, 0},
		{"at once if Retry-After is 0", "0", 2, 3, true, 0, 0, 0},
		{"Retry-After is a date", "date", 1, 2, true, 1000 * ms, 3000 * ms, 0},
		{"not if Retry-After is beyond the timeout", "30", 1, 1, false, 0, 0, 30 * time.Second},
		{"a very long Retry-After is limited", "99999999999", 1, 1, false, 0, 0, 5 * time.Minute},
		{"invalid Retry-After is ignored", "soon", 1, 2, true, 50 * ms, 75 * ms, 0},
		{"negative Retry-After is ignored", "-5", 1, 2, true, 50 * ms, 75 * ms, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls atomic.Int64
				c := clientInBubble(t, func(w http.ResponseWriter, r *http.Request) {
					if calls.Add(1) > tt.failures {
						allow(w, r)
						return
					}
					switch tt.retryAfter {
					case "":
					case "date":
						w.Header().Set("Retry-After", time.Now().Add(2*time.Second).UTC().Format(http.TimeFormat))
					default:
						w.Header().Set("Retry-After", tt.retryAfter)
					}
					w.WriteHeader(http.StatusServiceUnavailable)
				}, client.Timeout(4*time.Second))
				began := time.Now()
				_, err := c.Check(t.Context(), client.Request{})
				took := time.Since(began)
				if calls.Load() != tt.wantCalls || (err == nil) != tt.wantOK {
					t.Errorf("%d calls, error %v; want %d, ok %t", calls.Load(), err, tt.wantCalls, tt.wantOK)
				}
				if took < tt.atLeast || took > tt.atMost {
					t.Errorf("it took %v, want %v to %v", took, tt.atLeast, tt.atMost)
				}
				var e *client.Error
				if errors.As(err, &e) && e.RetryAfter != tt.wantRetryAfter {
					t.Errorf("RetryAfter = %v, want %v", e.RetryAfter, tt.wantRetryAfter)
				}
			})
		})
	}
}

// Requests that failed together don't retry together.
func TestWaitsAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		c := clientInBubble(t, func(w http.ResponseWriter, r *http.Request) {
			if calls.Add(1)%2 == 0 {
				allow(w, r)
				return
			}
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(503)
		})
		took := map[time.Duration]bool{}
		for range 20 {
			began := time.Now()
			if _, err := c.Check(t.Context(), client.Request{}); err != nil {
				t.Fatal(err)
			}
			took[time.Since(began)] = true
		}
		if len(took) < 10 {
			t.Errorf("20 waits of %d lengths: %v", len(took), took)
		}
	})
}

func TestUnavailableHasRetryAfter(t *testing.T) {
	url, _ := startFake(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "30")
		w.WriteHeader(503)
	})
	res, _ := get(t, startService(t, newClient(t, url)).URL+"/message.send", session("x"))
	if got, _ := strconv.Atoi(res.Header.Get("Retry-After")); res.StatusCode != 503 || got != 30 {
		t.Errorf("%d with Retry-After %d, want 503 with 30", res.StatusCode, got)
	}
}

// Under load, connections are reused.
func TestConnectionsAreReused(t *testing.T) {
	var opened atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(allow))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	c := newClient(t, s.URL)
	const callers, checks = 32, 50
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range checks {
				if _, err := c.Check(t.Context(), client.Request{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	// A caller that finds all connections busy dials, and may get a freed one first. So
	// there may be more connections than callers, but not one per check.
	if got := opened.Load(); got > 3*callers {
		t.Errorf("%d checks by %d callers opened %d connections", callers*checks, callers, got)
	}
}

// An action that Doorward doesn't know is this program's fault: it is logged, and
// ordinary refusals aren't.
func TestLogHasFaultsOfTheProgram(t *testing.T) {
	server, viewer := running(), person("VIEWER")
	var log bytes.Buffer
	s := startService(t, newClient(t, server.URL, client.Logger(slog.New(slog.NewTextHandler(&log, nil)))))
	get(t, s.URL+"/message.send", session(viewer.Token()))
	get(t, s.URL+"/message.send", nil)
	if log.Len() > 0 {
		t.Errorf("refusals are logged: %s", log.String())
	}
	get(t, s.URL+"/message.eat", session(viewer.Token()))
	if !strings.Contains(log.String(), "unknown_action") || !strings.Contains(log.String(), "message.eat") {
		t.Errorf("an unknown action isn't logged: %s", log.String())
	}
}

// A check in a handler logs what middleware logs: its answer to the caller has no cause.
func TestLogOfCheck(t *testing.T) {
	var log bytes.Buffer
	c := newClient(t, running().URL, client.Logger(slog.New(slog.NewTextHandler(&log, nil))))
	owner := session(newTenant().Owner.Token())
	for cause, q := range map[string]client.Request{
		"the option OperatorKey": {Action: "message.send", Resource: &client.Resource{Type: "tenant"}},
		"a use of the session":   {Action: "message.send", Resource: &client.Resource{Type: "tenant"}, Untouched: true},
		"unknown_action":         {Action: "message.eat"},
	} {
		log.Reset()
		q.Header = owner
		if _, err := c.Check(t.Context(), q); err == nil || strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), cause) {
			t.Errorf("%s: %v, logged: %s", cause, err, log.String())
		}
	}
	log.Reset()
	if _, err := c.Check(t.Context(), client.Request{Action: "message.send"}); !errors.Is(err, client.ErrUnauthenticated) || log.Len() > 0 {
		t.Errorf("a refusal: %v, logged: %s", err, log.String())
	}
}

// A session that is only asked about goes on idling.
func TestUntouched(t *testing.T) {
	s := doorwardtest.Start(t)
	c, token := newClient(t, s.URL), s.Tenant("Acme").Owner.Token()
	ask := func(untouched bool) error {
		s.Advance(40 * time.Minute)
		_, err := c.Check(t.Context(), client.Request{Action: "message.send", Header: session(token), Untouched: untouched})
		return err
	}
	if err := ask(false); err != nil {
		t.Fatal(err)
	}
	if err := ask(true); err != nil {
		t.Fatal(err)
	}
	if err := ask(true); !errors.Is(err, client.ErrUnauthenticated) {
		t.Errorf("80 minutes after the last use: %v", err)
	}
}

func BenchmarkRequire(b *testing.B) {
	server, token := running(), newTenant().Owner.Token()
	h := newClient(b, server.URL).Require("message.send")(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header = session(token)
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != http.StatusOK {
			b.Fatal(w.Code)
		}
	}
}
