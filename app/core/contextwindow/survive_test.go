package contextwindow_test

import (
	"slices"
	"testing"

	"bobbin/app/core"
	cw "bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
)

// The report says how many thoughts are left after each thing that may happen next; what it says
// of the next answer and of masking is what a plan does then.
func TestThoughtsAfter(t *testing.T) {
	t.Parallel()
	model := llm.Info{Name: "m", Provider: "anthropic", Prefix: llm.PrefixRefuses, ThoughtOrigin: "anthropic/m"}
	// Two turns with a tool, one without, and a question: five thoughts.
	c := new(talk).user(50).round(900).answer(50).user(50).round(900).answer(50).user(50).answer(50).user(50)
	input := func(state cw.PromptState) (cw.Input, cw.Parts) {
		in := cw.Input{Policy: preset(t, "window"), Model: cw.Limits{Window: 16_384}, Factor: 1, System: testSystem, Binds: true, State: state}
		parts := c.parts()
		parts.Model = model
		for _, m := range c.log {
			parts.Messages[m.ID] = m
			in.History = append(in.History, cw.ItemOf(m, model, quarter{}))
		}
		n := len(in.History) - 1
		for in.History[n].Role != core.RoleUser {
			n--
		}
		in.History, in.Run = in.History[:n], in.History[n:]
		return in, parts
	}
	assemble := func(state cw.PromptState) (cw.Input, cw.Decision, cw.Prompt) {
		in, parts := input(state)
		d, _ := cw.Plan(in)
		return in, d, cw.Assemble(parts, d, quarter{})
	}
	whole := c.log
	for i := range whole {
		if whole[i].Role == core.RoleAssistant {
			c.log = whole[:i]
			_, _, before := assemble(cw.PromptState{})
			whole[i].Parts = []core.Part{{Type: core.PartReasoning, Signature: "s", Tokens: 10, Origin: "anthropic/m", Prefix: before.Prefix}}
		}
	}
	c.log = whole
	after := func(answer, mask, edit int) []core.ThoughtsAfter {
		list := []core.ThoughtsAfter{{Action: core.AfterAnswer, Kept: answer}}
		if mask >= 0 {
			list = append(list, core.ThoughtsAfter{Action: core.AfterMasking, Kept: mask})
		}
		return append(list, core.ThoughtsAfter{Action: core.AfterSummary}, core.ThoughtsAfter{Action: core.AfterSwitch},
			core.ThoughtsAfter{Action: core.AfterEdit, Kept: edit}, core.ThoughtsAfter{Action: core.AfterSystem})
	}
	in, d, prompt := assemble(cw.PromptState{})
	if got, want := cw.ThoughtsAfter(in, d, prompt), after(5, 1, 5); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	order := d
	order.Summarize = &cw.Order{Kind: core.SummaryRolling}
	if got, want := cw.ThoughtsAfter(in, order, prompt), after(0, 1, 5); !slices.Equal(got, want) {
		t.Errorf("with a summary due: got %+v, want %+v", got, want)
	}
	order.Summarize = &cw.Order{Kind: core.SummaryRun, FromSeq: 6}
	if got, want := cw.ThoughtsAfter(in, order, prompt), after(2, 1, 5); !slices.Equal(got, want) {
		t.Errorf("with notes due: got %+v, want %+v", got, want)
	}
	in, d, prompt = assemble(cw.PromptState{MaskedThrough: 4})
	if n := prompt.Sent.Thoughts.Kept; n != 1 {
		t.Errorf("masked: got %d thoughts, announced was 1", n)
	}
	if got, want := cw.ThoughtsAfter(in, d, prompt), after(1, -1, 1); !slices.Equal(got, want) {
		t.Errorf("masked: got %+v, want %+v", got, want)
	}
	in.Binds = false
	if got := cw.ThoughtsAfter(in, d, prompt); got != nil {
		t.Errorf("a free model: got %+v, want none", got)
	}
}
