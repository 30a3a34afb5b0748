package summarize_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/tests/llmtest"
)

// refused holds that an answer is no summary: it is asked for once more, with the reason,
// and then replaced by a summary without a model; the same once, and then a summary, is
// that summary. Nothing of the answer is stored.
func refused(t *testing.T, answer any, reason string) {
	t.Helper()
	model := llmtest.Scripted(answer, answer)
	req := request()
	res := run(t, model, req)
	wantSummary(t, req, res)
	if res.Strategy != "extractive" || res.Model != "" || res.Note != "fallback: "+reason {
		t.Errorf("%.60v: got strategy %q, model %q, note %q, want the fallback for %q", answer, res.Strategy, res.Model, res.Note, reason)
	}
	if len(res.Calls) != 2 || model.Remaining() != 0 {
		t.Fatalf("%.60v: got %d calls, want 2", answer, len(res.Calls))
	}
	if text, ok := answer.(string); ok && strings.TrimSpace(text) != "" && strings.Contains(res.Content, text) {
		t.Errorf("got %q in the summary", text)
	}
	_, isError := answer.(error)
	second := lastUser(t, model.Requests()[1])
	if told := strings.Contains(second, "Your last answer was not used: "+reason); told == isError {
		t.Errorf("%.60v: second request told the reason: %v; it says:\n%s", answer, told, second)
	}
	again := run(t, llmtest.Scripted(answer, good), req)
	if again.Content != good || again.Note != "" || len(again.Calls) != 2 {
		t.Errorf("%.60v: got %q (%s) after %d calls, want the second answer", answer, again.Content, again.Note, len(again.Calls))
	}
}

// An error is never stored as a summary.
func TestRow3ErrorIsNoSummary(t *testing.T) {
	t.Parallel()
	refused(t, &llm.Error{Kind: llm.KindOverloaded, Provider: "p", Message: "the engine is over its capacity"}, "the model failed (overloaded)")
	refused(t, errors.New("boom"), "the model failed (unknown)")
}

// Nothing is no summary, and thoughts are nothing.
func TestRow4EmptySummaryIsRefused(t *testing.T) {
	t.Parallel()
	refused(t, "", "the answer was empty")
	refused(t, " \n\t ", "the answer was empty")
	refused(t, llmtest.Step{Reasoning: "The user wants …"}, "the answer was reasoning only")
	refused(t, "<think>The user wants …</think>", "the answer was reasoning only")
	refused(t, "<think>The user wants …", "the answer was reasoning only")
}

// A cut-off summary is no summary.
func TestRow5CutOffSummaryIsRefused(t *testing.T) {
	t.Parallel()
	refused(t, llmtest.Step{Text: []string{good}, Finish: core.FinishLength}, "the answer was cut off at the output limit")
	refused(t, llmtest.Step{Text: []string{good}, Finish: "MAX_TOKENS"}, "the answer was cut off at the output limit")
	refused(t, llmtest.Step{Text: []string{good}, Finish: core.FinishContentFilter}, "the answer did not end normally")
}

// The summarizer does not work.
func TestRow6ToolCallIsRefused(t *testing.T) {
	t.Parallel()
	call := core.ToolCall{ID: "c1", Name: "search", Arguments: "{}"}
	for _, answer := range []any{
		llmtest.Step{Text: []string{good}, ToolCalls: []core.ToolCall{call}}, llmtest.Step{Text: []string{good}, Finish: core.FinishToolCalls},
	} {
		refused(t, answer, "the answer called a tool")
	}
	for _, answer := range []string{
		`<tool_call>{"name": "search", "arguments": {}}</tool_call>`, `{"name": "search", "arguments": {"q": "x"}}`,
		"```json\n{\"name\": \"search\", \"arguments\": {\"q\": \"x\"}}\n```", `<function=search>{"q": "x"}</function>`, `[TOOL_CALLS] [{"name": "search", "arguments": {}}]`, `<|python_tag|>search.call(q="x")`,
	} {
		refused(t, answer, "the answer contained markup or data that is in no message")
	}
}

// An answer that repeats the transcript is no summary, whether it would be
// cut to its limit or not.
func TestRow7EchoIsRefused(t *testing.T) {
	t.Parallel()
	echo := func(change func(transcript string) string) llmtest.Step {
		return llmtest.Step{From: func(r llm.Request) llmtest.Step {
			_, rest, _ := strings.Cut(r.Messages[0].Content, "<transcript>\n")
			transcript, _, _ := strings.Cut(rest, "\n</transcript>")
			return llmtest.Say(change(transcript))
		}}
	}
	for name, change := range map[string]func(string) string{
		"all":       func(s string) string { return s },
		"fenced":    func(s string) string { return "<transcript>\n" + s[:100] + "\n</transcript>" },
		"a part":    func(s string) string { return "## Goal\nShip it.\n\n" + s[:len(s)/2] },
		"bare text": func(s string) string { return strings.NewReplacer("user: ", "", "assistant: ", "").Replace(s) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := request()
			req.Messages = nil
			for i := range 10 {
				req.Messages = append(req.Messages, user(int64(i+1), fmt.Sprintf("%d\n%s", i, strings.Repeat(fmt.Sprintf("a line of message %d that says little\n", i), 20))))
			}
			res := run(t, llmtest.Scripted(echo(change), echo(change)), req)
			wantSummary(t, req, res)
			if res.Strategy != "extractive" || res.Note != "fallback: the answer repeated the transcript" {
				t.Errorf("got %q (%s), want the fallback", res.Content, res.Note)
			}
		})
	}
	// Quoting a line is no repetition, and what an earlier summary says is carried forward.
	req := request()
	req.Previous = "## Facts\n" + sentences(10) + "\n"
	req.Messages = append(req.Messages, toolResult(11, "x", "Error: the connection to db-7 was refused by its owner"))
	answer := req.Previous + "- New: Error: the connection to db-7 was refused by its owner"
	if res := run(t, llmtest.Scripted(answer), req); res.Content != answer || res.Note != "" {
		t.Errorf("got %q (%s), want %q accepted", res.Content, res.Note, answer)
	}
}
