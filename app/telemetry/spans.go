package telemetry

import (
	"context"
	"errors"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// fail marks the span as failed with a word for why. The words of errors are not for
// spans: a provider's may hold what was said.
func fail(span trace.Span, why string) {
	span.SetAttributes(semconv.ErrorTypeKey.String(why))
	span.SetStatus(codes.Error, why)
}

// errorType returns a word for what kind of error err is.
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

// providerName returns the provider as the conventions call it.
func providerName(provider string) attribute.KeyValue {
	switch provider {
	case "openai":
		return semconv.GenAIProviderNameOpenAI
	case "anthropic":
		return semconv.GenAIProviderNameAnthropic
	case "gemini":
		return semconv.GenAIProviderNameGCPGemini
	case "mistral":
		return semconv.GenAIProviderNameMistralAI
	default:
		return semconv.GenAIProviderNameKey.String(provider)
	}
}

// maxLinks bounds the requests whose runs have not begun. Beyond, all are forgotten:
// their runs have no link.
const maxLinks = 10_000

// links joins the spans of runs with those of the requests that asked for them. A run
// outlives its request, and may begin long after it: it is not its child.
type links struct {
	mu      sync.Mutex
	waiting map[core.RunID]trace.SpanContext // requests whose runs have not begun; guarded by mu
	live    map[core.RunID]trace.Span        // runs whose requests are not known yet; guarded by mu
}

func newLinks() *links {
	return &links{waiting: map[core.RunID]trace.SpanContext{}, live: map[core.RunID]trace.Span{}}
}

// accepted notes the request of a run that was accepted. The run may have begun.
func (l *links) accepted(ctx context.Context, run core.RunID) {
	request := trace.SpanContextFromContext(ctx)
	if !request.IsValid() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if span, ok := l.live[run]; ok {
		span.AddLink(trace.Link{SpanContext: request})
		delete(l.live, run)
		return
	}
	if len(l.waiting) >= maxLinks {
		clear(l.waiting)
	}
	l.waiting[run] = request
}

// began links the span of a run that begins.
func (l *links) began(run core.RunID, span trace.Span) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if request, ok := l.waiting[run]; ok {
		span.AddLink(trace.Link{SpanContext: request})
		delete(l.waiting, run)
		return
	}
	l.live[run] = span
}

// ended forgets a run.
func (l *links) ended(run core.RunID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.live, run)
	delete(l.waiting, run)
}

// Accepted is told of a run that a request asked for, before the run is started.
func (t *Telemetry) Accepted(ctx context.Context, run core.Run) {
	if t.tracer != nil {
		t.links.accepted(ctx, run.ID)
	}
}
