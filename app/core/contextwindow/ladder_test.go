package contextwindow_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	cw "bobbin/app/core/contextwindow"
	"bobbin/tests/compare"
)

// The ladder rung by rung, each by an example. Rung 0 is ingestion's, rung 5 the
// summarizer's: the plan only orders it.

// bare counts a prompt that is nothing but its messages.
func bare(c *talk) int { return testSystem + cw.ListOverhead + c.tokens() }

// Rung 1: old tool results are masked if that frees 20 % of what is needed, and
// never those of the newest atom.
func TestRung1MasksOldToolResults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		result int // of the old round
		masked int64
	}{
		{"frees 20 %", 64 + 462, 2}, // 6150 − 3840 = 2310 are needed
		{"frees less", 64 + 461, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := new(talk).user(10).round(tt.result).answer(10).user(10).round(400).answer(10).user(10)
			c.log[0].TokenCount += 6_150 - bare(c)
			in := c.during(preset(t, "window", manual), 8_192, 9)
			d, state := cw.Plan(in)
			got := places(d.History, d.Run)[core.PlaceMasked]
			if (got > 0) != (tt.masked > 0) || got > 1 || slices.Contains(d.Rungs, 1) != (got > 0) {
				t.Fatalf("got %d masked, rungs %v, reasons %q", got, d.Rungs, d.Reasons)
			}
			if got > 0 && (d.History[2].Place != core.PlaceMasked || d.History[6].Place != core.PlaceVerbatim || state.MaskedThrough < 3 || state.MaskedThrough > 5) {
				t.Errorf("got %+v, state %s, want #3 masked and #7 verbatim", d.History, state.Encode())
			}
		})
	}
}

// Rung 2: the oldest turns go into the summary, as few as bring the prompt to the
// landing point even with a summary of the largest size. W6: the order names the
// range and what it replaces, the old summary included.
func TestRung2Summarizes(t *testing.T) {
	t.Parallel()
	c := new(talk).turns(10, 300).user(300)
	in := c.during(preset(t, "window"), 8_192, 21)
	in.Summary = core.SummaryVersion{Version: 3, ThroughSeq: 0, Tokens: 500, Messages: 40}
	d, _ := cw.Plan(in)
	if d.Summarize == nil {
		t.Fatalf("got no order at %d", d.Total)
	}
	// 23 + 800 + 96 + 300 leave 2,621 for the tail: 8 messages, 12 are covered.
	want := cw.Order{
		Kind: core.SummaryRolling, FromID: c.log[0].ID, FromSeq: 1, ThroughID: c.log[11].ID, ThroughSeq: 12, OrderedSeq: 12,
		Messages: 12, Tokens: 12*300 + 500, Limit: 800, Trigger: "share", Rung: 2, MadeFor: 6144,
	}
	compare.Equal(t, "order", want, *d.Summarize)
	d, _ = cw.Plan(in.After(*d.Summarize, 800, 52))
	fits(t, c, in, d, d.Budget.Landing)
	if len(d.History) != 8 || !d.Compacted {
		t.Errorf("after: got %d of the history, compacted %v, want 8, true", len(d.History), d.Compacted)
	}
	in.Policy.UsageThreshold = 0
	d, _ = cw.Plan(in)
	compare.True(t, d.Summarize == nil, "a policy without triggers ordered %+v", d.Summarize)
}

// Rung 3: keep-at-least is soft; below it the decision says so.
func TestRung3BelowKeepAtLeast(t *testing.T) {
	t.Parallel()
	c := new(talk).turns(5, 700).user(300)
	in := c.during(preset(t, "sliding"), 8_192, 11)
	d, _ := cw.Plan(in)
	if d.Summarize == nil || d.Summarize.Rung != 3 || d.Summarize.Messages != 6 {
		t.Fatalf("got %+v, want rung 3 over 6 messages", d.Summarize)
	}
	want := []string{"fewer than 10 recent messages are kept: more do not fit"}
	compare.Equal(t, "reasons", want, d.Reasons)
}

// Rung 4: after a switch to a smaller model an old summary over its share is cut in
// the prompt, at a sentence, its oldest content first; a new summary and a larger model bring it back. R2.
func TestRung4CutsASummaryOverItsShare(t *testing.T) {
	t.Parallel()
	c := new(talk).user(4_600)
	in := c.during(preset(t, "window"), 8_192, 1)
	in.Summary = core.SummaryVersion{Version: 1, Tokens: 2_000, Messages: 9}
	in.NoSummary = true
	d, state := cw.Plan(in)
	if d.SummaryCut != 800 || state.SummaryCut != 800 || !slices.Contains(d.Rungs, 4) {
		t.Fatalf("got a cut at %d, rungs %v, want 800, 4", d.SummaryCut, d.Rungs)
	}
	parts := c.parts()
	parts.Summary = "## Goal\nShip it.\n\n## Facts\nFIRST comes this. " + strings.Repeat("Then that was so. ", 430) + "LAST comes this."
	p := cw.Assemble(parts, d, quarter{})
	if s := p.System[1]; strings.Contains(s, "FIRST") || !strings.Contains(s, "\n## Goal\nShip it.\n\n## Facts\n… Then that was so. Then") || !strings.Contains(s, "so. LAST comes this.\n") ||
		!strings.Contains(s, "oldest part of these notes is left out") {
		t.Errorf("got %.120q…, want the oldest sentences cut, visibly, and the goal kept", s)
	}
	if got := (quarter{}).Text(p.System[1]); got > 800+96 {
		t.Errorf("the block has %d tokens, want at most 896", got)
	}

	in.State, in.Model.Window = state, 128_000
	if d, _ = cw.Plan(in); d.SummaryCut != 0 {
		t.Errorf("on a larger model: got a cut at %d, want the whole summary", d.SummaryCut)
	}
	in.Model.Window, in.Summarized = 8_192, true
	in.Summary = core.SummaryVersion{Version: 2, Tokens: 700, Messages: 9}
	in.State.SummaryCut = 16
	if d, state = cw.Plan(in); d.SummaryCut != 0 || state.SummaryCut != 0 {
		t.Errorf("a new summary: got cuts at %d, %d, want it whole", d.SummaryCut, state.SummaryCut)
	}
}

// Rung 6, W12: one message larger than the budget is shortened in the prompt only,
// visibly. All of the rest is gone by then.
func TestRung6ShortensTheUsersMessage(t *testing.T) {
	t.Parallel()
	c := new(talk).turns(3, 100).user(50_000)
	before := c.log[6]
	in := c.during(preset(t, "off"), 8_192, 7)
	d, state := cw.Plan(in)
	p := fits(t, c, in, d, d.Budget.Usable)
	last := p.Messages[len(p.Messages)-1]
	if last.ID != before.ID || last.Place != core.PlaceShortened || !strings.Contains(last.Content, "shortened from 50000 tokens; the whole text is message "+string(before.ID)) {
		t.Errorf("got %s %s %.200q", last.ID, last.Place, last.Content)
	}
	if got := (quarter{}).Text(last.Content); got < 5_000 {
		t.Errorf("the message keeps %d tokens, want most of the 6144", got)
	}
	if !strings.HasPrefix(last.Content, before.Content[:1_000]) || !strings.HasSuffix(last.Content, before.Content[len(before.Content)-1_000:]) {
		t.Error("want its head and its tail")
	}
	if diff := cmp.Diff(before, c.log[6]); diff != "" || state.Shortened[before.ID] == 0 {
		t.Errorf("the message itself changed, or the state %s does not know it:\n%s", state.Encode(), diff)
	}
}

// Rung 6: a question that alone exceeds the budget leaves half of the landing point
// to the tool rounds of its run; it is whole again as soon as it fits.
func TestRung6SharesWithTheRounds(t *testing.T) {
	t.Parallel()
	c := new(talk).user(50_000).round(3_000).round(3_000)
	in := c.during(preset(t, "window"), 8_192, 1)
	d, state := cw.Plan(in)
	fits(t, c, in, d, d.Budget.Usable)
	if newest := d.Run[4].Size; d.Run[0].Size < 1_500 || newest < 1_000 {
		t.Errorf("got %d tokens of the question and %d of the newest result, want a share for both", d.Run[0].Size, newest)
	}

	in.Run = append(c.items(1)[:1:1], c.items(4)...)
	in.Run[0].Tokens, in.Run[2].Tokens, in.State = 4_000, 6_000, state
	if d, _ = cw.Plan(in); !d.Compacted || d.Run[0].Place != core.PlaceVerbatim {
		t.Errorf("a question that fits: got it %s at %d tokens, want it verbatim", d.Run[0].Place, d.Total)
	}
}

// Rung 6: the largest messages of the history are shortened before any is left out.
func TestRung6ShortensTheHistory(t *testing.T) {
	t.Parallel()
	c := new(talk).turns(2, 200).user(100).answer(9_000).turns(2, 200).user(100)
	in := c.during(preset(t, "off"), 8_192, 11)
	d, _ := cw.Plan(in)
	fits(t, c, in, d, d.Budget.Landing)
	want := map[core.Placement]int{core.PlaceVerbatim: 10, core.PlaceShortened: 1}
	if diff := cmp.Diff(want, places(d.History, d.Run)); diff != "" || !slices.Equal(d.Rungs, []int{6}) {
		t.Errorf("rungs %v, places (-want +got):\n%s", d.Rungs, diff)
	}
	if got := d.History[5].Limit; got != 512-32 { // landing / 8
		t.Errorf("got %d, want 480", got)
	}
}

// Rung 7: the oldest turns are left out, with a marker that names them; whole
// turns, from the oldest, down to the landing point and no further.
func TestRung7LeavesOutTheOldest(t *testing.T) {
	t.Parallel()
	c := new(talk).turns(20, 200).user(200)
	in := c.during(preset(t, "off"), 8_192, 41)
	d, state := cw.Plan(in)
	p := fits(t, c, in, d, d.Budget.Landing)
	n := places(d.History)[core.PlaceLeftOut]
	if n%2 != 0 || d.Total < d.Budget.Landing-400 || d.History[n-1].Place != core.PlaceLeftOut {
		t.Errorf("got %d left out, %d of %d tokens, want whole turns and no more than needed", n, d.Total, d.Budget.Landing)
	}
	compare.Equal(t, "left out", []cw.SeqRange{{From: 1, Through: int64(n)}}, state.LeftOut)
	compare.Equal(t, "p.System[1]", "[24 messages are left out here because they do not fit: #1–#24. They are kept in the conversation.]", p.System[1])
	compare.Equal(t, "the first message is", c.log[n].ID, p.Messages[0].ID)
}

// What does not fit gives one reason, however many messages were shortened before they were left out. A
// prompt that waits for no summary shortens none: its cut stays where it is (C7).
func TestRung7GivesOneReason(t *testing.T) {
	t.Parallel()
	c := new(talk).turns(60, 600).user(200)
	for _, once := range []string{"", "this prompt does not wait"} {
		in := c.during(preset(t, "off"), 8_192, 121)
		in.Once = once
		d, _ := cw.Plan(in)
		got := places(d.History, d.Run)
		want, shortened := []string{once}, 0
		if shortened = got[core.PlaceShortened]; once == "" {
			want = []string{"the oldest messages are left out of the prompt: they do not fit", fmt.Sprintf("messages that are shortened in the prompt: %d, most of all #115, from 600 to 480 tokens", shortened)}
		}
		compare.Equal(t, "reasons", want, d.Reasons)
		if got[core.PlaceLeftOut] < 100 || shortened == 0 {
			t.Errorf("once %q: got places %v", once, got)
		}
	}
}

// Rung 7 in a run: its oldest tool rounds go down to the landing point, so that
// the next round does not start it again; the newest round stays.
func TestRung7LeavesOutOldRounds(t *testing.T) {
	t.Parallel()
	c := new(talk).user(100)
	for range 200 {
		c.round(60)
	}
	in := c.during(preset(t, "off"), 8_192, 1)
	d, _ := cw.Plan(in)
	fits(t, c, in, d, d.Budget.Landing)
	last := d.Run[len(d.Run)-1]
	if d.Run[0].Place != core.PlaceVerbatim || last.Place != core.PlaceVerbatim || d.Run[1].Place != core.PlaceLeftOut {
		t.Errorf("got %v, want the question and the newest round whole", places(d.Run))
	}
}

// Rung 8: the typed error names the culprit before any call, and leaves the state
// as it was.
func TestRung8NamesTheCulprit(t *testing.T) {
	t.Parallel()
	tests := []struct {
		culprit string
		change  func(c *talk, in *cw.Input)
	}{
		{"system prompt", func(_ *talk, in *cw.Input) { in.System = 7_000 }},
		{"tool definitions", func(_ *talk, in *cw.Input) { in.Tools = 7_000 }},
		{"pinned messages", func(c *talk, in *cw.Input) { in.History = c.pin(4).items(1)[:6] }}, // 6,500 tokens
		{"pinned messages", func(c *talk, in *cw.Input) { in.Pinned = c.pin(4).items(4)[:1] }},
		{"pinned messages", func(c *talk, in *cw.Input) { in.Run = c.pin(7).items(7) }}, // the question itself
		{"message", func(_ *talk, in *cw.Input) { in.Cap = 60 }},
	}
	for _, tt := range tests {
		t.Run(tt.culprit, func(t *testing.T) {
			t.Parallel()
			c := new(talk).turns(1, 100).user(100).answer(6_500).turns(1, 100).user(6_500)
			in := c.during(preset(t, "off"), 8_192, 7)
			in.State = cw.PromptState{LeftOut: []cw.SeqRange{{From: 1, Through: 2}}}
			tt.change(c, &in)
			d, state := cw.Plan(in)
			if d.Floor == nil || d.Floor.Culprit != tt.culprit || !errors.Is(d.Floor, core.ErrContextFloor) || !slices.Contains(d.Rungs, 8) {
				t.Fatalf("got %v at %d tokens, want %s", d.Floor, d.Total, tt.culprit)
			}
			if d.Floor.Floor <= d.Floor.Usable || !strings.Contains(d.Floor.Error(), tt.culprit) {
				t.Errorf("got %v, want the numbers and the culprit", d.Floor)
			}
			if diff := cmp.Diff(in.State, state); diff != "" || d.Compacted {
				t.Errorf("compacted %v, state (-want +got):\n%s", d.Compacted, diff)
			}
		})
	}
}
