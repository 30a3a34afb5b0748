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
