package telemetry_test

import (
	"errors"
	"fmt"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/contextwindow"
	"bobbin/app/telemetry"
)

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
	tel.Warned(t.Context(), turn("m"), prompt(6144))
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

// That no message is lost is a metric, which is there before anything is counted.
func TestCoverage(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t)
	want(t, tel, "bobbin_context_lost_messages_total", "bobbin_context_lost_messages_total 0")
	for _, lost := range []int{0, 0, 3, -1} {
		tel.CoverageChecked(lost)
	}
	want(t, tel, "bobbin_context_lost_messages_total", "bobbin_context_lost_messages_total 4")
	want(t, tel, "bobbin_context_coverage_checks_total", "bobbin_context_coverage_checks_total 4")
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
		if ctx == nil {
			t.Fatal("got no context")
		}
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
