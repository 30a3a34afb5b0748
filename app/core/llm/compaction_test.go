package llm_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/tests/llmtest"
)

func TestSplitCompaction(t *testing.T) {
	t.Parallel()
	compaction := core.Part{Type: core.PartCompaction, Text: "so far", Signature: "s"}
	first := llm.Message{Role: core.RoleUser, Parts: []core.Part{compaction}}
	question := llm.Message{Role: core.RoleUser, Content: "hi"}
	beside, answered, two := first, first, first
	beside.Content = "hi"
	answered.Role = core.RoleAssistant
	two.Parts = []core.Part{compaction, compaction}
	for name, tt := range map[string]struct {
		messages []llm.Message
		found    bool
	}{
		"first":           {[]llm.Message{first, question}, true},
		"alone":           {[]llm.Message{first}, true},
		"later":           {[]llm.Message{question, first}, false},
		"beside a text":   {[]llm.Message{beside, question}, false},
		"of an assistant": {[]llm.Message{answered, question}, false},
		"two":             {[]llm.Message{two, question}, false},
		"a thought":       {[]llm.Message{{Role: core.RoleUser, Parts: []core.Part{{Type: core.PartReasoning}}}}, false},
		"no message":      {nil, false},
	} {
		got, rest := llm.Request{Messages: tt.messages}.SplitCompaction()
		want := tt.messages
		if tt.found {
			want = want[1:]
		}
		if (got != nil) != tt.found || len(rest) != len(want) {
			t.Errorf("%s: got %v and %d messages, want found = %v and %d", name, got, len(rest), tt.found, len(want))
		}
	}
}

// A compaction comes through what is around a model.
func TestCompactionIsCollected(t *testing.T) {
	t.Parallel()
	want := core.Part{Type: core.PartCompaction, Text: "so far", Signature: "s", Origin: "p/m"}
	script := llmtest.Scripted(llmtest.Step{Compaction: &want, Usage: &core.Usage{InputTokens: 7}})
	model := (&llm.Servers{}).Share(llm.WithRetry(script, llm.Backoff{}), llm.Entry{BaseURL: "http://one.test", Slots: 1})
	res, err := llm.Collect(model.Stream(t.Context(), llm.Request{Compact: true, CompactInstructions: "briefly"}), nil)
	if err != nil || res.Compaction == nil || res.Finish != core.FinishStop || res.Usage.InputTokens != 7 {
		t.Fatalf("got %+v, %v", res, err)
	}
	if diff := cmp.Diff(want, *res.Compaction); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := script.Requests()[0]; !got.Compact || got.CompactInstructions != "briefly" {
		t.Errorf("the model got %+v", got)
	}
}
