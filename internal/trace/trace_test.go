package trace_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward/internal/logtest"
	"github.com/doorward/doorward/internal/trace"
	"github.com/doorward/doorward/internal/trace/tracetest"
	"github.com/doorward/doorward/internal/waittest"
)

const (
	foreignTrace = "0af7651916cd43dd8448eb211c80319c"
	foreignSpan  = "b7ad6b7169203331"
	sampled      = "00-" + foreignTrace + "-" + foreignSpan + "-01"
	unsampled    = "00-" + foreignTrace + "-" + foreignSpan + "-00"
)

var gateway = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}

// request is a request from an address, with these traceparent headers.
func request(from string, lines ...string) *http.Request {
	r := httptest.NewRequest("GET", "/api/v2/users/usr_1", nil)
	r.RemoteAddr = from + ":4711"
	r.Header["Traceparent"] = lines
	return r
}

func newTracer(t *testing.T, c *tracetest.Collector, sample float64) *trace.Tracer {
	t.Helper()
	tracer := trace.New(trace.Options{Collector: c.URL, Sample: sample, TrustedProxies: gateway, Version: "1.2.3", Node: "localhost:8080", Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() { tracer.Close(time.Minute) })
	return tracer
}

func TestTrace(t *testing.T) {
	c := tracetest.Start(t)
	tracer := newTracer(t, c, 1)
	r, span := tracer.Request(request("192.0.2.1"), "/api/v2/users/{id}", time.Now().Add(-time.Second))
	makeSpans(r.Context())
	span.Answered(503)
	span.End()
	tracer.Close(time.Minute)
	all := c.Spans()
	if len(all) != 3 {
		t.Fatalf("got %d spans, want 3: %+v", len(all), all)
	}
	root, transaction, hash := all[0], all[1], all[2]
	if root.Name != "GET /api/v2/users/{id}" || root.Kind != "SPAN_KIND_SERVER" || root.Parent != "" || !root.Failed || root.Took < uint64(time.Second) {
		t.Errorf("the request is %+v", root)
	}
	if diff := cmp.Diff(map[string]string{
		"http.request.method": "GET", "http.route": "/api/v2/users/{id}", "url.scheme": "http", "http.response.status_code": "int_value:503", "error.type": "503",
	}, root.Attributes); diff != "" {
		t.Errorf("attributes of the request (-want +got):\n%s", diff)
	}
	if transaction.Parent != root.ID || transaction.Trace != root.Trace || transaction.Kind != "SPAN_KIND_CLIENT" || !cmp.Equal(transaction.Events, []string{"begun"}) || transaction.Failed {
		t.Errorf("the transaction is %+v", transaction)
	}
	if hash.Parent != transaction.ID || hash.Name != "password.hash" {
		t.Errorf("the hash is %+v", hash)
	}
	if root.Resource["service.name"] != "doorward" || root.Resource["service.version"] != "1.2.3" || root.Resource["service.instance.id"] != "localhost:8080" {
		t.Errorf("the resource is %v", root.Resource)
	}
	if sent, lost := tracer.Counts(); sent != 3 || lost != 0 {
		t.Errorf("counted %d sent and %d lost", sent, lost)
	}
}

func makeSpans(ctx context.Context) {
	ctx, transaction := trace.Transaction(ctx, "sqlite", "user.invite")
	defer transaction.End()
	trace.Note(ctx, "begun")
	_, hash := trace.Start(ctx, "password.hash")
	hash.End()
}

// A trace header counts only if it comes from a trusted proxy and has the standard's
// format.
func TestTrustedHeaders(t *testing.T) {
	for name, c := range map[string]struct {
		from           string
		lines          []string
		sample         float64
		isTraced       bool // by Request
		inCallersTrace bool
		isCheckTraced  bool // by Check
	}{
		"a trusted proxy, sampled":                {"10.1.2.3", []string{sampled}, 0, true, true, true},
		"a trusted proxy, not sampled":            {"10.1.2.3", []string{unsampled}, 1, false, false, false},
		"a trusted proxy by IPv6":                 {"[::ffff:10.1.2.3]", []string{sampled}, 0, true, true, true},
		"a trusted proxy without the header":      {"10.1.2.3", nil, 1, true, false, false},
		"another caller, sampled":                 {"192.0.2.1", []string{sampled}, 0, false, false, false},
		"another caller, sampled, and chosen":     {"192.0.2.1", []string{sampled}, 1, true, false, false},
		"another caller, not sampled, and chosen": {"192.0.2.1", []string{unsampled}, 1, true, false, false},
		"two headers":                             {"10.1.2.3", []string{sampled, sampled}, 0, false, false, false},
		"a trace id of zeros":                     {"10.1.2.3", []string{strings.Replace(sampled, foreignTrace, strings.Repeat("0", 32), 1)}, 0, false, false, false},
		"in capitals":                             {"10.1.2.3", []string{strings.ToUpper(sampled)}, 0, false, false, false},
		"the invalid version ff":                  {"10.1.2.3", []string{"ff" + sampled[2:]}, 0, false, false, false},
		"a later version":                         {"10.1.2.3", []string{"01" + sampled[2:] + "-more"}, 0, true, true, true},
		"cut off":                                 {"10.1.2.3", []string{sampled[:54]}, 0, false, false, false},
		"empty":                                   {"10.1.2.3", []string{""}, 0, false, false, false},
		"an invalid address":                      {"nowhere", []string{sampled}, 0, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			collector := tracetest.Start(t)
			tracer := newTracer(t, collector, c.sample)
			r, span := tracer.Request(request(c.from, c.lines...), "/", time.Now())
			if (span != nil) != c.isTraced || (trace.ID(r.Context()) == foreignTrace) != c.inCallersTrace {
				t.Errorf("a request is traced: %v, as %q", span != nil, trace.ID(r.Context()))
			}
			span.End()
			_, check := tracer.Check(request(c.from, c.lines...), "/", time.Time{})
			if (check != nil) != c.isCheckTraced {
				t.Errorf("a check is traced: %v", check != nil)
			}
			check.End()
			tracer.Close(time.Minute)
			for _, s := range collector.Spans() {
				if (s.Parent == foreignSpan) != c.inCallersTrace {
					t.Errorf("exported as %+v", s)
				}
			}
		})
	}
}

// Other headers of the caller are ignored.
func TestOtherHeadersAreIgnored(t *testing.T) {
	c := tracetest.Start(t)
	tracer := newTracer(t, c, 0)
	r := request("10.1.2.3", sampled)
	r.Method = "CHOSEN"
	r.Header.Set("Tracestate", "vendor=chosen")
	r.Header.Set("Baggage", "user=chosen")
	r.Header.Set("User-Agent", "chosen")
	r.URL.RawQuery = "q=chosen"
	_, span := tracer.Request(r, "/", time.Now())
	span.End()
	tracer.Close(time.Minute)
	if all := c.Spans(); len(all) != 1 || all[0].Name != "HTTP /" || all[0].Attributes["http.request.method"] != "_OTHER" {
		t.Errorf("got %+v", all)
	}
	if raw := c.Raw(); len(raw) < 100 || strings.Contains(strings.ToLower(raw), "chosen") {
		t.Errorf("exported is %q", raw)
	}
}

func TestSample(t *testing.T) {
	tracer := newTracer(t, tracetest.Start(t), 0.25)
	traced := 0
	for range 4000 {
		_, span := tracer.Request(request("192.0.2.1"), "/", time.Now())
		if span != nil {
			traced++
		}
	}
	if traced < 800 || traced > 1200 { // 1000 ± seven standard deviations of 27
		t.Errorf("%d of 4000 requests were traced, want a quarter", traced)
	}
}

// The node's own work is sampled; without a tracer nothing is traced.
func TestRoot(t *testing.T) {
	c := tracetest.Start(t)
	tracer := newTracer(t, c, 1)
	ctx, span := trace.Root(tracer.NewContext(t.Context()), "mail")
	_, send := trace.Start(ctx, "mail.send")
	send.Fail("temporary")
	send.End()
	span.End()
	if _, span := trace.Root(t.Context(), "mail"); span != nil {
		t.Error("traced without a tracer")
	}
	tracer.Close(time.Minute)
	all := c.Spans()
	if len(all) != 2 || all[0].Parent != "" || all[1].Parent != all[0].ID || all[1].Attributes["error.type"] != "temporary" || !all[1].Failed {
		t.Errorf("got %+v", all)
	}
}

// Without a tracer, or outside a trace, nothing is allocated.
func TestUntracedWorkAllocatesNothing(t *testing.T) {
	tracer := newTracer(t, tracetest.Start(t), 0)
	ctx := tracer.NewContext(t.Context())
	untrusted, unsampledRequest := request("192.0.2.1", sampled), request("10.1.2.3", unsampled)
	for name, work := range map[string]func(){
		"off":                             func() { _, s := (*trace.Tracer)(nil).Request(untrusted, "/", time.Time{}); s.Answered(200); s.End() },
		"off, a check":                    func() { _, s := (*trace.Tracer)(nil).Check(untrusted, "/", time.Time{}); s.Answered(200); s.End() },
		"another caller":                  func() { _, s := tracer.Request(untrusted, "/", time.Time{}); s.Answered(200); s.End() },
		"another caller's check":          func() { _, s := tracer.Check(untrusted, "/", time.Time{}); s.Answered(200); s.End() },
		"an unsampled check":              func() { _, s := tracer.Check(unsampledRequest, "/", time.Time{}); s.Answered(200); s.End() },
		"a piece of work":                 func() { _, s := trace.Start(ctx, "x"); s.Set("a", "b"); s.Fail("x"); s.End() },
		"a transaction":                   func() { _, s := trace.Transaction(ctx, "sqlite", "user.invite"); s.SetCount("a", 1); s.End() },
		"an event":                        func() { trace.Note(ctx, "begun") },
		"a root span that is not sampled": func() { _, s := trace.Root(ctx, "mail"); s.End() },
		"the id":                          func() { _ = trace.ID(ctx) },
	} {
		if n := testing.AllocsPerRun(100, work); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// A collector that is down, hangs, refuses or redirects costs only spans: ending a span
// doesn't block, memory stays bounded, Close returns, and no secret is logged.
func TestRaceFaultyCollector(t *testing.T) {
	var redirected atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { redirected.Add(1) }))
	defer other.Close()
	hang := make(chan struct{})
	defer close(hang)
	for name, answer := range map[string]http.HandlerFunc{
		"hangs": func(http.ResponseWriter, *http.Request) { <-hang },
		"refuses": func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, r.Header.Get("Authorization"), http.StatusUnauthorized)
		},
		"is busy": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"redirects": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+"/"+r.Header.Get("Authorization"), http.StatusTemporaryRedirect)
		},
		"is gone": nil,
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(answer)
			base, err := url.Parse(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			if answer == nil {
				server.Close()
			} else {
				t.Cleanup(server.CloseClientConnections)
			}
			log := &logtest.Journal{}
			tracer := trace.New(trace.Options{
				Collector: base, Header: trace.Header{Name: "Authorization", Value: "Bearer canary-collector"}, Sample: 1, Log: slog.New(slog.NewJSONHandler(log, nil)),
			})
			const many = 10_000
			var work sync.WaitGroup
			for range 4 {
				work.Go(func() {
					for range many / 4 {
						_, span := tracer.Request(request("192.0.2.1"), "/", time.Now())
						span.End()
					}
				})
			}
			work.Wait()
			if _, lost := tracer.Counts(); lost < many-2048 {
				t.Errorf("of %d spans only %d are lost: the queue exceeds its bound", many, lost)
			}
			tracer.Close(100 * time.Millisecond)
			waittest.Until(t, "the loss of all spans", func() bool {
				sent, lost := tracer.Counts()
				return sent == 0 && lost == many
			})
			if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "traces not exported") || strings.Contains(text, "canary") {
				t.Errorf("the log says %q", text)
			}
			if redirected.Load() > 0 {
				t.Error("the redirect was followed, with the header")
			}
		})
	}
}

// A batch that a busy collector refused is retried.
func TestRaceBusyCollector(t *testing.T) {
	c := tracetest.Start(t)
	var asked atomic.Int64
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		c.ServeHTTP(w, r)
	}))
	defer busy.Close()
	base, err := url.Parse(busy.URL + "/v1/traces")
	if err != nil {
		t.Fatal(err)
	}
	tracer := trace.New(trace.Options{Collector: base, Header: trace.Header{Name: "X-Key", Value: "k"}, Sample: 1, Log: slog.New(slog.DiscardHandler)})
	_, span := tracer.Request(request("192.0.2.1"), "/", time.Now())
	span.End()
	tracer.Close(time.Minute)
	if got := c.Headers(); len(got) != 1 || got[0].Get("X-Key") != "k" || len(c.Spans()) != 1 {
		t.Errorf("got %v %+v", got, c.Spans())
	}
}

func BenchmarkStart(b *testing.B) {
	sink := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer sink.Close()
	base, err := url.Parse(sink.URL)
	if err != nil {
		b.Fatal(err)
	}
	for _, sample := range []float64{0, 1} {
		b.Run(fmt.Sprint(sample), func(b *testing.B) {
			tracer := trace.New(trace.Options{Collector: base, Sample: sample, Log: slog.New(slog.DiscardHandler)})
			defer tracer.Close(time.Second)
			ctx, span := trace.Root(tracer.NewContext(b.Context()), "mail")
			defer span.End()
			b.ReportAllocs()
			for b.Loop() {
				_, s := trace.Start(ctx, "mail.send")
				s.End()
			}
		})
	}
}
