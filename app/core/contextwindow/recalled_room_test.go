package contextwindow_test

import (
	"fmt"
	"testing"

	"bobbin/app/core"
	cw "bobbin/app/core/contextwindow"
)

// However long a conversation has become, its prompt has room for recalled passages as soon as it
// leaves out messages, under the policy off, too, which fills the window to the end.
func TestRecalledHasRoom(t *testing.T) {
	t.Parallel()
	policy := preset(t, "off", func(p *cw.Policy) { p.Recall = cw.RecallAuto })
	c, hidden := new(talk), 0
	var state cw.PromptState
	for turn := range 200 {
		c.user(60)
		in := c.during(policy, 8_192, int64(len(c.log)))
		in.State = state
		for seq := range int64(40) {
			in.Recalled = append(in.Recalled, cw.Passage{ID: core.MessageID(fmt.Sprint(seq)), Seq: 1 + seq, Day: "1 May 2026", Tokens: 50})
		}
		d, next := cw.Plan(in)
		if n := places(d.History)[core.PlaceLeftOut]; n > 0 {
			hidden++
			if got, most := recalledTokens(d), d.Budget.Recall; n >= 40 && got < most-60 || d.Total > d.Budget.Usable {
				t.Errorf("turn %d: passages have %d of %d tokens in a prompt of %d, %d messages are left out", turn, got, most, d.Total, n)
			}
		} else if d.Total < d.Budget.Trigger-120 && d.Compacted {
			t.Errorf("turn %d: the prompt of %d tokens was compacted", turn, d.Total)
		}
		state = next
		c.answer(60)
	}
	if hidden == 0 {
		t.Error("no prompt left out messages")
	}
}

// Where no trigger counts the prompt, one that fills the room for recalled passages stays as it is if
// nothing can be left out: the run in progress, or messages that cost less than the line that would
// name them. The next plan leaves it alone, too.
func TestNothingToLeaveOutForRecalled(t *testing.T) {
	t.Parallel()
	off := preset(t, "off", func(p *cw.Policy) { p.Recall = cw.RecallAuto })
	for name, in := range map[string]cw.Input{
		"the user's message alone": new(talk).user(5_500).during(off, 8_192, 1),
		"a short turn before it":   new(talk).turns(1, 10).user(5_500).during(off, 8_192, 3),
		"automatic summaries off": new(talk).turns(1, 10).user(5_500).during(
			preset(t, "window", manual, func(p *cw.Policy) { p.Recall = cw.RecallAuto }), 8_192, 3),
	} {
		d, state := cw.Plan(in)
		if d.Total <= d.Budget.Trigger || d.Total > d.Budget.Usable {
			t.Fatalf("%s: got %d tokens, want more than %d, at most %d", name, d.Total, d.Budget.Trigger, d.Budget.Usable)
		}
		if n := places(d.History, d.Run); n[core.PlaceVerbatim] != len(in.History)+len(in.Run) || len(d.Rungs) > 0 || d.Summarize != nil {
			t.Errorf("%s: got the places %v, rungs %v, order %+v, want the prompt as it was", name, n, d.Rungs, d.Summarize)
		}
		in.State = state
		if again, _ := cw.Plan(in); again.Compacted {
			t.Errorf("%s: the next plan compacts again: %q", name, again.Reasons)
		}
	}
}
