package demo_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/demo"
)

// chat is a conversation with the model.
type chat struct {
	t     *testing.T
	model llm.Model
	req   llm.Request
}

func newChat(t *testing.T, system ...string) *chat {
	t.Helper()
	return &chat{t: t, model: demo.New(demo.WithDelay(0)), req: llm.Request{System: system}}
}

// ask says something and returns the answer, which becomes part of the conversation.
func (c *chat) ask(text string) llm.Response {
	c.t.Helper()
	c.req.Messages = append(c.req.Messages, llm.Message{Role: core.RoleUser, Content: text})
	return c.next()
}

func (c *chat) next() llm.Response {
	c.t.Helper()
	res, err := llm.Collect(c.model.Stream(c.t.Context(), c.req), nil)
	if err != nil {
		c.t.Fatalf("stream: %v", err)
	}
	if res.Usage == nil || (res.Usage.InputTokens <= 0 && len(c.req.Messages) > 0) || res.Usage.OutputTokens <= 0 || res.Finish == "" {
		c.t.Errorf("got usage %+v and finish %q, want both", res.Usage, res.Finish)
	}
	c.req.Messages = append(c.req.Messages, llm.Message{Role: core.RoleAssistant, Content: res.Text, ToolCalls: res.ToolCalls})
	return res
}

func (c *chat) want(text string, parts ...string) {
	c.t.Helper()
	got := c.ask(text).Text
	for _, p := range parts {
		if !strings.Contains(got, p) {
			c.t.Errorf("%q: got %q, want it to hold %q", text, got, p)
		}
	}
}

func TestFirstAnswerSaysWhatItIs(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"Hello", "What is 1+1?", "My name is Ada.", "who are you?", "", "日本語で話してください", "…"} {
		c := newChat(t)
		got := c.ask(text).Text
		for _, want := range []string{"demonstration", "no language model", "OPENAI_API_KEY", "GEMINI_API_KEY", "Ollama"} {
			if !strings.Contains(got, want) {
				t.Errorf("%q: got %q, want it to name %s", text, got, want)
			}
		}
		if again := c.ask("And now?").Text; strings.Contains(again, "OPENAI_API_KEY") {
			t.Errorf("second answer: got %q, want it without the introduction", again)
		}
	}
	c := newChat(t, "Be kind.", "Summary of earlier conversation:\nThey talked.")
	if got := c.ask("Hello").Text; strings.Contains(got, "OPENAI_API_KEY") {
		t.Errorf("after a summary: got %q, want no introduction again", got)
	}
}

func TestConversation(t *testing.T) {
	t.Parallel()
	c := newChat(t, "You are helpful.")
	c.want("Hi there!", "Hello!")
	c.want("My name is Ada Lovelace, and I live in London.", "Nice to meet you, Ada Lovelace")
	c.want("I like hiking in the Alps.", "Noted", "I like hiking in the Alps.")
	c.want("My favorite color is dark blue. My dog's name is Rex.", "Noted")
	c.want("The budget for the garden is 4,000 euros.", "budget")
	c.want("What is my name?", "Your name is Ada Lovelace.")
	c.want("what's my favorite color?", "dark blue")
	c.want("Do you remember my dog's name?", "Rex")
	c.want("Where do I live?", "London")
	c.want("What do I like?", "hiking in the Alps")
	c.want("What did I say about the budget?", "“The budget for the garden is 4,000 euros.”")
	c.want("What did I say about the garden?", "4,000 euros")
	c.want("What did I say about quantum physics?", "nothing about “quantum physics”")
	c.want("What was my first message?", "“Hi there!”")
	c.want("Summarize our conversation, please", "The budget for the garden", "- ")
	c.want("Summarize our conversation again", "Of your messages")
	c.want("Am I allowed to fly?", "cannot answer")
	c.want("Who is my garden?", "I found this", "4,000 euros")
	c.want("What is my shoe size?", "not told me about your shoe size")
	c.want("Who invented the telephone?", "cannot answer")
	c.want("Tell me about the garden budget plans?", "4,000 euros")
	c.want("The garden again.", "You come back to “garden”", "4,000 euros")
	c.want("Thank you!", "You are welcome, Ada Lovelace.")
	c.want("Hello again", "Hello, Ada Lovelace!")
	c.want("what can you do?", "summarize our conversation")
	c.want("Bye!", "Goodbye, Ada Lovelace!")
}

// The size of an image is no task: 640×480 is not calculated.
func TestImagesAreNoTask(t *testing.T) {
	t.Parallel()
	c := newChat(t)
	res := c.ask("What is this?\n[image \"cat.png\", image/png, 640×480, 82 KB: this model cannot see images]")
	if strings.Contains(res.Text, "480") || len(res.ToolCalls) > 0 {
		t.Errorf("got %q and %v, want nothing calculated", res.Text, res.ToolCalls)
	}
}

func TestAnswersFromTheSummary(t *testing.T) {
	t.Parallel()
	summary := "Summary of earlier conversation:\n<conversation_summary>\n## Facts\n- My name is Grace.\n- The deadline is the 4th of May.\n" +
		"- My cat is called Tom.\n</conversation_summary>\n(Notes about my name is Nobody.)"
	c := newChat(t, "You are helpful.", summary, "Use tools.")
	c.want("What is my name?", "Grace")
	c.want("What did I say about the deadline?", "“The deadline is the 4th of May.” (from the summary)")
	c.want("What was my first message?", "only in its summary", "My name is Grace.", "“What is my name?”")
	c.want("Summarize our conversation", "From the summary", "- The deadline is the 4th of May.")
	if got := newChat(t, "You are helpful.").ask("What is my name?").Text; !strings.Contains(got, "not told me your name") {
		t.Errorf("without the summary: got %q, want it not to know", got)
	}
	c = newChat(t, summary)
	c.want("What was my first message?", "only in its summary")
}

func TestEmptyConversation(t *testing.T) {
	t.Parallel()
	c := newChat(t)
	c.want("summarize our conversation", "nothing to summarize yet")
	c = newChat(t)
	c.want("What was my first message?", "This is your first message.")
	c = newChat(t)
	if got := c.next(); got.Text == "" {
		t.Error("no messages at all: got no answer")
	}
}

func specs() []llm.ToolSpec {
	return []llm.ToolSpec{
		{Name: "calculator", Parameters: json.RawMessage(`{"type":"object","properties":{"expression":{"type":"string"}},"required":["expression"]}`)},
		{Name: "current_time", Parameters: json.RawMessage(`{"type":"object","properties":{"timezone":{"type":"string"}}}`)},
	}
}

func TestArithmeticCallsTheCalculator(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"What is 17 * 23?":                     {"17 * 23"},
		"what's 2+2":                           {"2+2"},
		"2+2":                                  {"2+2"},
		"(1 + 2) * 3 =":                        {"(1 + 2) * 3"},
		"How much is 1,234.5 minus 10?":        {"1234.5 - 10"},
		"Calculate 3 x 4 and 5 / 2, please":    {"3 * 4", "5 / 2"},
		"What is 15% of 200?":                  {"15/100*200"},
		"What is the square root of 16?":       {"sqrt(16)"},
		"compute 2 ^ 10":                       {"2 ^ 10"},
		"What is 6 times 7?":                   {"6 * 7"},
		"What is (1+2?":                        {"1+2"},
		"The meeting is on 2024-05-01, right?": nil,
		"Does it take 10-15 minutes?":          nil,
		"I have 3 cats and 2 dogs.":            nil,
		"Our score was 3-1 yesterday.":         nil,
	} {
		c := newChat(t)
		c.req.Tools = specs()
		res := c.ask(text)
		var got []string
		for _, call := range res.ToolCalls {
			var arguments struct{ Expression string }
			if err := json.Unmarshal([]byte(call.Arguments), &arguments); err != nil || call.Name != "calculator" || call.ID == "" {
				t.Errorf("%q: got call %+v, %v", text, call, err)
			}
			got = append(got, arguments.Expression)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: expressions (-want +got):\n%s", text, diff)
		}
		if (res.Finish == core.FinishToolCalls) != (len(want) > 0) {
			t.Errorf("%q: got finish %q", text, res.Finish)
		}
	}
}

func TestToolsAreCalledAndTheirResultsTold(t *testing.T) {
	t.Parallel()
	c := newChat(t)
	c.req.Tools = specs()
	res := c.ask("What is 17 * 23, and what time is it in Europe/Berlin?")
	if len(res.ToolCalls) != 2 || res.ToolCalls[0].ID == res.ToolCalls[1].ID || res.Text != "" {
		t.Fatalf("got %q and %+v, want two calls with ids of their own", res.Text, res.ToolCalls)
	}
	if got, want := res.ToolCalls[1].Arguments, `{"timezone":"Europe/Berlin"}`; got != want {
		t.Errorf("got arguments %s, want %s", got, want)
	}
	for i, content := range []string{"391", "Saturday, 21 November 2026, 14:05"} {
		c.req.Messages = append(c.req.Messages, llm.Message{
			Role: core.RoleTool, ToolCallID: res.ToolCalls[i].ID, ToolName: res.ToolCalls[i].Name, Content: content,
		})
	}
	got := c.next()
	if !strings.HasSuffix(got.Text, "17 * 23 = 391\nIt is Saturday, 21 November 2026, 14:05.") || got.Finish != core.FinishStop {
		t.Errorf("got %q, %q, want both results", got.Text, got.Finish)
	}
	if !strings.Contains(got.Text, "no language model") {
		t.Errorf("got %q, want the introduction in the first answer in words", got.Text)
	}
	again := c.ask("What is 17 * 23, and what time is it in Europe/Berlin?")
	if len(again.ToolCalls) != 2 || again.ToolCalls[0].ID == res.ToolCalls[0].ID {
		t.Errorf("got %+v, want other ids than the first time", again.ToolCalls)
	}
}

func TestResultsOfOtherForms(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		message llm.Message
		want    string
	}{
		"with the expression": {llm.Message{ToolName: "calculator", Content: "1+1 = 2"}, "1+1 = 2"},
		"unknown call":        {llm.Message{ToolName: "calculator", Content: "2"}, "The result is 2."},
		"error":               {llm.Message{ToolName: "calculator", Content: "error: division by zero"}, "The tool calculator answered: error: division by zero"},
		"other tool":          {llm.Message{ToolName: "search", Content: "found"}, "The tool search answered: found"},
		"nothing":             {llm.Message{ToolName: "search"}, "The tool search answered nothing."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chat := newChat(t)
			c.message.Role, c.message.ToolCallID = core.RoleTool, "x"
			chat.req.Messages = []llm.Message{{Role: core.RoleUser, Content: "hi"}, c.message}
			if got := chat.next().Text; !strings.HasSuffix(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// W13: with tool choice "none" it answers in text.
func TestNoToolsWhenTheyAreForbidden(t *testing.T) {
	t.Parallel()
	c := newChat(t)
	c.req.Tools, c.req.ToolChoice = specs(), llm.ToolChoiceNone
	for text, want := range map[string]string{"What is 2+2?": "calculator", "What time is it?": "current_time"} {
		if got := c.ask(text); len(got.ToolCalls) != 0 || !strings.Contains(got.Text, want) {
			t.Errorf("got %+v and %q, want a text that names %s", got.ToolCalls, got.Text, want)
		}
	}
	c.req.ToolChoice = llm.ToolChoiceAuto
	c.req.Tools = []llm.ToolSpec{{Name: "calculator", Parameters: json.RawMessage(`{"properties":{"input":{}},"required":["input"]}`)}}
	if got := c.ask("What is 2+2?"); len(got.ToolCalls) != 1 || got.ToolCalls[0].Arguments != `{"input":"2+2"}` {
		t.Errorf("another parameter: got %+v", got.ToolCalls)
	}
}

func TestItIsDeterministic(t *testing.T) {
	t.Parallel()
	run := func() []llm.Message {
		c := newChat(t)
		c.req.Tools = specs()
		for _, text := range []string{"Hello", "I like tea", "The weather is fine", "More about weather", "What is 3*4?"} {
			c.ask(text)
		}
		return c.req.Messages
	}
	if diff := cmp.Diff(run(), run()); diff != "" {
		t.Errorf("two runs differ:\n%s", diff)
	}
}

func TestWordByWord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		words := 0
		req := llm.Request{Messages: []llm.Message{{Role: core.RoleUser, Content: "Hello"}}}
		res, err := llm.Collect(demo.New().Stream(t.Context(), req), func(d llm.Delta) {
			if d.Text != "" {
				words++
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if want := len(strings.Fields(res.Text)); words != want {
			t.Errorf("got %d deltas, want one for each of %d words", words, want)
		}
		if took := time.Since(start); took != time.Duration(words)*demo.DefaultDelay {
			t.Errorf("took %v for %d words", took, words)
		}
	})
}

func TestCanceled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(20*time.Millisecond, func() { cancel(cause) })
		req := llm.Request{Messages: []llm.Message{{Role: core.RoleUser, Content: "Hello"}}}
		res, err := llm.Collect(demo.New().Stream(ctx, req), nil)
		if !llm.IsKind(err, llm.KindCanceled) || !errors.Is(err, cause) || len(strings.Fields(res.Text)) != 2 {
			t.Errorf("got %q, %v, want two words and KindCanceled", res.Text, err)
		}
		for name, m := range map[string]llm.Model{"with delay": demo.New(), "without": demo.New(demo.WithDelay(0))} {
			if _, err := llm.Collect(m.Stream(ctx, req), nil); !llm.IsKind(err, llm.KindCanceled) {
				t.Errorf("%s, canceled before: got %v, want KindCanceled", name, err)
			}
		}
	})
}

func TestLeaving(t *testing.T) {
	t.Parallel()
	req := llm.Request{Tools: specs(), Messages: []llm.Message{{Role: core.RoleUser, Content: "What is 1+1?"}}}
	for _, text := range []string{"Hello", "What is 1+1?"} {
		req.Messages[0].Content = text
		for d, err := range demo.New(demo.WithDelay(0)).Stream(t.Context(), req) {
			if err != nil || d.Text == "" && d.ToolCall == nil {
				t.Errorf("got %+v, %v, want a first piece", d, err)
			}
			break
		}
	}
}

func TestOutputLimit(t *testing.T) {
	t.Parallel()
	count := func(text string) int { return len(strings.Fields(text)) }
	m := demo.New(demo.WithDelay(0), demo.WithCounter(count))
	req := llm.Request{MaxOutputTokens: 5, Messages: []llm.Message{{Role: core.RoleUser, Content: "Hello"}}}
	res, err := llm.Collect(m.Stream(t.Context(), req), nil)
	if err != nil || len(strings.Fields(res.Text)) != 5 || res.Finish != core.FinishLength || res.Usage.OutputTokens != 5 {
		t.Errorf("got %q, %q, %+v, %v, want five words and length", res.Text, res.Finish, res.Usage, err)
	}
}

func TestInfo(t *testing.T) {
	t.Parallel()
	got := demo.New().Info()
	if got.Name != "demo" || got.Provider != "demo" || got.Window != 8_192 || got.PriorFactor != 1 {
		t.Errorf("got %+v", got)
	}
}

// The model counts prompts by the rules of package tokens, so that what is learned of
// its counting is a factor of 1.
func TestUsageByTheRules(t *testing.T) {
	t.Parallel()
	four := func(text string) int { return (len(text) + 3) / 4 }
	req := llm.Request{
		System:   []string{"Be kind.", "Be brief."}, // 19 bytes joined
		Messages: []llm.Message{{Role: core.RoleUser, Content: "Hello there!"}, {Role: core.RoleAssistant, ToolCalls: []core.ToolCall{{ID: "1", Name: "calc", Arguments: `{"a":12}`}}}},
		Tools:    []llm.ToolSpec{{Name: "calc", Description: "calculates", Parameters: []byte(`{"type":"object"}`)}},
	}
	res, err := llm.Collect(demo.New(demo.WithDelay(0), demo.WithCounter(four)).Stream(t.Context(), req), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := res.Usage.InputTokens, 3+(4+5)+(4+3)+(4+8+1+2)+(8+1+3+5); got != want {
		t.Errorf("got %d tokens, want %d", got, want)
	}
}

// Notes on a tool loop stand in the prompt as the user's message: they are not taken
// for what the user said.
func TestNotesAreNotTheUsersWords(t *testing.T) {
	t.Parallel()
	c := newChat(t)
	c.req.Messages = []llm.Message{{Role: core.RoleUser, Content: "My name is Ada."}, {Role: core.RoleAssistant, Content: "Hello."}}
	c.req.Messages = append(c.req.Messages, llm.Message{Role: core.RoleUser, Content: "What is my name?"},
		llm.Message{Role: core.RoleUser, Content: "Notes on the work so far, in place of messages #4–#9:\n<work_notes>\nMy name is Bob.\n</work_notes>"})
	if got := c.next().Text; !strings.Contains(got, "Ada") || strings.Contains(got, "Bob") {
		t.Errorf("got %q, want the name that the user told", got)
	}
}
