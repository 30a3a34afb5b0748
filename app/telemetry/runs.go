package telemetry

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/logging"
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

// Rungs of the ladder that have a label of their own here.
const (
	rungSummarize    = 2
	rungDeeper       = 3
	rungWithoutModel = 5
)

func rungNames() []string {
	return []string{0: "recall", 1: "mask", 2: "summarize", 3: "summarize_deeper", 4: "cut_summary", 5: "without_model", 6: "shorten", 7: "leave_out", 8: "refuse"}
}

// Fitted counts the measures that made a prompt fit.
func (t *Telemetry) Fitted(_ context.Context, _ compaction.Turn, d contextwindow.Decision, _ error) {
	for _, rung := range d.Rungs {
		if rung != rungSummarize && rung != rungDeeper { // Summarizing counts these
			t.add("context_rungs_total", 1, rungNames()[rung])
		}
	}
}

// Sending records a prompt that is sent to a model.
func (t *Telemetry) Sending(_ context.Context, turn compaction.Turn, d contextwindow.Decision, sent contextwindow.PromptSize) {
	model, used := t.labels.modelLabel(turn.Profile.Model.Info().Name), float64(sent.Used(d))
	t.observe("context_prompt_tokens", used, model)
	n := len(d.Pinned)
	for _, slots := range [][]contextwindow.Slot{d.History, d.Run} {
		for _, s := range slots {
			if s.Place != core.PlaceLeftOut {
				n++
			}
		}
	}
	t.observe("context_window_messages", float64(n), model)
	t.gauge("context_window_tokens", model).Set(float64(d.Budget.Window))
	t.gauge("context_usable_tokens", model).Set(float64(d.Budget.Usable))
	if d.Budget.Usable > 0 {
		t.observe("context_usage_ratio", used/float64(d.Budget.Usable), model)
	}
	for outcome, n := range map[string]int{
		"kept": sent.Thoughts.Kept, "compacted": sent.Thoughts.Compacted, "changed": sent.Thoughts.Changed,
		"other_model": sent.Thoughts.OtherModel, "unbound": sent.Thoughts.Unbound,
	} {
		if n > 0 {
			t.add("context_thoughts_total", float64(n), model, outcome)
		}
	}
	if summary := sent.Of[contextwindow.SectionSummary]; summary > 0 {
		t.observe("context_summary_tokens", float64(d.Shown(summary)), model)
	}
}

// CountOf is Count for a counter of a model.
func (t *Telemetry) CountOf(model string, counter core.Counter, n int, labels ...string) {
	t.Count(counter, n, append([]string{t.labels.modelLabel(model)}, labels...)...)
}

// Summarizing counts a summary that is begun; the caller calls the returned function with its
// outcome.
func (t *Telemetry) Summarizing(ctx context.Context, turn compaction.Turn, o contextwindow.Order) (context.Context, func(compaction.Made)) {
	start := time.Now()
	strategy, kind := turn.Profile.Policy.Strategy, string(cmp.Or(o.Kind, core.SummaryRolling))
	t.add("context_rungs_total", 1, rungNames()[o.Rung])
	ctx, span := t.startSpan(ctx, "summarize", func() []trace.SpanStartOption {
		return []trace.SpanStartOption{trace.WithAttributes(
			semconv.GenAIConversationID(string(turn.Session.ID)),
			attribute.String("bobbin.summary.kind", string(cmp.Or(o.Kind, core.SummaryRolling))),
			attribute.String("bobbin.summary.trigger", o.Trigger), attribute.String("bobbin.summary.strategy", turn.Profile.Policy.Strategy),
			attribute.Int("bobbin.summary.messages", o.Messages), attribute.Int("bobbin.summary.tokens_before", o.Tokens),
		)}
	})
	return ctx, func(m compaction.Made) {
		if span.IsRecording() {
			span.SetAttributes(attribute.String("bobbin.summary.outcome", string(m.Outcome)))
			if m.Cause != "" {
				span.SetAttributes(attribute.String("bobbin.summary.cause", m.Cause))
			}
			if m.Err != nil {
				failSpan(span, errorType(m.Err))
			} else {
				span.SetAttributes(attribute.Int("bobbin.summary.tokens_after", m.Summary.TokenCount))
			}
		}
		span.End()
		t.add("summaries_total", 1, kind, o.Trigger, strategy, string(m.Outcome))
		t.observe("summary_duration_seconds", time.Since(start).Seconds(), strategy, string(m.Outcome))
		switch m.Outcome {
		case compaction.OutcomeFallback:
			t.add("summary_fallbacks_total", 1, m.Cause)
			t.add("context_rungs_total", 1, rungNames()[rungWithoutModel])
			t.observe("summary_tokens", float64(m.Summary.TokenCount), strategy)
		case compaction.OutcomeMade:
			t.observe("summary_tokens", float64(m.Summary.TokenCount), strategy)
		}
	}
}

// Committed counts the commit of a summary, or its failure.
func (t *Telemetry) Committed(_ context.Context, c compaction.Commit) {
	switch {
	case errors.Is(c.Err, core.ErrStale):
		t.add("summary_commits_total", 1, "stale")
		return
	case c.Err != nil:
		t.add("summary_commits_total", 1, "failed")
		return
	}
	if c.Summary.State == core.SummaryPrepared {
		t.add("summary_commits_total", 1, "prepared")
		return
	}
	t.add("summary_commits_total", 1, "stored")
	if saved := c.Before.Total - c.After.Total; saved > 0 {
		t.add("summary_saved_tokens_total", float64(saved), t.labels.modelLabel(c.Turn.Profile.Model.Info().Name))
	}
}

// unmatched is the route of requests that match no route.
const unmatched = "unmatched"

// Request counts a request that begins. The caller continues with the returned context, and
// calls ended once, with the status of the response and whether it was an event stream. Route
// is a template such as /api/v1/sessions/:id, empty for a path that matches none.
func (t *Telemetry) Request(ctx context.Context, method, route string, header map[string][]string) (context.Context, func(status int, stream bool)) {
	start := time.Now()
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
	default:
		method = other
	}
	if route == "" {
		route = unmatched
	}
	span := trace.Span(noop.Span{})
	if t.tracer != nil && route != "/healthz" && route != "/readyz" && route != "/metrics" { // probes arrive every few seconds
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(header)) // the caller's own trace
		ctx, span = t.tracer.Start(ctx, method+" "+route, trace.WithSpanKind(trace.SpanKindServer),
			trace.WithAttributes(semconv.HTTPRequestMethodKey.String(method), semconv.HTTPRoute(route)))
		ctx = withTraceID(ctx, span)
	}
	inFlight := t.gauge("http_requests_in_flight")
	inFlight.Inc()
	return ctx, func(status int, stream bool) {
		took := time.Since(start)
		if span.IsRecording() {
			span.SetAttributes(semconv.HTTPResponseStatusCode(status))
			if status >= http.StatusInternalServerError {
				failSpan(span, strconv.Itoa(status))
			}
		}
		span.End()
		inFlight.Dec()
		class := other
		if status >= 100 && status <= 599 {
			class = strconv.Itoa(status/100) + "xx"
		}
		t.add("http_requests_total", 1, route, method, class)
		if !stream {
			t.observe("http_request_duration_seconds", took.Seconds(), route, method)
		}
	}
}

func withTraceID(ctx context.Context, span trace.Span) context.Context {
	if id := span.SpanContext().TraceID(); id.IsValid() {
		return logging.With(ctx, slog.String("trace_id", id.String()))
	}
	return ctx
}

// Stream counts an event stream that is opened. The caller calls ended once, with the outcome:
// ended, gone, slow or failed.
func (t *Telemetry) Stream() (ended func(outcome string)) {
	start := time.Now()
	open := t.gauge("sse_streams_open")
	open.Inc()
	return func(outcome string) {
		open.Dec()
		t.observe("sse_stream_duration_seconds", time.Since(start).Seconds())
		t.add("sse_streams_total", 1, outcome) // last, as for runs
	}
}
