package contextwindow

import (
	"fmt"

	"bobbin/app/core"
)

// Field is one value of a policy and where it comes from.
type Field struct {
	Name  string // as in an agent's file
	Value string
	From  string // agent file, a global setting's name, or the preset
}

// field is a row of the table that Explain prints.
type field struct {
	name   string
	value  func(Policy) any
	own    func(core.ContextSettings) bool // the agent's file has it
	global func(Global) string             // name of the global setting that has it; nil = none can
}

// Explain returns every value of an agent's policy with its origin: preset <
// global setting < agent file. Errors are those of Resolve.
func Explain(global Global, agent core.ContextSettings) ([]Field, error) {
	p, err := Resolve(global, agent)
	if err != nil {
		return nil, err
	}
	fields := []Field{{Name: "policy", Value: p.Name, From: origin(agent.Policy != "", "", "")}}
	for _, f := range policyFields() {
		name := ""
		if f.global != nil {
			name = f.global(global)
		}
		fields = append(fields, Field{Name: f.name, Value: fmt.Sprint(f.value(p)), From: origin(f.own(agent), name, p.Name)})
	}
	return fields, nil
}

func origin(own bool, global, preset string) string {
	switch {
	case own:
		return "agent file"
	case global != "":
		return global
	case preset != "":
		return "preset " + preset
	default:
		return "default"
	}
}

func policyFields() []field {
	return []field{
		{name: "auto_summarize", value: func(p Policy) any { return p.AutoSummarize }, own: func(s core.ContextSettings) bool { return s.AutoSummarize != nil }},
		{name: "usage_threshold", value: func(p Policy) any { return p.UsageThreshold }, own: func(s core.ContextSettings) bool { return s.UsageThreshold != nil }, global: func(g Global) string { return named(g.UsageThreshold != nil, "context_usage_threshold") }},
		{name: "land_at", value: func(p Policy) any { return p.LandAt }, own: func(s core.ContextSettings) bool { return s.LandAt != nil }},
		{name: "max_messages_before_summary", value: func(p Policy) any { return p.MaxMessages }, own: func(s core.ContextSettings) bool { return s.MaxMessagesBeforeSummary != nil }},
		{name: "max_tokens_before_summary", value: func(p Policy) any { return p.MaxTokens }, own: func(s core.ContextSettings) bool { return s.MaxTokensBeforeSummary != nil }},
		{name: "max_unsummarized_messages", value: func(p Policy) any { return p.MaxUnsummarized }, own: func(s core.ContextSettings) bool { return s.MaxUnsummarizedMessages != nil }},
		{name: "window_messages", value: func(p Policy) any { return p.WindowMessages }, own: func(s core.ContextSettings) bool { return s.WindowMessages != nil }},
		{name: "min_recent_messages", value: func(p Policy) any { return p.MinRecent }, own: func(s core.ContextSettings) bool { return s.MinRecentMessages != nil }},
		{name: "max_context_tokens", value: func(p Policy) any { return p.MaxContextTokens }, own: func(s core.ContextSettings) bool { return s.MaxContextTokens != nil }},
		{name: "target_context_tokens", value: func(p Policy) any { return p.TargetContextTokens }, own: func(s core.ContextSettings) bool { return s.TargetContextTokens != nil }},
		{name: "response_reserve", value: func(p Policy) any { return p.ResponseReserve }, own: func(s core.ContextSettings) bool { return s.ResponseReserve != nil }},
		{name: "summary_model", value: func(p Policy) any { return p.SummaryModel }, own: func(s core.ContextSettings) bool { return s.SummaryModel != nil }, global: func(g Global) string { return named(g.SummaryModel != "", "context_summary_model") }},
		{name: "strategy", value: func(p Policy) any { return p.Strategy }, own: func(s core.ContextSettings) bool { return s.Strategy != nil }},
		{name: "max_summary_tokens", value: func(p Policy) any { return p.MaxSummaryTokens }, own: func(s core.ContextSettings) bool { return s.MaxSummaryTokens != nil }},
		{name: "max_summary_share", value: func(p Policy) any { return p.MaxSummaryShare }, own: func(s core.ContextSettings) bool { return s.MaxSummaryShare != nil }},
		{name: "timing", value: func(p Policy) any { return p.Timing }, own: func(s core.ContextSettings) bool { return s.Timing != nil }},
	}
}

// named returns the name if it applies.
func named(applies bool, name string) string {
	if applies {
		return name
	}
	return ""
}
