package front_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/web/front"
)

// newSite returns a site without features, for routes that need none.
func newSite(t testing.TB, log io.Writer, proxies ...string) *front.Site {
	t.Helper()
	base, err := url.Parse("http://localhost:8080")
	if err != nil {
		t.Fatal(err)
	}
	var trusted []netip.Prefix
	for _, p := range proxies {
		trusted = append(trusted, netip.MustParsePrefix(p))
	}
	return front.New(nil, base, trusted, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
}

// rawRoutes has fn at POST /x, which ask calls.
func rawRoutes(fn func(ctx context.Context, c *front.Call) error) []front.Route {
	return []front.Route{front.On("POST /x", front.Public(), front.Raw(fn), front.Doc{})}
}

func ask(h http.Handler) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/x", strings.NewReader("{}")))
	return rec
}

// The cause of an internal error is only logged; the caller gets the request's id.
func TestDefectsAreAnswered(t *testing.T) {
	const cause = "the cause of the defect"
	defects := map[string]func(context.Context, *front.Call) error{
		"a panic":         func(context.Context, *front.Call) error { panic(cause) },
		"a wrapped panic": func(context.Context, *front.Call) error { panic(fmt.Errorf("%w", errors.New(cause))) },
		"an error":        func(context.Context, *front.Call) error { return errors.New(cause) },
		"a wrapped error": func(context.Context, *front.Call) error { return fmt.Errorf("more: %w", errors.New(cause)) },
	}
	for name, fn := range defects {
		var log bytes.Buffer
		rec := ask(newSite(t, &log).Handler(rawRoutes(fn)))
		var problem front.Problem
		if err := json.Unmarshal(rec.Body.Bytes(), &problem); err != nil || rec.Code != http.StatusInternalServerError || problem.Code != "internal_error" {
			t.Errorf("%s: %d %s %v", name, rec.Code, rec.Body, err)
		}
		if strings.Contains(rec.Body.String(), cause) {
			t.Errorf("%s: the answer reveals the cause: %s", name, rec.Body)
		}
		if !strings.Contains(log.String(), cause) || !strings.Contains(log.String(), problem.RequestID) {
			t.Errorf("%s: the log lacks the cause: %s", name, &log)
		}
	}
}

// A timeout or a cancellation is answered 503 with Retry-After; only a timeout is counted as one.
func TestTimeRunsOut(t *testing.T) {
	for cause, timeouts := range map[error]int64{
		context.DeadlineExceeded: 1, context.Canceled: 0, fmt.Errorf("store: %w", context.DeadlineExceeded): 1,
		doorward.Unavailable(&net.OpError{Err: os.ErrDeadlineExceeded}): 1, doorward.Unavailable(errors.New("the lease has ended")): 0,
		&doorward.Error{Code: doorward.CodeProviderUnavailable, RetryAfter: time.Second, Err: context.DeadlineExceeded}: 0,
	} {
		site := newSite(t, io.Discard)
		rec := ask(site.Handler(rawRoutes(func(ctx context.Context, _ *front.Call) error {
			if deadline, limited := ctx.Deadline(); !limited || time.Until(deadline) > 3*time.Second {
				t.Errorf("the work on a request ends at %v, want three seconds after its beginning", deadline)
			}
			return cause
		})))
		if rec.Code != http.StatusServiceUnavailable || rec.Header().Get("Retry-After") == "" {
			t.Errorf("%v: %d %v %s", cause, rec.Code, rec.Header(), rec.Body)
		}
		if got := site.TimedOut(); got != timeouts {
			t.Errorf("%v: counted %d times, want %d", cause, got, timeouts)
		}
	}
}

// A route that waits for a server outside has up to 12 s, unless the client goes; its request id stays.
func TestCallsOut(t *testing.T) {
	client, leave := context.WithCancel(t.Context())
	defer leave()
	routes := rawRoutes(func(ctx context.Context, c *front.Call) error {
		deadline, limited := ctx.Deadline()
		if left := time.Until(deadline); !limited || left < 8*time.Second || left > 12*time.Second {
			t.Errorf("the work on the request has %v", left)
		}
		leave()
		<-ctx.Done()
		return ctx.Err()
	})
	routes[0] = routes[0].CallsOut()
	rec := httptest.NewRecorder()
	newSite(t, io.Discard).Handler(routes).ServeHTTP(rec, httptest.NewRequestWithContext(client, http.MethodPost, "/x", strings.NewReader("{}")))
	if rec.Code != http.StatusServiceUnavailable || rec.Header().Get("X-Request-Id") == "" || !strings.Contains(rec.Body.String(), rec.Header().Get("X-Request-Id")) {
		t.Errorf("%d %v %s", rec.Code, rec.Header(), rec.Body)
	}
}

// After a panic in the middle of an answer, no error answer can be sent.
func TestPanicInTheMiddle(t *testing.T) {
	var log bytes.Buffer
	rec := ask(newSite(t, &log).Handler(rawRoutes(func(_ context.Context, c *front.Call) error {
		fmt.Fprint(c.W, "half")
		panic("in the middle")
	})))
	if rec.Body.String() != "half" || !strings.Contains(log.String(), "in the middle") {
		t.Errorf("%d %s\nlog: %s", rec.Code, rec.Body, &log)
	}
}

// http.ErrAbortHandler is passed on.
func TestAbortedAnswers(t *testing.T) {
	defer func() {
		if p := recover(); p != http.ErrAbortHandler {
			t.Errorf("the panic became %v", p)
		}
	}()
	ask(newSite(t, io.Discard).Handler(rawRoutes(func(context.Context, *front.Call) error { panic(http.ErrAbortHandler) })))
}

// everything is a body with a member of each type.
type everything struct {
	Text    string     `json:"text"`
	Number  *front.Int `json:"number,omitempty"`
	Plain   int8       `json:"plain"`
	Yes     bool       `json:"yes"`
	List    []string   `json:"list,omitempty"`
	Objects []struct {
		Name string `json:"name"`
	} `json:"objects,omitempty"`
}

// Every body gets one of the documented answers, and an accepted body is unambiguous:
// encoded again, it is the same.
func FuzzBody(f *testing.F) {
	for _, body := range []string{
		`{"text":"a","number":7,"plain":1,"yes":true,"list":["a"],"objects":[{"name":"x"}]}`, `{}`, ``, `null`, `[]`, `{"text":null}`, `{"Text":""}`,
		`{"text":"a","text":"b"}`, `{"number":1e1}`, `{"number":99999999999999999999}`, `{"plain":128}`, `{"text":"\u0000"}`, `{"text":"\ud800"}`,
		"\ufeff{}", "{}\x00", `{"te\u0078t":""}`, `{"objects":[{"name":""},{"nam":""}]}`, strings.Repeat(`{"objects":[`, 40), "{\"text\":\"\xff\"}",
	} {
		f.Add([]byte(body), "application/json", "")
	}
	f.Add([]byte(`{}`), "application/json;charset=utf-8;charset=utf-16", "gzip")
	f.Add([]byte(`{}`), "text/plain", "identity")
	echo := func(_ context.Context, _ *front.Call, in everything) (everything, error) { return in, nil }
	h := newSite(f, io.Discard).Handler([]front.Route{front.On("POST /x", front.Public(), front.JSON(http.StatusOK, echo), front.Doc{})})
	post := func(body []byte, contentType, encoding string) *httptest.ResponseRecorder {
		req := httptest.NewRequest(http.MethodPost, "/x", bytes.NewReader(body))
		req.Header.Set("Content-Type", contentType)
		if encoding != "" {
			req.Header.Set("Content-Encoding", encoding)
		}
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, req)
		return rec
	}
	f.Fuzz(func(t *testing.T, body []byte, contentType, encoding string) {
		rec := post(body, contentType, encoding)
		switch rec.Code {
		case http.StatusOK:
			again := post(rec.Body.Bytes(), "application/json", "")
			if encoding != "" || again.Code != http.StatusOK || !bytes.Equal(again.Body.Bytes(), rec.Body.Bytes()) {
				t.Errorf("%q passes as %s, which becomes %d %s", body, rec.Body, again.Code, again.Body)
			}
		case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
			var problem front.Problem
			if err := json.Unmarshal(rec.Body.Bytes(), &problem); err != nil || problem.Status != rec.Code {
				t.Errorf("%q: %s %v", body, rec.Body, err)
			}
		default:
			t.Errorf("%q of type %q, encoding %q: %d %s", body, contentType, encoding, rec.Code, rec.Body)
		}
	})
}

// For any Cookie headers, SessionTokens returns distinct tokens that net/http's parser finds,
// too, and SoleSession returns a token only if there is no other.
func FuzzSessionTokens(f *testing.F) {
	token, other := secret.New().Reveal(), secret.New().Reveal()
	for _, line := range []string{
		"", "JSESSIONID=" + token, "JSESSIONID=" + token + "; JSESSIONID=" + other, "JSESSIONID=" + token + ";JSESSIONID=" + token,
		`JSESSIONID="` + token + `"`, "a=b;\tJSESSIONID=" + token + " ;c", "JSESSIONID=0123456789ABCDEF.node1; JSESSIONID=" + token,
		"jsessionid=" + token, "JSESSIONID = " + token, "JSESSIONID=" + token + "=", "xJSESSIONID=" + token, "JSESSIONID=JSESSIONID=" + token,
		";;;=;==;JSESSIONID", "JSESSIONID=" + token + ", JSESSIONID=" + other, `a="; JSESSIONID=` + token + `"`,
	} {
		f.Add(line, "JSESSIONID="+token)
		f.Add(line, "")
		f.Add(line, "bearer "+token)
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		r := &http.Request{Header: http.Header{"Cookie": {first, second}}}
		site := newSite(t, io.Discard)
		var found []string
		for _, candidate := range site.SessionTokens(r) {
			text := candidate.Reveal()
			if slices.Contains(found, text) || !strings.Contains(first+"\n"+second, "JSESSIONID="+text) {
				t.Errorf("%q, %q: candidate %s is a duplicate, or in neither header", first, second, text)
			}
			found = append(found, text)
		}
		if strings.Count(first+second, ";") < 1000 { // net/http limits the number of cookies
			for _, text := range found {
				if !slices.ContainsFunc(r.CookiesNamed(front.SessionCookie), func(c *http.Cookie) bool { return c.Value == text && !c.Quoted }) {
					t.Errorf("%q, %q: net/http knows no cookie %s", first, second, text)
				}
			}
		}
		one := &http.Request{Header: http.Header{"Cookie": {first}}}
		if sole, ok := site.SoleSession(one); ok {
			if all := site.SessionTokens(one); len(all) != 1 || all[0].Hash() != sole.Hash() {
				t.Errorf("%q: SoleSession returns a session, but the cookies have %d", first, len(all))
			}
		}
		mixed := &http.Request{Header: http.Header{"Cookie": {first}, "Authorization": {second}}}
		if sole, ok := site.SoleSession(mixed); ok {
			all := site.AllSessionTokens(mixed)
			if len(all) != 1 || all[0].Hash() != sole.Hash() || len(site.SessionTokens(mixed)) != 0 || !front.HasBearer(mixed.Header) {
				t.Errorf("%q, %q: SoleSession returns a session, but the request has %d", first, second, len(all))
			}
		}
	})
}

// The client's address is the connection's unless that is a trusted proxy's; a
// client's own X-Forwarded-For is ignored.
func FuzzClientIP(f *testing.F) {
	for _, hops := range []string{
		"", "203.0.113.5", "1.1.1.1, 203.0.113.5", "203.0.113.5, 10.0.0.2", "10.0.0.2,10.0.0.3", "unknown", "[2001:db8::1]:80", "::ffff:10.0.0.1",
		"fe80::1%eth0", ",,,", "203.0.113.5:port", "999.1.1.1", " 203.0.113.5 ", "203.0.113.5, \x00",
	} {
		f.Add("10.0.0.1:4711", hops, "6.6.6.6")
		f.Add("198.51.100.1:4711", hops, "10.0.0.9")
	}
	f.Add("[::1]:80", "203.0.113.5", "")
	f.Add("@", "203.0.113.5", "")
	trusted := []string{"10.0.0.0/8", "::1/128"}
	var ip string
	h := newSite(f, io.Discard, trusted...).Handler(rawRoutes(func(_ context.Context, c *front.Call) error {
		ip = c.Caller.IP
		return nil
	}))
	client := func(remote, forwarded string) string {
		req := httptest.NewRequest(http.MethodPost, "/x", http.NoBody)
		req.RemoteAddr = remote
		req.Header["X-Forwarded-For"] = []string{forwarded}
		h.ServeHTTP(httptest.NewRecorder(), req)
		return ip
	}
	f.Fuzz(func(t *testing.T, remote, forwarded, forged string) {
		direct := client(remote, "")
		got := client(remote, forwarded)
		switch {
		case got == direct:
		case !within(direct, trusted):
			t.Errorf("%q, %q: the header of an untrusted peer is believed: %q", remote, forwarded, got)
		default:
			if addr, err := netip.ParseAddr(got); err != nil || addr.String() != got || addr.Zone() != "" || addr.Is4In6() {
				t.Errorf("%q, %q: %q isn't an address in canonical form", remote, forwarded, got)
			}
		}
		if changed := client(remote, forged+","+forwarded); changed != got && !within(got, trusted) {
			t.Errorf("%q, %q: the address becomes %q instead of %q with %q before the header", remote, forwarded, changed, got, forged)
		}
	})
}

func within(addr string, networks []string) bool {
	ip, err := netip.ParseAddr(addr)
	return err == nil && slices.ContainsFunc(networks, func(n string) bool { return netip.MustParsePrefix(n).Contains(ip) })
}
