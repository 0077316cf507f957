package main_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/trace"
	"github.com/doorward/doorward/web/edge"
	"github.com/doorward/doorward/web/front"
)

// discard is a ResponseWriter that keeps nothing.
type discard struct{ h http.Header }

func (d discard) Header() http.Header         { return d.h }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}

// BenchmarkCheck measures the handler of a check, what Doorward adds to net/http, when the
// credential is in memory: a cookie, a bearer token, an API key, and a cookie with a signed
// assertion. "off" is the cookie without tracing; with tracing it is outside of a trace ("on"),
// or within a client's trace.
func BenchmarkCheck(b *testing.B) {
	sink := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer sink.Close()
	collector, err := url.Parse(sink.URL)
	if err != nil {
		b.Fatal(err)
	}
	tracer := trace.New(trace.Options{
		Collector: collector, Sample: 1, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Log: slog.New(slog.DiscardHandler),
	})
	defer tracer.Close(time.Second)
	server := doorwardtest.Start(b)
	acme := server.Tenant("Acme")
	ann := acme.Join("ann@acme.example", "USER")
	const parent = "Traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-"
	cookie := "Cookie: JSESSIONID=" + ann.Token() + "\r\n"
	b.Run("off", func(b *testing.B) { check(b, server, ann, nil, cookie) })
	b.Run("bearer", func(b *testing.B) { check(b, server, ann, nil, "Authorization: Bearer "+ann.Token()+"\r\n") })
	signing := doorwardtest.Start(b, doorwardtest.Audiences("https://messages.example"))
	bob := signing.Tenant("Acme").Join("bob@acme.example", "USER")
	b.Run("signed", func(b *testing.B) { check(b, signing, bob, nil, "Cookie: JSESSIONID="+bob.Token()+"\r\n") })
	for name, addresses := range map[string][]string{"key": {}, "key with addresses": {"127.0.0.0/8"}} {
		id, key := newKey(b, acme.Owner, addresses...)
		b.Run(name, func(b *testing.B) { checkAs(b, server, "X-Auth-Key", id, nil, "Authorization: Bearer "+key+"\r\n") })
	}
	b.Run("on", func(b *testing.B) { check(b, server, ann, tracer, cookie) })
	b.Run("unsampled", func(b *testing.B) { check(b, server, ann, tracer, cookie+parent+"00\r\n") })
	b.Run("sampled", func(b *testing.B) { check(b, server, ann, tracer, cookie+parent+"01\r\n") })
}

// BenchmarkPolicies measures a check in a tenant whose policies don't refuse it: none, 200
// for another action, and 5, 50 and 200 whose condition has to be evaluated.
func BenchmarkPolicies(b *testing.B) {
	for _, c := range []struct {
		name, action string
		count        int
	}{{"none", "", 0}, {"200 for another action", "message.read", 200}, {"5", "message.send", 5}, {"50", "message.send", 50}, {"200", "message.send", 200}} {
		server := doorwardtest.Start(b)
		acme := server.Tenant("Acme")
		ann := acme.Join("ann@acme.example", "USER")
		putPolicies(b, server, acme, c.action, c.count)
		b.Run(c.name, func(b *testing.B) { check(b, server, ann, nil, "Cookie: JSESSIONID="+ann.Token()+"\r\n") })
	}
}

func putPolicies(b *testing.B, server *doorwardtest.Server, tenant *doorwardtest.Tenant, action string, count int) {
	b.Helper()
	var text strings.Builder
	for i := range count {
		fmt.Fprintf(&text, "@id(\"p%d\") forbid(principal, action == Action::%q, resource) when { context.ip.isInRange(ip(\"10.0.%d.0/24\")) };\n", i, action, i)
	}
	body, _ := json.Marshal(map[string]string{"text": text.String()}) // strings are accepted
	req, err := http.NewRequest(http.MethodPut, server.URL+"/api/v2/policy", bytes.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("If-Match", "*")
	req.Header.Set("Cookie", "JSESSIONID="+tenant.Owner.Token())
	res, err := server.Client().Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		b.Fatal(res.Status)
	}
}

// newKey makes an API key of the person.
func newKey(b *testing.B, owner *doorwardtest.Person, addresses ...string) (id, key string) {
	b.Helper()
	status, body := owner.Post("/api/v2/api-keys", map[string]any{"name": "bench", "permissions": []string{"message.send"}, "allowedIps": addresses})
	var made struct {
		APIKey struct{ ID string }
		Key    string
	}
	if err := json.Unmarshal(body, &made); status != http.StatusCreated || err != nil {
		b.Fatalf("%d %s", status, body)
	}
	return made.APIKey.ID, made.Key
}

func check(b *testing.B, server *doorwardtest.Server, ann *doorwardtest.Person, tracer *trace.Tracer, lines string) {
	b.Helper()
	checkAs(b, server, "X-Auth-User", ann.ID, tracer, lines)
}

func checkAs(b *testing.B, server *doorwardtest.Server, name, id string, tracer *trace.Tracer, lines string) {
	b.Helper()
	base, err := url.Parse(server.URL)
	if err != nil {
		b.Fatal(err)
	}
	site := front.New(server.Node.App, base, nil, slog.New(slog.NewTextHandler(io.Discard, nil)))
	site.Tracer = tracer
	handler := edge.Check(site, http.NotFoundHandler())
	raw := "GET /api/v2/access/check?action=message.send HTTP/1.1\r\nHost: x\r\nX-Request-Id: bench\r\n" + lines + "\r\n"
	req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(raw)))
	if err != nil {
		b.Fatal(err)
	}
	req.RemoteAddr = "127.0.0.1:4711"
	w := discard{http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		clear(w.h)
		handler.ServeHTTP(w, req)
	}
	if w.h.Get(name) != id {
		b.Fatal("the check did not pass")
	}
}
