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
	// http://localhost:4318; spans go to /v1/traces below it, with which it may already end.
	Collector *url.URL
	// Header is sent for authentication, unless its name is empty.
	Header Header
	// Sample is the fraction, 0 to 1, of work that is traced if no trusted caller decides.
	Sample float64
	// TrustedProxies are the addresses whose trace headers are trusted.
	TrustedProxies []netip.Prefix
	// Version and Node identify the program and its instance.
	Version, Node string
	Log           *slog.Logger
}

// Header is a request header. Its value is a secret.
type Header struct{ Name, Value string }

// The bounds of the queue for the collector: at most maxQueued spans of about 2 KiB;
// more are lost. The numbers are the defaults of
// https://opentelemetry.io/docs/specs/otel/trace/sdk/#batching-processor. The times are
// shorter, so that little is queued at the end.
const (
	maxQueued     = 2048
	maxBatch      = 512
	batchInterval = 2 * time.Second
	exportTimeout = 10 * time.Second
)

// The bounds of one span. Doorward's spans are far below them.
var limits = sdk.SpanLimits{
	AttributeValueLengthLimit: 256, AttributeCountLimit: 32, EventCountLimit: 32, LinkCountLimit: 8,
	AttributePerEventCountLimit: 8, AttributePerLinkCountLimit: 8,
}

// New returns a tracer that exports until Close. It doesn't check that the collector is
// reachable.
func New(o Options) *Tracer {
	stop, cancel := context.WithCancel(context.Background())
	out := &exporter{SpanExporter: otlptrace.NewUnstarted(newPoster(o)), stop: stop, cancel: cancel, log: o.Log}
	batches := sdk.NewBatchSpanProcessor(out, sdk.WithMaxQueueSize(maxQueued), sdk.WithMaxExportBatchSize(maxBatch),
		sdk.WithBatchTimeout(batchInterval), sdk.WithExportTimeout(exportTimeout))
	// AlwaysSample, because the methods of Tracer begin no span that is not to be traced.
	provider := sdk.NewTracerProvider(sdk.WithSampler(sdk.AlwaysSample()), sdk.WithResource(resourceOf(o)),
		sdk.WithRawSpanLimits(limits), sdk.WithSpanProcessor(queueLimit{batches, out}))
	t := &Tracer{provider: provider, tracer: provider.Tracer(scope), exporter: out, sample: o.Sample}
	t.Trust(o.TrustedProxies)
	return t
}

// resourceOf identifies this process
// (https://opentelemetry.io/docs/specs/semconv/resource/#service).
func resourceOf(o Options) *resource.Resource {
	host, _ := os.Hostname() // without a name, Node still identifies the process
	return resource.NewSchemaless(attribute.String("service.name", "doorward"), attribute.String("service.version", o.Version),
		attribute.String("service.instance.id", o.Node), attribute.String("host.name", host))
}

// Counts returns the spans since the start, for metrics: those that the collector accepted,
// and those that were lost.
func (t *Tracer) Counts() (sent, lost uint64) {
	if t == nil {
		return 0, 0
	}
	return t.exporter.sent.Load(), t.exporter.lost.Load()
}

// Close exports the ended spans, for as long as timeout allows, and releases all resources.
func (t *Tracer) Close(timeout time.Duration) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	defer t.exporter.cancel()
	_ = t.provider.Shutdown(ctx) // the exporter counts and logs failures
}

// exporter exports, counts, and handles errors itself: the batch processor would pass
// them to a process-wide handler.
type exporter struct {
	sdk.SpanExporter
	stop       context.Context // aborts the current export
	cancel     context.CancelFunc
	log        *slog.Logger
	queued     atomic.Int64
	sent, lost atomic.Uint64
	warnedAt   time.Time // used only by the goroutine that exports
}

// ExportSpans always returns nil.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.stop, cancel)()
	err := e.SpanExporter.ExportSpans(ctx, spans)
	e.queued.Add(-int64(len(spans)))
	if err == nil {
		e.sent.Add(uint64(len(spans)))
		return nil
	}
	e.lost.Add(uint64(len(spans)))
	e.warn(err)
	return nil
}

// warnInterval is the least time between warnings, so that an unreachable collector doesn't
// fill the log.
const warnInterval = time.Minute

func (e *exporter) warn(err error) {
	if time.Since(e.warnedAt) < warnInterval {
		return
	}
	e.warnedAt = time.Now()
	e.log.Warn("traces not exported", "lost", e.lost.Load(), "err", err)
}

// queueLimit adds a span to the queue unless it is full, and counts the spans it drops.
// Ending a span never blocks.
type queueLimit struct {
	sdk.SpanProcessor
	exporter *exporter
}

// OnEnd is called for every span that ends.
func (q queueLimit) OnEnd(s sdk.ReadOnlySpan) {
	if q.exporter.queued.Add(1) > maxQueued {
		q.exporter.queued.Add(-1)
		q.exporter.lost.Add(1)
		return
	}
	q.SpanProcessor.OnEnd(s)
}
