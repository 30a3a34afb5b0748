package contextwindow_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"bobbin/app/core"
	cw "bobbin/app/core/contextwindow"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

func TestPresetDefaultAndUnknown(t *testing.T) {
	t.Parallel()
	if got := preset(t, "").Name; got != "window" {
		t.Errorf("got preset %q for no name, want window", got)
	}
	_, err := cw.Resolve(cw.Global{}, core.ContextSettings{Policy: "infinite"})
	if want := `context.policy "infinite" does not exist; use one of window, budget, sliding, ratio, off`; !errors.Is(err, core.ErrInvalid) || err.Error() != want {
		t.Errorf("got %v, want ErrInvalid %q", err, want)
	}
}

// Precedence: preset < global setting < agent file. W8.
func TestResolvePrecedence(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		global    cw.Global
		agent     core.ContextSettings
		threshold float64
		model     string
	}{
		{"preset", cw.Global{}, core.ContextSettings{}, 0.8, ""},
		{"global over preset", cw.Global{UsageThreshold: new(0.6), SummaryModel: "big"}, core.ContextSettings{}, 0.6, "big"},
		{
			"agent over global", cw.Global{UsageThreshold: new(0.6), SummaryModel: "big"},
			core.ContextSettings{UsageThreshold: new(0.7), SummaryModel: new("own")}, 0.7, "own",
		},
		{
			"an agent may go back to the default model", cw.Global{SummaryModel: "big"},
			core.ContextSettings{SummaryModel: new("")}, 0.8, "",
		},
		{"a global share does not switch off on", cw.Global{UsageThreshold: new(0.6)}, core.ContextSettings{Policy: "off"}, 0, ""},
		{"an agent's zero switches the share off", cw.Global{UsageThreshold: new(0.6)}, core.ContextSettings{UsageThreshold: new(0.0)}, 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := must.Get(cw.Resolve(tt.global, tt.agent))(t)
			if p.UsageThreshold != tt.threshold || p.SummaryModel != tt.model {
				t.Errorf("got %g, %q, want %g, %q", p.UsageThreshold, p.SummaryModel, tt.threshold, tt.model)
			}
		})
	}
}

// B2: every field can be set per agent; each lands in its own place.
func TestResolveOverridesEveryField(t *testing.T) {
	t.Parallel()
	got, err := cw.Resolve(cw.Global{}, core.ContextSettings{
		Policy: "budget", AutoSummarize: new(false), UsageThreshold: new(0.75), LandAt: new(0.5),
		MaxMessagesBeforeSummary: new(50), MaxTokensBeforeSummary: new(180_000), MaxUnsummarizedMessages: new(70),
		WindowMessages: new(25), MinRecentMessages: new(8), MaxContextTokens: new(100_000), TargetContextTokens: new(40_000),
		ResponseReserve: new(1000), SummaryModel: new("s"), Strategy: new("extractive"), MaxSummaryTokens: new(900),
		MaxSummaryShare: new(0.2), Timing: new("inline"), SummaryRole: new("user"),
		Recall: new("auto"), RecallShare: new(0.2), StandingInstructions: new(false),
	})
	must.Do(t, err)
	want := cw.Policy{
		Name: "budget", UsageThreshold: 0.75, LandAt: 0.5, MaxMessages: 50, MaxTokens: 180_000, MaxUnsummarized: 70,
		WindowMessages: 25, MinRecent: 8, NeverBelow: 12, MaxContextTokens: 100_000, TargetContextTokens: 40_000,
		ResponseReserve: 1000, SummaryModel: "s", Strategy: "extractive", MaxSummaryTokens: 900, MaxSummaryShare: 0.2, Timing: "inline",
		SummaryAskTokens: 700, SummaryRole: core.RoleUser, Recall: cw.RecallAuto, RecallShare: 0.2,
	}
	compare.Equal(t, "policy", want, got)
}

// B2, B5: "never below" follows min_recent_messages, and only where the preset has
// it. R2: the prompt never asks for more than the limit.
func TestResolveDependentFields(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"budget": 9, "window": 0, "sliding": 0} {
		p := must.Get(cw.Resolve(cw.Global{}, core.ContextSettings{Policy: name, MinRecentMessages: new(5)}))(t)
		compare.Equal(t, name+": never below", want, p.NeverBelow)
	}
	p := must.Get(cw.Resolve(cw.Global{}, core.ContextSettings{Policy: "sliding", MaxSummaryTokens: new(200)}))(t)
	compare.Equal(t, "asks for", 200, p.SummaryAskTokens)
}

// Settings that contradict each other are refused, each with a sentence that says why.
func TestResolveRefusesContradictions(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	tests := []struct {
		name  string
		agent core.ContextSettings
		want  string
	}{
		{"threshold over 1", core.ContextSettings{UsageThreshold: new(1.2)}, "usage_threshold is 1.2: use a share between 0 and 1"},
		{"threshold below 0", core.ContextSettings{UsageThreshold: new(-0.1)}, "usage_threshold is -0.1: use a share between 0 and 1"},
		{"threshold not a number", core.ContextSettings{UsageThreshold: &nan}, "usage_threshold is NaN: use a share between 0 and 1"},
		{"landing at the trigger", core.ContextSettings{LandAt: new(1.0)}, "land_at is 1: the landing must be below the trigger, use a share above 0 and below 1"},
		{"landing at nothing", core.ContextSettings{LandAt: new(0.0)}, "land_at is 0: the landing must be below the trigger"},
		{"landing not a number", core.ContextSettings{LandAt: &nan}, "land_at is NaN: the landing must be below the trigger"},
		{"summary share", core.ContextSettings{MaxSummaryShare: new(0.6)}, "max_summary_share is 0.6: use 0 to 0.5"},
		{"summary role", core.ContextSettings{SummaryRole: new("tool")}, `summary_role "tool" does not exist; use system or user`},
		{"negative N", core.ContextSettings{MaxMessagesBeforeSummary: new(-1)}, "max_messages_before_summary is -1: it cannot be negative (0 switches it off)"},
		{"negative summary", core.ContextSettings{MaxSummaryTokens: new(-1)}, "max_summary_tokens is -1: it cannot be negative"},
		{"no reserve", core.ContextSettings{ResponseReserve: new(0)}, "response_reserve is 0: use 1 or more"},
		{
			"N at recent", core.ContextSettings{MaxMessagesBeforeSummary: new(6), MinRecentMessages: new(6)},
			"max_messages_before_summary (6) must be above min_recent_messages (6), or there is nothing to summarize when it fires",
		},
		{
			"window below recent", core.ContextSettings{Policy: "sliding", WindowMessages: new(9)},
			"window_messages (9) must not be below min_recent_messages (10)",
		},
		{
			"unsummarized at recent", core.ContextSettings{Policy: "sliding", MaxUnsummarizedMessages: new(10)},
			"max_unsummarized_messages (10) must be above min_recent_messages (10)",
		},
		{
			"summary over the landing", core.ContextSettings{Policy: "ratio", MaxSummaryTokens: new(95_000)},
			"max_summary_tokens (95000) must be below the landing point of max_context_tokens (180000)",
		},
		{
			"summary over the target", core.ContextSettings{Policy: "ratio", TargetContextTokens: new(1500)},
			"max_summary_tokens (2000) must be below target_context_tokens (1500), where a compaction lands",
		},
		{"strategy", core.ContextSettings{Strategy: new("x")}, `strategy "x" does not exist`},
		{"timing", core.ContextSettings{Timing: new("never")}, `timing "never" does not exist; use inline, after_run or background`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := cw.Resolve(cw.Global{}, tt.agent)
			if !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want ErrInvalid with %q", err, tt.want)
			}
		})
	}
}

// L1: the defaults, what an agent's file overrides, and the preset that makes no
// summaries at all.
func TestResolveLoop(t *testing.T) {
	t.Parallel()
	defaults := cw.Loop{Enabled: true, Threshold: 8, KeepRecent: 3, MinTokens: 8_000, MaxContextTokens: 80_000}
	off := defaults
	off.Enabled = false
	tests := []struct {
		name   string
		preset string
		agent  core.CompactionSettings
		want   cw.Loop
	}{
		{"defaults", "", core.CompactionSettings{}, defaults},
		{"of every preset", "sliding", core.CompactionSettings{}, defaults},
		{"off", "off", core.CompactionSettings{}, off},
		{"off, but for loops", "off", core.CompactionSettings{Enabled: new(true)}, defaults},
		{
			"everything", "window", core.CompactionSettings{
				Enabled: new(false), ThresholdIterations: new(5), KeepRecentIterations: new(2), MinTokens: new(0), MaxContextTokens: new(0), SummaryModel: new("small"),
			}, cw.Loop{Threshold: 5, KeepRecent: 2, SummaryModel: "small"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := must.Get(cw.ResolveLoop(tt.preset, tt.agent))(t)
			compare.Equal(t, "loop", tt.want, got)
		})
	}
}

// L1: settings that contradict each other, also with a default, are refused with why.
func TestResolveLoopRefusesContradictions(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		agent core.CompactionSettings
		want  string
	}{
		{"keeps all", core.CompactionSettings{ThresholdIterations: new(4), KeepRecentIterations: new(4)}, "keep_recent_iterations (4) must be below threshold_iterations (4), or there is nothing to replace"},
		{"keeps more than the default threshold", core.CompactionSettings{KeepRecentIterations: new(9)}, "keep_recent_iterations (9) must be below threshold_iterations (8)"},
		{"below what is kept by default", core.CompactionSettings{ThresholdIterations: new(3)}, "keep_recent_iterations (3) must be below threshold_iterations (3)"},
		{"a floor below nothing", core.CompactionSettings{MinTokens: new(-1)}, "min_tokens is -1"},
		{"never", core.CompactionSettings{ThresholdIterations: new(0)}, "threshold_iterations is 0: use 1 or more"},
		{"keeps nothing", core.CompactionSettings{KeepRecentIterations: new(0)}, "keep_recent_iterations is 0: use 1 or more"},
		{"negative", core.CompactionSettings{MaxContextTokens: new(-1)}, "max_context_tokens is -1: it cannot be negative (0 switches it off)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := cw.ResolveLoop("", tt.agent)
			if !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want ErrInvalid with %q", err, tt.want)
			}
			if _, explained := cw.Explain(cw.Global{}, core.Agent{Compaction: tt.agent}); explained == nil || explained.Error() != err.Error() {
				t.Errorf("explained: got %v, want %v", explained, err)
			}
		})
	}
	_, err := cw.ResolveLoop("", core.CompactionSettings{ThresholdIterations: new(0), KeepRecentIterations: new(-1), MaxContextTokens: new(-1)})
	if err == nil || strings.Count(err.Error(), "; ") != 2 {
		t.Errorf("got %v, want three faults in one line", err)
	}
}
