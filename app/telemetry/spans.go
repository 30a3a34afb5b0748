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
	switch provider {
	case "openai":
		return semconv.GenAIProviderNameOpenAI
	case "anthropic":
		return semconv.GenAIProviderNameAnthropic
	case "bedrock":
		return semconv.GenAIProviderNameAWSBedrock
	case "vertex":
		return semconv.GenAIProviderNameGCPVertexAI
	case "gemini":
		return semconv.GenAIProviderNameGCPGemini
	case "mistral":
		return semconv.GenAIProviderNameMistralAI
	default:
		return semconv.GenAIProviderNameKey.String(provider)
	}
}

// maxLinks bounds the requests whose runs have not begun. Beyond it all are dropped, and their
// runs have no link.
const maxLinks = 10_000

// links connects the spans of runs with those of the requests that started them. A run outlives
// its request and may begin much later, so its span is not a child.
type links struct {
	mu      sync.Mutex
	waiting map[core.RunID]trace.SpanContext // requests whose runs have not begun; guarded by mu
	live    map[core.RunID]trace.Span        // runs whose requests are not known yet; guarded by mu
}

func newLinks() *links {
	return &links{waiting: map[core.RunID]trace.SpanContext{}, live: map[core.RunID]trace.Span{}}
}

// addRun links the span of a run that begins.
func (l *links) addRun(run core.RunID, span trace.Span) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if request, ok := l.waiting[run]; ok {
		span.AddLink(trace.Link{SpanContext: request})
		delete(l.waiting, run)
		return
	}
	l.live[run] = span
}

// Accepted links a run with its request, before the run is started.
func (t *Telemetry) Accepted(ctx context.Context, run core.Run) {
	request := trace.SpanContextFromContext(ctx)
	if t.tracer == nil || !request.IsValid() {
		return
	}
	t.links.mu.Lock()
	defer t.links.mu.Unlock()
	if span, ok := t.links.live[run.ID]; ok {
		span.AddLink(trace.Link{SpanContext: request})
		delete(t.links.live, run.ID)
		return
	}
	if len(t.links.waiting) >= maxLinks {
		clear(t.links.waiting)
	}
	t.links.waiting[run.ID] = request
}
