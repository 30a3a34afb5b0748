package telemetry

import (
	"context"
	"time"

	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
)

// Tool counts a tool call that begins. The caller continues with the returned context, and
// calls ended once, with the outcome. The name may be the model's invention.
func (t *Telemetry) Tool(ctx context.Context, name, callID string) (context.Context, func(outcome string)) {
	start := time.Now()
	tool := boundedLabel(t.labels.Tool, name)
	ctx, span := t.startSpan(ctx, "execute_tool "+tool, func() []trace.SpanStartOption {
		return []trace.SpanStartOption{trace.WithAttributes(semconv.GenAIOperationNameExecuteTool,
			semconv.GenAIToolName(tool), semconv.GenAIToolCallID(callID), semconv.GenAIToolType("function"))}
	})
	return ctx, func(outcome string) {
		if outcome != "ok" {
			failSpan(span, outcome)
		}
		span.End()
		t.add("tool_calls_total", 1, tool, outcome)
		t.observe("tool_call_duration_seconds", time.Since(start).Seconds(), tool)
	}
}
