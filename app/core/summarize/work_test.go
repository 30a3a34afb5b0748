package summarize_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/summarize"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

// texts are kinds of text that make bad algorithms slow.
func texts() map[string]string {
	return map[string]string{
		"letters": "a", "blanks": " ", "lines": "\n", "brackets": "[", "slashes": "/", "colons": "://", "headings": "## %d\n", "entries": "- a%d [1]\n",
		"Chinese": "長", "paths": "a/b%d.go ", "errors": "Error: %d\n", "prompts": "$ ls %d\n", "sentences": "A b %d. ", "fences": "</transcript>",
		"invalid": "\xff", "quotes": "\"'`", "JSON": `{"a":`, "URLs": "http://x.org/%d ", "more": "+%d more\n", "turns": "[%d] user: x\n",
	}
}

// text returns size bytes of the kind.
func text(unit string, size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		if strings.Contains(unit, "%d") {
			fmt.Fprintf(&b, unit, i)
		} else {
			b.WriteString(unit)
		}
	}
	return b.String()
}

// heavy is a request whose every text has size bytes.
func heavy(unit string, size int) summarize.Request {
	s := text(unit, size)
	call := core.ToolCall{ID: "x", Name: "run", Arguments: s}
	return summarize.Request{Previous: "## Goal\n" + s, Limit: 800, Replaces: size,
		Messages: []core.Message{user(1, s), assistant(2, s, call), toolResult(3, "x", s)}}
}

// metered sums up how many bytes are counted: counting is what costs.
type metered struct{ bytes *int }

func (m metered) Text(s string) int {
	*m.bytes += len(s)
	return counter{}.Text(s)
}

// What is counted is bounded by a multiple of the input, whatever the text: no
// strategy counts anything again and again. With BOBBIN_TEST_LONG=1 of four times as large
// texts, too.
func TestRow12WorkIsLinear(t *testing.T) {
	t.Parallel()
	for name, unit := range texts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			work := func(size int) int {
				var n int
				count := metered{&n}
				model := llmtest.Scripted(llmtest.Step{Text: []string{text(unit, size/16)}, Repeat: true})
				s := summarize.New(summarize.NewHybrid(summarize.NewLLM(model, count, nil)), count)
				must.Get(s.Summarize(t.Context(), heavy(unit, size)))(t)
				must.Get(summarize.New(summarize.NewExtractive(count), count).Summarize(t.Context(), heavy(unit, size)))(t)
				return n
			}
			sizes := []int{64 << 10, 256 << 10} // each of five texts
			if os.Getenv("BOBBIN_TEST_LONG") == "" {
				sizes = sizes[:1]
			}
			for _, size := range sizes {
				if got := work(size); got > 32*size+256<<10 {
					t.Errorf("%d KiB: %d KiB were counted", size>>10, got>>10)
				}
			}
		})
	}
}
