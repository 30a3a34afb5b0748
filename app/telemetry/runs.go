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

// runMetrics are the figures of runs.
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
		started: counter("runs_started_total", "Executions of runs that were begun; one that is taken over begins again.", "agent"),
		finished: counter("runs_finished_total", "Executions of runs that have ended, by status: succeeded, failed, canceled, handed_back (the process "+
			"stops, another execution goes on), lost (to another process), waiting (for a person; the run goes on later).", "agent", "status"),
		failures: counter("run_failures_total", "Runs that failed, by the code of their error.", "code"),
		duration: histogram("run_duration_seconds", "Time of an execution, the wait for a slot included.", modelBuckets(), "agent", "status"),
		active:   gauge("runs_active", "Executions of runs in this process that have not ended."),
		nodes:    histogram("node_duration_seconds", "Time in a node of the agent graph.", modelBuckets(), "node"),
	}
}

func (m runMetrics) all() []prometheus.Collector {
	m.active.WithLabelValues() // 0 from the start
	return []prometheus.Collector{m.started, m.finished, m.failures, m.duration, m.active, m.nodes}
}

// Run counts an execution of a run that begins. The caller goes on with the
// context, and calls ended once, with the run's status or another word for what
// became of the execution, and the code of the error that ended it.
func (t *Telemetry) Run(ctx context.Context, run core.Run) (context.Context, func(status, code string)) {
	start := time.Now()
	agent := t.labels.agent(run.Agent)
	active := t.runs.active.WithLabelValues()
	t.runs.started.WithLabelValues(agent).Inc()
	active.Inc()
	ctx, span := t.runSpan(ctx, run)
	return ctx, func(status, code string) {
		t.endRun(span, run.ID, status, code)
		active.Dec()
		t.runs.finished.WithLabelValues(agent, status).Inc()
		t.runs.duration.WithLabelValues(agent, status).Observe(time.Since(start).Seconds())
		if code != "" {
			t.runs.failures.WithLabelValues(code).Inc()
		}
	}
}

// runSpan starts the span of an execution. It is the root of a trace of its own,
// linked to the request.
func (t *Telemetry) runSpan(ctx context.Context, run core.Run) (context.Context, trace.Span) {
	if t.tracer == nil {
		return ctx, noop.Span{}
	}
	ctx, span := t.tracer.Start(ctx, "invoke_agent "+run.Agent, trace.WithNewRoot(), trace.WithAttributes(
		semconv.GenAIOperationNameInvokeAgent, semconv.GenAIAgentName(run.Agent), semconv.GenAIAgentVersion(run.AgentVersion),
		semconv.GenAIConversationID(string(run.SessionID)),
		attribute.String("bobbin.run.id", string(run.ID)), attribute.Int("bobbin.run.attempt", run.Attempt)))
	t.links.began(run.ID, span)
	return withTraceID(ctx, span), span
}

// endRun ends the span of an execution.
func (t *Telemetry) endRun(span trace.Span, run core.RunID, status, code string) {
	if t.tracer == nil {
		return
	}
	span.SetAttributes(attribute.String("bobbin.run.status", status))
	if code != "" {
		fail(span, code)
	}
	span.End()
	t.links.ended(run)
}

// Node counts a node of the graph that begins. The caller goes on with the context,
// and calls ended once.
func (t *Telemetry) Node(ctx context.Context, name string) (context.Context, func(error)) {
	start := time.Now()
	ctx, span := t.begin(ctx, "node "+name, func() []trace.SpanStartOption {
		return []trace.SpanStartOption{trace.WithAttributes(attribute.String("bobbin.node", name))}
	})
	return ctx, func(err error) {
		if err != nil {
			fail(span, errorType(err))
		}
		span.End()
		t.runs.nodes.WithLabelValues(name).Observe(time.Since(start).Seconds())
	}
}
