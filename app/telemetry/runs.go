package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"bobbin/app/core"
)

// Run counts an execution of a run that begins. The caller continues with the returned context,
// and calls ended once, with the run's status or another result of the execution, and the code
// of the error that ended it.
func (t *Telemetry) Run(ctx context.Context, run core.Run) (context.Context, func(status, code string)) {
	start := time.Now()
	agent := boundedLabel(t.labels.Agent, run.Agent)
	active := t.gauge("runs_active")
	t.add("runs_started_total", 1, agent)
	active.Inc()
	ctx, span := t.runSpan(ctx, run)
	return ctx, func(status, code string) {
		t.endRun(span, run.ID, status, code)
		active.Dec()
		t.observe("run_duration_seconds", time.Since(start).Seconds(), agent, status)
		if code != "" {
			t.add("run_failures_total", 1, code)
		}
		t.add("runs_finished_total", 1, agent, status) // last: who sees the end counted sees all of it
	}
}

// runSpan starts the span of an execution, the root of its own trace, linked to the request.
func (t *Telemetry) runSpan(ctx context.Context, run core.Run) (context.Context, trace.Span) {
	if t.tracer == nil {
		return ctx, noop.Span{}
	}
	ctx, span := t.tracer.Start(ctx, "invoke_agent "+run.Agent, trace.WithNewRoot(), trace.WithAttributes(
		semconv.GenAIOperationNameInvokeAgent, semconv.GenAIAgentName(run.Agent), semconv.GenAIAgentVersion(run.AgentVersion),
		semconv.GenAIConversationID(string(run.SessionID)),
		attribute.String("bobbin.run.id", string(run.ID)), attribute.Int("bobbin.run.attempt", run.Attempt)))
	t.links.addRun(run.ID, span)
	return withTraceID(ctx, span), span
}

// endRun ends the span of an execution.
func (t *Telemetry) endRun(span trace.Span, run core.RunID, status, code string) {
	if t.tracer == nil {
		return
	}
	span.SetAttributes(attribute.String("bobbin.run.status", status))
	if code != "" {
		failSpan(span, code)
	}
	span.End()
	t.links.mu.Lock()
	defer t.links.mu.Unlock()
	delete(t.links.live, run)
	delete(t.links.waiting, run)
}

// Node counts a node of the graph that begins. The caller continues with the returned context,
// and calls ended once.
func (t *Telemetry) Node(ctx context.Context, name string) (context.Context, func(error)) {
	start := time.Now()
	ctx, span := t.startSpan(ctx, "node "+name, func() []trace.SpanStartOption {
		return []trace.SpanStartOption{trace.WithAttributes(attribute.String("bobbin.node", name))}
	})
	return ctx, func(err error) {
		if err != nil {
			failSpan(span, errorType(err))
		}
		span.End()
		t.observe("node_duration_seconds", time.Since(start).Seconds(), name)
	}
}
