package telemetry

import (
	"context"
	"errors"
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
	span := trace.Span(noop.Span{})
	if t.tracer != nil { // the root of its own trace, linked to the request: it outlives it, and may begin much later
		t.mu.Lock()
		request := trace.Link{SpanContext: t.requests[run.ID]}
		delete(t.requests, run.ID)
		t.mu.Unlock()
		ctx, span = t.tracer.Start(ctx, "invoke_agent "+run.Agent, trace.WithNewRoot(), trace.WithLinks(request), trace.WithAttributes(
			semconv.GenAIOperationNameInvokeAgent, semconv.GenAIAgentName(run.Agent), semconv.GenAIAgentVersion(run.AgentVersion),
			semconv.GenAIConversationID(string(run.SessionID)),
			attribute.String("bobbin.run.id", string(run.ID)), attribute.Int("bobbin.run.attempt", run.Attempt)))
		ctx = withTraceID(ctx, span)
	}
	return ctx, func(status, code string) {
		span.SetAttributes(attribute.String("bobbin.run.status", status))
		if code != "" {
			failSpan(span, code)
		}
		span.End()
		active.Dec()
		t.observe("run_duration_seconds", time.Since(start).Seconds(), agent, status)
		if code != "" {
			t.add("run_failures_total", 1, code)
		}
		t.add("runs_finished_total", 1, agent, status) // last: who sees the end counted sees all of it
	}
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

// Count adds to a counter.
func (t *Telemetry) Count(counter core.Counter, n int, labels ...string) {
	t.add(string(counter), float64(n), labels...)
}

// FanOut records the delay between an event and its arrival at a watcher.
func (t *Telemetry) FanOut(delay time.Duration) {
	t.observe("event_fan_out_seconds", max(delay, 0).Seconds())
}

// Watching counts a watcher that begins. The caller calls left once, with the error that ended
// it.
func (t *Telemetry) Watching() (left func(err error)) {
	open := t.gauge("watchers_open")
	open.Inc()
	return func(err error) {
		open.Dec()
		var e *core.Error
		if errors.As(err, &e) && e.Code == core.CodeSlowReader {
			t.add("watchers_slow_total", 1)
		}
	}
}
