package demo_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/demo"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// quarter counts four bytes as a token.
type quarter struct{ llm.TokenCounter }

func (quarter) Text(s string) int { return (len(s) + 3) / 4 }

func (q quarter) Tools(list []llm.ToolSpec) int {
	n := 0
	for _, t := range list {
		n += 8 + q.Text(t.Name) + q.Text(t.Description) + q.Text(string(t.Parameters))
	}
	return n
}

func newModel() *demo.Model { return demo.New(quarter{}, 0) }

// chat is a conversation with the model.
type chat struct {
	t   *testing.T
	req llm.Request
}

func newChat(t *testing.T, system ...string) *chat {
	t.Helper()
	return &chat{t: t, req: llm.Request{System: system, Tools: []llm.ToolSpec{
		{Name: "calculator", Parameters: json.RawMessage(`{"type":"object","properties":{"expression":{"type":"string"}},"required":["expression"]}`)},
		{Name: "current_time", Parameters: json.RawMessage(`{"type":"object","properties":{"timezone":{"type":"string"}}}`)},
	}}}
}

// ask says something and returns the answer, which becomes part of the conversation.
func (c *chat) ask(text string) llm.Response {
	c.t.Helper()
	c.req.Messages = append(c.req.Messages, llm.Message{Role: core.RoleUser, Content: text})
	return c.next()
}

func (c *chat) next() llm.Response {
	c.t.Helper()
	res := must.Get(llm.Collect(newModel().Stream(c.t.Context(), c.req), nil))(c.t)
	if res.Usage == nil || res.Usage.InputTokens <= 0 || res.Usage.OutputTokens <= 0 || res.Finish == "" {
		c.t.Errorf("got usage %+v and finish %q, want both", res.Usage, res.Finish)
	}
	c.req.Messages = append(c.req.Messages, llm.Message{Role: core.RoleAssistant, Content: res.Text, ToolCalls: res.ToolCalls})
	return res
}

func (c *chat) want(text, part string) {
	c.t.Helper()
	if got := c.ask(text).Text; !strings.Contains(got, part) {
		c.t.Errorf("%q: got %q, want it to hold %q", text, got, part)
	}
}

func TestFirstAnswerSaysWhatItIs(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"Hello", "My name is Ada.", "who are you?", "", "日本語で話してください", "…"} {
		c := newChat(t)
		got := c.ask(text).Text
		for _, want := range []string{"demonstration", "no language model", "OPENAI_API_KEY", "GEMINI_API_KEY", "Ollama"} {
			compare.Contains(t, fmt.Sprintf("%q", text), want, got)
		}
		again := c.ask("And now?").Text
		compare.True(t, !strings.Contains(again, "OPENAI_API_KEY"), "second answer: got %q, want it without the introduction", again)
	}
	c := newChat(t, "Be kind.", "Summary of earlier conversation:\nThey talked.")
	got := c.ask("Hello").Text
	compare.True(t, !strings.Contains(got, "OPENAI_API_KEY"), "after a summary: got %q, want no introduction again", got)
	if got := newChat(t).next().Text; got == "" {
		t.Error("no messages at all: got no answer")
	}
}

// A question is answered with the newest sentence of the prompt that has the most of its
// words, and with nothing that is not in the prompt.
func TestQuestionsAreAnsweredWithQuotations(t *testing.T) {
	t.Parallel()
	c := newChat(t, "You are helpful.")
	c.want("Hi there!", "Ask me about it later")
	c.want("My name is Ada Lovelace, and I live in London.", "Ask me about it later")
	c.ask("My favorite color is dark blue. My dog's name is Rex.")
	c.ask("The budget for the garden is 4,000 euros.")
	c.want("What is my name?", "You wrote: “My name is Ada Lovelace, and I live in London.”")
	c.want("Where do I live?", "“My name is Ada Lovelace, and I live in London.”")
	c.want("what's my favorite color?", "“My favorite color is dark blue.”")
	c.want("What did I say about the budget?", "“The budget for the garden is 4,000 euros.”")
	c.want("Tell me about the gardens", "4,000 euros")
	c.want("What did I say about quantum physics?", "Nothing in my prompt answers that")
	c.want("Who invented the telephone?", "no knowledge of my own")
	c.ask("No, the budget is 5,000 euros.")
	c.want("What is the budget?", "5,000 euros")
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
		"what is 17 % of 4,300":                {"17/100*4300"},
		"compute 2 ^ 10":                       {"2 ^ 10"},
		"What is 6 times 7?":                   {"6 * 7"},
		"The meeting is on 2024-05-01, right?": nil,
		"Does it take 10-15 minutes?":          nil,
		"I have 3 cats and 2 dogs.":            nil,
		"What is this?\n[image \"cat.png\", image/png, 640×480, 82 KB: this model cannot see images]": nil,
	} {
		res := newChat(t).ask(text)
		var got []string
		for _, call := range res.ToolCalls {
			var arguments struct{ Expression string }
			if err := json.Unmarshal([]byte(call.Arguments), &arguments); err != nil || call.Name != "calculator" || call.ID == "" {
				t.Errorf("%q: got call %+v, %v", text, call, err)
			}
			got = append(got, arguments.Expression)
		}
		compare.Equal(t, fmt.Sprintf("%q: expressions", text), want, got)
		compare.True(t, (res.Finish == core.FinishToolCalls) == (len(want) > 0), "%q: got finish %q", text, res.Finish)
	}
}

// With tool choice "none", and without tools, it answers in text.
// A message can name any tool, so that tools of one's own can be tried.
func TestNamedToolIsCalled(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`Please call get_sum {"a": 2, "b": [3]}, and tell me.`: `{"a": 2, "b": [3]}`,
		"What does get_sum do?":                                "",
		`get_sum {"a": `:                                       "",
		`get_sums {"a": 2}`:                                    "",
	} {
		c := newChat(t)
		c.req.Tools = append(c.req.Tools, llm.ToolSpec{Name: "get_sum"})
		got := ""
		for _, call := range c.ask(text).ToolCalls {
			if call.Name == "get_sum" {
				got = call.Arguments
			}
		}
		compare.Equal(t, text+": a call with", want, got)
	}
}

// A tool that must be called is, once, and the other choices hold.
func TestToolChoices(t *testing.T) {
	t.Parallel()
	const both = "What is 2+2 and 3+3?"
	for name, c := range map[string]struct {
		text   string
		choice core.ToolChoice
		single bool
		want   []string
	}{
		"by itself":        {both, "", false, []string{"calculator", "calculator"}},
		"one at a time":    {both, "", true, []string{"calculator"}},
		"required":         {"Hello.", core.ToolChoiceRequired, false, []string{"calculator"}},
		"required anyway":  {both, core.ToolChoiceRequired, false, []string{"calculator", "calculator"}},
		"by name":          {"Hello.", "current_time", false, []string{"current_time"}},
		"by another name":  {both, "current_time", false, []string{"current_time"}},
		"none, in any way": {both, core.ToolChoiceNone, true, nil},
	} {
		chat := newChat(t)
		chat.req.ToolChoice = c.choice
		if c.single {
			chat.req.ParallelToolCalls = new(false)
		}
		var got []string
		for _, call := range chat.ask(c.text).ToolCalls {
			got = append(got, call.Name)
		}
		compare.Equal(t, fmt.Sprintf("%s: calls", name), c.want, got)
	}
	chat := newChat(t)
	chat.req.ToolChoice = core.ToolChoiceRequired
	call := chat.ask(both).ToolCalls[0]
	chat.req.Messages = append(chat.req.Messages, llm.Message{Role: core.RoleTool, ToolCallID: call.ID, ToolName: call.Name, Content: "4"})
	calls := chat.next().ToolCalls
	compare.True(t, len(calls) == 1 && calls[0].Name == "current_time", "required after a result: got %+v, want a call of the last tool", calls)
}

func TestWordByWord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start, words := time.Now(), 0
		req := llm.Request{Messages: []llm.Message{{Role: core.RoleUser, Content: "Hello"}}}
		res, err := llm.Collect(demo.New(quarter{}, demo.Delay).Stream(t.Context(), req), func(d llm.Delta) {
			if d.Text != "" {
				words++
			}
		})
		if want := strings.Count(res.Text, " ") + 1; err != nil || words != want {
			t.Errorf("got %d deltas, %v, want one for each of %d words", words, err, want)
		}
		took := time.Since(start)
		compare.True(t, took == time.Duration(words+1)*demo.Delay, "took %v for %d words", took, words)
	})
}

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
