package compaction

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// Figures by hand, for a prompt of 10,000 tokens that becomes 4,000. Without a compaction the first
// turn reads 9,000 tokens from the cache and writes 1,000; with one it reads 1,000 and writes 3,000.
func TestPayoff(t *testing.T) {
	t.Parallel()
	prices := llm.Info{InputPrice: 3, OutputPrice: 15, CacheReadPrice: 0.3, CacheWritePrice: 3.75}
	noCache := llm.Info{InputPrice: 3, OutputPrice: 15}
	dollars := func(micro int64) *int64 { return &micro }
	for name, tt := range map[string]struct {
		after, lost, in, out int
		cost                 *int64
		model                llm.Info
		turns                int // 0 = never
		counted              core.CountedIn
		reason               core.CompactionFault
	}{
		// Without: 9,000·0.3 + 1,000·3.75 = 6,450, then 3,000 a turn. With: 30,000 + 1,000·0.3 +
		// 3,000·3.75 = 41,550, then 1,200 a turn. 35,100 more, 1,800 saved a turn: 19.5 turns.
		"cached": {4_000, 8_000, 8_000, 400, dollars(30_000), prices, 21, core.CountedInDollars, ""},
		// 5,100 more: 2.8 turns.
		"a summary without a model": {4_000, 8_000, 0, 0, dollars(0), prices, 4, core.CountedInDollars, ""},
		// Nothing was cached: 6,000·3.75 saved in the first turn.
		"nothing is cached yet": {4_000, 0, 0, 0, dollars(0), prices, 1, core.CountedInDollars, ""},
		// 18,000 saved a turn, 30,000 for the summary.
		"no prices of a cache": {4_000, 8_000, 8_000, 400, dollars(30_000), noCache, 2, core.CountedInDollars, ""},
		"exactly two turns":    {4_000, 8_000, 8_000, 400, dollars(36_000), noCache, 2, core.CountedInDollars, ""},
		"a little more":        {4_000, 8_000, 8_000, 400, dollars(36_001), noCache, 3, core.CountedInDollars, ""},
		// 8,400 tokens for the summary, 6,000 saved a turn.
		"no price of the summary": {4_000, 8_000, 8_000, 400, nil, prices, 2, core.CountedInTokens, ""},
		"no price of the model":   {4_000, 8_000, 8_000, 400, dollars(30_000), llm.Info{}, 2, core.CountedInTokens, ""},
		"free of charge":          {4_000, 8_000, 17_600, 401, dollars(0), llm.Info{}, 4, core.CountedInTokens, ""},
		"not smaller":             {10_000, 8_000, 8_000, 400, dollars(30_000), prices, 0, core.CountedInTokens, core.CompactionNotSmaller},
		"larger":                  {10_500, 8_000, 8_000, 400, dollars(30_000), prices, 0, core.CountedInTokens, core.CompactionNotSmaller},
		"one token smaller":       {9_999, 8_000, 8_000, 400, nil, prices, 8_400, core.CountedInTokens, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			price := core.CompactionPrice{
				Now: 10_000, After: tt.after, CacheLost: tt.lost, SummaryInput: tt.in, SummaryOutput: tt.out, SummaryCost: tt.cost, CountedIn: core.CountedInTokens,
			}
			want := price
			want.CountedIn, want.Reason = tt.counted, tt.reason
			if tt.turns > 0 {
				want.Turns = &tt.turns
			}
			if diff := cmp.Diff(want, withPayoff(price, tt.model)); diff != "" {
				t.Errorf("got a different price (-want +got):\n%s", diff)
			}
		})
	}
}
