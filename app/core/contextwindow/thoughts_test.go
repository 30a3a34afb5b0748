package contextwindow_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"bobbin/app/core"
	cw "bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/tests/compare"
	"bobbin/tests/seed"
)

// thoughtsOf returns the thoughts that are sent with a message.
func thoughtsOf(m cw.PromptMessage) []core.Part {
	return slices.DeleteFunc(slices.Clone(m.Parts), func(p core.Part) bool { return p.Type != core.PartReasoning })
}

// Invariant 7: no thought is sent behind another prompt than the one that it was produced behind,
// and every thought is sent until a compaction, a pin or another model changes the prompt.
// Invariant 1: what is sent, thoughts included, is not larger than planned.
func TestInvariant7ThoughtsBehindTheirPrompt(t *testing.T) {
	t.Parallel()
	kept, frozen, behind := 0, 0, map[llm.ToolChanges]int{}
	seed.Check(t, func(rt *rapid.T) {
		simulateThoughts(rt, func(sh shot) {
			if sh.d.Floor != nil {
				return
			}
			n, size := 0, 0
			added := false
			for i, m := range sh.prompt.Messages {
				added = added || len(m.AddedTools) > 0
				if len(thoughtsOf(m)) == 0 {
					continue
				}
				n++
				for _, p := range thoughtsOf(m) {
					size += p.Tokens
				}
				if added {
					behind[sh.d.ToolChanges]++
				}
				if got := serialize(sh.prompt, i); got != sh.s.producer[m.ID] {
					rt.Fatalf("the thought of message %s is behind another prompt:\n%s\nwant\n%s", m.ID, got, sh.s.producer[m.ID])
				}
			}
			if n != sh.prompt.Sent.Thoughts.Kept {
				rt.Fatalf("%d thoughts are sent, %d are counted", n, sh.prompt.Sent.Thoughts.Kept)
			}
			if got := rendered(sh) + int(sh.in.Factor*float64(size)); got > sh.d.Total || sh.d.Total > sh.d.Budget.Usable || sh.prompt.Sent.Used(sh.d) > sh.d.Total {
				rt.Fatalf("the prompt has %d tokens with %d of thoughts, sent are %d, planned %d, usable %d", got, size, sh.prompt.Sent.Used(sh.d), sh.d.Total, sh.d.Budget.Usable)
			}
			kept += n
			if sh.d.Frozen != "" {
				frozen += n
			}
		})
	})
	if kept == 0 || frozen == 0 || behind[llm.ToolsAdded] == 0 || behind[llm.ToolsChangeable] == 0 {
		t.Errorf("%d thoughts were sent, %d of them behind an earlier system prompt, %v behind added tools, want some", kept, frozen, behind)
	}
}

// A plain conversation keeps all thoughts, tool calls or not, and a compaction drops those behind
// its first change only.
func TestThoughtsUntilACompaction(t *testing.T) {
	model := llm.Info{Name: "m", Provider: "anthropic", Prefix: llm.PrefixRefuses, ThoughtOrigin: "anthropic/m"}
	thought := func(prefix string) []core.Part {
		return []core.Part{{Type: core.PartReasoning, Signature: "s", Tokens: 10, Origin: "anthropic/m", Prefix: prefix}}
	}
	log := []core.Message{
		{ID: "1", Seq: 1, Role: core.RoleUser, Content: "one", TokenCount: 5},
		{ID: "2", Seq: 2, Role: core.RoleAssistant, Content: "two", TokenCount: 5},
		{ID: "3", Seq: 3, Role: core.RoleUser, Content: "three", TokenCount: 5},
		{ID: "4", Seq: 4, Role: core.RoleAssistant, Content: "four", TokenCount: 5},
		{ID: "5", Seq: 5, Role: core.RoleUser, Content: "five", TokenCount: 5},
	}
	assemble := func(state cw.PromptState, model llm.Info) cw.Prompt {
		in := cw.Input{Policy: preset(t, "window"), Model: cw.Limits{Window: 8192}, Binds: model.Prefix.Binds(), State: state, System: 10}
		parts := cw.Parts{SystemPrompt: "Help.", Messages: map[core.MessageID]*core.Message{}, Model: model}
		for _, m := range log {
			parts.Messages[m.ID] = &m
			in.History = append(in.History, cw.ItemOf(m, model, quarter{}))
		}
		n := len(in.History) - 1
		in.History, in.Run = in.History[:n], in.History[n:]
		d, _ := cw.Plan(in)
		return cw.Assemble(parts, d, quarter{})
	}
	whole := log
	for i := range whole { // each answer has a thought, bound to the prompt before it
		if whole[i].Role == core.RoleAssistant {
			log = whole[:i]
			whole[i].Parts = thought(assemble(cw.PromptState{}, model).Prefix)
		}
	}
	log = whole
	for name, tt := range map[string]struct {
		state cw.PromptState
		model func(*llm.Info)
		edit  func([]core.Message)
		want  cw.ThoughtCount
	}{
		"unchanged":        {want: cw.ThoughtCount{Kept: 2}},
		"left out":         {state: cw.PromptState{ThoughtsDropped: []cw.SeqRange{{From: 3, Through: 4}}}, want: cw.ThoughtCount{Kept: 1, Compacted: 1}},
		"an edit":          {edit: func(l []core.Message) { l[2].Content = "3" }, want: cw.ThoughtCount{Kept: 1, Changed: 1}},
		"an early edit":    {edit: func(l []core.Message) { l[0].Content = "1" }, want: cw.ThoughtCount{Changed: 2}},
		"another model":    {model: func(i *llm.Info) { i.ThoughtOrigin = "anthropic/n" }, want: cw.ThoughtCount{OtherModel: 2}},
		"another account":  {model: func(i *llm.Info) { i.Account = "other" }, want: cw.ThoughtCount{Changed: 2}},
		"imported":         {edit: func(l []core.Message) { l[1].Parts[0].Prefix = "" }, want: cw.ThoughtCount{Unbound: 1, Changed: 1}},
		"a free model":     {model: func(i *llm.Info) { i.Prefix = llm.PrefixFree }, want: cw.ThoughtCount{}},
		"an unknown model": {model: func(i *llm.Info) { i.Prefix = "" }, want: cw.ThoughtCount{}},
	} {
		t.Run(name, func(t *testing.T) {
			log = slices.Clone(whole)
			for i := range log {
				log[i].Parts = slices.Clone(log[i].Parts)
			}
			info := model
			if tt.model != nil {
				tt.model(&info)
			}
			if tt.edit != nil {
				tt.edit(log)
			}
			got := assemble(tt.state, info)
			if got.Sent.Thoughts != tt.want {
				t.Errorf("got %+v, want %+v", got.Sent.Thoughts, tt.want)
			}
			sent := 0
			for _, m := range got.Messages {
				sent += len(thoughtsOf(m))
			}
			compare.Equal(t, "thoughts are sent", tt.want.Kept, sent)
		})
	}
}
