package telemetry_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/app/core/logging"
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
	if diff := cmp.Diff(want, s.Attributes); diff != "" || s.Kind != "CLIENT" || s.Failed {
		t.Errorf("%s span, failed %t, attributes (-want +got):\n%s", s.Kind, s.Failed, diff)
	}
}

// A call that fails says in a word why; what the provider said is not for spans.
func TestSpanOfAFailedCall(t *testing.T) {
	t.Parallel()
	tel, got := traced(t)
	call(t, tel, llmtest.Fail(&llm.Error{Kind: llm.KindRateLimit, Message: "SECRET words"}))
	s := got()["chat provider-m"]
	if !s.Failed || s.Message != "rate_limit" || s.Attributes["error.type"] != "rate_limit" || strings.Contains(fmt.Sprint(s), "SECRET") {
		t.Errorf("got %+v, want it failed with its kind and no words", s)
	}
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
	if run.Parent != "" || run.TraceID == request.TraceID || !slices.Equal(run.Links, []string{request.ID}) {
		t.Errorf("run %+v: want a trace of its own with a link to the request %s", run, request.ID)
	}
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
	if request.Kind != "SERVER" || strings.Contains(fmt.Sprint(spans), "SECRET") {
		t.Error("the request is no server's span, or an error's words are in a span")
	}
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
	if err := telemetry.New(telemetry.Options{}).Trace(t.Context(), options); err == nil {
		t.Error("got nil for an endpoint that is none")
	}
	options.Endpoint = "http://127.0.0.1:1"
	options.Env = func(name string) string { return map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}[name] }
	tel := telemetry.New(telemetry.Options{})
	if err := tel.Trace(t.Context(), options); err != nil || !strings.Contains(log.String(), "gRPC is not supported") {
		t.Errorf("got error %v, log %q, want a warning", err, log.String())
	}
	must.Do(t, tel.Close(t.Context()))
}
