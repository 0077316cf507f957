package trace

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	otel "go.opentelemetry.io/otel/trace"
)

// Tracer decides which work is traced. Make it with New; a nil one traces nothing.
type Tracer struct {
	provider       *sdk.TracerProvider
	tracer         otel.Tracer
	exporter       *exporter
	sample         float64
	trustedProxies atomic.Pointer[[]netip.Prefix]
}

// Trust replaces the list of proxies whose trace headers are trusted.
func (t *Tracer) Trust(proxies []netip.Prefix) {
	if t != nil {
		t.trustedProxies.Store(&proxies)
	}
}

// Request begins the span of a request to a route, named by its pattern. began is when the
// request began, or zero for now. It returns the request with the span in its context. A trusted
// proxy decides whether it is traced, and in which trace; others are sampled.
func (t *Tracer) Request(r *http.Request, route string, began time.Time) (*http.Request, *Span) {
	if t == nil {
		return r, nil
	}
	parent := t.parent(r)
	if parent.IsValid() && !parent.IsSampled() || !parent.IsValid() && !t.isChosen() {
		return r, nil
	}
	return t.begin(r, route, began, parent)
}

// Check is Request for frequent requests: they are traced only if a trusted trace asks
// for it. A check that isn't traced costs no allocation.
func (t *Tracer) Check(r *http.Request, route string, began time.Time) (*http.Request, *Span) {
	if t == nil || !hasSampledFlag(r.Header) {
		return r, nil
	}
	parent := t.parent(r)
	if !parent.IsValid() || !parent.IsSampled() {
		return r, nil
	}
	return t.begin(r, route, began, parent)
}

func (t *Tracer) begin(r *http.Request, route string, began time.Time, parent otel.SpanContext) (*http.Request, *Span) {
	ctx := r.Context()
	if parent.IsValid() {
		ctx = otel.ContextWithRemoteSpanContext(ctx, parent)
	}
	method, name := methodOf(r)
	ctx, span := t.tracer.Start(ctx, name+" "+route, otel.WithSpanKind(otel.SpanKindServer), otel.WithTimestamp(began),
		otel.WithAttributes(attribute.String("http.request.method", method), attribute.String("http.route", route), attribute.String("url.scheme", schemeOf(r))))
	return r.WithContext(ctx), &Span{span}
}

// Root begins the span of work that the node starts itself, if ctx comes from NewContext
// and the work is sampled.
func Root(ctx context.Context, name string) (context.Context, *Span) {
	t, ok := ctx.Value(tracerKey{}).(*Tracer)
	if !ok || !t.isChosen() {
		return ctx, nil
	}
	ctx, span := t.tracer.Start(ctx, name, otel.WithNewRoot())
	return ctx, &Span{span}
}

type tracerKey struct{}

// NewContext returns the context in which Root finds the tracer.
func (t *Tracer) NewContext(ctx context.Context) context.Context {
	if t == nil {
		return ctx
	}
	return context.WithValue(ctx, tracerKey{}, t)
}

// isChosen decides at random, for work about which no trusted caller decides.
func (t *Tracer) isChosen() bool { return rand.Float64() < t.sample }

// traceParent is the header of https://www.w3.org/TR/trace-context/#traceparent-header
// as net/http spells it.
const traceParent = "Traceparent"

// parent returns the span that a trusted caller declares as parent, else an invalid one.
// Other callers could have all of their requests traced, which costs time, or write into
// another trace. Tracestate and baggage are ignored, too.
func (t *Tracer) parent(r *http.Request) (none otel.SpanContext) {
	lines := r.Header[traceParent]
	if len(lines) != 1 || !t.isTrusted(r.RemoteAddr) {
		return none
	}
	carrier := propagation.MapCarrier{"traceparent": lines[0]}
	return otel.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
}

// isTrusted checks the address of the connection's peer, who has written the headers, and not
// X-Forwarded-For.
func (t *Tracer) isTrusted(remote string) bool {
	peer, err := netip.ParseAddrPort(remote)
	if err != nil {
		return false
	}
	addr := peer.Addr().Unmap().WithZone("")
	return slices.ContainsFunc(*t.trustedProxies.Load(), func(p netip.Prefix) bool { return p.Contains(addr) })
}

// hasSampledFlag reports whether the sampled bit is set in the flags, the last of the four
// fields of version 00. It only saves parsing: parent decides.
func hasSampledFlag(h http.Header) bool {
	lines := h[traceParent]
	if len(lines) != 1 || len(lines[0]) < len("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01") {
		return false
	}
	switch lines[0][54] {
	case '0', '2', '4', '6', '8', 'a', 'c', 'e':
		return false
	}
	return true
}

// methodOf returns the method as an attribute and as part of a name; for an unknown one
// constants, so that callers can't add values
// (https://opentelemetry.io/docs/specs/semconv/http/http-spans/#name).
func methodOf(r *http.Request) (method, name string) {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return r.Method, r.Method
	}
	return "_OTHER", "HTTP"
}

func schemeOf(r *http.Request) string {
	if r.TLS != nil {
		return "https"
	}
	return "http"
}
