package llm_test

import (
	"fmt"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/tests/compare"
)

func TestPrefixContractByName(t *testing.T) {
	for model, want := range map[string]llm.PrefixContract{
		"claude-opus-5-5":                    llm.PrefixRefuses,
		"claude-sonnet-5-5-20260901":         llm.PrefixRefuses,
		"us.anthropic.claude-haiku-5-5-v1:0": llm.PrefixRefuses,
		"anthropic/claude-fable-5.1":         llm.PrefixRefuses,
		"claude-mythos-5-2":                  llm.PrefixRefuses,
		"claude-opus-6":                      llm.PrefixRefuses,
		"claude-opus-5":                      "",
		"claude-sonnet-5-20260301":           "",
		"claude-fable-5":                     "",
		"claude-3-5-sonnet-20241022":         "",
		"claude-mythos-preview":              "",
		"gpt-6.2":                            llm.PrefixDrops,
		"gpt-6.2-mini":                       llm.PrefixDrops,
		"gpt-7":                              llm.PrefixDrops,
		"gpt-6":                              "",
		"gpt-5.4-pro":                        "",
		"gpt-oss-120b":                       "",
		"gpt-4o-2024-08-06":                  "",
		"qwen3":                              "",
		"":                                   "",
		"claude-":                            "",
		"gpt-":                               "",
		"claude-opus-99999999999999999999999999999": "",
	} {
		compare.Equal(t, fmt.Sprintf("%q", model), want, llm.PrefixContractOf(model))
	}
}

// Each part of a prompt is part of its prefix, and nothing else is.
func TestPrefixOfPrompt(t *testing.T) {
	info := llm.Info{ThoughtOrigin: "anthropic/claude-opus-5-5", Account: "a"}
	system, tools := []string{"You help."}, []llm.ToolSpec{{Name: "search"}}
	thought := core.Part{Type: core.PartReasoning, Text: "hm", Signature: "s", Origin: "anthropic/claude-opus-5-5", Offset: 1}
	message := llm.Message{
		Role: core.RoleAssistant, Content: "text", Parts: []core.Part{thought},
		ToolCalls: []core.ToolCall{{ID: "1", Name: "search", Arguments: "{}"}},
	}
	of := func(info llm.Info, system []string, tools []llm.ToolSpec, messages ...llm.Message) string {
		p := llm.NewPrefix(info, system, tools, nil, "")
		for _, m := range messages {
			p = p.With(m)
		}
		return p.String()
	}
	want := of(info, system, tools, message)
	changed := func(change func(*llm.Message)) llm.Message {
		m := message
		m.Parts = append([]core.Part(nil), m.Parts...)
		m.ToolCalls = append([]core.ToolCall(nil), m.ToolCalls...)
		change(&m)
		return m
	}
	other := info
	other.Account = "b"
	model := info
	model.ThoughtOrigin = "anthropic/claude-opus-5-6"
	for name, got := range map[string]string{
		"account":        of(other, system, tools, message),
		"model":          of(model, system, tools, message),
		"system":         of(info, []string{"You help!"}, tools, message),
		"system blocks":  of(info, []string{"You ", "help."}, tools, message),
		"tools":          of(info, system, nil, message),
		"one more":       of(info, system, tools, message, message),
		"one less":       of(info, system, tools),
		"text":           of(info, system, tools, changed(func(m *llm.Message) { m.Content = "texT" })),
		"role":           of(info, system, tools, changed(func(m *llm.Message) { m.Role = core.RoleUser })),
		"thought":        of(info, system, tools, changed(func(m *llm.Message) { m.Parts[0].Text = "" })),
		"signature":      of(info, system, tools, changed(func(m *llm.Message) { m.Parts[0].Signature = "t" })),
		"place":          of(info, system, tools, changed(func(m *llm.Message) { m.Parts[0].Offset = 0 })),
		"behind a call":  of(info, system, tools, changed(func(m *llm.Message) { m.Parts[0].Calls = 1 })),
		"no thought":     of(info, system, tools, changed(func(m *llm.Message) { m.Parts = nil })),
		"call":           of(info, system, tools, changed(func(m *llm.Message) { m.ToolCalls[0].ID = "2" })),
		"arguments":      of(info, system, tools, changed(func(m *llm.Message) { m.ToolCalls[0].Arguments = "{ }" })),
		"image":          of(info, system, tools, changed(func(m *llm.Message) { m.Media = []llm.Media{{Data: []byte("x")}} })),
		"added tool":     of(info, system, tools, changed(func(m *llm.Message) { m.AddedTools = tools })),
		"removed tool":   of(info, system, tools, changed(func(m *llm.Message) { m.RemovedTools = []string{"search"} })),
		"text into call": of(info, system, tools, changed(func(m *llm.Message) { m.ToolCallID = "1" })),
	} {
		compare.True(t, got != want, "%s: the prefix is the same", name)
	}
	for name, got := range map[string]llm.Prefix{
		"format": llm.NewPrefix(info, system, tools, &core.ResponseFormat{Type: core.FormatJSONObject}, ""),
		"effort": llm.NewPrefix(info, system, tools, nil, "high"),
	} {
		compare.True(t, got != llm.NewPrefix(info, system, tools, nil, ""), "%s: the prefix is the same", name)
	}
	compaction := func(part core.Part) string {
		part.Type = core.PartCompaction
		return of(info, system, tools, llm.Message{Role: core.RoleUser, Parts: []core.Part{part}})
	}
	if a, b, c := compaction(core.Part{Text: "a"}), compaction(core.Part{Text: "b"}), compaction(core.Part{Text: "a", Signature: "s"}); a == b || a == c {
		t.Errorf("compactions with other texts or signatures have the prefixes %s, %s, %s", a, b, c)
	}
	unsigned := core.Part{Type: core.PartReasoning, Text: "is not sent"}
	same := changed(func(m *llm.Message) { m.Parts = append(m.Parts, unsigned); m.Passing = true; m.ToolName = "search" })
	compare.Equal(t, "what is not sent changed the prefix", want, of(info, append(system, ""), tools, same))
	compare.True(t, len(want) <= 200, "a prefix has %d bytes", len(want))
}
