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
