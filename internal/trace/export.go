package trace

import (
	"context"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// Options say what is traced and where spans are sent.
type Options struct {
	// Collector is the base URL of an OTLP/HTTP collector, such as
	// http://localhost:4318; spans go to /v1/traces below it.
	Collector *url.URL
	// Header is sent for authentication, unless its name is empty.
	Header Header
	// Sample is the fraction, 0 to 1, that is traced of the work about which no trusted
	// caller decides.
	Sample float64
	// TrustedProxies are the addresses whose trace headers are trusted.
	TrustedProxies []netip.Prefix
	// Version and Node identify the program and its instance.
	Version, Node string
	Log           *slog.Logger
}

// Header is a request header. Its value is a secret.
type Header struct{ Name, Value string }

// The bounds of the queue for the collector: at most maxWaiting spans of about 2 KiB;
// more are lost. The numbers are the defaults of
// https://opentelemetry.io/docs/specs/otel/trace/sdk/#batching-processor. The times are
// shorter, so that little is queued at the end.
const (
	maxWaiting   = 2048
	maxBatch     = 512
	batchEvery   = 2 * time.Second
	exportWithin = 10 * time.Second
)

// The bounds of one span. Our spans are far below them.
var limits = sdk.SpanLimits{
	AttributeValueLengthLimit: 256, AttributeCountLimit: 32, EventCountLimit: 32, LinkCountLimit: 8,
	AttributePerEventCountLimit: 8, AttributePerLinkCountLimit: 8,
}

// New returns a tracer that exports until Close. It doesn't check that the collector is
// reachable.
func New(o Options) *Tracer {
	stop, cancel := context.WithCancel(context.Background())
	out := &outlet{SpanExporter: otlptrace.NewUnstarted(newPoster(o)), stop: stop, cancel: cancel, log: o.Log}
	batches := sdk.NewBatchSpanProcessor(out, sdk.WithMaxQueueSize(maxWaiting), sdk.WithMaxExportBatchSize(maxBatch),
		sdk.WithBatchTimeout(batchEvery), sdk.WithExportTimeout(exportWithin))
	provider := sdk.NewTracerProvider(sdk.WithSampler(sdk.AlwaysSample()), sdk.WithResource(resourceOf(o)),
		sdk.WithRawSpanLimits(limits), sdk.WithSpanProcessor(gate{batches, out}))
	t := &Tracer{provider: provider, tracer: provider.Tracer(scope), outlet: out, sample: o.Sample}
	t.Trust(o.TrustedProxies)
	return t
}

// resourceOf identifies this process
// (https://opentelemetry.io/docs/specs/semconv/resource/#service).
func resourceOf(o Options) *resource.Resource {
	host, _ := os.Hostname() // one without a name is known by its address
	return resource.NewSchemaless(attribute.String("service.name", "doorward"), attribute.String("service.version", o.Version),
		attribute.String("service.instance.id", o.Node), attribute.String("host.name", host))
}

// Counts are of spans since the start, for metrics: those that the collector accepted,
// and those that were lost.
func (t *Tracer) Counts() (sent, lost uint64) {
	if t == nil {
		return 0, 0
	}
	return t.outlet.sent.Load(), t.outlet.lost.Load()
}

// Close exports the ended spans, as far as the collector accepts them within that time,
// and releases all resources.
func (t *Tracer) Close(within time.Duration) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	defer t.outlet.cancel()
	_ = t.provider.Shutdown(ctx) // the outlet counts and logs failures
}

// outlet exports, counts, and handles errors itself: the batch processor would pass
// them to a process-wide handler.
type outlet struct {
	sdk.SpanExporter
	stop       context.Context // aborts the current export
	cancel     context.CancelFunc
	log        *slog.Logger
	waiting    atomic.Int64
	sent, lost atomic.Uint64
	complained time.Time // by the one goroutine that exports
}

// ExportSpans always returns nil.
func (o *outlet) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(o.stop, cancel)()
	err := o.SpanExporter.ExportSpans(ctx, spans)
	o.waiting.Add(-int64(len(spans)))
	if err == nil {
		o.sent.Add(uint64(len(spans)))
		return nil
	}
	o.lost.Add(uint64(len(spans)))
	o.complain(err)
	return nil
}

// complainEvery keeps an unreachable collector from filling the log.
const complainEvery = time.Minute

func (o *outlet) complain(err error) {
	if time.Since(o.complained) < complainEvery {
		return
	}
	o.complained = time.Now()
	o.log.Warn("traces not exported", "lost", o.lost.Load(), "err", err)
}

// gate adds a span to the queue unless it is full, and counts the spans it drops.
// Ending a span never blocks.
type gate struct {
	sdk.SpanProcessor
	outlet *outlet
}

// OnEnd is called for every span that ends.
func (g gate) OnEnd(s sdk.ReadOnlySpan) {
	if g.outlet.waiting.Add(1) > maxWaiting {
		g.outlet.waiting.Add(-1)
		g.outlet.lost.Add(1)
		return
	}
	g.SpanProcessor.OnEnd(s)
}
