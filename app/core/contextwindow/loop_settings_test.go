package contextwindow_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	cw "bobbin/app/core/contextwindow"
	"bobbin/tests/must"
)

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
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("loop (-want +got):\n%s", diff)
			}
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
