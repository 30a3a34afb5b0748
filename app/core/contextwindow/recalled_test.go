package contextwindow_test

import (
	"fmt"
	"testing"

	"bobbin/app/core"
	cw "bobbin/app/core/contextwindow"
)

// Passages are taken in the order in which they were found as long as their share lasts, and
// are the first thing that goes: a prompt that needs the room has fewer or none.
func TestRecalledGivesWay(t *testing.T) {
	t.Parallel()
	recalls := func(p *cw.Policy) { p.Recall = cw.RecallAuto }
	plan := func(tail int) cw.Decision {
		c := new(talk).turns(10, 50).user(tail)
		in := c.during(preset(t, "off", recalls), 8192, 21)
		in.Summary = core.SummaryVersion{Version: 1, ThroughSeq: 18, Tokens: 100, Messages: 18}
		in.History = in.History[18:]
		for _, seq := range []int64{9, 3, 17, 5, 7, 19, 1, 11} {
			in.Recalled = append(in.Recalled, cw.Passage{ID: core.MessageID(fmt.Sprint(seq)), Seq: seq, Day: "1 May 2026", Tokens: 100})
		}
		d, _ := cw.Plan(in)
		return d
	}
	usable := plan(100).Budget.Usable
	base := plan(100).Total - recalledTokens(plan(100)) - 100
	for _, tt := range []struct {
		room int // beside the conversation
		want []int64
		rung bool
	}{
		{4000, []int64{1, 3, 5, 7, 9, 17}, false}, // #19 is in the prompt, #11 beyond the share
		{500, []int64{3, 9, 17}, true},
		{100, nil, true},
	} {
		d := plan(usable - base - tt.room)
		var got []int64
		for _, c := range d.Recalled {
			got = append(got, c.Seq)
		}
		if fmt.Sprint(got) != fmt.Sprint(tt.want) || (len(d.Rungs) > 0 && d.Rungs[0] == 0) != tt.rung || d.Total > usable {
			t.Errorf("room for %d: got %v, rungs %v, %d tokens; want %v", tt.room, got, d.Rungs, d.Total, tt.want)
		}
	}
}
