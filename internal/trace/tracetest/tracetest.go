// Package tracetest is a collector of OpenTelemetry for tests: it takes OTLP over
// HTTP on loopback and keeps what it is sent.
//
//	collector := tracetest.Start(t)
//	server := doorwardtest.Start(t, func(c *node.Config) {
//		c.Trace = trace.Options{Collector: collector.URL, Sample: 1}
//	})
//	… server.Stop() …
//	for _, span := range collector.Spans() { … }
//
// A server sends its remaining spans when it is stopped.
package tracetest

import (
	"cmp"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"testing"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	wire "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Collector keeps spans.
type Collector struct {
	URL *url.URL // base URL, for trace.Options

	tb      testing.TB
	mu      sync.Mutex
	spans   []Span
	raw     []byte
	headers []http.Header
}

// Span is an exported span.
type Span struct {
	Name, Kind           string // the kind as in "SPAN_KIND_SERVER"
	Trace, ID, Parent    string // hexadecimal
	Failed               bool
	Attributes, Resource map[string]string // values as text; another type than string as in "int_value:503"
	Events               []string
	Began, Took          uint64 // in nanoseconds, the first since 1970
}

// Start starts a collector that ends with the test.
func Start(tb testing.TB) *Collector {
	tb.Helper()
	c := &Collector{tb: tb}
	server := httptest.NewServer(c)
	tb.Cleanup(server.Close)
	base, err := url.Parse(server.URL)
	if err != nil {
		tb.Fatal(err)
	}
	c.URL = base
	return c
}

// ServeHTTP accepts a batch.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var batch wire.TracesData
	if err == nil {
		err = proto.Unmarshal(body, &batch)
	}
	if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		c.tb.Errorf("tracetest: %s %s %v: %v", r.Method, r.URL, r.Header, err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw, c.headers = append(c.raw, body...), append(c.headers, r.Header)
	for _, group := range batch.ResourceSpans {
		for _, scope := range group.ScopeSpans {
			for _, s := range scope.Spans {
				c.spans = append(c.spans, spanOf(s, textOf(group.Resource.GetAttributes())))
			}
		}
	}
}

func spanOf(s *wire.Span, resource map[string]string) Span {
	out := Span{
		Name: s.Name, Kind: s.Kind.String(), Trace: hex.EncodeToString(s.TraceId), ID: hex.EncodeToString(s.SpanId), Parent: hex.EncodeToString(s.ParentSpanId),
		Failed: s.Status.GetCode() == wire.Status_STATUS_CODE_ERROR, Attributes: textOf(s.Attributes), Resource: resource,
		Began: s.StartTimeUnixNano, Took: s.EndTimeUnixNano - s.StartTimeUnixNano,
	}
	for _, e := range s.Events {
		out.Events = append(out.Events, e.Name)
	}
	return out
}

func textOf(pairs []*common.KeyValue) map[string]string {
	all := map[string]string{}
	for _, p := range pairs {
		all[p.Key] = p.Value.GetStringValue()
		if _, isText := p.Value.Value.(*common.AnyValue_StringValue); !isText {
			all[p.Key] = p.Value.String()
		}
	}
	return all
}

// Spans returns the received spans, ordered by the start of their work.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.Clone(c.spans)
	slices.SortStableFunc(all, func(a, b Span) int { return cmp.Compare(a.Began, b.Began) })
	return all
}

// Named returns the spans with that name.
func (c *Collector) Named(name string) []Span {
	return slices.DeleteFunc(c.Spans(), func(s Span) bool { return s.Name != name })
}

// Raw returns everything received, as bytes: text appears in it unchanged.
func (c *Collector) Raw() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return string(c.raw)
}

// Headers returns the headers of the batches.
func (c *Collector) Headers() []http.Header {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.headers)
}
