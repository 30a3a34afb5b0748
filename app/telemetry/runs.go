package telemetry

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"bobbin/app/core"
)

// runMetrics are the metrics of runs.
type runMetrics struct {
	started  *prometheus.CounterVec
	finished *prometheus.CounterVec
	failures *prometheus.CounterVec
	duration *prometheus.HistogramVec
	active   *prometheus.GaugeVec
	nodes    *prometheus.HistogramVec
}

func newRunMetrics() runMetrics {
	return runMetrics{
		started: newCounter("runs_started_total", "Started executions of runs; a take-over starts another one.", "agent"),
		finished: newCounter("runs_finished_total", "Finished executions of runs, by status: succeeded, failed, canceled, handed_back (the process "+
			"stops, another execution continues), lost (to another process), waiting (for a decision; the run continues later).", "agent", "status"),
		failures: newCounter("run_failures_total", "Failed runs, by error code.", "code"),
		duration: newHistogram("run_duration_seconds", "Duration of an execution, including the wait for a slot.", modelBuckets(), "agent", "status"),
		active:   newGauge("runs_active", "Active executions of runs in this process."),
		nodes:    newHistogram("node_duration_seconds", "Duration of a node of the agent graph.", modelBuckets(), "node"),
	}
}

func (m runMetrics) allCollectors() []prometheus.Collector {
	m.active.WithLabelValues() // 0 from the start, as alerts on a rate need it
	for _, code := range []string{"internal", "context_floor", "timeout", "model_auth", "model_overloaded", "model_rate_limit", "model_timeout"} {
		m.failures.WithLabelValues(code)
	}
	return []prometheus.Collector{m.started, m.finished, m.failures, m.duration, m.active, m.nodes}
}

// Run counts an execution of a run that begins. The caller continues with the returned context,
// and calls ended once, with the run's status or another result of the execution, and the code
// of the error that ended it.
func (t *Telemetry) Run(ctx context.Context, run core.Run) (context.Context, func(status, code string)) {
	start := time.Now()
	agent := t.labels.agentLabel(run.Agent)
	active := t.runs.active.WithLabelValues()
	t.runs.started.WithLabelValues(agent).Inc()
	active.Inc()
	ctx, span := t.runSpan(ctx, run)
	return ctx, func(status, code string) {
		t.endRun(span, run.ID, status, code)
		active.Dec()
		t.runs.duration.WithLabelValues(agent, status).Observe(time.Since(start).Seconds())
		if code != "" {
			t.runs.failures.WithLabelValues(code).Inc()
		}
		t.runs.finished.WithLabelValues(agent, status).Inc() // last: who sees the end counted sees all of it
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
	t.links.removeRun(run)
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
		t.runs.nodes.WithLabelValues(name).Observe(time.Since(start).Seconds())
	}
}
