package contextwindow_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"bobbin/app/core"
	cw "bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/tests/must"
)

// talk is a conversation written down by hand, in the tokens of quarter.
type talk struct {
	log   []core.Message
	calls int
}

// add appends a message of that many tokens, its overhead of 4 included.
func (c *talk) add(role core.Role, tokens int) *core.Message {
	seq := int64(len(c.log) + 1)
	c.log = append(c.log, core.Message{
		ID: core.MessageID(fmt.Sprintf("0192f0c4-0000-7000-8000-%012d", seq)), Seq: seq, Role: role, OnPath: true,
		Content: strings.Repeat(fmt.Sprintf("%s %06d. ", role, seq), tokens)[:(tokens-4)*4], TokenCount: tokens,
	})
	return &c.log[len(c.log)-1]
}

// turns appends user messages with their answers, all of the same size.
func (c *talk) turns(n, tokens int) *talk {
	for range n {
		c.add(core.RoleUser, tokens)
		c.add(core.RoleAssistant, tokens)
	}
	return c
}

func (c *talk) user(tokens int) *talk {
	c.add(core.RoleUser, tokens)
	return c
}

func (c *talk) answer(tokens int) *talk {
	c.add(core.RoleAssistant, tokens)
	return c
}

// round appends an assistant message with a call for each result of that many tokens.
func (c *talk) round(results ...int) *talk {
	m := c.add(core.RoleAssistant, 4)
	for range results {
		c.calls++
		call := core.ToolCall{ID: fmt.Sprintf("call_%d", c.calls), Name: "read", Arguments: `{"n":1}`}
		m.ToolCalls = append(m.ToolCalls, call)
		m.TokenCount += 8 + quarter{}.Text(call.Name) + quarter{}.Text(call.Arguments)
	}
	calls := m.ToolCalls
	for i, tokens := range results {
		c.add(core.RoleTool, tokens).ToolCallID = calls[i].ID
	}
	return c
}

// pin pins the messages with these numbers.
func (c *talk) pin(seqs ...int64) *talk {
	for _, s := range seqs {
		c.log[s-1].Pinned = true
	}
	return c
}

// items returns what a plan sees of the messages from #from to the end.
func (c *talk) items(from int64) []cw.Item {
	var out []cw.Item
	for _, m := range c.log[from-1:] {
		out = append(out, cw.ItemOf(m, llm.Info{}, quarter{}))
	}
	return out
}

func (c *talk) tokens() int {
	n := 0
	for _, m := range c.log {
		n += m.TokenCount
	}
	return n
}

// between is the input between two runs: all of the talk is history.
func (c *talk) between(p cw.Policy, window int) cw.Input {
	return cw.Input{Policy: p, Model: cw.Limits{Window: window}, Factor: 1, System: testSystem, History: c.items(1)}
}

// during is the input while the run that began with message #from is in progress.
func (c *talk) during(p cw.Policy, window int, from int64) cw.Input {
	in := c.between(p, window)
	in.History, in.Run = in.History[:from-1], in.History[from-1:]
	return in
}

// testSystem is the size of testParts' system prompt.
const testSystem = 20

func (c *talk) parts() cw.Parts {
	parts := cw.Parts{SystemPrompt: strings.Repeat("You! ", 16)[:(testSystem-4)*4], Messages: map[core.MessageID]*core.Message{}}
	for _, m := range c.log {
		parts.Messages[m.ID] = &m
	}
	return parts
}

// prompt returns the prompt of a decision.
func (c *talk) prompt(d cw.Decision) cw.Prompt { return cw.Assemble(c.parts(), d, quarter{}) }

// preset returns a preset with changes.
func preset(t testing.TB, name string, change ...func(*cw.Policy)) cw.Policy {
	t.Helper()
	p := must.Get(cw.Preset(name))(t)
	for _, f := range change {
		f(&p)
	}
	return p
}

// manual switches automatic summaries off.
func manual(p *cw.Policy) { p.AutoSummarize = false }

// timed sets when summaries are made.
func timed(timing cw.Timing) func(*cw.Policy) {
	return func(p *cw.Policy) { p.Timing = timing }
}

// inline lets summaries be made before the call that needs them.
func inline(p *cw.Policy) { p.Timing = cw.TimingInline }

// places returns how many slots are in each place.
func places(slots ...[]cw.Slot) map[core.Placement]int {
	n := map[core.Placement]int{}
	for _, s := range slices.Concat(slots...) {
		n[s.Place]++
	}
	return n
}

// trigger returns the status of a trigger.
func trigger(t testing.TB, d cw.Decision, name string) core.TriggerStatus {
	t.Helper()
	for _, s := range d.Triggers {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no trigger %q in %+v", name, d.Triggers)
	return core.TriggerStatus{}
}

// fits fails unless the decision can be sent, within most tokens, and its prompt
// has what a provider asks for.
func fits(t testing.TB, c *talk, in cw.Input, d cw.Decision, most int) cw.Prompt {
	t.Helper()
	if d.Floor != nil || d.Summarize != nil {
		t.Fatalf("got floor %v, order %+v, want a prompt", d.Floor, d.Summarize)
	}
	if d.Total > most {
		t.Fatalf("planned %d tokens, want at most %d", d.Total, most)
	}
	p := c.prompt(d)
	if got := rendered(shot{in: in, d: d, prompt: p}); got > d.Total {
		t.Fatalf("the prompt has %d tokens, the plan said %d", got, d.Total)
	}
	paired(t, p)
	return p
}

// paired fails unless each call has its result, in order, and none is alone.
func paired(t rapid.TB, p cw.Prompt) {
	t.Helper()
	var open []string
	for _, m := range p.Messages {
		if m.Role == core.RoleTool {
			if len(open) == 0 || open[0] != m.ToolCallID {
				t.Fatalf("result of %q, the open calls are %q", m.ToolCallID, open)
			}
			open = open[1:]
			continue
		}
		if len(open) > 0 {
			t.Fatalf("calls %q have no result", open)
		}
		for _, call := range m.ToolCalls {
			open = append(open, call.ID)
		}
	}
	if len(open) > 0 {
		t.Fatalf("calls %q have no result", open)
	}
}
