package telemetry

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"bobbin/app/core/logging"
)

// unmatched is the route of requests for paths that nothing is at.
const unmatched = "unmatched"

// httpMetrics are the figures of HTTP.
type httpMetrics struct {
	inFlight *prometheus.GaugeVec
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func newHTTPMetrics() httpMetrics {
	return httpMetrics{
		inFlight: gauge("http_requests_in_flight", "Requests that are being answered, open event streams included."),
		requests: counter("http_requests_total", "Requests that were answered, by route template, method and class of status.", "route", "method", "status"),
		duration: histogram("http_request_duration_seconds", "Time to answer a request, event streams left out.", requestBuckets(), "route", "method"),
	}
}

func (m httpMetrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.inFlight, m.requests, m.duration}
}

// Request counts a request that begins. The caller goes on with the context, and
// calls ended once, with the status of the answer and whether it was an event
// stream. Route is a template such as /api/v1/sessions/:id, empty for a path that
// nothing is at.
func (t *Telemetry) Request(ctx context.Context, method, route string, header http.Header) (context.Context, func(status int, stream bool)) {
	start := time.Now()
	method = knownMethod(method)
	if route == "" {
		route = unmatched
	}
	ctx, span := t.requestSpan(ctx, method, route, header)
	inFlight := t.http.inFlight.WithLabelValues()
	inFlight.Inc()
	return ctx, func(status int, stream bool) {
		took := time.Since(start)
		endRequest(span, status)
		inFlight.Dec()
		t.http.requests.WithLabelValues(route, method, statusClass(status)).Inc()
		if !stream {
			t.http.duration.WithLabelValues(route, method).Observe(took.Seconds())
		}
	}
}

// requestSpan starts the span of a request. Probes come every few seconds and have
// none.
func (t *Telemetry) requestSpan(ctx context.Context, method, route string, header http.Header) (context.Context, trace.Span) {
	if t.tracer == nil || route == "/healthz" || route == "/readyz" || route == "/metrics" {
		return ctx, noop.Span{}
	}
	ctx, span := t.tracer.Start(parent(ctx, propagation.HeaderCarrier(header)), method+" "+route, trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(semconv.HTTPRequestMethodKey.String(method), semconv.HTTPRoute(route)))
	return withTraceID(ctx, span), span
}

// endRequest ends the span of a request. What the caller did wrong is no failure of
// the server.
func endRequest(span trace.Span, status int) {
	if span.IsRecording() {
		span.SetAttributes(semconv.HTTPResponseStatusCode(status))
		if status >= http.StatusInternalServerError {
			fail(span, strconv.Itoa(status))
		}
	}
	span.End()
}

// withTraceID has log records carry the id of the trace.
func withTraceID(ctx context.Context, span trace.Span) context.Context {
	if id := span.SpanContext().TraceID(); id.IsValid() {
		return logging.With(ctx, slog.String("trace_id", id.String()))
	}
	return ctx
}

// statusClass returns 2xx, 4xx …
func statusClass(status int) string {
	if status < 100 || status > 599 {
		return other
	}
	return strconv.Itoa(status/100) + "xx"
}

// knownMethod returns the method, or other for one that a caller made up.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	default:
		return other
	}
}

// streamMetrics are the figures of event streams.
type streamMetrics struct {
	open     *prometheus.GaugeVec
	ended    *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func newStreamMetrics() streamMetrics {
	return streamMetrics{
		open: gauge("sse_streams_open", "Event streams that are open."),
		ended: counter("sse_streams_total", "Event streams that have ended, by outcome: ended, gone (the reader went away), "+
			"slow (the reader did not keep up and was dropped), failed.", "outcome"),
		duration: histogram("sse_stream_duration_seconds", "How long event streams were open.", modelBuckets()),
	}
}

func (m streamMetrics) all() []prometheus.Collector {
	m.open.WithLabelValues() // 0 from the start
	return []prometheus.Collector{m.open, m.ended, m.duration}
}

// Stream counts an event stream that is opened. The caller calls ended once, with
// what became of it: ended, gone, slow or failed.
func (t *Telemetry) Stream() (ended func(outcome string)) {
	start := time.Now()
	open := t.streams.open.WithLabelValues()
	open.Inc()
	return func(outcome string) {
		open.Dec()
		t.streams.ended.WithLabelValues(outcome).Inc()
		t.streams.duration.WithLabelValues().Observe(time.Since(start).Seconds())
	}
}
