package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
	"bobbin/app/telemetry"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

// Runs count when they begin and when they end, by agent and status, and their
// failures by code.
func TestRuns(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t)
	want(t, tel, "bobbin_runs_active", "bobbin_runs_active 0")
	want(t, tel, `bobbin_run_failures_total{code="internal"}`, `bobbin_run_failures_total{code="internal"} 0`) // an alert on its rate sees the first
	_, ended := tel.Run(t.Context(), core.Run{Agent: "assistant"})
	_, second := tel.Run(t.Context(), core.Run{Agent: "made up"})
	want(t, tel, "bobbin_runs_active", "bobbin_runs_active 2")
	ended("succeeded", "")
	second("failed", "context_floor")
	want(t, tel, "bobbin_runs_active", "bobbin_runs_active 0")
	want(t, tel, "bobbin_runs_started_total", `bobbin_runs_started_total{agent="assistant"} 1`, `bobbin_runs_started_total{agent="other"} 1`)
	want(t, tel, "bobbin_runs_finished_total", `bobbin_runs_finished_total{agent="assistant",status="succeeded"} 1`,
		`bobbin_runs_finished_total{agent="other",status="failed"} 1`)
	want(t, tel, `bobbin_run_failures_total{code="context_floor"}`, `bobbin_run_failures_total{code="context_floor"} 1`)
	want(t, tel, `bobbin_run_duration_seconds_count{agent="assistant"`, `bobbin_run_duration_seconds_count{agent="assistant",status="succeeded"} 1`)
	want(t, tel, "bobbin_runs_queued", "bobbin_runs_queued 3", "bobbin_runs_queued_oldest_age_seconds 90")
}

// When the database does not say how many runs are queued the rest is shown.
func TestQueueNotKnown(t *testing.T) {
	t.Parallel()
	tel := telemetry.New(telemetry.Options{Queued: func(context.Context) (core.QueueStats, error) { return core.QueueStats{}, errors.New("no database") }})
	want(t, tel, "bobbin_runs_queued")
	want(t, tel, "bobbin_runs_active", "bobbin_runs_active 0")
}

// Nodes and tool calls have durations; a tool that the model invented gets no label of its own,
// nor does a name that is not UTF-8.
func TestNodesAndTools(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t)
	_, left := tel.Node(t.Context(), "llm_node")
	left(errors.New("model"))
	for name, outcome := range map[string]string{"calculator": "ok", "made up tool": "unknown", "bad\xff": "failed"} {
		_, ended := tel.Tool(t.Context(), name, "call-1")
		ended(outcome)
	}
	want(t, tel, "bobbin_node_duration_seconds_count", `bobbin_node_duration_seconds_count{node="llm_node"} 1`)
	want(t, tel, "bobbin_tool_calls_total", `bobbin_tool_calls_total{outcome="failed",tool="bad`+"\uFFFD"+`"} 1`,
		`bobbin_tool_calls_total{outcome="ok",tool="calculator"} 1`, `bobbin_tool_calls_total{outcome="unknown",tool="other"} 1`)
	want(t, tel, `bobbin_tool_call_duration_seconds_count{tool="calculator"}`, `bobbin_tool_call_duration_seconds_count{tool="calculator"} 1`)
}

// How late events are, who was dropped and why, and what joins the replicas.
func TestEvents(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t)
	watch(tel)
	tel.FanOut(-1) // a clock that is behind another
	tel.Watching()(errors.New("gone"))
	tel.Watching()
	want(t, tel, "bobbin_watchers", "bobbin_watchers_open 1", "bobbin_watchers_slow_total 1")
	want(t, tel, "bobbin_event_resyncs", "bobbin_event_resyncs_total 1")
	want(t, tel, "bobbin_events_found", "bobbin_events_found_total 2")
	want(t, tel, "bobbin_event_fan_out_seconds_sum", "bobbin_event_fan_out_seconds_sum 0.003")
	want(t, tel, "bobbin_event_fan_out_seconds_count", "bobbin_event_fan_out_seconds_count 2")
	want(t, tel, "bobbin_nats", "bobbin_nats_connected 1", `bobbin_nats_messages_total{direction="in"} 40`, `bobbin_nats_messages_total{direction="out"} 50`,
		"bobbin_nats_reconnects_total 1", "bobbin_nats_routes 2", "bobbin_nats_slow_total 3")
}

// What a caller can make up does not become a label.
func TestRequestLabels(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t)
	for _, r := range []struct {
		method, route string
		status        int
	}{
		{"GET", "/healthz", 200}, {"BREW", "", 405}, {"FETCH", "", 404}, {"GET", "/healthz", 0}, {"GET", "/healthz", 999}, {"POST", "/x", 499},
	} {
		_, ended := tel.Request(t.Context(), r.method, r.route, http.Header{})
		ended(r.status, false)
	}
	want(t, tel, "bobbin_http_requests_total",
		`bobbin_http_requests_total{method="GET",route="/healthz",status="2xx"} 1`,
		`bobbin_http_requests_total{method="GET",route="/healthz",status="other"} 2`,
		`bobbin_http_requests_total{method="POST",route="/x",status="4xx"} 1`,
		`bobbin_http_requests_total{method="other",route="unmatched",status="4xx"} 2`)
	want(t, tel, "bobbin_http_request_duration_seconds_count",
		`bobbin_http_request_duration_seconds_count{method="GET",route="/healthz"} 3`,
		`bobbin_http_request_duration_seconds_count{method="POST",route="/x"} 1`,
		`bobbin_http_request_duration_seconds_count{method="other",route="unmatched"} 2`)
}

// A stream is in flight as long as it is open, and is no slow request.
func TestStreamsAreNoSlowRequests(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t)
	_, ended := tel.Request(context.Background(), "GET", "/s", nil)
	closed := tel.Stream()
	want(t, tel, "bobbin_http_requests_in_flight", "bobbin_http_requests_in_flight 1")
	want(t, tel, "bobbin_sse_streams_open", "bobbin_sse_streams_open 1")
	closed("slow")
	ended(200, true)
	want(t, tel, "bobbin_http_requests_in_flight", "bobbin_http_requests_in_flight 0")
	want(t, tel, "bobbin_sse_streams_open", "bobbin_sse_streams_open 0")
	want(t, tel, `bobbin_sse_streams_total{outcome="slow"}`, `bobbin_sse_streams_total{outcome="slow"} 1`)
	want(t, tel, "bobbin_sse_stream_duration_seconds_count", "bobbin_sse_stream_duration_seconds_count 1")
	want(t, tel, "bobbin_http_request_duration_seconds")
}

// R6: model calls, their tokens, what the provider's cache held, and their cost.
func TestModelCalls(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t)
	usage := &core.Usage{InputTokens: 1000, OutputTokens: 50, ReasoningTokens: 20, CacheReadTokens: 600, CacheWriteTokens: 100}
	for range 2 {
		call(t, tel, llmtest.Step{Text: []string{"hello"}, Usage: usage})
	}
	for name, value := range map[string]string{
		"calls": "2", "input_tokens": "2000", "output_tokens": "100", "reasoning_tokens": "40", "cache_read_tokens": "1200", "cache_write_tokens": "200",
		"cost_usd": "0.0048", // 2 × (1,000 × 2 + 50 × 8) millionths
	} {
		want(t, tel, "bobbin_model_"+name+"_total", `bobbin_model_`+name+`_total{model="m"} `+value)
	}
	want(t, tel, "bobbin_model_call_duration_seconds_count", `bobbin_model_call_duration_seconds_count{model="m"} 2`)
	want(t, tel, "bobbin_model_time_to_first_token_seconds_count", `bobbin_model_time_to_first_token_seconds_count{model="m"} 2`)
	want(t, tel, "bobbin_model_errors_total")
}

// Failures count by kind, and so does an answer in which nothing was said.
func TestModelErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		step  llmtest.Step
		kind  string
		spoke bool
	}{
		{"rate limit", llmtest.Fail(&llm.Error{Kind: llm.KindRateLimit}), "rate_limit", false},
		{"broke off", llmtest.Step{Text: []string{"hal"}, Err: &llm.Error{Kind: llm.KindTruncated}}, "truncated", true},
		{"untyped", llmtest.Fail(errors.New("odd")), "unknown", false},
		{"empty", llmtest.Say(" \n"), "empty", true},
		{"compaction", llmtest.Step{Compaction: &core.Part{Type: core.PartCompaction, Signature: "s"}}, "", true},
		{"only thoughts", llmtest.Step{Reasoning: "hm"}, "empty", true},
		{"filtered", llmtest.Step{Finish: core.FinishContentFilter}, "content_filter", false},
		{"tool call", llmtest.Call(core.ToolCall{ID: "1", Name: "x"}), "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tel := newTelemetry(t)
			call(t, tel, tt.step)
			want(t, tel, "bobbin_model_calls_total", `bobbin_model_calls_total{model="m"} 1`)
			if tt.kind == "" {
				want(t, tel, "bobbin_model_errors_total")
			} else {
				want(t, tel, "bobbin_model_errors_total", `bobbin_model_errors_total{kind="`+tt.kind+`",model="m"} 1`)
			}
			if tt.spoke {
				want(t, tel, "bobbin_model_time_to_first_token_seconds_count", `bobbin_model_time_to_first_token_seconds_count{model="m"} 1`)
			} else {
				want(t, tel, "bobbin_model_time_to_first_token_seconds_count")
			}
		})
	}
}

// A reader that leaves in the middle of an answer cancels the call; its stream ends.
func TestModelCallLeft(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t)
	m := tel.Model(llmtest.Scripted(llmtest.Say("one", "two", "three")).WithInfo(priced()), "provider-m")
	for d, err := range m.Stream(t.Context(), llm.Request{}) {
		must.True(t, d.Text == "one" && err == nil, "got %q, %v after the loop was left", d.Text, err)
		break
	}
	want(t, tel, "bobbin_model_errors_total", `bobbin_model_errors_total{kind="canceled",model="m"} 1`)
}

// A provider's nonsense does not stop the counting, which only goes up.
func TestModelCallNegativeUsage(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t)
	call(t, tel, llmtest.Step{Text: []string{"x"}, Usage: &core.Usage{InputTokens: -5, OutputTokens: -7}})
	want(t, tel, "bobbin_model_input_tokens_total", `bobbin_model_input_tokens_total{model="m"} 0`)
	want(t, tel, "bobbin_model_cost_usd_total")
}

// Many models may share a label: then that one is shown which rests on the most calls.
func TestCalibrations(t *testing.T) {
	t.Parallel()
	want(t, newTelemetry(t), "bobbin_calibration",
		`bobbin_calibration_error_ratio{model="m"} 0.02`, `bobbin_calibration_factor{model="m"} 1.25`, `bobbin_calibration_samples{model="m"} 9`)
	tel := telemetry.New(telemetry.Options{Labels: plain(), Calibrations: func() map[string]tokens.Estimate {
		return map[string]tokens.Estimate{
			"made up 1": {Factor: 1.1, Samples: 1}, "made up 2": {Factor: 1.2, Samples: 20}, "made up 3": {Factor: 1.3, Samples: 3}, "m": {Factor: 2},
		}
	}})
	want(t, tel, "bobbin_calibration_factor", `bobbin_calibration_factor{model="m"} 2`, `bobbin_calibration_factor{model="other"} 1.2`)
}

// R6: the sizes of prompts, windows and summaries, by model, and what was done to
// make the prompts fit.
func TestPrompts(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t)
	tel.Sending(t.Context(), turn("m"), prompt(3072), sized(372, 700, 2000))
	tel.Sending(t.Context(), turn("m"), prompt(6144), sized(444, 700, 5000))
	tel.Sending(t.Context(), turn("made up"), prompt(100), sized(100, 0, 0))
	tel.Sending(t.Context(), turn("odd"), contextwindow.Decision{Factor: 1}, sized(100, 0, 0))
	tel.Fitted(t.Context(), turn("m"), prompt(3072, 1, 4), nil)
	tel.Fitted(t.Context(), turn("m"), prompt(6144, 1, 2, 3), nil)
	tel.Fitted(t.Context(), turn("m"), prompt(9000, 6, 7, 8), core.ErrContextFloor)
	tel.Fitted(t.Context(), turn("m"), contextwindow.Decision{}, errors.New("no storage"))
	tel.CountOf("m", core.CountWarnings, 1)
	want(t, tel, "bobbin_context_prompt_tokens_sum", `bobbin_context_prompt_tokens_sum{model="m"} 9216`, `bobbin_context_prompt_tokens_sum{model="odd"} 100`, `bobbin_context_prompt_tokens_sum{model="other"} 100`)
	want(t, tel, `bobbin_context_usage_ratio_count`, `bobbin_context_usage_ratio_count{model="m"} 2`, `bobbin_context_usage_ratio_count{model="other"} 1`)
	want(t, tel, `bobbin_context_usage_ratio_sum{model="m"}`, `bobbin_context_usage_ratio_sum{model="m"} 1.5`)
	want(t, tel, `bobbin_context_summary_tokens_sum{model="m"}`, `bobbin_context_summary_tokens_sum{model="m"} 1400`)
	want(t, tel, `bobbin_context_window_messages_sum{model="m"}`, `bobbin_context_window_messages_sum{model="m"} 8`)
	want(t, tel, `bobbin_context_window_tokens{model="m"}`, `bobbin_context_window_tokens{model="m"} 8192`)
	want(t, tel, `bobbin_context_usable_tokens{model="m"}`, `bobbin_context_usable_tokens{model="m"} 6144`)
	want(t, tel, "bobbin_context_warnings_total", `bobbin_context_warnings_total{model="m"} 1`)
	wantRungs(t, tel, map[string]int{"cut_summary": 1, "leave_out": 1, "mask": 2, "refuse": 1, "shorten": 1})
}

// R6: summaries count by what started them, by strategy and outcome; fallbacks by
// cause; what they saved when they are stored.
func TestSummaries(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t)
	for _, m := range []compaction.Made{
		{Outcome: compaction.OutcomeMade, Summary: core.Summary{TokenCount: 400}},
		{Outcome: compaction.OutcomeFallback, Cause: "time_limit", Summary: core.Summary{TokenCount: 200}},
		{Outcome: compaction.OutcomeSkipped}, {Outcome: compaction.OutcomeCanceled}, {Outcome: compaction.OutcomeFailed},
	} {
		ctx, ended := tel.Summarizing(t.Context(), turn("m"), contextwindow.Order{Trigger: "share", Rung: 3})
		must.True(t, ctx != nil, "got no context")
		ended(m)
	}
	var lines []string
	for _, outcome := range []string{"canceled", "failed", "fallback", "made", "skipped"} {
		lines = append(lines, fmt.Sprintf(`bobbin_summaries_total{kind="rolling",outcome=%q,strategy="hybrid",trigger="share"} 1`, outcome))
	}
	want(t, tel, "bobbin_summaries_total", lines...)
	_, ended := tel.Summarizing(t.Context(), turn("m"), contextwindow.Order{Kind: core.SummaryRun, Trigger: "iterations", Rung: 2})
	ended(compaction.Made{Outcome: compaction.OutcomeSkipped})
	want(t, tel, `bobbin_summaries_total{kind="run"`, `bobbin_summaries_total{kind="run",outcome="skipped",strategy="hybrid",trigger="iterations"} 1`)
	want(t, tel, "bobbin_summary_fallbacks_total", `bobbin_summary_fallbacks_total{cause="time_limit"} 1`)
	want(t, tel, "bobbin_summary_tokens_sum", `bobbin_summary_tokens_sum{strategy="hybrid"} 600`)
	wantRungs(t, tel, map[string]int{"summarize": 1, "summarize_deeper": 5, "without_model": 1})
	want(t, tel, `bobbin_summary_duration_seconds_count{outcome="made"`, `bobbin_summary_duration_seconds_count{outcome="made",strategy="hybrid"} 1`)

	for _, c := range []compaction.Commit{
		{Before: prompt(6000), After: prompt(2500)},
		{Before: prompt(3000), After: prompt(3100)}, // by hand, of a short history
		{Before: prompt(6000), After: prompt(2500), Err: fmt.Errorf("commit: %w", core.ErrStale)},
		{Before: prompt(6000), After: prompt(2500), Err: errors.New("disk full")},
		{Before: prompt(6000), After: prompt(2500), Summary: core.Summary{State: core.SummaryPrepared}}, // saves nothing yet
	} {
		c.Turn = turn("m")
		tel.Committed(t.Context(), c)
	}
	want(t, tel, "bobbin_summary_commits_total", `bobbin_summary_commits_total{outcome="failed"} 1`, `bobbin_summary_commits_total{outcome="prepared"} 1`,
		`bobbin_summary_commits_total{outcome="stale"} 1`, `bobbin_summary_commits_total{outcome="stored"} 2`)
	want(t, tel, "bobbin_summary_saved_tokens_total", `bobbin_summary_saved_tokens_total{model="m"} 3500`)
}

// wantRungs checks the counts of all rungs of the ladder.
func wantRungs(t *testing.T, tel *telemetry.Telemetry, counts map[string]int) {
	t.Helper()
	var lines []string
	for _, rung := range []string{"cut_summary", "leave_out", "mask", "recall", "refuse", "shorten", "summarize", "summarize_deeper", "without_model"} {
		lines = append(lines, fmt.Sprintf("bobbin_context_rungs_total{rung=%q} %d", rung, counts[rung]))
	}
	want(t, tel, "bobbin_context_rungs_total", lines...)
}
