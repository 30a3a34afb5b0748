package demo_test

import (
	"fmt"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/tests/compare"
	"bobbin/tests/must"
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
	must.True(t, err == nil && res.Finish == core.FinishStop && len(res.ToolCalls) == 0, "got %q, %+v, %v, want a text that ended", res.Finish, res.ToolCalls, err)
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
