package term_test

import (
	"io"
	"testing"
	"time"

	"bobbin/app/cli/term"
	"bobbin/app/core"
)

// /context shows what a summary now costs and when it pays off, or why it does not.
func TestDrawPriceOfCompaction(t *testing.T) {
	t.Parallel()
	three, cost := 3, int64(12_500)
	for want, price := range map[string]core.CompactionPrice{
		"a summary now: 5,310 → 2,204 tokens per turn, up to 4,790 tokens of cache lost, it costs up to 4,347 tokens ($0.0125), pays off after 3 turns (in dollars)": {
			Now: 5_310, After: 2_204, CacheLost: 4_790, SummaryInput: 3_620, SummaryOutput: 727, SummaryModel: "writer", SummaryCost: &cost, Turns: &three, CountedIn: core.CountedInDollars,
		},
		"a summary now: 5,310 → 2,204 tokens per turn, pays off after 3 turns (in tokens)": {Now: 5_310, After: 2_204, Turns: &three, CountedIn: core.CountedInTokens},
		"a summary now: the prompt would not be smaller":                                   {Now: 100, After: 100, Reason: core.CompactionNotSmaller},
		"a summary now: there is nothing to summarize":                                     {Reason: core.CompactionNothingToDo},
		"a summary now: the prompt would not fit":                                          {Reason: core.CompactionDoesNotFit},
	} {
		r := report()
		r.Compaction = &price
		drawn(t, func(w io.Writer, width int) { term.DrawContext(w, r, time.Now(), width) }, want)
	}
}
