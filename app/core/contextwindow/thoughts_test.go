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
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*agentTalk)
		want   cw.ThoughtCount
	}{
		"unchanged": {func(*agentTalk) {}, cw.ThoughtCount{Kept: 2}},
		"left out": {func(a *agentTalk) {
			a.state.ThoughtsDropped = []cw.SeqRange{{From: 3, Through: 4}}
		}, cw.ThoughtCount{Kept: 1, Compacted: 1}},
		"an edit":          {func(a *agentTalk) { a.log[2].Content = "3" }, cw.ThoughtCount{Kept: 1, Changed: 1}},
		"an early edit":    {func(a *agentTalk) { a.log[0].Content = "1" }, cw.ThoughtCount{Changed: 2}},
		"another model":    {func(a *agentTalk) { a.model.ThoughtOrigin = "anthropic/n" }, cw.ThoughtCount{OtherModel: 2}},
		"another account":  {func(a *agentTalk) { a.model.Account = "other" }, cw.ThoughtCount{Changed: 2}},
		"imported":         {func(a *agentTalk) { a.log[1].Parts[0].Prefix = "" }, cw.ThoughtCount{Unbound: 1, Changed: 1}},
		"a free model":     {func(a *agentTalk) { a.model.Prefix = llm.PrefixFree }, cw.ThoughtCount{}},
		"an unknown model": {func(a *agentTalk) { a.model.Prefix = "" }, cw.ThoughtCount{}},
	} {
		a := newAgentTalk(t)
		a.talk("A a", "A a", "A a")
		tt.change(a)
		_, p := a.prompt("A a")
		sent := 0
		for _, m := range p.Messages {
			sent += len(thoughtsOf(m))
		}
		compare.Equal(t, name+": thoughts, sent", []any{tt.want, tt.want.Kept}, []any{p.Sent.Thoughts, sent})
	}
}
