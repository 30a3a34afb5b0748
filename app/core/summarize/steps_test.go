package summarize_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/core/summarize"
	"bobbin/tests/compare"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

func called(id, name, arguments string) core.ToolCall {
	return core.ToolCall{ID: id, Name: name, Arguments: arguments}
}

// rounds are tool rounds with about size tokens of result each.
func rounds(n, size int) []core.Message {
	out := []core.Message{user(1, "Find the fault.")}
	for i := range n {
		seq := int64(len(out) + 1)
		id := fmt.Sprintf("call-%d", i)
		out = append(out, assistant(seq, "", called(id, "read_file", fmt.Sprintf(`{"path":"src/f%d.go"}`, i))),
			toolResult(seq+1, id, fmt.Sprintf("text of file %d %s", i, strings.Repeat("x = y; ", size*4/7))))
	}
	return out
}

// L3, L4: without a model the notes are a line for each call, and the facts.
func TestSteps(t *testing.T) {
	t.Parallel()
	failed := toolResult(7, "c", "exit status 1: no such file")
	failed.Status = core.MessageFailed
	res, err := summarize.NewSteps(counter{}).Summarize(t.Context(), summarize.Request{Limit: 800, Messages: []core.Message{
		user(1, "Repair the parser."),
		assistant(2, "I look at it.", called("a", "read_file", `{"path":"pkg/parser.go"}`), called("b", "list", "{}")),
		toolResult(4, "b", "parser.go\nlexer.go"), toolResult(3, "a", "package pkg\n\nfunc Parse() {}"),
		assistant(5, "", called("c", "remove", `{"path":"x"}`), called("d", "wait", "{}")), failed,
	}})
	must.Do(t, err)
	want := `(Extracted by a program, without a language model.)

## Steps
- assistant said: "I look at it." [2]
- read_file({"path":"pkg/parser.go"}) → "package pkg func Parse() {}" [2]
- list({}) → "parser.go lexer.go" [2]
- remove({"path":"x"}) → failed → "exit status 1: no such file" [5]
- wait({}) → no result [5]
`
	if got, _, _ := strings.Cut(res.Content, "\n## Files"); got != want {
		t.Errorf("notes (-want +got):\n%s", cmp.Diff(want, got))
	}
	compare.Contains(t, "res.Content: want the facts too", "## Files Referenced\n- pkg/parser.go [2]", res.Content)
	compare.Equal(t, "want strategy steps without a model", []any{"steps", "", (counter{}).Text(res.Content)}, []any{res.Strategy, res.Model, res.Tokens})
}

// L5: notes that are too long are cut; the model is not asked to summarize them again.
func TestLoopDoesNotRecurse(t *testing.T) {
	t.Parallel()
	tools := "harbor lantern compass gravel timber rudder anchor bucket hammer ladder mortar pulley shovel spanner tackle trowel varnish"
	long := "## Current state\nRead the text of file 1, the text of file 2 and the text of file 3: compass text, timber text, anchor text, hammer text, mortar text, shovel text, tackle text, varnish text; " + tools + ".\n" + sentences(100)
	model := llmtest.Scripted(long)
	s := summarize.NewLoop(summarize.NewLLM(model, counter{}, nil), counter{})
	req := summarize.Request{Preset: summarize.PresetCompaction, Messages: rounds(8, 400), Limit: 200}
	for i := range req.Messages {
		req.Messages[i].Content = strings.Fields(tools)[i] + " " + req.Messages[i].Content
	}
	res := must.Get(s.Summarize(t.Context(), req))(t)
	compare.Equal(t, "strategy, calls", []any{"llm", 1}, []any{res.Strategy, len(model.Requests())})
	wantSummary(t, req, res)
}
