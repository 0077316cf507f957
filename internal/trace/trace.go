// Package trace shows where the time of a request goes, with OpenTelemetry.
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
//	export.go  the bounded queue of spans for the collector
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

// Span is a traced piece of work. A nil Span isn't traced.
type Span struct{ span otel.Span }

// Start begins a child span in ctx, if ctx is traced. The name is a constant of the
// calling code.
func Start(ctx context.Context, name string) (context.Context, *Span) {
	return start(ctx, name, "", otel.SpanKindInternal)
}

// Transaction begins the span of a database transaction for the named operation.
// Attributes are those of
// https://opentelemetry.io/docs/specs/semconv/db/database-spans/, without the text of
// queries.
func Transaction(ctx context.Context, system, operation string) (context.Context, *Span) {
	ctx, span := start(ctx, "transaction ", operation, otel.SpanKindClient)
	span.Set("db.system.name", system)
	span.Set("db.operation.name", operation)
	return ctx, span
}

// start joins the two parts of the name only if ctx is traced, to save the allocation.
func start(ctx context.Context, name, suffix string, kind otel.SpanKind) (context.Context, *Span) {
	parent := otel.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, nil
	}
	ctx, span := parent.TracerProvider().Tracer(scope).Start(ctx, name+suffix, otel.WithSpanKind(kind))
	return ctx, &Span{span}
}

// Note adds an event to the span of ctx.
func Note(ctx context.Context, event string) {
	if span := otel.SpanFromContext(ctx); span.IsRecording() {
		span.AddEvent(event)
	}
}

// Set adds an attribute. The value is a constant or one of Doorward's ids.
func (s *Span) Set(key, value string) {
	if s != nil {
		s.span.SetAttributes(attribute.String(key, value))
	}
}

// SetCount adds a numeric attribute.
func (s *Span) SetCount(key string, n int) {
	if s != nil {
		s.span.SetAttributes(attribute.Int(key, n))
	}
}

// Fail marks the work as failed. kind is a constant of the code, never the text of an
// error, which may repeat what somebody sent.
func (s *Span) Fail(kind string) {
	if s != nil {
		s.span.SetAttributes(attribute.String("error.type", kind))
		s.span.SetStatus(codes.Error, "")
	}
}

// Answered records the status of the answer to a request. An error of the caller
// doesn't mark the span as failed
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

// ID returns the id of the trace that ctx belongs to, 32 hexadecimal digits; empty
// if ctx isn't traced.
func ID(ctx context.Context) string {
	if span := otel.SpanFromContext(ctx); span.IsRecording() {
		return span.SpanContext().TraceID().String()
	}
	return ""
}

// End ends the span.
func (s *Span) End() {
	if s != nil {
		s.span.End()
	}
}
