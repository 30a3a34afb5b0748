package contextwindow

import (
	"errors"
	"fmt"
	"strings"

	"bobbin/app/core"
)

// Loop says when the tool loop of a run is compacted and how much of it stays
// (REQUIREMENTS L1). The zero value compacts nothing.
//
// An iteration is an assistant's message with tool calls and all their results. They
// are counted from the beginning of the run or from its last compaction, whatever
// started that: with the defaults the first is after 8 iterations, the next after 16.
type Loop struct {
	Enabled          bool
	Threshold        int    // compact after so many iterations
	KeepRecent       int    // the newest so many stay verbatim
	MaxContextTokens int    // compact over this size of the prompt, in the model's tokens; 0 = only the window counts
	SummaryModel     string // empty = the model of the rolling summary
}

// The defaults of L1.
const (
	loopThreshold  = 8
	loopKeepRecent = 3
	loopMaxTokens  = 80_000
)

// ResolveLoop returns the loop settings of an agent with that preset: defaults <
// agent file. The preset off, which makes no summaries at all, compacts only where the
// file says so. Contradictions come back as one ErrInvalid that names all of them.
func ResolveLoop(preset string, agent core.CompactionSettings) (Loop, error) {
	l := Loop{Enabled: preset != presetOff, Threshold: loopThreshold, KeepRecent: loopKeepRecent, MaxContextTokens: loopMaxTokens}
	set(&l.Enabled, agent.Enabled)
	set(&l.Threshold, agent.ThresholdIterations)
	set(&l.KeepRecent, agent.KeepRecentIterations)
	set(&l.MaxContextTokens, agent.MaxContextTokens)
	set(&l.SummaryModel, agent.SummaryModel)
	if err := l.Validate(); err != nil {
		return Loop{}, err
	}
	return l, nil
}

// Validate refuses values that are out of range or contradict each other, all
// faults at once; each begins with the name of its field.
func (l Loop) Validate() error {
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	fault(l.Threshold < 1, "threshold_iterations is %d: use 1 or more", l.Threshold)
	fault(l.KeepRecent < 1, "keep_recent_iterations is %d: use 1 or more, as the model has not seen the newest results yet", l.KeepRecent)
	fault(l.Threshold >= 1 && l.KeepRecent >= l.Threshold, "keep_recent_iterations (%d) must be below threshold_iterations (%d), or there is nothing to replace", l.KeepRecent, l.Threshold)
	fault(l.MaxContextTokens < 0, "max_context_tokens is %d: it cannot be negative (0 switches it off)", l.MaxContextTokens)
	if len(faults) == 0 {
		return nil
	}
	e := core.Errorf(core.ErrInvalid, "compaction: %s", strings.ReplaceAll(errors.Join(faults...).Error(), "\n", "; "))
	e.Err = errors.Join(faults...)
	return e
}

// ExplainLoop returns every value of an agent's loop settings with its origin. Errors
// are those of ResolveLoop.
func ExplainLoop(preset string, agent core.CompactionSettings) ([]Field, error) {
	l, err := ResolveLoop(preset, agent)
	if err != nil {
		return nil, err
	}
	ofPreset := ""
	if preset == presetOff {
		ofPreset = preset
	}
	fields := []Field{
		{Name: "enabled", Value: fmt.Sprint(l.Enabled), From: origin(agent.Enabled != nil, "", ofPreset)},
		{Name: "threshold_iterations", Value: fmt.Sprint(l.Threshold), From: origin(agent.ThresholdIterations != nil, "", "")},
		{Name: "keep_recent_iterations", Value: fmt.Sprint(l.KeepRecent), From: origin(agent.KeepRecentIterations != nil, "", "")},
		{Name: "max_context_tokens", Value: fmt.Sprint(l.MaxContextTokens), From: origin(agent.MaxContextTokens != nil, "", "")},
		{Name: "summary_model", Value: l.SummaryModel, From: origin(agent.SummaryModel != nil, "", "")},
	}
	for i := range fields {
		fields[i].Name = "compaction." + fields[i].Name
	}
	return fields, nil
}
