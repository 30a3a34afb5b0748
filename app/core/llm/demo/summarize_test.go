package demo_test

import (
	"fmt"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/tests/compare"
)

// summarize asks the model for a summary in the form of the summarizer's prompts.
func summarize(t *testing.T, previous, transcript string, tokens int) string {
	t.Helper()
	var b strings.Builder
	if previous != "" {
		fmt.Fprintf(&b, "The summary so far, which you extend:\n\n<summary>\n%s\n</summary>\n\n", previous)
	}
	if transcript != "" {
		fmt.Fprintf(&b, "What follows is a transcript.\n\n<transcript>\n%s\n</transcript>\n\n", transcript)
	}
	fmt.Fprintf(&b, "Write the summary now, at most %d tokens, in the language of the conversation.", tokens)
	res, err := llm.Collect(newModel().Stream(t.Context(), llm.Request{
		System:   []string{"You summarize conversations. Your summary takes the place of the oldest messages."},
		Messages: []llm.Message{{Role: core.RoleUser, Content: b.String()}},
	}), nil)
	if err != nil || res.Finish != core.FinishStop || len(res.ToolCalls) > 0 {
		t.Fatalf("got %q, %+v, %v, want a text that ended", res.Finish, res.ToolCalls, err)
	}
	return res.Text
}

const transcript = `[1] user: Hi!
[2] assistant: Hello! Tell me something.
[3] user: I want to plan a garden. My name is Ada.
The garden is 40 square meters.
[4] assistant: Noted.
[5] user: We decided to use raised beds instead of pots.
[6] assistant calls calculator({"expression":"4*10"})
[7] tool calculator: 40
[8] tool search (failed): error: no network
[9] user: The fence is done. Which trees fit?`

func TestSummaryCopiesSentences(t *testing.T) {
	t.Parallel()
	want := `## Facts
- Hi!
- I want to plan a garden.
- My name is Ada.
- The garden is 40 square meters.
- We decided to use raised beds instead of pots.
- 40
- error: no network
- The fence is done.`
	compare.Equal(t, "summary", want, summarize(t, "", transcript, 500))
}

func TestSummaryIsExtended(t *testing.T) {
	t.Parallel()
	first := summarize(t, "", transcript, 500)
	got := summarize(t, first, "[10] user: I live in Graz.\n[11] user: My name is Ada.", 500)
	for _, line := range strings.Split(first, "\n") {
		if !strings.Contains(got, line) {
			t.Errorf("got\n%s\nwant it to keep %q", got, line)
		}
	}
	if !strings.Contains(got, "- I live in Graz.") || strings.Count(got, "My name is Ada.") != 1 {
		t.Errorf("got\n%s\nwant the new fact, and none twice", got)
	}
	foreign := summarize(t, "**Ziel**\nEin Garten.\n\n## Fakten\n* Ada wohnt in Graz.", "[3] user: Ich möchte Rosen.", 500)
	for _, want := range []string{"- Ada wohnt in Graz.", "- Ein Garten.", "- Ich möchte Rosen."} {
		if !strings.Contains(foreign, want) {
			t.Errorf("got\n%s\nwant %q of another writer's summary", foreign, want)
		}
	}
}
