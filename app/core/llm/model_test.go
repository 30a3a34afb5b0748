package llm_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/tests/compare"
)

func TestSplitCompaction(t *testing.T) {
	t.Parallel()
	compaction := core.Part{Type: core.PartCompaction, Text: "so far", Signature: "s"}
	first := llm.Message{Role: core.RoleUser, Parts: []core.Part{compaction}}
	question := llm.Message{Role: core.RoleUser, Content: "hi"}
	beside, answered, two := first, first, first
	beside.Content = "hi"
	answered.Role = core.RoleAssistant
	two.Parts = []core.Part{compaction, compaction}
	for name, tt := range map[string]struct {
		messages []llm.Message
		found    bool
	}{
		"first":           {[]llm.Message{first, question}, true},
		"alone":           {[]llm.Message{first}, true},
		"later":           {[]llm.Message{question, first}, false},
		"beside a text":   {[]llm.Message{beside, question}, false},
		"of an assistant": {[]llm.Message{answered, question}, false},
		"two":             {[]llm.Message{two, question}, false},
		"a thought":       {[]llm.Message{{Role: core.RoleUser, Parts: []core.Part{{Type: core.PartReasoning}}}}, false},
		"no message":      {nil, false},
	} {
		got, rest := llm.Request{Messages: tt.messages}.SplitCompaction()
		want := tt.messages
		if tt.found {
			want = want[1:]
		}
		compare.True(t, (got != nil) == tt.found && len(rest) == len(want), "%s: got %v and %d messages, want found = %v and %d", name, got, len(rest), tt.found, len(want))
	}
}

// Thoughts at the beginning of a text are reasoning, wherever the stream is cut. Tags anywhere
// else are text.
func TestThoughtsInTheText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ answer, text, reasoning string }{
		{"<think>\n\n</think>\n\nParis", "Paris", "\n\n"},
		{"<think>Hm.</think>Paris", "Paris", "Hm."},
		{" \n<THINK>Hm.</Think> Paris\n", "Paris\n", "Hm."},
		{"<thinking>a</thinking>b", "b", "a"},
		{"<thought>a</thought>b", "b", "a"},
		{"<analysis>a</analysis>b", "b", "a"},
		{"<reasoning>a</think>b", "b", "a"},
		{"<think>a</think></think>b", "b", "a"},
		{"<think>a</think>\n<think>b</think>\nc", "c", "ab"},
		{"<think>a<think>b</think>c</think>d", "d", "a<think>bc"},
		{"<think>They ask about <think>.</think>It is a tag.", "It is a tag.", "They ask about <think>."},
		{"<think>never closed", "", "never closed"},
		{"<think>cut in the tag</thi", "", "cut in the tag</thi"},
		{"<think>a < b</think>b > a", "b > a", "a < b"},
		{"<think>a</think>\n", "", "a"},
		{"<think>蜜蜂</think>跳舞", "跳舞", "蜜蜂"},
		{"<thinker>is a statue</thinker>", "<thinker>is a statue</thinker>", ""},
		{"<thin", "<thin", ""},
		{"  indented", "  indented", ""},
		{" \n ", " \n ", ""},
		{"The tag <think>x</think> is text.", "The tag <think>x</think> is text.", ""},
		{"```\n<think>x</think>\n```", "```\n<think>x</think>\n```", ""},
		{"</think>\n\nx", "x", ""},
		{"[THINK]a < b [x] ◁[/THINK]b", "b", "a < b [x] ◁"},
		{"◁think▷蜜蜂◁/think▷b", "b", "蜜蜂"},
		{"<seed:think>a</seed:think>b", "b", "a"},
		{"<|channel>thought\na<channel|>b", "b", "\na"},
		{"<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b", "b", "a"},
		{"<|channel|>final<|message|>b", "b", ""},
		{"<|channel|>final<|message|>a <|return|> b<|return|>", "a <|return|> b", ""},
		{"<|start|>assistant<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b < <|ret<|return|>", "b < <|ret", "a"},
		{"<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary<|message|>b<|end|><|start|>assistant<|channel|>final<|message|>c<", "c<", "a<|message|>b"},
		{"<|channel|>commentary to=functions.read <|constrain|>json<|message|>{}<|call|>", "", " to=functions.read <|constrain|>json<|message|>{}<|call|>"},
		{"b<|return|>", "b<|return|>", ""},
		{"\uFEFF<think>a</think>b", "b", "a"},
		{"\uFEFFb", "\uFEFFb", ""},
		{strings.Repeat(" ", 2000) + "<think>x", strings.Repeat(" ", 2000) + "<think>x", ""},
	} {
		if text, thoughts := llm.CutThoughts(c.answer); text != c.text || thoughts != c.reasoning {
			t.Errorf("%.40q: got the text %q and the thoughts %q, want %q and %q", c.answer, text, thoughts, c.text, c.reasoning)
		}
		for _, size := range []int{1, 2, 3, 7, len(c.answer)} {
			for _, finish := range []core.FinishReason{core.FinishStop, ""} {
				var shown strings.Builder
				got, err := llm.Collect(func(yield func(llm.Delta, error) bool) {
					for rest := c.answer; rest != ""; {
						n := min(size, len(rest))
						for n < len(rest) && !utf8.RuneStart(rest[n]) { // models send whole characters
							n++
						}
						if !yield(llm.Delta{Text: rest[:n]}, nil) {
							return
						}
						rest = rest[n:]
					}
					if finish != "" {
						yield(llm.Delta{Finish: finish}, nil)
						return
					}
					yield(llm.Delta{}, errors.New("broke off"))
				}, func(d llm.Delta) { shown.WriteString(d.Text) })
				if got.Text != c.text || got.Reasoning != c.reasoning || shown.String() != c.text || (err == nil) != (finish != "") {
					t.Fatalf("%.40q in pieces of %d: got %q, shown %q, thoughts %q, %v, want %q and %q", c.answer, size, got.Text, shown.String(), got.Reasoning, err, c.text, c.reasoning)
				}
			}
		}
	}
}

// A thought that the prompt has opened is known by its end: the answer does not have it. A text that
// speaks of the tag stays whole.
func TestThoughtsOpenedInThePrompt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ answer, text, reasoning string }{
		{"They greet me.\n</think>\n\nHello!", "Hello!", "They greet me.\n"},
		{"They greet me.</think>Hello! </think> stays", "Hello! </think> stays", "They greet me."},
		{"蜜蜂◁/think▷跳舞", "跳舞", "蜜蜂"},
		{"Code is ```go\nx\n``` and `y`.</think>So", "So", "Code is ```go\nx\n``` and `y`."},
		{"They name <think>a</think>.\n</think>So", "So", "They name <think>a</think>.\n"},
		{"They name the tag </think> here.\n</think>So", "So", "They name the tag </think> here.\n"},
		{"```html\n</think>\n```", "```html\n</think>\n```", ""},
		{"Write `</think>` there.", "Write `</think>` there.", ""},
		{`{"tag": "</think>"}`, `{"tag": "</think>"}`, ""},
		{"The tag <think>x</think> is text.", "The tag <think>x</think> is text.", ""},
		{"<r><analysis kind='a'>x</analysis></r>", "<r><analysis kind='a'>x</analysis></r>", ""},
		{"only thoughts</think>", "", "only thoughts"},
	} {
		if text, thoughts := llm.CutThoughts(c.answer); text != c.text || thoughts != c.reasoning {
			t.Errorf("%.40q: got the text %q and the thoughts %q, want %q and %q", c.answer, text, thoughts, c.text, c.reasoning)
		}
		for _, call := range []bool{false, true} {
			pieces := []llm.Delta{{Text: c.answer[:3]}, {Text: c.answer[3:]}, {Finish: core.FinishStop}}
			text, reasoning := c.text, c.reasoning
			if call { // behind a call no thought ends
				pieces[0].ToolCall = &llm.ToolCallDelta{ID: "a", Name: "one"}
				text, reasoning = c.answer, ""
			}
			got, err := llm.Collect(func(yield func(llm.Delta, error) bool) {
				for _, d := range pieces {
					if !yield(d, nil) {
						return
					}
				}
			}, nil)
			compare.True(t, err == nil && got.Text == text && got.Reasoning == reasoning, "%.40q, behind a call: %t: got %q, thoughts %q, %v, want %q and %q", c.answer, call, got.Text, got.Reasoning, err, text, reasoning)
		}
	}
}

// Whatever order the messages have, user and assistant alternate, the user first, and calls keep
// their results.
func TestAlternating(t *testing.T) {
	t.Parallel()
	message := map[rune]llm.Message{
		'u': {Role: core.RoleUser, Content: "u"}, 'a': {Role: core.RoleAssistant, Content: "a"}, 's': {Role: core.RoleSystem, Content: "s"},
		'c': {Role: core.RoleAssistant, ToolCalls: []core.ToolCall{{ID: "1", Name: "f"}}}, 't': {Role: core.RoleTool, ToolCallID: "1", Content: "t"},
		'e': {Role: core.RoleUser},
	}
	for order, want := range map[string]string{
		"uau":   "user:u assistant:a user:u",
		"uuau":  "user:u+u assistant:a user:u",
		"eu":    "user:u",
		"usu":   "user:u+u",
		"auaau": "user:[empty] assistant:a user:u assistant:a+a user:u",
		"uctau": "user:u assistant:(1) tool:t assistant:a user:u",
		"uctu":  "user:u assistant:(1) tool:t assistant:[no answer] user:u",
		"uacct": "user:u assistant:a(1) assistant:(1) tool:t",
		"ucttu": "user:u assistant:(1) tool:t tool:t assistant:[no answer] user:u",
		"":      "",
	} {
		var turns []llm.Message
		for _, letter := range order {
			turns = append(turns, message[letter])
		}
		var got []string
		for _, m := range llm.Alternating(turns) {
			text := string(m.Role) + ":" + strings.ReplaceAll(llm.PlainText(m), "\n\n", "+")
			if len(m.ToolCalls) > 0 {
				text = strings.TrimSuffix(text, llm.EmptyText) + fmt.Sprintf("(%s)", m.ToolCalls[0].ID)
			}
			got = append(got, text)
		}
		compare.True(t, strings.Join(got, " ") == want, "%q: got %q, want %q", order, got, want)
	}
}

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
