package summarize_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/tests/compare"
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
	compare.Equal(t, fmt.Sprintf("%.60v: want the second answer", answer), []any{good, "", 2}, []any{again.Content, again.Note, len(again.Calls)})
}

// An error, nothing, thoughts alone, what was cut off, and calls of tools are never stored as a summary.
func TestRow3To6WhatIsNoSummary(t *testing.T) {
	t.Parallel()
	const thoughts, cut, called, markup = "the answer was reasoning only", "the answer was cut off at the output limit", "the answer called a tool", "the answer contained markup or data that is in no message"
	call := core.ToolCall{ID: "c1", Name: "search", Arguments: "{}"}
	for _, tt := range []struct {
		answer any
		reason string
	}{
		{&llm.Error{Kind: llm.KindOverloaded, Provider: "p", Message: "the engine is over its capacity"}, "the model failed (overloaded)"},
		{errors.New("boom"), "the model failed (unknown)"},
		{"", "the answer was empty"}, {" \n\t ", "the answer was empty"},
		{llmtest.Step{Reasoning: "The user wants …"}, thoughts}, {"<think>The user wants …</think>", thoughts}, {"<think>The user wants …", thoughts},
		{llmtest.Step{Text: []string{good}, Finish: core.FinishLength}, cut}, {llmtest.Step{Text: []string{good}, Finish: "MAX_TOKENS"}, cut},
		{llmtest.Step{Text: []string{good}, Finish: core.FinishContentFilter}, "the answer did not end normally"},
		{llmtest.Step{Text: []string{good}, ToolCalls: []core.ToolCall{call}}, called}, {llmtest.Step{Text: []string{good}, Finish: core.FinishToolCalls}, called},
		{`<tool_call>{"name": "search", "arguments": {}}</tool_call>`, markup}, {`{"name": "search", "arguments": {"q": "x"}}`, markup},
		{"```json\n{\"name\": \"search\", \"arguments\": {\"q\": \"x\"}}\n```", markup}, {`<function=search>{"q": "x"}</function>`, markup},
		{`[TOOL_CALLS] [{"name": "search", "arguments": {}}]`, markup}, {`<|python_tag|>search.call(q="x")`, markup},
		{"<transcript>\nuser: go on\n</transcript>", markup},
	} {
		refused(t, tt.answer, tt.reason)
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
			compare.Equal(t, "strategy, note", []any{"extractive", "fallback: the answer repeated the transcript"}, []any{res.Strategy, res.Note})
		})
	}
	// Quoting a line is no repetition, and what an earlier summary says is carried forward.
	req := request()
	req.Previous = "## Facts\n" + sentences(10) + "\n"
	req.Messages = append(req.Messages, toolResult(11, "x", "Error: the connection to db-7 was refused by its owner"))
	answer := req.Previous + "- New: Error: the connection to db-7 was refused by its owner"
	res := run(t, llmtest.Scripted(answer), req)
	compare.Equal(t, "summary, note", []any{answer, ""}, []any{res.Content, res.Note})
}
