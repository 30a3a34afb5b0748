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

func TestSummaryKeepsItsLimitForManyRounds(t *testing.T) {
	t.Parallel()
	summary := ""
	for round := range 30 {
		var b strings.Builder
		for i := range 20 {
			fmt.Fprintf(&b, "[%d] user: Remark %d of round %d is about the weather over the sea. My item %d-%d is number %d.\n", round*20+i, i, round, round, i, i*7)
		}
		summary = summarize(t, summary, b.String(), 300)
		if n := len(summary) / 4; n > 300 || summary == "" {
			t.Fatalf("round %d: got about %d tokens, want at most 300", round, n)
		}
	}
	if !strings.Contains(summary, "round 29") && !strings.Contains(summary, "29-19") {
		t.Errorf("got\n%s\nwant the newest facts", summary)
	}
}

// The least informative lines go first.
func TestSummaryIsShortened(t *testing.T) {
	t.Parallel()
	got := summarize(t, "- My name is Ada.\n- The weather is fine.\n- So it is.", "[4] user: The sun shines again today.", 30)
	if !strings.Contains(got, "My name is Ada.") || strings.Contains(got, "The weather is fine.") {
		t.Errorf("got %q, want the name and not the weather", got)
	}
}

// A summary that is extended says something new, even if all that it had is worth more.
func TestSummarySaysSomethingNew(t *testing.T) {
	t.Parallel()
	previous := "- My name is Ada Byron.\n- I live in Graz with my 3 cats.\n- Our house has 5 rooms in Linz Street."
	got := summarize(t, previous, "[4] user: My name is Ada Byron. The weather was terrible yesterday. So be it.", 40)
	compare.Contains(t, "got: want the weather in it", "The weather was terrible yesterday.", got)
}

func TestSummaryInItsOwnLanguage(t *testing.T) {
	t.Parallel()
	got := summarize(t, "", "[1] user: 私の名前は愛です。京都に住んでいます。", 100)
	compare.Contains(t, "got: want the user's own words", "京都に住んでいます。", got)
}

func FuzzSummarize(f *testing.F) {
	f.Add("## Facts\n- x", transcript, 100)
	f.Add("", "[1] user: \n\n[2] tool x (failed): error", 1)
	f.Fuzz(func(t *testing.T, previous, transcript string, tokens int) {
		if summarize(t, previous, transcript, tokens) == "" && tokens > 20 {
			t.Error("got an empty summary")
		}
	})
}
