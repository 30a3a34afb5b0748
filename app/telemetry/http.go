package telemetry

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"bobbin/app/core/logging"
)

// unmatched is the route of requests that match no route.
const unmatched = "unmatched"

// Request counts a request that begins. The caller continues with the returned context, and
// calls ended once, with the status of the response and whether it was an event stream. Route
// is a template such as /api/v1/sessions/:id, empty for a path that matches none.
func (t *Telemetry) Request(ctx context.Context, method, route string, header map[string][]string) (context.Context, func(status int, stream bool)) {
	start := time.Now()
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
	default:
		method = other
	}
	if route == "" {
		route = unmatched
	}
	span := trace.Span(noop.Span{})
	if t.tracer != nil && route != "/healthz" && route != "/readyz" && route != "/metrics" { // probes arrive every few seconds
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(header)) // the caller's own trace
		ctx, span = t.tracer.Start(ctx, method+" "+route, trace.WithSpanKind(trace.SpanKindServer),
			trace.WithAttributes(semconv.HTTPRequestMethodKey.String(method), semconv.HTTPRoute(route)))
		ctx = withTraceID(ctx, span)
	}
	inFlight := t.gauge("http_requests_in_flight")
	inFlight.Inc()
	return ctx, func(status int, stream bool) {
		took := time.Since(start)
		if span.IsRecording() {
			span.SetAttributes(semconv.HTTPResponseStatusCode(status))
			if status >= http.StatusInternalServerError {
				failSpan(span, strconv.Itoa(status))
			}
		}
		span.End()
		inFlight.Dec()
		class := other
		if status >= 100 && status <= 599 {
			class = strconv.Itoa(status/100) + "xx"
		}
		t.add("http_requests_total", 1, route, method, class)
		if !stream {
			t.observe("http_request_duration_seconds", took.Seconds(), route, method)
		}
	}
}

func withTraceID(ctx context.Context, span trace.Span) context.Context {
	if id := span.SpanContext().TraceID(); id.IsValid() {
		return logging.With(ctx, slog.String("trace_id", id.String()))
	}
	return ctx
}

// Stream counts an event stream that is opened. The caller calls ended once, with the outcome:
// ended, gone, slow or failed.
func (t *Telemetry) Stream() (ended func(outcome string)) {
	start := time.Now()
	open := t.gauge("sse_streams_open")
	open.Inc()
	return func(outcome string) {
		open.Dec()
		t.observe("sse_stream_duration_seconds", time.Since(start).Seconds())
		t.add("sse_streams_total", 1, outcome) // last, as for runs
	}
}
