package llm_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

func TestCollectPutsInterleavedPiecesTogether(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	pieces := []llm.Delta{
		{Text: "a", Reasoning: "r"},
		{ToolCall: &llm.ToolCallDelta{Index: 1, ID: "b", Name: "two", Arguments: `{"y"`}},
		{ToolCall: &llm.ToolCallDelta{Index: 0, ID: "a", Name: "one"}},
		{ToolCall: &llm.ToolCallDelta{Index: 1, Arguments: `:2}`, Signature: "s"}},
		{Part: &core.Part{Type: "reasoning", Text: "r", Signature: "s"}},
		{ToolCall: &llm.ToolCallDelta{Index: 0, Arguments: "{}"}},
		{Text: "b", Usage: &core.Usage{InputTokens: 1}, Finish: core.FinishToolCalls},
	}
	seen := 0
	got, err := llm.Collect(func(yield func(llm.Delta, error) bool) {
		for _, d := range pieces {
			if !yield(d, nil) {
				return
			}
		}
		yield(llm.Delta{}, boom)
	}, func(llm.Delta) { seen++ })
	if !errors.Is(err, boom) || seen != len(pieces) {
		t.Errorf("got %v after %d deltas, want boom after %d", err, seen, len(pieces))
	}
	want := llm.Response{
		Text: "ab", Reasoning: "r", Parts: []core.Part{{Type: "reasoning", Text: "r", Signature: "s", Offset: 1, Calls: 2}}, Usage: &core.Usage{InputTokens: 1}, Finish: core.FinishToolCalls,
		ToolCalls: []core.ToolCall{
			{ID: "b", Name: "two", Arguments: `{"y":2}`, Signature: "s"},
			{ID: "a", Name: "one", Arguments: "{}"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("response (-want +got):\n%s", diff)
	}
}
