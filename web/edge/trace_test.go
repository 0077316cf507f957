package edge_test

import (
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
	"github.com/doorward/doorward/internal/trace/tracetest"
	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/web/edge"
	"github.com/doorward/doorward/web/front"
)

const (
	callersTrace = "0af7651916cd43dd8448eb211c80319c"
	sampled      = "00-" + callersTrace + "-b7ad6b7169203331-01"
	unsampled    = "00-" + callersTrace + "-b7ad6b7169203331-00"
)

// startTraced returns a server, and the collector of its spans. The server trusts loopback as a
// gateway, and samples every request that comes without a sampling decision.
func startTraced(t *testing.T, options ...doorwardtest.Option) (*server, *tracetest.Collector) {
	t.Helper()
	c := tracetest.Start(t)
	return start(t, append(options, doorwardtest.TrustLoopback(), func(cfg *node.Config) {
		cfg.Trace = trace.Options{Collector: c.URL, Sample: 1}
	})...), c
}

// A check is traced only if the gateway's trace is sampled.
func TestCheckIsTracedOnRequest(t *testing.T) {
	t.Parallel()
	d, c := startTraced(t)
	key := d.createOperatorKey(t)
	for _, more := range [][]string{nil, {"Traceparent", unsampled}, {"Traceparent", sampled}} {
		d.check(t, "GET", "action=message.send", as(d.people["USER"], more...)).passes(d.people["USER"])
		d.check(t, "GET", "action=user.invite", as(d.people["USER"], more...)).fails(http.StatusForbidden, "forbidden")
		// The name of a span has no method of the client's own invention.
		d.check(t, "CHOSEN", "", more).fails(http.StatusUnauthorized, "unauthenticated")
		body := strings.NewReader(`{"credential":"` + d.people["USER"].Token() + `"}`)
		h := append(headers{"Authorization", "Bearer " + key, "Content-Type", "application/json"}, more...)
		if a := d.send(t, "POST /api/v2/access/introspect", body, h); a.status != http.StatusOK {
			t.Fatalf("introspect: %d %s", a.status, a.body)
		}
		if a := d.send(t, "GET /healthz", nil, more); a.status != http.StatusOK {
			t.Fatalf("healthz: %d %s", a.status, a.body)
		}
	}
	d.Stop()
	want := map[string]string{
		"GET " + edge.Path + " 200": "", "GET " + edge.Path + " 403": "", "HTTP " + edge.Path + " 401": "",
		"POST /api/v2/access/introspect 200": "", "GET /healthz 200": "",
	}
	for _, s := range c.Spans() {
		name := s.Name + " " + strings.TrimPrefix(s.Attributes["http.response.status_code"], "int_value:")
		_, isWanted := want[name]
		route := s.Attributes["http.route"]
		switch {
		case isWanted && s.Trace == callersTrace:
			delete(want, name)
		case isWanted, route == edge.Path, strings.Contains(route, "introspect"), strings.Contains(route, "healthz"):
			t.Errorf("traced unexpectedly: %+v", s)
		}
	}
	if len(want) > 0 {
		t.Errorf("not traced: %v", want)
	}
}

// An unsampled check makes no more allocations with tracing than without.
func TestTracingAddsNoAllocations(t *testing.T) {
	d, c := startTraced(t)
	d.check(t, "GET", "", as(d.people["USER"])).passes(d.people["USER"]) // loads the cache
	base, err := url.Parse(d.URL)
	if err != nil {
		t.Fatal(err)
	}
	gateways := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")} // httptest's client address
	tracer := trace.New(trace.Options{Collector: c.URL, Sample: 1, TrustedProxies: gateways, Log: slog.New(slog.DiscardHandler)})
	defer tracer.Close(time.Minute)
	allocations := func(tracer *trace.Tracer, traceparent ...string) float64 {
		site := front.New(d.Node.App, base, gateways, slog.New(slog.DiscardHandler))
		site.Tracer = tracer
		handler := edge.Check(site, http.NotFoundHandler())
		req := httptest.NewRequest("GET", edge.Path+"?action=message.send", nil)
		req.Header = http.Header{"Cookie": {"JSESSIONID=" + d.people["USER"].Token()}, "X-Request-Id": {"test"}, "Traceparent": traceparent}
		w := httptest.NewRecorder()
		n := testing.AllocsPerRun(200, func() {
			clear(w.Header())
			handler.ServeHTTP(w, req)
		})
		if w.Header().Get("X-Auth-User") != d.people["USER"].ID {
			t.Fatal("the check did not pass")
		}
		return n
	}
	off := allocations(nil)
	if on := allocations(tracer); on != off {
		t.Errorf("off %v allocations, on %v", off, on)
	}
	if on := allocations(tracer, unsampled); on != off {
		t.Errorf("off %v allocations, on in an unsampled trace %v", off, on)
	}
	if on := allocations(tracer, sampled); on <= off {
		t.Errorf("off %v allocations, sampled %v: it may not be traced", off, on)
	}
}
