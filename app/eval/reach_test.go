package eval_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/eval"
	"bobbin/tests/must"
)

// found returns n quotations, of which the last one is the text.
func found(n int, text string) []string {
	quotes := make([]string, n)
	for i := range quotes {
		quotes[i] = fmt.Sprint("something else ", i)
	}
	quotes[n-1] = text
	return quotes
}

// Search is asked a fact's question, never its words, and each fact counts in the first
// place that has it.
func TestSearchIsAskedTheQuestion(t *testing.T) {
	t.Parallel()
	s := &stub{quotes: map[string][]string{
		"the key is 4711": {"the key is 4711"}, // what the fact says finds the fact: no news
		"which house?":    {"we took the blue house"},
		"how to clean?":   found(5, `run rm -rf  "X" now`),
		"who came?":       found(6, "Ann came"),
		"who left?":       found(21, "Ben left"),
		"who stayed?":     found(3, "nobody"),
	}}
	facts := []eval.Fact{
		{Kind: "fact", Text: "hello there"},
		{Kind: "fact", Text: "the Blue house", Ask: "which house?"},
		{Kind: "command", Text: `rm -rf "x"`, Ask: "how to clean?"},
		{Kind: "name", Text: "Ann", Ask: "who came?"},
		{Kind: "name", Text: "Ben", Ask: "who left?"},
		{Kind: "name", Text: "Cid", Ask: "who stayed?"},
		{Kind: "fact", Text: "the key is 4711"},
	}
	got := must.Get(replay(t, s, facts, says("hello there"), user("1"), says("one")))(t)
	want := eval.Found{
		Planted: 7, Asked: 5, Reachable: 4, Prompt: 1, Summary: 1, First5: 1, First20: 1,
		Unreachable: facts[4:], SearchAlone: eval.Ranked{First5: 2, First20: 3},
	}
	if diff := cmp.Diff(want, got.Facts); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"which house?", "how to clean?", "who came?", "who left?", "who stayed?"}, s.queries); diff != "" {
		t.Errorf("queries (-want +got):\n%s", diff)
	}
}

// An agent without search_history does not reach what it does not see.
func TestReplayWithoutSearch(t *testing.T) {
	t.Parallel()
	got, err := replay(t, &stub{unable: true, quotes: map[string][]string{"where?": {"elsewhere"}}}, []eval.Fact{{Kind: "fact", Text: "elsewhere", Ask: "where?"}}, user("1"), says("one"))
	if err != nil || got.Facts.Reachable != 0 || len(got.Facts.Unreachable) != 1 {
		t.Errorf("got %+v, %v, want it out of reach", got.Facts, err)
	}
}

// What stands in a summary, or in notes on a tool loop, is in the summary, whatever the
// role in which a prompt has it.
func TestSummaryOfEachRole(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"summary": "<conversation_summary>\nthe gray house\n</conversation_summary>",
		"notes":   "<work_notes>\nthe gray house\n</work_notes>",
	} {
		got, err := replay(t, &stub{}, []eval.Fact{{Kind: "fact", Text: "the gray house"}}, user(text), says("one"))
		if err != nil || got.Facts.Summary != 1 {
			t.Errorf("%s: got %+v, %v, want the fact in the summary", name, got.Facts, err)
		}
	}
}
