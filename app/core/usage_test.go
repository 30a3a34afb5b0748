package core_test

import (
	"testing"

	"bobbin/app/core"
)

// Numbers that cannot be true are corrected or left out; a share is at most all.
func TestUsageCorrected(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reported, want core.Usage
		share          float64
	}{
		{core.Usage{InputTokens: 100, OutputTokens: 20, ReasoningTokens: 5, CacheReadTokens: 80}, core.Usage{InputTokens: 100, OutputTokens: 20, ReasoningTokens: 5, CacheReadTokens: 80}, 0.8},
		{core.Usage{InputTokens: 150, CacheReadTokens: 850}, core.Usage{InputTokens: 1000, CacheReadTokens: 850}, 0.85},
		{core.Usage{InputTokens: 10, CacheReadTokens: 50, CacheWriteTokens: 40}, core.Usage{InputTokens: 100, CacheReadTokens: 50, CacheWriteTokens: 40}, 0.5},
		{core.Usage{InputTokens: 10, OutputTokens: 5, ReasoningTokens: 500}, core.Usage{InputTokens: 10, OutputTokens: 505, ReasoningTokens: 500}, 0},
		{core.Usage{InputTokens: -1, OutputTokens: 1 << 40, CacheReadTokens: -7}, core.Usage{}, 0},
	} {
		if got := c.reported.Corrected(); got != c.want || got.CacheShare() != c.share {
			t.Errorf("%+v: got %+v, share %g, want %+v, %g", c.reported, got, got.CacheShare(), c.want, c.share)
		}
	}
}
