package compaction_test

import (
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// The price before a compaction holds when it is made: the prompt is at most that large, the
// summary costs at most that much, and what a cache keeps is the tools and the system prompt.
func TestPriceOfCompaction(t *testing.T) {
	t.Parallel()
	prices := llm.Info{Provider: "scripted", InputPrice: 3, OutputPrice: 15, CacheReadPrice: 0.3, CacheWritePrice: 3.75}
	w := newWorld(t, core.ContextSettings{}, 128_000)
	w.ruler.Restore([]core.Calibration{{Model: "answerer", Factor: 1, Samples: 100}, {Model: "writer", Factor: 1, Samples: 100}})
	for script, name := range map[*llm.Script]string{w.model: "answerer", w.writer: "writer"} {
		info := prices
		info.Name, info.Window, info.MaxOutput = name, 128_000, 8_000
		script.WithInfo(info)
	}
	w.writer.Add(notes)
	w.turns(10, 100)
	before := w.report()
	price := before.Compaction
	if price == nil || price.Turns == nil {
		t.Fatalf("got the price %+v, want one that pays off", price)
	}
	// All but the last answer was sent and is in the cache. Tools and system prompt stay there.
	tools, system := before.Sections[1].Tokens, w.count.Text("You are a tester.")+3
	if want := before.Used - w.Messages[19].TokenCount - tools - system; price.CacheLost != want {
		t.Errorf("got %d tokens of cache lost, want %d", price.CacheLost, want)
	}
	in, out := price.SummaryInput, price.SummaryOutput
	if want := int64(3*in + 15*out); price.SummaryModel != "writer" || price.SummaryCost == nil || *price.SummaryCost != want || price.CountedIn != core.CountedInDollars {
		t.Errorf("got %+v, want a summary of writer for %d", price, want)
	}
	if plan := w.plan(core.PlanPreview{}); plan.Context.Compaction == nil || plan.Context.Compaction.After != price.After {
		t.Errorf("the dry run has the price %+v, the report %+v", plan.Context.Compaction, price)
	}
	made, err := w.keeper.Summarize(t.Context(), w.scope(), w.Session.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	after := w.report()
	if price.Now != before.Used || after.Used > price.After || made.TokensBefore != in || made.TokenCount > out {
		t.Errorf("got the price %+v; the compaction took %d tokens to %d and wrote %d", price, made.TokensBefore, after.Used, made.TokenCount)
	}
}

// Where no compaction pays off, a word says why.
func TestNoPriceOfCompaction(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		turns, size int
		instruction int // words of the agent's instructions
		want        core.CompactionFault
	}{
		"empty":              {0, 0, 0, core.CompactionNothingToDo},
		"one turn":           {1, 10, 0, core.CompactionNothingToDo},
		"system is too long": {4, 200, 9_000, core.CompactionDoesNotFit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, core.ContextSettings{}, 8_192)
			for range tt.instruction {
				w.profile.SystemPrompt += " word"
			}
			w.turns(tt.turns, tt.size)
			if price := w.report().Compaction; price == nil || price.Reason != tt.want || price.Turns != nil {
				t.Errorf("got the price %+v, want %q", price, tt.want)
			}
		})
	}
}

// A summary without a model costs nothing.
func TestPriceWithoutModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.ContextSettings{Strategy: new("extractive")}, 128_000)
	w.turns(10, 100)
	if price := w.report().Compaction; price.Turns == nil || *price.Turns != 1 || price.SummaryModel != "" || price.SummaryInput != 0 || *price.SummaryCost != 0 {
		t.Errorf("got the price %+v, want one turn and no summary model", price)
	}
}
