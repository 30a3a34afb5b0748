package contextwindow

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"bobbin/app/core"
)

// Timing says when a summary is made.
type Timing string

// The timings. Every timing falls back to inline when the prompt would not fit.
const (
	TimingInline     Timing = "inline"     // before the model call that needs it
	TimingAfterRun   Timing = "after_run"  // when the answer has been given
	TimingBackground Timing = "background" // prepared ahead, activated at the trigger
)

// Policy says when a conversation is summarized and what stays. A zero trigger is
// off. All fields of CONTEXT § 2 are here; none has a second home.
type Policy struct {
	Name          string
	AutoSummarize bool // false: no automatic summary; the other rungs of the ladder apply

	UsageThreshold   float64 // share trigger: summarize over this share of the base
	MaxContextTokens int     // base = min(this, usable); 0 = the window
	MaxMessages      int     // message trigger: at least so many since the cursor (N)
	WindowMessages   int     // message trigger: more than so many since the cursor
	MaxTokens        int     // token trigger: at least so many since the cursor (K)
	MaxUnsummarized  int     // so many unsummarized messages, whatever else is set

	LandAt              float64 // a token trigger lands at this share of the trigger
	TargetContextTokens int     // and not above this; 0 = no bound
	MinRecent           int     // keep at least so many messages; binds rung 2 only
	NeverBelow          int     // no message trigger under so many messages; 0 = always

	ResponseReserve   int     // tokens kept for the answer
	MaxSummaryTokens  int     // summary limit; 0 = by share or window
	MaxSummaryShare   float64 // summary limit as a share of the available tokens
	SummaryAskTokens  int     // what the prompt asks for; 0 = the limit
	Strategy          string  // its name, as summarize.Kinds has it
	Timing            Timing
	SummaryModel      string // empty = see CheapSummaryModel
	CheapSummaryModel bool   // with no summary model set: the provider's cheap model, else default_llm
}

// Defaults that several presets share (CONTEXT § 1, § 2).
const (
	defaultUsageThreshold  = 0.8
	defaultLandAt          = 0.625
	defaultResponseReserve = 4096
	neverBelowMargin       = 4   // budget: never below MinRecent + 4 messages (B5)
	budgetAskTokens        = 700 // budget: under 500 words (B9)
)

// The strategies that the presets name. All that there are, and whether a name is one of
// them, package summarize knows.
const (
	StrategyLLM        = "llm"
	StrategyHybrid     = "hybrid"
	StrategyExtractive = "extractive"
)

// presets is the table of CONTEXT § 2, a row a preset.
func presets() []Policy {
	return []Policy{
		{
			Name: "window", AutoSummarize: true,
			UsageThreshold: defaultUsageThreshold, LandAt: defaultLandAt, MinRecent: 3,
			ResponseReserve: defaultResponseReserve, Strategy: StrategyHybrid, Timing: TimingBackground,
		},
		{
			Name: "budget", AutoSummarize: true,
			UsageThreshold: defaultUsageThreshold, LandAt: defaultLandAt, MinRecent: 6,
			MaxMessages: 30, MaxTokens: 128_000, NeverBelow: 6 + neverBelowMargin, MaxSummaryShare: 0.3,
			SummaryAskTokens: budgetAskTokens,
			ResponseReserve:  defaultResponseReserve, Strategy: StrategyLLM, Timing: TimingAfterRun,
		},
		{
			Name: "sliding", AutoSummarize: true,
			UsageThreshold: defaultUsageThreshold, LandAt: defaultLandAt, MinRecent: 10,
			WindowMessages: 15, MaxUnsummarized: 50, MaxSummaryTokens: 500, SummaryAskTokens: 300,
			ResponseReserve: defaultResponseReserve, Strategy: StrategyLLM, Timing: TimingAfterRun, CheapSummaryModel: true,
		},
		{
			Name: "ratio", AutoSummarize: true,
			UsageThreshold: defaultUsageThreshold, LandAt: defaultLandAt, MinRecent: 10,
			MaxContextTokens: 180_000, TargetContextTokens: 150_000, MaxSummaryTokens: 2_000,
			ResponseReserve: defaultResponseReserve, Strategy: StrategyHybrid, Timing: TimingInline, CheapSummaryModel: true,
		},
		{
			Name: presetOff, LandAt: defaultLandAt, ResponseReserve: defaultResponseReserve,
			Strategy: StrategyExtractive, Timing: TimingInline,
		},
	}
}

// DefaultPolicy is the preset of agents that name none.
const DefaultPolicy = "window"

// presetOff is the preset that makes no summaries.
const presetOff = "off"

// Preset returns the named row of the table; an empty name is DefaultPolicy. An
// unknown name is an ErrInvalid that lists the known ones.
func Preset(name string) (Policy, error) {
	if name == "" {
		name = DefaultPolicy
	}
	rows := presets()
	i := slices.IndexFunc(rows, func(p Policy) bool { return p.Name == name })
	if i < 0 {
		return Policy{}, core.Errorf(core.ErrInvalid, "context.policy %q does not exist; use one of %s", name, strings.Join(PresetNames(), ", "))
	}
	return rows[i], nil
}

// PresetNames returns the names of all presets in the order of the table.
func PresetNames() []string {
	var names []string
	for _, p := range presets() {
		names = append(names, p.Name)
	}
	return names
}

// Global are the settings that apply to all agents (API.md, configuration).
type Global struct {
	UsageThreshold *float64 // context_usage_threshold; nil = the preset's
	SummaryModel   string   // context_summary_model; empty = the preset's
}

// Resolve returns the policy of an agent: preset < global setting < agent file.
// Contradictions come back as one ErrInvalid that names all of them.
func Resolve(global Global, agent core.ContextSettings) (Policy, error) {
	p, err := Preset(agent.Policy)
	if err != nil {
		return Policy{}, err
	}
	if global.UsageThreshold != nil && p.UsageThreshold > 0 {
		p.UsageThreshold = *global.UsageThreshold
	}
	if global.SummaryModel != "" {
		p.SummaryModel = global.SummaryModel
	}
	p.override(agent)
	if err := p.Validate(); err != nil {
		return Policy{}, err
	}
	return p, nil
}

// override puts the agent's own values over the preset's.
func (p *Policy) override(s core.ContextSettings) {
	set(&p.AutoSummarize, s.AutoSummarize)
	set(&p.UsageThreshold, s.UsageThreshold)
	set(&p.LandAt, s.LandAt)
	set(&p.MaxMessages, s.MaxMessagesBeforeSummary)
	set(&p.MaxTokens, s.MaxTokensBeforeSummary)
	set(&p.MaxUnsummarized, s.MaxUnsummarizedMessages)
	set(&p.WindowMessages, s.WindowMessages)
	set(&p.MaxContextTokens, s.MaxContextTokens)
	set(&p.TargetContextTokens, s.TargetContextTokens)
	set(&p.ResponseReserve, s.ResponseReserve)
	set(&p.SummaryModel, s.SummaryModel)
	set(&p.Strategy, s.Strategy)
	set(&p.MaxSummaryTokens, s.MaxSummaryTokens)
	set(&p.MaxSummaryShare, s.MaxSummaryShare)
	if s.MinRecentMessages != nil {
		p.MinRecent = *s.MinRecentMessages
		if p.NeverBelow > 0 {
			p.NeverBelow = p.MinRecent + neverBelowMargin
		}
	}
	if s.MaxSummaryTokens != nil && *s.MaxSummaryTokens < p.SummaryAskTokens {
		p.SummaryAskTokens = *s.MaxSummaryTokens
	}
	if s.Timing != nil {
		p.Timing = Timing(*s.Timing)
	}
}

// set replaces the value when the agent's file has one.
func set[T any](dst, src *T) {
	if src != nil {
		*dst = *src
	}
}

// Validate refuses values that are out of range or contradict each other, all
// faults at once.
func (p Policy) Validate() error {
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	fault(outside(p.UsageThreshold, 0, 1), "usage_threshold is %g: use a share between 0 and 1", p.UsageThreshold)
	fault(outside(p.LandAt, 0, 1) || p.LandAt == 0 || p.LandAt == 1, "land_at is %g: the landing must be below the trigger, use a share above 0 and below 1", p.LandAt)
	fault(outside(p.MaxSummaryShare, 0, 0.5), "max_summary_share is %g: use 0 to 0.5", p.MaxSummaryShare)
	for name, n := range map[string]int{
		"max_messages_before_summary": p.MaxMessages, "window_messages": p.WindowMessages, "max_tokens_before_summary": p.MaxTokens,
		"max_unsummarized_messages": p.MaxUnsummarized, "min_recent_messages": p.MinRecent, "max_context_tokens": p.MaxContextTokens,
		"target_context_tokens": p.TargetContextTokens, "max_summary_tokens": p.MaxSummaryTokens,
	} {
		fault(n < 0, "%s is %d: it cannot be negative (0 switches it off)", name, n)
	}
	fault(p.ResponseReserve < 1, "response_reserve is %d: an answer needs at least 1 token", p.ResponseReserve)
	fault(p.MaxMessages > 0 && p.MaxMessages <= p.MinRecent,
		"max_messages_before_summary (%d) must be above min_recent_messages (%d), or there is nothing to summarize when it fires", p.MaxMessages, p.MinRecent)
	fault(p.WindowMessages > 0 && p.WindowMessages < p.MinRecent,
		"window_messages (%d) must not be below min_recent_messages (%d)", p.WindowMessages, p.MinRecent)
	fault(p.MaxUnsummarized > 0 && p.MaxUnsummarized <= p.MinRecent,
		"max_unsummarized_messages (%d) must be above min_recent_messages (%d)", p.MaxUnsummarized, p.MinRecent)
	fault(p.TargetContextTokens > 0 && p.MaxContextTokens > 0 && p.TargetContextTokens >= p.MaxContextTokens,
		"target_context_tokens (%d) must be below max_context_tokens (%d)", p.TargetContextTokens, p.MaxContextTokens)
	fault(p.MaxContextTokens > 0 && p.MaxSummaryTokens > 0 && float64(p.MaxSummaryTokens) >= p.LandAt*p.UsageThreshold*float64(p.MaxContextTokens) && p.UsageThreshold > 0,
		"max_summary_tokens (%d) must be below the landing point of max_context_tokens (%d)", p.MaxSummaryTokens, p.MaxContextTokens)
	fault(p.TargetContextTokens > 0 && p.MaxSummaryTokens >= p.TargetContextTokens,
		"max_summary_tokens (%d) must be below target_context_tokens (%d), where a compaction lands", p.MaxSummaryTokens, p.TargetContextTokens)
	fault(p.Strategy == "", "strategy is empty: a summary needs one")
	fault(!slices.Contains([]Timing{TimingInline, TimingAfterRun, TimingBackground}, p.Timing),
		"timing %q does not exist; use inline, after_run or background", p.Timing)
	if len(faults) == 0 {
		return nil
	}
	slices.SortFunc(faults, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	e := core.Errorf(core.ErrInvalid, "context: %s", strings.ReplaceAll(errors.Join(faults...).Error(), "\n", "; "))
	e.Err = errors.Join(faults...)
	return e
}

// outside reports whether x is not between low and high; no number is outside.
func outside(x, low, high float64) bool { return !(x >= low && x <= high) }

// summarizes reports whether the policy ever summarizes by itself, and so may use
// rung 2 to make a prompt fit: one without triggers never does (CONTEXT § 3,
// invariant 8).
func (p Policy) summarizes() bool {
	return p.AutoSummarize && (p.UsageThreshold > 0 || p.MaxTokens > 0 || p.messageThreshold() > 0 || p.MaxUnsummarized > 0)
}
