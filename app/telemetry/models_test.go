package telemetry_test

import (
	"errors"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
	"bobbin/app/telemetry"
	"bobbin/tests/llmtest"
)

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
		if d.Text != "one" || err != nil {
			t.Fatalf("got %q, %v after the loop was left", d.Text, err)
		}
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
