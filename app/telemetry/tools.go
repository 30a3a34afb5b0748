package telemetry

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
)

// toolMetrics are the metrics of tool calls.
type toolMetrics struct {
	calls    *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func newToolMetrics() toolMetrics {
	return toolMetrics{
		calls: newCounter("tool_calls_total", "Finished tool calls, by outcome: ok, failed, timeout, panicked, too_large, canceled, unknown (the agent "+
			"has no such tool), denied (by a person), interrupted (by a crash).", "tool", "outcome"),
		duration: newHistogram("tool_call_duration_seconds", "Duration of a tool call.", toolBuckets(), "tool"),
	}
}

func (m toolMetrics) allCollectors() []prometheus.Collector {
	return []prometheus.Collector{m.calls, m.duration}
}

// Tool counts a tool call that begins. The caller continues with the returned context, and
// calls ended once, with the outcome. The name may be the model's invention.
func (t *Telemetry) Tool(ctx context.Context, name, callID string) (context.Context, func(outcome string)) {
	start := time.Now()
	tool := t.labels.toolLabel(name)
	ctx, span := t.startSpan(ctx, "execute_tool "+tool, func() []trace.SpanStartOption {
		return []trace.SpanStartOption{trace.WithAttributes(semconv.GenAIOperationNameExecuteTool,
			semconv.GenAIToolName(tool), semconv.GenAIToolCallID(callID), semconv.GenAIToolType("function"))}
	})
	return ctx, func(outcome string) {
		if outcome != "ok" {
			failSpan(span, outcome)
		}
		span.End()
		t.tools.calls.WithLabelValues(tool, outcome).Inc()
		t.tools.duration.WithLabelValues(tool).Observe(time.Since(start).Seconds())
	}
}
