package compaction_test

import (
	"testing"

	"bobbin/app/core"
)

// After that many average turns nothing is summarized yet, with one
// more it is, whatever the trigger; B5: that is when it says so.
func TestTurnsLeft(t *testing.T) {
	t.Parallel()
	eight, many := 8, 60
	for name, settings := range map[string]core.ContextSettings{
		"share":            {},
		"messages":         {Policy: "budget"},
		"tokens":           {Policy: "budget", MaxTokensBeforeSummary: new(5000)},
		"never below":      {Policy: "budget", MaxTokensBeforeSummary: new(900), MinRecentMessages: &eight},
		"sliding":          {Policy: "sliding"},
		"hard limit":       {Policy: "sliding", WindowMessages: &many},
		"nothing by share": {Policy: "ratio", MaxContextTokens: new(7000), TargetContextTokens: new(4000)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, settings, 16_000)
			w.writer.Add(always(notes))
			if got := w.report().TurnsLeft; got != nil {
				t.Errorf("nothing said yet: got %d turns left, want that it is not known", *got)
			}
			w.turns(2, 100)
			left := w.report().TurnsLeft
			if left == nil || *left < 1 {
				t.Fatalf("got %v turns left, want some", left)
			}
			for n := *left; n > 0; n-- {
				if r := w.report(); r.TurnsLeft == nil || *r.TurnsLeft > n || *r.TurnsLeft < n-1 || r.WillTrigger {
					t.Fatalf("got %+v turns left and will trigger %v, want %d", r.TurnsLeft, r.WillTrigger, n)
				}
				w.turns(1, 100)
			}
			if r := w.report(); *r.TurnsLeft != 0 || r.Triggers == nil {
				t.Errorf("got %d turns left, want none: %+v", *r.TurnsLeft, r.Triggers)
			}
			if summarized := w.plan(core.PlanPreview{}).Summarize; summarized != nil && summarized.When != core.WhenAhead {
				t.Error("it is summarized before it was said to be")
			}
			w.turns(1, 100)
			if summarized := w.plan(core.PlanPreview{}).Summarize; summarized == nil || summarized.When == core.WhenAhead {
				t.Error("nothing is summarized although no turn was left")
			}
		})
	}
}

// Without triggers it is the turns until the window is full.
func TestTurnsLeftWithoutTriggers(t *testing.T) {
	t.Parallel()
	for _, settings := range []core.ContextSettings{{Policy: "off"}, {Policy: "budget", AutoSummarize: new(bool)}} {
		w := newWorld(t, settings, 16_000)
		w.turns(10, 100)
		r := w.report()
		each := w.Messages[2].TokenCount + w.Messages[3].TokenCount
		if want := r.Free / (each * 11 / 10); r.TurnsLeft == nil || *r.TurnsLeft < want-2 || *r.TurnsLeft > want+2 || r.WillTrigger {
			t.Errorf("got %v turns left, want about %d", r.TurnsLeft, want)
		}
	}
}
