package summarize_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/summarize"
)

// refused holds that an answer is no summary: it is asked for once more, with the reason,
// and then replaced by a summary without a model; the same once, and then a summary, is
// that summary (CONTEXT § 6). Nothing of the answer is stored.
func refused(t *testing.T, answer any, reason string) {
	t.Helper()
	model := llm.Scripted(answer, answer)
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
	again := run(t, llm.Scripted(answer, good), req)
	if again.Content != good || again.Note != "" || len(again.Calls) != 2 {
		t.Errorf("%.60v: got %q (%s) after %d calls, want the second answer", answer, again.Content, again.Note, len(again.Calls))
	}
}

// § 10 row 3: an error is never stored as a summary, whether the call failed or the
// answer tells of it.
func TestRow3ErrorTextIsNoSummary(t *testing.T) {
	t.Parallel()
	refused(t, &llm.Error{Kind: llm.KindOverloaded, Provider: "p", Message: "the engine is over its capacity"}, "the model failed (overloaded)")
	refused(t, errors.New("boom"), "the model failed (unknown)")
	for _, text := range []string{
		"Error: 429 Too Many Requests", "502 Bad Gateway", `{"error": {"message": "overloaded", "type": "server_error"}}`, "Internal server error. Please try again later.",
		"I'm sorry, but I can't help with that.", "Es tut mir leid, aber ich kann dabei nicht helfen.", "Lo siento, no puedo ayudar con eso.", "Je suis désolé, je ne peux pas le faire.", "抱歉，我无法完成这个请求。", "申し訳ありませんが、お答えできません。",
	} {
		refused(t, text, "the answer was an error text")
	}
}

// § 10 row 3: the provider's words, said again as an answer, are not a summary.
func TestRow3RepeatedErrorIsNoSummary(t *testing.T) {
	t.Parallel()
	failure := &llm.Error{Kind: llm.KindOverloaded, Provider: "p", Message: "the engine is over its capacity, come back"}
	res := run(t, llm.Scripted(failure, "Sadly the engine is over its capacity, come back"), request())
	if res.Strategy != "extractive" || res.Note != "fallback: the answer was an error text" {
		t.Errorf("got %q (%s), want the fallback", res.Content, res.Note)
	}
}

// § 10 row 4: nothing is no summary, and thoughts are nothing.
func TestRow4EmptySummaryIsRefused(t *testing.T) {
	t.Parallel()
	refused(t, "", "the answer was empty")
	refused(t, " \n\t ", "the answer was empty")
	refused(t, llm.Step{Reasoning: "The user wants …"}, "the answer was reasoning only")
	refused(t, "<think>The user wants …</think>", "the answer was reasoning only")
	refused(t, "<think>The user wants …", "the answer was reasoning only")
}

// § 10 row 5: a cut-off summary is no summary.
func TestRow5CutOffSummaryIsRefused(t *testing.T) {
	t.Parallel()
	refused(t, llm.Step{Text: []string{good}, Finish: core.FinishLength}, "the answer was cut off at the output limit")
	refused(t, llm.Step{Text: []string{good}, Finish: "MAX_TOKENS"}, "the answer was cut off at the output limit")
	refused(t, llm.Step{Text: []string{good}, Finish: core.FinishContentFilter}, "the answer did not end normally")
}

// § 10 row 6: the summarizer does not work.
func TestRow6ToolCallIsRefused(t *testing.T) {
	t.Parallel()
	call := core.ToolCall{ID: "c1", Name: "search", Arguments: "{}"}
	for _, answer := range []any{
		llm.Step{Text: []string{good}, ToolCalls: []core.ToolCall{call}}, `<tool_call>{"name": "search", "arguments": {}}</tool_call>`, `{"name": "search", "arguments": {"q": "x"}}`,
		"```json\n{\"name\": \"search\", \"arguments\": {\"q\": \"x\"}}\n```", `<function=search>{"q": "x"}</function>`, `[TOOL_CALLS] [{"name": "search", "arguments": {}}]`, `<|python_tag|>search.call(q="x")`,
	} {
		refused(t, answer, "the answer called a tool")
	}
}

// § 10 row 6: the summarizer does not go on chatting.
func TestRow6ChattingIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"Sure! How can I help you today?", "Understood.", "Of course. Please provide the transcript that you want summarized.", "[11] assistant: The release is on Friday, and I told the team about it.",
		"Gerne! Wie kann ich dir weiterhelfen?", "¡Claro! ¿En qué puedo ayudarte?", "Bien sûr ! Comment puis-je vous aider ?", "Конечно! Чем я могу помочь?", "好的！请问有什么可以帮您？", "もちろんです。何かお手伝いできることはありますか？",
	} {
		refused(t, text, "the answer went on with the conversation")
	}
}

// § 10 row 7: an answer that repeats the transcript is no summary, whether it would be
// cut to its limit or not.
func TestRow7EchoIsRefused(t *testing.T) {
	t.Parallel()
	echo := func(change func(transcript string) string) llm.Step {
		return llm.Step{From: func(r llm.Request) llm.Step {
			_, rest, _ := strings.Cut(r.Messages[0].Content, "<transcript>\n")
			transcript, _, _ := strings.Cut(rest, "\n</transcript>")
			return llm.Say(change(transcript))
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
			res := run(t, llm.Scripted(echo(change), echo(change)), req)
			wantSummary(t, req, res)
			if res.Strategy != "extractive" || res.Note != "fallback: the answer repeated the transcript" {
				t.Errorf("got %q (%s), want the fallback", res.Content, res.Note)
			}
		})
	}
	// Quoting a line is no repetition, and what an earlier summary says is carried forward.
	req := request()
	req.Previous = "## Facts\n" + strings.Repeat("- An old fact that is carried forward, word for word.\n", 10)
	req.Messages = append(req.Messages, toolResult(11, "x", "Error: the connection to db-7 was refused by its owner"))
	answer := req.Previous + "- New: Error: the connection to db-7 was refused by its owner"
	if res := run(t, llm.Scripted(answer), req); res.Content != answer || res.Note != "" {
		t.Errorf("got %q (%s), want %q accepted", res.Content, res.Note, answer)
	}
}

// Summaries that speak of errors and quote small talk are summaries.
func TestNotRefused(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{
		"Error handling was rewritten; the user wants sentinel errors.",
		"Rate limiting was chosen: 10 requests a second. Quota questions are open.",
		"The user greeted with “Sure, how can I help?” and wants a poem.",
		"Okay was the user's answer to plan B; deployment is pending.",
		"# Goal\nFix the message “Error: 404 Not Found” on the start page.",
		"500 guests are invited; the hall is booked.",
		"Klar ist: die Halle ist gebucht. Offen: wie kann man anreisen?",
		"好的方案是 B；部署尚未完成。", "抱歉信已发出；客户还没有回复。",
	} {
		if got := run(t, llm.Scripted(answer), request()); got.Content != answer || got.Note != "" {
			t.Errorf("got %q (%s), want %q accepted", got.Content, got.Note, answer)
		}
	}
}

// A strategy of somebody else that returns one of these is stopped at the last gate: empty,
// as large as what it replaces, too long (§ 10 rows 4, 7).
func TestRow7LastGate(t *testing.T) {
	t.Parallel()
	req := request()
	req.Replaces = 300
	res, err := summarize.New(foreign{content: strings.Repeat("A fact. ", 160)}, counter{}).Summarize(t.Context(), req)
	if err != nil || res.Note != "fallback: the summary was not smaller than what it replaces" {
		t.Errorf("got note %q, %v, want the fallback", res.Note, err)
	}
	wantSummary(t, req, res)
}
