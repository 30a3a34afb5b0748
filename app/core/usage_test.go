package core_test

import (
	"encoding/json"
	"testing"

	"bobbin/app/core"
)

// What of a run's prompts came from the provider's cache is told as a share
// of all of the prompt; the numbers come back as they were.
func TestUsageJSON(t *testing.T) {
	t.Parallel()
	for want, u := range map[string]core.Usage{
		`{"input_tokens":0,"output_tokens":0}`:                                                  {},
		`{"input_tokens":90,"output_tokens":7}`:                                                 {InputTokens: 90, OutputTokens: 7},
		`{"input_tokens":3000,"output_tokens":7,"cache_read_tokens":2000,"cache_share":0.6667}`: {InputTokens: 3000, OutputTokens: 7, CacheReadTokens: 2000},
		`{"input_tokens":10,"output_tokens":0,"cache_read_tokens":10,"cache_share":1}`:          {InputTokens: 10, CacheReadTokens: 10},
		`{"input_tokens":10,"output_tokens":0,"cache_write_tokens":10}`:                         {InputTokens: 10, CacheWriteTokens: 10},
	} {
		raw, err := json.Marshal(u)
		if err != nil || string(raw) != want {
			t.Errorf("got %s, %v, want %s", raw, err, want)
		}
		var back core.Usage
		if err := json.Unmarshal(raw, &back); err != nil || back != u {
			t.Errorf("%s: got %+v back, %v, want %+v", raw, back, err, u)
		}
	}
}

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
