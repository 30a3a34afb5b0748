package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// TraceOptions configure where traces are sent.
type TraceOptions struct {
	// Endpoint is the base URL of the receiver, such as http://localhost:4318, to which
	// /v1/traces is added. Empty = as set by OpenTelemetry's variables.
	Endpoint string
	Env      func(string) string // reads an environment variable
	Version  string              // of this program
	Logger   *slog.Logger        // logs that the receiver cannot be reached
}

// TracesWanted reports whether traces are to be sent: there is an endpoint, from the setting or
// from OpenTelemetry's own variables, and these do not disable tracing.
func TracesWanted(endpoint string, env func(string) string) bool {
	if env("OTEL_SDK_DISABLED") == "true" || env("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	return endpoint != "" || env("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// Trace enables spans and sends them by OTLP over HTTP. Call it before anything is observed,
// and Close after everything is. OpenTelemetry's variables apply to everything that the options
// leave open (headers, sampler, resource …). The receiver need not be reachable.
func (t *Telemetry) Trace(ctx context.Context, o TraceOptions) error {
	if protocol := cmp.Or(o.Env("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), o.Env("OTEL_EXPORTER_OTLP_PROTOCOL")); protocol == "grpc" {
		o.Logger.WarnContext(ctx, "traces are sent as http/protobuf: OTLP over gRPC is not supported", "protocol", protocol)
	}
	var options []otlptracehttp.Option
	if o.Endpoint != "" {
		u, err := url.Parse(o.Endpoint)
		if err != nil {
			return fmt.Errorf("endpoint of traces: %w", err)
		}
		options = append(options, otlptracehttp.WithEndpointURL(u.JoinPath("v1", "traces").String()))
	}
	exporter, err := otlptracehttp.New(ctx, options...)
	if err != nil {
		return fmt.Errorf("exporter of traces: %w", err)
	}
	about, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(semconv.ServiceName("bobbin"), semconv.ServiceVersion(o.Version)),
		resource.WithFromEnv()) // takes precedence
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return fmt.Errorf("resource of traces: %w", err)
	}
	t.provider = sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(&reporter{SpanExporter: exporter, log: o.Logger}), sdktrace.WithResource(about))
	t.tracer = t.provider.Tracer("bobbin", trace.WithInstrumentationVersion(o.Version), trace.WithSchemaURL(semconv.SchemaURL))
	return nil
}

// Close sends the remaining spans, until ctx ends.
func (t *Telemetry) Close(ctx context.Context) error {
	if t.provider == nil {
		return nil
	}
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("send the last traces: %w", err)
	}
	return nil
}

// reporter is an exporter that logs the first of successive failures.
type reporter struct {
	sdktrace.SpanExporter
	log    *slog.Logger
	failed atomic.Bool
}

// ExportSpans sends spans. Spans that cannot be sent are lost.
func (r *reporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := r.SpanExporter.ExportSpans(ctx, spans)
	switch was := r.failed.Swap(err != nil); {
	case err != nil && !was:
		r.log.WarnContext(ctx, "traces not sent; spans are lost until the receiver is back", "spans", len(spans), "err", err)
	case err == nil && was:
		r.log.InfoContext(ctx, "traces are sent again")
	}
	return nil // OpenTelemetry would print it to standard error
}

// startSpan starts a span, if tracing is enabled.
func (t *Telemetry) startSpan(ctx context.Context, name string, options func() []trace.SpanStartOption) (context.Context, trace.Span) {
	if t.tracer == nil {
		return ctx, noop.Span{}
	}
	return t.tracer.Start(ctx, name, options()...)
}

// failSpan marks the span as failed, with one word as the reason. Error texts do not belong in
// spans: a provider's may contain parts of the conversation.
func failSpan(span trace.Span, why string) {
	span.SetAttributes(semconv.ErrorTypeKey.String(why))
	span.SetStatus(codes.Error, why)
}

// errorType returns one word for the kind of the error.
func errorType(err error) string {
	if e := llm.AsError(err); e != nil {
		return "model_" + string(e.Kind)
	}
	if errors.Is(err, core.ErrCanceled) || errors.Is(err, context.Canceled) {
		return "canceled"
	}
	var e *core.Error
	switch {
	case errors.As(err, &e) && e.Code != "":
		return e.Code
	case errors.As(err, &e) && e.Kind != nil:
		return e.Kind.Error()
	default:
		return "internal"
	}
}

// providerName returns the provider by its name in the semantic conventions.
func providerName(provider string) attribute.KeyValue {
	known := map[string]attribute.KeyValue{
		"openai": semconv.GenAIProviderNameOpenAI, "anthropic": semconv.GenAIProviderNameAnthropic, "bedrock": semconv.GenAIProviderNameAWSBedrock,
		"vertex": semconv.GenAIProviderNameGCPVertexAI, "gemini": semconv.GenAIProviderNameGCPGemini, "mistral": semconv.GenAIProviderNameMistralAI,
	}
	if name, ok := known[provider]; ok {
		return name
	}
	return semconv.GenAIProviderNameKey.String(provider)
}

// maxRequests bounds the requests whose runs have not begun. Beyond it all are dropped, and their
// runs have no link.
const maxRequests = 10_000

// Accepted remembers the request of a run, before the run is started.
func (t *Telemetry) Accepted(ctx context.Context, run core.Run) {
	request := trace.SpanContextFromContext(ctx)
	if t.tracer == nil || !request.IsValid() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.requests) >= maxRequests {
		clear(t.requests)
	}
	t.requests[run.ID] = request
}
