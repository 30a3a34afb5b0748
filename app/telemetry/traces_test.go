package telemetry_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/app/core/logging"
	"bobbin/app/core/tokens"
	"bobbin/app/telemetry"
	"bobbin/tests/collector"
	"bobbin/tests/compare"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

// noEnv is an environment without variables.
func noEnv(string) string { return "" }

// traced returns a Telemetry that sends its spans to a collector; got closes it and
// returns them by name.
func traced(t *testing.T) (tel *telemetry.Telemetry, got func() map[string]collector.Span) {
	t.Helper()
	to := collector.New()
	t.Cleanup(to.Close)
	tel = newTelemetry(t)
	must.Do(t, tel.Trace(t.Context(), telemetry.TraceOptions{Endpoint: to.URL, Env: noEnv, Version: "1.2.3", Logger: slog.New(slog.DiscardHandler)}))
	return tel, func() map[string]collector.Span {
		t.Helper()
		if err := tel.Close(context.Background()); err != nil {
			t.Error(err)
		}
		compare.Equal(t, "requests", []string{"POST /v1/traces"}, slices.Compact(to.Paths()))
		spans := map[string]collector.Span{}
		for _, s := range to.Spans() {
			compare.Equal(t, "service, schema", []any{"bobbin", "https://opentelemetry.io/schemas/1.41.0"}, []any{s.Service, s.Schema})
			spans[s.Name] = s
		}
		return spans
	}
}

// Traces are off unless there is somewhere to send them.
func TestTracesWanted(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		endpoint, env string
		want          bool
	}{
		{"", "", false}, {"http://c:4318", "", true}, {"", "OTEL_EXPORTER_OTLP_ENDPOINT=http://c", true}, {"", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://c", true},
		{"http://c:4318", "OTEL_SDK_DISABLED=true", false}, {"http://c:4318", "OTEL_TRACES_EXPORTER=none", false}, {"", "OTEL_SERVICE_NAME=x", false},
	} {
		env := func(name string) string {
			value, _ := strings.CutPrefix(tt.env, name+"=")
			if value == tt.env {
				return ""
			}
			return value
		}
		compare.Equal(t, fmt.Sprintf("endpoint %q, %s", tt.endpoint, tt.env), tt.want, telemetry.TracesWanted(tt.endpoint, env))
	}
}

// A model call is a span by the conventions for generative AI, and nothing of what was
// said is in it.
func TestSpanOfAModelCall(t *testing.T) {
	t.Parallel()
	tel, got := traced(t)
	usage := &core.Usage{InputTokens: 1000, OutputTokens: 50, ReasoningTokens: 20, CacheReadTokens: 600, CacheWriteTokens: 100}
	call(t, tel, llmtest.Step{Text: []string{"hello"}, Usage: usage, Model: "provider-m-0806"})
	s := got()["chat provider-m"]
	if first, ok := s.Attributes["gen_ai.response.time_to_first_chunk"].(float64); !ok || first <= 0 {
		t.Errorf("got the time to the first chunk %v", s.Attributes["gen_ai.response.time_to_first_chunk"])
	}
	delete(s.Attributes, "gen_ai.response.time_to_first_chunk")
	want := map[string]any{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "provider-m", "gen_ai.request.stream": true, "bobbin.model": "m",
		"gen_ai.usage.input_tokens": int64(1000), "gen_ai.usage.output_tokens": int64(50), "gen_ai.usage.reasoning.output_tokens": int64(20),
		"gen_ai.usage.cache_read.input_tokens": int64(600), "gen_ai.usage.cache_creation.input_tokens": int64(100),
		"gen_ai.response.finish_reasons": []any{"stop"}, "gen_ai.response.model": "provider-m-0806",
	}
	diff := cmp.Diff(want, s.Attributes)
	compare.Equal(t, "span, failed, attributes (-want +)", []any{"", "CLIENT", false}, []any{diff, s.Kind, s.Failed})
}

// A call that fails says in a word why; what the provider said is not for spans.
func TestSpanOfAFailedCall(t *testing.T) {
	t.Parallel()
	tel, got := traced(t)
	call(t, tel, llmtest.Fail(&llm.Error{Kind: llm.KindRateLimit, Message: "SECRET words"}))
	s := got()["chat provider-m"]
	compare.True(t, s.Failed && s.Message == "rate_limit" && s.Attributes["error.type"] == "rate_limit" && !strings.Contains(fmt.Sprint(s), "SECRET"), "got %+v, want it failed with its kind and no words", s)
}

// A run has its own trace, linked to the request that started it; its steps are child spans.
func TestSpansOfARun(t *testing.T) {
	t.Parallel()
	tel, got := traced(t)
	asked, answered := tel.Request(t.Context(), "POST", "/messages", http.Header{})
	started := core.Run{ID: "run-1", SessionID: "session-1", Agent: "assistant", AgentVersion: "v1", Attempt: 2}
	tel.Accepted(asked, started)
	ctx, ended := tel.Run(asked, started)
	inNode, left := tel.Node(ctx, "tool_node")
	_, done := tel.Tool(inNode, "calculator", "call-7")
	done("timeout")
	left(errors.New("SECRET"))
	_, made := tel.Summarizing(ctx, turn("m"), contextwindow.Order{Trigger: "share", Messages: 8, Tokens: 900, Rung: 2})
	made(compaction.Made{Outcome: compaction.OutcomeFallback, Cause: "empty", Summary: core.Summary{TokenCount: 77}})
	ended("failed", "context_floor")
	answered(500, true)
	spans := got()
	request, run, node, tool, summary := spans["POST /messages"], spans["invoke_agent assistant"], spans["node tool_node"], spans["execute_tool calculator"], spans["summarize"]
	compare.True(t, run.Parent == "" && run.TraceID != request.TraceID && slices.Equal(run.Links, []string{request.ID}), "run %+v: want a trace of its own with a link to the request %s", run, request.ID)
	compare.Equal(t, "what happened in the run is not below it", []string{run.ID, node.ID, run.ID}, []string{node.Parent, tool.Parent, summary.Parent})
	for name, want := range map[string]map[string]any{
		"POST /messages": {"http.request.method": "POST", "http.route": "/messages", "http.response.status_code": int64(500), "error.type": "500"},
		"invoke_agent assistant": {
			"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "assistant", "gen_ai.agent.version": "v1", "gen_ai.conversation.id": "session-1",
			"bobbin.run.id": "run-1", "bobbin.run.attempt": int64(2), "bobbin.run.status": "failed", "error.type": "context_floor",
		},
		"node tool_node": {"bobbin.node": "tool_node", "error.type": "internal"},
		"execute_tool calculator": {
			"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "calculator", "gen_ai.tool.call.id": "call-7", "gen_ai.tool.type": "function", "error.type": "timeout",
		},
		"summarize": {
			"gen_ai.conversation.id": "", "bobbin.summary.kind": "rolling", "bobbin.summary.trigger": "share", "bobbin.summary.strategy": "hybrid", "bobbin.summary.messages": int64(8),
			"bobbin.summary.tokens_before": int64(900), "bobbin.summary.tokens_after": int64(77), "bobbin.summary.outcome": "fallback", "bobbin.summary.cause": "empty",
		},
	} {
		compare.Equal(t, name, want, spans[name].Attributes)
	}
	compare.True(t, request.Kind == "SERVER" && !strings.Contains(fmt.Sprint(spans), "SECRET"), "the request is no server's span, or an error's words are in a span")
}

// A caller's own trace continues here, and log lines contain its id; probes have no spans.
func TestRequestSpans(t *testing.T) {
	t.Parallel()
	tel, got := traced(t)
	header := http.Header{"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}
	ctx, answered := tel.Request(t.Context(), "GET", "/x", header)
	compare.Contains(t, "log lines have: want the id of the trace", "trace_id=0af7651916cd43dd8448eb211c80319c", fmt.Sprint(logging.From(ctx)))
	answered(404, false)
	for _, probe := range []string{"/healthz", "/readyz", "/metrics"} {
		_, answered := tel.Request(t.Context(), "GET", probe, http.Header{})
		answered(200, false)
	}
	spans := got()
	if s := spans["GET /x"]; len(spans) != 1 || s.TraceID != "0af7651916cd43dd8448eb211c80319c" || s.Parent != "b7ad6b7169203331" || s.Failed {
		t.Errorf("got %+v, want one span in the caller's trace, and a 404 no failure", spans)
	}
}

// An invalid endpoint and an unsupported protocol are reported.
func TestTraceOptions(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	options := telemetry.TraceOptions{Endpoint: "http://%zz", Env: noEnv, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	compare.True(t, telemetry.New(telemetry.Options{}).Trace(t.Context(), options) != nil, "got nil for an endpoint that is none")
	options.Endpoint = "http://127.0.0.1:1"
	options.Env = func(name string) string { return map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}[name] }
	tel := telemetry.New(telemetry.Options{})
	if err := tel.Trace(t.Context(), options); err != nil || !strings.Contains(log.String(), "gRPC is not supported") {
		t.Errorf("got error %v, log %q, want a warning", err, log.String())
	}
	must.Do(t, tel.Close(t.Context()))
}

// plain are labels that are the names themselves, but for one that is not known.
func plain() telemetry.Labels {
	name := func(s string) string {
		if strings.HasPrefix(s, "made up") {
			return "other"
		}
		return s
	}
	return telemetry.Labels{Model: name, Agent: name, Tool: name}
}

// newTelemetry returns a Telemetry with plain labels.
func newTelemetry(t testing.TB) *telemetry.Telemetry {
	t.Helper()
	return telemetry.New(options())
}

// options are those of a Telemetry that has everything but a database.
func options() telemetry.Options {
	return telemetry.Options{
		Labels: plain(), Build: telemetry.Build{Version: "1", Commit: "c", Go: "go1"},
		Queued: func(context.Context) (core.QueueStats, error) {
			return core.QueueStats{Queued: 3, Oldest: 90 * time.Second}, nil
		},
		Undelivered: func(context.Context) (core.DeliveryStats, error) {
			return core.DeliveryStats{Waiting: 2, Oldest: time.Minute}, nil
		},
		SlackBehind: func(context.Context) (int64, error) { return 4, nil },
		NATS: func() core.NATSStats {
			return core.NATSStats{Connected: true, Routes: 2, Reconnects: 1, Slow: 3, In: 40, Out: 50}
		},
		Calibrations: func() map[string]tokens.Estimate {
			return map[string]tokens.Estimate{"m": {Factor: 1.25, Deviation: 0.02, Samples: 9}}
		},
	}
}

// scrape returns all metrics.
func scrape(t testing.TB, tel *telemetry.Telemetry) string {
	t.Helper()
	w := httptest.NewRecorder()
	tel.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if kind := w.Header().Get("Content-Type"); w.Code != http.StatusOK || !strings.HasPrefix(kind, "text/plain; version=0.0.4") {
		t.Fatalf("got %d, %s, want metrics in the text format", w.Code, kind)
	}
	return w.Body.String()
}

// exposed returns the lines of the exposition that begin with the name.
func exposed(t testing.TB, tel *telemetry.Telemetry, name string) string {
	t.Helper()
	var lines []string
	for line := range strings.Lines(scrape(t, tel)) {
		if strings.HasPrefix(line, name) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.Join(lines, "\n")
}

// turn is a turn with a model of the name.
func turn(name string) compaction.Turn {
	return compaction.Turn{Profile: compaction.Profile{
		Policy: contextwindow.Policy{Strategy: "hybrid"},
		Model:  llmtest.Scripted().WithInfo(llm.Info{Name: name, Window: 8192}),
	}}
}

// prompt is a decision for a prompt of that size in a window of 8,192.
func prompt(total int, rungs ...int) contextwindow.Decision {
	return contextwindow.Decision{
		Total: total, Rungs: rungs, Factor: 1, Budget: contextwindow.Budget{Window: 8192, Usable: 6144},
		Pinned:  []contextwindow.Slot{{}},
		History: []contextwindow.Slot{{Place: core.PlaceLeftOut}, {Place: core.PlaceMasked}, {Place: core.PlaceVerbatim}},
		Run:     []contextwindow.Slot{{Place: core.PlaceVerbatim}},
	}
}

// sized returns the size of a prompt.
func sized(system, summary, tail int) (s contextwindow.PromptSize) {
	s.Of[contextwindow.SectionSystem], s.Of[contextwindow.SectionSummary], s.Of[contextwindow.SectionTail] = system, summary, tail
	return s
}

// everything does each thing that is counted once, so that every metric has a series.
func everything(t testing.TB, tel *telemetry.Telemetry) {
	t.Helper()
	ctx := context.Background()
	_, answered := tel.Request(ctx, "GET", "/healthz", nil)
	answered(200, false)
	tel.Stream()("ended")
	tel.Fitted(ctx, turn("m"), prompt(3000, 1), nil)
	sent := sized(2300, 700, 0)
	sent.Thoughts.Kept = 1
	tel.Sending(ctx, turn("m"), prompt(3000), sent)
	tel.CountOf("m", core.CountDropped, 1, string(llm.DropPrefix))
	tel.CountOf("m", core.CountNative, 1, compaction.NativeRefused)
	tel.CountOf("m", core.CountWarnings, 1)
	_, made := tel.Summarizing(ctx, turn("m"), contextwindow.Order{Trigger: "share", Rung: 2})
	made(compaction.Made{Outcome: compaction.OutcomeFallback, Cause: "empty", Summary: core.Summary{TokenCount: 300}})
	tel.Committed(ctx, compaction.Commit{Turn: turn("m"), Before: prompt(6000), After: prompt(3000)})
	call(t, tel, llmtest.Step{Text: []string{"hi"}, Usage: &core.Usage{InputTokens: 10, OutputTokens: 2, ReasoningTokens: 1, CacheReadTokens: 4, CacheWriteTokens: 2}})
	call(t, tel, llmtest.Fail(&llm.Error{Kind: llm.KindAuth}))
	_, ended := tel.Run(ctx, core.Run{Agent: "assistant"})
	ended("failed", "model_auth")
	_, left := tel.Node(ctx, "llm_node")
	left(nil)
	_, done := tel.Tool(ctx, "calculator", "1")
	done("ok")
	watch(tel)
	tel.Count(core.CountRemoved, 9, "events")
	tel.Count(core.CountSweeps, 1, "done")
	tel.Count(core.CountSlack, 1, "message", "stored")
	tel.Count(core.CountDeliveries, 1, "webhook", "delivered")
	tel.Count(core.CountRenewals, 2, core.WorkRun, "lost")
	tel.Count(core.CountTakeovers, 2, core.WorkRun)
	tel.Count(core.CountFound, 1, "queued_run")
	tel.Count(core.CountFenced, 1, "webhook")
}

// watch is a watcher that receives an event and is dropped.
func watch(tel *telemetry.Telemetry) {
	left := tel.Watching()
	tel.FanOut(3 * time.Millisecond)
	tel.Count(core.CountResyncs, 1)
	tel.Count(core.CountEventsFound, 2)
	left(fmt.Errorf("watch: %w", &core.Error{Kind: core.ErrUnavailable, Code: core.CodeSlowReader}))
}

// priced is a model that costs 2 dollars for a million tokens of a prompt, and 8 for
// those of an answer.
func priced() llm.Info {
	return llm.Info{Name: "m", Provider: "openai", Window: 8192, InputPrice: 2, OutputPrice: 8}
}

// call calls a model that does the step.
func call(t testing.TB, tel *telemetry.Telemetry, step llmtest.Step) {
	t.Helper()
	m := tel.Model(llmtest.Scripted(step).WithInfo(priced()), "provider-m")
	compare.Equal(t, "info: want the model's", priced(), m.Info())
	_, err := llm.Collect(m.Stream(context.Background(), llm.Request{}), nil)
	compare.True(t, (err != nil) == (step.Err != nil), "got error %v, want that of the model: %v", err, step.Err)
}

// want compares lines of the exposition.
func want(t testing.TB, tel *telemetry.Telemetry, name string, lines ...string) {
	t.Helper()
	compare.Equal(t, "exposed", strings.Join(lines, "\n"), exposed(t, tel, name))
}
