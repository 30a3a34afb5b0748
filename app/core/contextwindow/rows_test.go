package contextwindow_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	cw "bobbin/app/core/contextwindow"
)

// Failures of other products that the plan rules out, numbered; number 14 is in budget_test.go.

// A floor above the trigger is one attempt, then the typed
// error; never a compaction again and again.
func TestRow01FloorAboveTheTrigger(t *testing.T) {
	t.Parallel()
	t.Run("does not fit", func(t *testing.T) {
		t.Parallel()
		in := new(talk).turns(5, 200).user(100).during(preset(t, "window"), 8_192, 11)
		in.System = 6_100
		orders := 0
		for range 5 {
			d, state := cw.Plan(in)
			if d.Summarize != nil {
				orders++
				in = in.After(*d.Summarize, 100, 10)
				in.State = state
				continue
			}
			if d.Floor == nil || d.Floor.Culprit != "system prompt" || !errors.Is(d.Floor, core.ErrContextFloor) {
				t.Fatalf("got %+v, want the typed error", d.Floor)
			}
			in.Summarized = false
		}
		if orders != 1 {
			t.Errorf("got %d attempts, want 1", orders)
		}
	})
	t.Run("fits above the trigger", func(t *testing.T) {
		t.Parallel()
		in := new(talk).turns(5, 200).user(100).during(preset(t, "window", func(p *cw.Policy) { p.UsageThreshold = 0.5 }), 8_192, 11)
		in.System = 5_000 // the trigger is 4096
		orders := 0
		for range 10 {
			d, state := cw.Plan(in)
			if d.Floor != nil {
				t.Fatal(d.Floor)
			}
			in.Summarized = false
			if d.Summarize != nil {
				orders++
				in = in.After(*d.Summarize, 100, 10)
			}
			in.State = state
		}
		if orders != 1 {
			t.Errorf("got %d attempts, want 1", orders)
		}
	})
}

// Over all cuts that a policy can make of a conversation with
// parallel calls and an open one, no pair is split.
func TestRow02NoCutSplitsAPair(t *testing.T) {
	t.Parallel()
	c := new(talk)
	for range 4 {
		c.user(100).round(150, 90, 30).round(300).answer(100).user(60).round(100, 100).answer(40)
	}
	c.log[len(c.log)-2].ToolCallID = "lost" // its call stays open
	c.user(50).round(60, 60)
	start := int64(len(c.log) - 3)
	cuts := map[int64]bool{}
	for keep := range 50 {
		for _, window := range []int{1_000, 1_500, 2_500, 4_000, 6_000, 128_000} {
			for _, name := range cw.PresetNames() {
				in := c.during(preset(t, name, func(p *cw.Policy) { p.MinRecent = keep }), window, start)
				in.Force = true
				d, state := cw.Plan(in)
				if d.Summarize != nil {
					cuts[d.Summarize.ThroughSeq] = true
					in = in.After(*d.Summarize, 10, 10)
					in.State, in.NoSummary = state, true
					d, _ = cw.Plan(in)
				}
				if d.Floor == nil {
					fits(t, c, in, d, d.Budget.Usable)
				}
			}
		}
	}
	if len(cuts) < 8 {
		t.Errorf("got %d different cuts, want one after each turn", len(cuts))
	}
}

// The latest user message is there, verbatim, whatever had
// to go for it.
func TestRow09LatestUserMessageVerbatim(t *testing.T) {
	t.Parallel()
	for _, name := range cw.PresetNames() {
		c := new(talk).turns(6, 2_000).user(4_000).round(900).round(900).round(900)
		in := c.during(preset(t, name), 8_192, 13)
		in.NoSummary = true
		d, _ := cw.Plan(in)
		p := fits(t, c, in, d, d.Budget.Usable)
		if got := p.Messages[0]; got.ID != c.log[12].ID || got.Content != c.log[12].Content {
			t.Errorf("%s: the prompt begins with %s, %.60q", name, got.Place, got.Content)
		}
	}
}

// W12: in mid-session from a 128K to an 8K model, in any policy:
// the next prompt fits, and back on the large one all that is left is there again.
func TestRow15SwitchToASmallerWindow(t *testing.T) {
	t.Parallel()
	for _, name := range cw.PresetNames() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := new(talk)
			for range 6 {
				c.turns(1, 1_500).user(200).round(2_000, 500).answer(300)
			}
			c.user(100)
			in := c.during(preset(t, name, func(p *cw.Policy) { p.MaxMessages, p.WindowMessages = 0, 0 }), 128_000, int64(len(c.log)))
			d, state := cw.Plan(in)
			whole := fits(t, c, in, d, d.Budget.Trigger)
			if len(whole.Messages) != len(c.log) || d.Compacted {
				t.Fatalf("on 128K: got %d messages, compacted %v, want all %d as they are", len(whole.Messages), d.Compacted, len(c.log))
			}

			in.Model.Window, in.State = 8_192, state
			d, state = cw.Plan(in)
			if d.Summarize != nil {
				in = in.After(*d.Summarize, d.Summarize.Limit, d.Summarize.Messages)
				in.State = state
				d, state = cw.Plan(in)
			}
			fits(t, c, in, d, d.Budget.Landing)
			if !d.Compacted {
				t.Error("on 8K: nothing is to be stored")
			}

			in.Model.Window, in.State, in.Summarized = 128_000, state, false
			d, again := cw.Plan(in)
			p := fits(t, c, in, d, d.Budget.Trigger)
			if want := len(in.History) + 1; len(p.Messages) != want || places(d.History, d.Run)[core.PlaceVerbatim] != want {
				t.Errorf("back on 128K: got %v, want all %d verbatim", places(d.History, d.Run), want)
			}
			if diff := cmp.Diff(state, again); diff != "" || d.Compacted {
				t.Errorf("back on 128K: the state changed, so that the small model's prompt does:\n%s", diff)
			}
		})
	}
}

// A summary of the larger model does not fill the smaller one.
func TestRow15SummaryOfALargerModel(t *testing.T) {
	t.Parallel()
	c := new(talk).turns(3, 100).user(100)
	in := c.during(preset(t, "off"), 8_192, 7)
	in.Summary = cw.ActiveSummary{Version: 4, Tokens: 7_900, Messages: 300}
	d, _ := cw.Plan(in)
	if d.Floor != nil || d.SummaryCut == 0 || d.Total > d.Budget.Landing {
		t.Errorf("got total %d, cut %d, floor %v", d.Total, d.SummaryCut, d.Floor)
	}
	if got := places(d.History, d.Run)[core.PlaceVerbatim]; got != 7 {
		t.Errorf("got %d messages verbatim, want all 7", got)
	}
}

// A tool result of 100,000 tokens inside a loop; the question
// stays whole and the newest round is there.
func TestRow19HugeToolResultInTheLoop(t *testing.T) {
	t.Parallel()
	for _, window := range []int{8_192, 32_768, 128_000} {
		t.Run(fmt.Sprint(window), func(t *testing.T) {
			t.Parallel()
			c := new(talk).turns(2, 100).user(100).round(500).round(100_000)
			in := c.during(preset(t, "window"), window, 5)
			in.NoSummary = true
			d, state := cw.Plan(in)
			p := fits(t, c, in, d, d.Budget.Usable)
			last := p.Messages[len(p.Messages)-1]
			if window == 128_000 { // it fits
				if d.Compacted || last.Place != core.PlaceVerbatim {
					t.Errorf("got it %s, reasons %q, want it as it is", last.Place, d.Reasons)
				}
				return
			}
			if last.Place != core.PlaceShortened || !strings.Contains(last.Content, string(last.ID)) {
				t.Errorf("the newest result is %s", last.Place)
			}
			if d.Run[0].Place != core.PlaceVerbatim || d.Total < d.Budget.Landing/2 {
				t.Errorf("question %s, %d tokens of %d are used", d.Run[0].Place, d.Total, d.Budget.Landing)
			}
			// and the loop continues without another compaction
			c.round(200)
			in.State, in.Run = state, c.items(5)
			if d, _ = cw.Plan(in); d.Compacted {
				t.Errorf("the next round compacts again at %d", d.Total)
			}
		})
	}
}

// The cursor never passes the run's message, nor a message that
// is not in the order; with the cursor at the end there is nothing to summarize.
func TestRow20CursorStaysBehindWhatWasRead(t *testing.T) {
	t.Parallel()
	c := new(talk).turns(3, 1_000).user(2_000).round(4_000).answer(50).user(3_000).round(900, 900).round(900)
	in := c.during(preset(t, "window"), 8_192, 11)
	for round := range 4 {
		d, state := cw.Plan(in)
		if d.Summarize == nil {
			if round == 0 {
				t.Fatal("got no order, want one")
			}
			break
		}
		if d.Summarize.ThroughSeq >= 11 || d.Summarize.FromSeq != in.Summary.ThroughSeq+1 {
			t.Fatalf("got %+v after #%d, want less than #11", d.Summarize, in.Summary.ThroughSeq)
		}
		in = in.After(*d.Summarize, 200, int(d.Summarize.ThroughSeq))
		in.State = state
	}
	in.History, in.Force = nil, true
	if d, _ := cw.Plan(in); d.Summarize != nil {
		t.Errorf("cursor at the end: got %+v, want no order", d.Summarize)
	}
}
