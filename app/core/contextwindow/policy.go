package contextwindow

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// Timing says when a summary is made.
type Timing string

// The timings. All of them fall back to inline when the prompt would not fit.
const (
	TimingInline     Timing = "inline"     // before the model call that needs it
	TimingAfterRun   Timing = "after_run"  // after the answer
	TimingBackground Timing = "background" // prepared ahead, activated at the trigger
)

// Recall says how messages that a prompt does not show come back.
type Recall string

// The ways of recall.
const (
	RecallAuto Recall = "auto" // prompts quote passages that the user's message asks for; and as RecallTool
	RecallTool Recall = "tool" // the agent searches, if it has the tool search_history
	RecallOff  Recall = "off"  // not at all: the agent does not have the tool
)

// Policy says when a conversation is summarized and what stays. A zero trigger is off. A key
// is the name of the field in an agent's file.
type Policy struct {
	Name          string
	AutoSummarize bool `key:"auto_summarize"` // false: no automatic summary; the other rungs of the ladder apply

	UsageThreshold   float64 `key:"usage_threshold"`             // share trigger: summarize over this share of the base
	MaxContextTokens int     `key:"max_context_tokens"`          // base = min(this, usable); 0 = the window
	MaxMessages      int     `key:"max_messages_before_summary"` // message trigger: at least that many since the cursor (N)
	WindowMessages   int     `key:"window_messages"`             // message trigger: more than that many since the cursor
	MaxTokens        int     `key:"max_tokens_before_summary"`   // token trigger: at least that many since the cursor (K)
	MaxUnsummarized  int     `key:"max_unsummarized_messages"`   // that many unsummarized messages trigger, whatever else is set

	LandAt              float64 `key:"land_at"`               // a token trigger lands at this share of the trigger
	TargetContextTokens int     `key:"target_context_tokens"` // and not above this; 0 = no bound. The 150,000 of ratio bind from 300,000 max_context_tokens on
	MinRecent           int     `key:"min_recent_messages"`   // keep at least that many messages; binds rung 2 only
	NeverBelow          int     // no message trigger below that many messages; 0 = always

	ResponseReserve  int            `key:"response_reserve" min:"1"` // tokens kept for the answer
	MaxSummaryTokens int            `key:"max_summary_tokens"`       // summary limit; 0 = by share or window
	MaxSummaryShare  float64        `key:"max_summary_share"`        // summary limit as a share of the available tokens
	SummaryAskTokens int            // tokens that the summary prompt asks for; 0 = the limit
	Strategy         string         `key:"strategy"` // a name of summarize.Kinds
	Timing           Timing         `key:"timing"`
	SummaryModel     string         `key:"summary_model"` // empty = see PreferredModel
	SummaryRole      core.Role      `key:"summary_role"`  // role of the summary's message in a prompt: system or user
	PreferredModel   llm.Preference // of the agent's provider, where no summary model is set
	Recall           Recall         `key:"recall"`
	RecallShare      float64        `key:"recall_share"` // of the window: max of the recalled passages in a prompt

	StandingInstructions bool `key:"standing_instructions"` // what users set for the whole conversation is recognized in their messages
}

// Defaults that presets share.
const (
	defaultUsageThreshold  = 0.8
	defaultLandAt          = 0.625
	defaultResponseReserve = 4096
	defaultRecallShare     = 0.1
	neverBelowMargin       = 4   // budget: never below MinRecent + 4 messages
	budgetAskTokens        = 700 // budget: under 500 words
)

// presetTable returns the presets (docs/POLICIES.md), a row each, without what they share (Preset).
func presetTable() []Policy {
	return []Policy{
		{
			Name: "window", AutoSummarize: true, MinRecent: 3, Strategy: "hybrid", Timing: TimingBackground, PreferredModel: llm.PreferDefault,
		},
		{
			Name: "budget", AutoSummarize: true, MinRecent: 6,
			MaxMessages: 30, MaxTokens: 128_000, NeverBelow: 6 + neverBelowMargin, MaxSummaryShare: 0.3,
			SummaryAskTokens: budgetAskTokens, Strategy: "llm", Timing: TimingAfterRun,
		},
		{
			Name: "sliding", AutoSummarize: true, MinRecent: 10,
			WindowMessages: 15, MaxUnsummarized: 50, MaxSummaryTokens: 500, SummaryAskTokens: 300,
			Strategy: "llm", Timing: TimingAfterRun, PreferredModel: llm.PreferSmall,
		},
		{
			Name: "ratio", AutoSummarize: true, MinRecent: 10,
			MaxContextTokens: 180_000, TargetContextTokens: 150_000, MaxSummaryTokens: 2_000,
			Strategy: "hybrid", Timing: TimingInline, PreferredModel: llm.PreferSmall,
		},
		{Name: presetOff, Strategy: "extractive", Timing: TimingInline},
	}
}

// DefaultPolicy is the preset of agents that name none.
const DefaultPolicy = "window"

// presetOff is the preset that makes no summaries.
const presetOff = "off"

// Preset returns the named row of the table; an empty name is DefaultPolicy. An unknown name
// is an ErrInvalid that lists the known ones.
func Preset(name string) (Policy, error) {
	if name == "" {
		name = DefaultPolicy
	}
	rows := presetTable()
	i := slices.IndexFunc(rows, func(p Policy) bool { return p.Name == name })
	if i < 0 {
		return Policy{}, core.OneFault("context.policy", "%q does not exist; use one of %s", name, strings.Join(PresetNames(), ", "))
	}
	p := rows[i]
	p.LandAt, p.ResponseReserve, p.Recall, p.RecallShare, p.StandingInstructions = defaultLandAt, defaultResponseReserve, RecallTool, defaultRecallShare, true
	if p.AutoSummarize {
		p.UsageThreshold = defaultUsageThreshold
	}
	return p, nil
}

// PresetNames returns the names of all presets in the order of the table.
func PresetNames() []string {
	var names []string
	for _, p := range presetTable() {
		names = append(names, p.Name)
	}
	return names
}

// Global are the settings that apply to all agents (docs/CONFIGURATION.md).
type Global struct {
	UsageThreshold *float64 // context_usage_threshold; nil = the preset's
	SummaryModel   string   // context_summary_model; empty = the preset's
	SummaryRole    string   // context_summary_role; empty = the system's
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
	p.SummaryRole = cmp.Or(core.Role(global.SummaryRole), core.RoleSystem)
	overlayFields(&p, agent)
	if agent.MinRecentMessages != nil && p.NeverBelow > 0 {
		p.NeverBelow = p.MinRecent + neverBelowMargin
	}
	if agent.MaxSummaryTokens != nil {
		p.SummaryAskTokens = min(p.SummaryAskTokens, p.MaxSummaryTokens)
	}
	if err := p.Validate(); err != nil {
		return Policy{}, err
	}
	return p, nil
}

// ResolveTemporary returns the policy of an agent in a temporary session: no summaries are made,
// and what does not fit is left out. Of the agent's own settings those that bound the prompt hold.
func ResolveTemporary(global Global, agent core.ContextSettings) (Policy, error) {
	return Resolve(global, core.ContextSettings{
		Policy: presetOff, MaxContextTokens: agent.MaxContextTokens, ResponseReserve: agent.ResponseReserve,
		StandingInstructions: agent.StandingInstructions,
	})
}

// Validate returns all values that are out of range or contradict each other as one error.
func (p Policy) Validate() error {
	faults := checkCounts(p)
	faults.add(isOutside(p.UsageThreshold, 0, 1), "usage_threshold", "is %g: use a share between 0 and 1", p.UsageThreshold)
	faults.add(isOutside(p.LandAt, 0, 1) || p.LandAt == 0 || p.LandAt == 1, "land_at", "is %g: the landing must be below the trigger, use a share above 0 and below 1", p.LandAt)
	faults.add(isOutside(p.MaxSummaryShare, 0, 0.5), "max_summary_share", "is %g: use 0 to 0.5", p.MaxSummaryShare)
	faults.add(p.MaxMessages > 0 && p.MaxMessages <= p.MinRecent,
		"max_messages_before_summary", "(%d) must be above min_recent_messages (%d), or there is nothing to summarize when it fires", p.MaxMessages, p.MinRecent)
	faults.add(p.WindowMessages > 0 && p.WindowMessages < p.MinRecent,
		"window_messages", "(%d) must not be below min_recent_messages (%d)", p.WindowMessages, p.MinRecent)
	faults.add(p.MaxUnsummarized > 0 && p.MaxUnsummarized <= p.MinRecent,
		"max_unsummarized_messages", "(%d) must be above min_recent_messages (%d)", p.MaxUnsummarized, p.MinRecent)
	faults.add(p.MaxContextTokens > 0 && p.MaxSummaryTokens > 0 && float64(p.MaxSummaryTokens) >= p.LandAt*p.UsageThreshold*float64(p.MaxContextTokens) && p.UsageThreshold > 0,
		"max_summary_tokens", "(%d) must be below the landing point of max_context_tokens (%d)", p.MaxSummaryTokens, p.MaxContextTokens)
	faults.add(p.TargetContextTokens > 0 && p.MaxSummaryTokens >= p.TargetContextTokens,
		"max_summary_tokens", "(%d) must be below target_context_tokens (%d), where a compaction lands", p.MaxSummaryTokens, p.TargetContextTokens)
	faults.add(!slices.Contains([]string{"llm", "hybrid", "native", "extractive"}, p.Strategy), "strategy", "%q does not exist; use llm, hybrid, native or extractive", p.Strategy)
	faults.add(!slices.Contains([]core.Role{"", core.RoleSystem, core.RoleUser}, p.SummaryRole), "summary_role", "%q does not exist; use system or user", p.SummaryRole)
	faults.add(!slices.Contains([]Recall{"", RecallAuto, RecallTool, RecallOff}, p.Recall), "recall", "%q does not exist; use auto, tool or off", p.Recall)
	faults.add(isOutside(p.RecallShare, 0, 0.5), "recall_share", "is %g: use 0 to 0.5", p.RecallShare)
	faults.add(!slices.Contains([]Timing{TimingInline, TimingAfterRun, TimingBackground}, p.Timing),
		"timing", "%q does not exist; use inline, after_run or background", p.Timing)
	return faults.errIn("context")
}

// isOutside reports whether x is not between low and high; NaN is outside.
func isOutside(x, low, high float64) bool { return !(x >= low && x <= high) }

// Field is one value of a policy and where it comes from.
type Field struct {
	Name  string // as in an agent's file
	Value string
	From  string // agent file, a global setting's name, the preset, or default
}

// Explain returns every value of an agent's policy and loop settings by its path in the agent's file, with
// its origin: preset < global setting < agent file. Errors are those of Resolve and ResolveLoop.
func Explain(global Global, agent core.Agent) ([]Field, error) {
	p, err := Resolve(global, agent.Context)
	if err != nil {
		return nil, err
	}
	l, err := ResolveLoop(p.Name, agent.Compaction)
	if err != nil {
		return nil, err
	}
	from := "default"
	if agent.Context.Policy != "" {
		from = fromAgentFile
	}
	fields := []Field{{Name: "context.policy", Value: p.Name, From: from}}
	fields = append(fields, explainFields("context.", p, agent.Context, func(key string) string {
		switch {
		case key == "usage_threshold" && global.UsageThreshold != nil,
			key == "summary_model" && global.SummaryModel != "",
			key == "summary_role" && global.SummaryRole != "":
			return "context_" + key
		default:
			return "preset " + p.Name
		}
	})...)
	return append(fields, explainFields("compaction.", l, agent.Compaction, func(key string) string {
		if key == "enabled" && p.Name == presetOff {
			return "preset " + p.Name
		}
		return "default"
	})...), nil
}

// fromAgentFile is the origin of values that an agent's file sets.
const fromAgentFile = "agent file"

// explainFields returns the fields with a key, in the order of the agent's file; origin says
// where a value comes from that the file does not set.
func explainFields(section string, values, file any, origin func(key string) string) []Field {
	var fields []Field
	eachKey(values, file, func(key string, value, own reflect.Value) {
		f := Field{Name: section + key, Value: fmt.Sprint(value.Interface()), From: fromAgentFile}
		if own.IsNil() {
			f.From = origin(key)
		}
		fields = append(fields, f)
	})
	return fields
}

// overlayFields sets the fields of *values for which the agent's file has a value.
func overlayFields(values, file any) {
	if reflect.ValueOf(file).IsZero() {
		return // as in most agents' files
	}
	eachKey(values, file, func(_ string, value, own reflect.Value) {
		if !own.IsNil() {
			value.Set(own.Elem().Convert(value.Type()))
		}
	})
}

// eachKey yields the fields of an agent's file, and for each the field of values with the
// same key. Values is a struct, or a pointer to one whose fields are to be set.
func eachKey(values, file any, yield func(key string, value, own reflect.Value)) {
	v, f := reflect.Indirect(reflect.ValueOf(values)), reflect.ValueOf(file)
	for i := range f.NumField() {
		key := f.Type().Field(i).Tag.Get("yaml")
		for j := range v.NumField() {
			if v.Type().Field(j).Tag.Get("key") == key {
				yield(key, v.Field(j), f.Field(i))
			}
		}
	}
}

// faults are errors in settings, by their keys.
type faults struct{ core.Faults }

// checkCounts returns the faults of the integers with a key: each must be at least its min; no tag = 0.
func checkCounts(values any) faults {
	var list faults
	v := reflect.ValueOf(values)
	for i := range v.NumField() {
		tag, n := v.Type().Field(i).Tag, v.Field(i)
		if key := tag.Get("key"); key != "" && n.Kind() == reflect.Int {
			list.add(tag.Get("min") == "" && n.Int() < 0, key, "is %d: it cannot be negative (0 switches it off)", n.Int())
			list.add(tag.Get("min") == "1" && n.Int() < 1, key, "is %d: use 1 or more", n.Int())
		}
	}
	return list
}

func (f *faults) add(bad bool, key, format string, args ...any) {
	if bad {
		f.Add(key, format, args...)
	}
}

// errIn returns all faults as one ErrInvalid that begins with the section of the agent's file; nil = no faults.
func (f faults) errIn(section string) error {
	err := f.Err()
	if e, ok := errors.AsType[*core.Error](err); ok {
		e.Message = section + ": " + e.Message
	}
	return err
}
