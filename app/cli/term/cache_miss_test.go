package term_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/cli/term"
	"bobbin/app/core"
)

// A run's view says what differed for each cache miss, and why.
func TestDescribeMisses(t *testing.T) {
	t.Parallel()
	report, err := json.Marshal(core.ContextReport{CacheMisses: []core.CacheMiss{
		{Call: 1, Part: core.PromptTools, Reason: core.CacheConfiguration},
		{Call: 2, Part: core.PromptOfMessage, Index: 4, MessageID: "m", Seq: 9, Reason: core.CacheCompaction},
		{Call: 3, Part: core.PromptOfMessage, Index: 17, Within: 16, Reason: core.CacheMessages},
		{Call: 4, Part: core.PromptSame, Reason: core.CacheExpired},
		{Call: 5, Part: core.PromptSystem, Reason: core.CacheConfiguration, Provider: "system_changed (cache_missed_input_tokens: 90)"},
		{Call: 6, Part: core.PromptSame, Reason: core.CacheReported, Provider: "\x1b[31munavailable"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`model call 1: the part "tools" differs (configuration)`,
		"model call 2: message 4 of the prompt differs, #9 (compaction)",
		"model call 3: one of the messages 17 to 32 of the prompt differs (messages)",
		"model call 4: the prompt is the same so far, the provider no longer had all of it (expired)",
		`model call 5: the part "system" differs (configuration), the provider says system_changed (cache_missed_input_tokens: 90)`,
		"model call 6: the prompt is the same so far, as far as Bobbin compares it (reported), the provider says [31munavailable",
	}
	if diff := cmp.Diff(want, term.DescribeMisses(report)); diff != "" {
		t.Errorf("got other lines (-want +got):\n%s", diff)
	}
	for _, none := range []string{"", "{}", "{"} {
		if got := term.DescribeMisses(json.RawMessage(none)); got != nil {
			t.Errorf("%q: got %q, want no lines", none, got)
		}
	}
}
