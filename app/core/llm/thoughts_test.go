package llm_test

import (
	"errors"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// Thoughts at the beginning of a text are reasoning, wherever the stream is cut. Tags anywhere
// else are text.
func TestThoughtsInTheText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ answer, text, reasoning string }{
		{"<think>\n\n</think>\n\nParis", "Paris", "\n\n"},
		{"<think>Hm.</think>Paris", "Paris", "Hm."},
		{" \n<THINK>Hm.</Think> Paris\n", "Paris\n", "Hm."},
		{"<thinking>a</thinking>b", "b", "a"},
		{"<thought>a</thought>b", "b", "a"},
		{"<analysis>a</analysis>b", "b", "a"},
		{"<reasoning>a</think>b", "b", "a"},
		{"<think>a</think></think>b", "b", "a"},
		{"<think>a</think>\n<think>b</think>\nc", "c", "ab"},
		{"<think>a<think>b</think>c</think>d", "d", "a<think>bc"},
		{"<think>They ask about <think>.</think>It is a tag.", "It is a tag.", "They ask about <think>."},
		{"<think>never closed", "", "never closed"},
		{"<think>cut in the tag</thi", "", "cut in the tag</thi"},
		{"<think>a < b</think>b > a", "b > a", "a < b"},
		{"<think>a</think>\n", "", "a"},
		{"<think>蜜蜂</think>跳舞", "跳舞", "蜜蜂"},
		{"<thinker>is a statue</thinker>", "<thinker>is a statue</thinker>", ""},
		{"<thin", "<thin", ""},
		{"  indented", "  indented", ""},
		{" \n ", " \n ", ""},
		{"The tag <think>x</think> is text.", "The tag <think>x</think> is text.", ""},
		{"```\n<think>x</think>\n```", "```\n<think>x</think>\n```", ""},
		{"</think>x", "</think>x", ""},
		{strings.Repeat(" ", 2000) + "<think>x", strings.Repeat(" ", 2000) + "<think>x", ""},
	} {
		if got := llm.CutThoughts(c.answer); got != c.text {
			t.Errorf("%.40q: got the text %q, want %q", c.answer, got, c.text)
		}
		for _, size := range []int{1, 2, 3, 7, len(c.answer)} {
			for _, finish := range []core.FinishReason{core.FinishStop, ""} {
				var shown strings.Builder
				got, err := llm.Collect(func(yield func(llm.Delta, error) bool) {
					for rest := c.answer; rest != ""; {
						n := min(size, len(rest))
						if !yield(llm.Delta{Text: rest[:n]}, nil) {
							return
						}
						rest = rest[n:]
					}
					if finish != "" {
						yield(llm.Delta{Finish: finish}, nil)
						return
					}
					yield(llm.Delta{}, errors.New("broke off"))
				}, func(d llm.Delta) { shown.WriteString(d.Text) })
				if got.Text != c.text || got.Reasoning != c.reasoning || shown.String() != c.text || (err == nil) != (finish != "") {
					t.Fatalf("%.40q in pieces of %d: got %q, shown %q, thoughts %q, %v, want %q and %q", c.answer, size, got.Text, shown.String(), got.Reasoning, err, c.text, c.reasoning)
				}
			}
		}
	}
}
