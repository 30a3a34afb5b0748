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

// quoted returns the input of a talk whose answers have thoughts, each behind passages of so
// many tokens that were quoted before its question.
func quoted(c *talk, in cw.Input, tokens int) cw.Input {
	in.Binds = true
	for i := range in.History {
		it := &in.History[i]
		if it.Role != core.RoleAssistant {
			continue
		}
		it.Thoughts, it.Tokens = 10, it.Tokens+10
		it.Recalled = &core.RecalledPassages{Tokens: tokens, Passages: []core.RecalledPassage{{MessageID: core.MessageID(fmt.Sprint("p", i)), To: 1}}}
	}
	return in
}

// countQuotes returns how many messages have passages before them.
func countQuotes(d cw.Decision) (n int) {
	for _, s := range d.History {
		if s.Quotes != nil {
			n++
		}
	}
	return n
}

// Passages of earlier messages count in the prompt, and are the first thing that goes: with the
// thoughts that they were for, before anything is summarized.
func TestQuotesGiveWay(t *testing.T) {
	t.Parallel()
	plan := func(tokens int) (cw.Decision, cw.PromptState) {
		c := new(talk).turns(10, 50).user(50)
		return cw.Plan(quoted(c, c.during(preset(t, "window"), 8192, 21), tokens))
	}
	d, _ := plan(100)
	more, _ := plan(101)
	if n := countQuotes(d); n != 10 || more.Total-d.Total != 10 || len(d.Rungs) > 0 {
		t.Errorf("got %d of 10 messages with passages, rungs %v; ten tokens more cost %d", n, d.Rungs, more.Total-d.Total)
	}
	d, state := plan(1_000)
	if n := countQuotes(d); n != 0 || d.Summarize != nil || fmt.Sprint(d.Rungs) != "[0]" || d.Total > d.Budget.Landing {
		t.Errorf("got %d messages with passages, order %+v, rungs %v, %d tokens; want none, and no summary", n, d.Summarize, d.Rungs, d.Total)
	}
	if got := fmt.Sprint(state.ThoughtsDropped); got != "[{1 21}]" {
		t.Errorf("got the thoughts of %s dropped, want of all", got)
	}
}
