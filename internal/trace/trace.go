// Package trace shows where the time of a request goes, by OpenTelemetry.
//
// Some requests are traced. Parts of their work are spans:
//
//	ctx, span := trace.Start(ctx, "password.hash")
//	defer span.End()
//
// If the context is not traced, Start returns a nil Span, whose methods do nothing:
// callers need not check. This costs only a lookup in the context.
//
// A Tracer begins root spans: Request and Check for requests, Root for the node's
// own work. A nil Tracer traces nothing; a node without a collector has one.
//
//	trace.go   spans, within a request
//	tracer.go  which requests are traced
//	outlet.go  the bounded queue of spans for the collector
//	post.go    OTLP over HTTP
//
// Span and trace are the terms of https://www.w3.org/TR/trace-context/.
//
// A span has the kind of work and its duration, never its values: names and
// attributes are constants, kinds, counts and Doorward's own ids. So traces contain
// nothing of a tenant or person, and no secret.
package trace

import (
	"context"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	otel "go.opentelemetry.io/otel/trace"
)

// scope is the name under which spans are exported.
const scope = "github.com/doorward/doorward"

// Span is a piece of work that is followed. A nil Span is one that isn't.
type Span struct{ of otel.Span }

// Start begins a piece of the work that ctx belongs to, if that is followed. The
// name is a constant of the code that calls.
func Start(ctx context.Context, name string) (context.Context, *Span) {
	return start(ctx, name, "", otel.SpanKindInternal)
}

// Transaction begins one of the database, to do the operation named. Attributes
// are those of https://opentelemetry.io/docs/specs/semconv/db/database-spans/,
// without the text of queries.
func Transaction(ctx context.Context, system, operation string) (context.Context, *Span) {
	ctx, span := start(ctx, "transaction ", operation, otel.SpanKindClient)
	span.Set("db.system.name", system)
	span.Set("db.operation.name", operation)
	return ctx, span
}

// start joins the name only when it is used.
func start(ctx context.Context, name, more string, kind otel.SpanKind) (context.Context, *Span) {
	above := otel.SpanFromContext(ctx)
	if !above.IsRecording() {
		return ctx, nil
	}
	ctx, span := above.TracerProvider().Tracer(scope).Start(ctx, name+more, otel.WithSpanKind(kind))
	return ctx, &Span{span}
}

// Note marks an instant in the piece of work that ctx is in.
func Note(ctx context.Context, event string) {
	if span := otel.SpanFromContext(ctx); span.IsRecording() {
		span.AddEvent(event)
	}
}

// Set adds an attribute. The value is a constant or one of Doorward's ids.
func (s *Span) Set(key, value string) {
	if s != nil {
		s.of.SetAttributes(attribute.String(key, value))
	}
}

// SetCount adds an attribute that is a number.
func (s *Span) SetCount(key string, n int) {
	if s != nil {
		s.of.SetAttributes(attribute.Int(key, n))
	}
}

// Fail says that the work failed, and by which kind of failure: a word of the
// code, never the text of an error, which may repeat what somebody sent.
func (s *Span) Fail(kind string) {
	if s != nil {
		s.of.SetAttributes(attribute.String("error.type", kind))
		s.of.SetStatus(codes.Error, "")
	}
}

// Answered notes the status of the answer to a request. One of the caller's
// faults is no failure of the server's
// (https://opentelemetry.io/docs/specs/semconv/http/http-spans/#status).
func (s *Span) Answered(status int) {
	if s == nil {
		return
	}
	s.SetCount("http.response.status_code", status)
	if status >= 500 {
		s.Fail(strconv.Itoa(status))
	}
}

// ID is the id of the trace that ctx belongs to, 32 hexadecimal digits; empty
// where nothing is followed.
func ID(ctx context.Context) string {
	if span := otel.SpanFromContext(ctx); span.IsRecording() {
		return span.SpanContext().TraceID().String()
	}
	return ""
}

// End ends the piece of work.
func (s *Span) End() {
	if s != nil {
		s.of.End()
	}
}
