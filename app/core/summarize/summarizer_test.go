package summarize_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/app/core/summarize"
	"bobbin/tests/compare"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

func TestAccepted(t *testing.T) {
	t.Parallel()
	model := llmtest.Scripted(llmtest.Step{Text: []string{"  ", good}, Usage: &core.Usage{InputTokens: 900, OutputTokens: 30}})
	req := request()
	res := run(t, model, req)
	wantSummary(t, req, res)
	compare.Equal(t, "want the model's words without a note", []string{good, "llm", "scripted", ""}, []string{res.Content, res.Strategy, res.Model, res.Note})
	if len(res.Calls) != 1 {
		t.Fatalf("got %d calls, want 1", len(res.Calls))
	}
	c := res.Calls[0]
	if c.Purpose != core.PurposeSummary || c.Model != "scripted" || c.Usage.InputTokens != 900 || c.FinishReason != core.FinishStop || c.Error != "" || c.CreatedAt.IsZero() {
		t.Errorf("got call %+v, want it recorded", c)
	}
	sent := model.Requests()[0]
	exact := counter{}.Text(sent.System[0]) + counter{}.Text(lastUser(t, sent))
	want := exact + 4 + 4 + 3
	compare.True(t, c.Estimated == want, "got %d tokens estimated, want %d", c.Estimated, want) // a block, a message, a list (B8)
	if len(sent.Tools) != 0 || sent.Temperature == nil || *sent.Temperature != 0.2 || sent.MaxOutputTokens < req.Limit || sent.MaxOutputTokens > 4_096 {
		t.Errorf("got request %+v, want no tools, temperature 0.2 and an output limit of its own", sent)
	}
}

// What wraps a summary is taken off.
func TestCleaned(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"fence": "```markdown\n" + good + "\n```", "tags": "<summary>\n" + good + "\n</summary>", "thoughts": "<think>Hm.\nWell.</think>\n" + good,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compare.Equal(t, "run(t, llmtest.Scripted(answer), request()).Content", good, run(t, llmtest.Scripted(answer), request()).Content)
		})
	}
}

// Errors that the same request brings again are not tried again.
func TestHopelessError(t *testing.T) {
	t.Parallel()
	for _, kind := range []llm.ErrorKind{llm.KindAuth, llm.KindNotFound, llm.KindInvalid} {
		res := run(t, llmtest.Scripted(&llm.Error{Kind: kind}), request())
		if len(res.Calls) != 1 || res.Calls[0].Error != string(kind) || res.Note != "fallback: the model failed ("+string(kind)+")" {
			t.Errorf("%s: got %d calls and note %q, want 1 and the kind", kind, len(res.Calls), res.Note)
		}
	}
}

// A summary as large as what it replaces is refused.
func TestRow7LargerThanItsMaterialIsRefused(t *testing.T) {
	t.Parallel()
	req := request()
	req.Messages, req.Replaces = talk(2, 40), 100
	big := "## Facts\n" + sentences(18)
	model := llmtest.Scripted(big, big)
	res := run(t, model, req)
	wantSummary(t, req, res)
	compare.Equal(t, "note after calls: want the fallback after 2", []any{"fallback: the summary was not smaller than what it replaces", 2}, []any{res.Note, len(res.Calls)})
	compare.Contains(t, "lastUser(t, model.Requests()[0]): want less asked for than is replaced", "at most 75 tokens", lastUser(t, model.Requests()[0]))
}

// There may be too little for any summary.
func TestNoGain(t *testing.T) {
	t.Parallel()
	req := summarize.Request{Messages: []core.Message{user(1, "Hi")}, Limit: 800}
	res, err := over(llmtest.Scripted(good, good)).Summarize(t.Context(), req)
	compare.Equal(t, "ErrNoGain, no summary, calls", []any{true, "", 2}, []any{errors.Is(err, summarize.ErrNoGain), res.Content, len(res.Calls)})
	for _, bad := range []summarize.Request{{Limit: 800}, {Messages: talk(3, 50)}} {
		if _, err := over(llmtest.Scripted()).Summarize(t.Context(), bad); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("got %v for %d messages with limit %d, want ErrInvalid", err, len(bad.Messages), bad.Limit)
		}
	}
}

// Over its limit: asked once for a shorter one, then cut at a sentence.
func TestOverLimit(t *testing.T) {
	t.Parallel()
	long := "## Goal\nShip it.\n\n## Facts\n" + sentences(120) + " The newest fact is 4711."
	req := request()
	req.Limit = 200
	res := run(t, llmtest.Scripted(long, good), req)
	compare.Equal(t, "after calls: want the shorter one", []any{good, 2, ""}, []any{res.Content, len(res.Calls), res.Note})
	model := llmtest.Scripted(long, long)
	res = run(t, model, req)
	wantSummary(t, req, res)
	compare.Equal(t, "calls, strategy, note: want 2 calls and the model's words, cut", []any{2, "llm", ""}, []any{len(res.Calls), res.Strategy, res.Note})
	if !strings.HasPrefix(res.Content, "## Goal\nShip it.\n\n## Facts\n… The ") || !strings.HasSuffix(res.Content, "The newest fact is 4711.") {
		t.Errorf("got %q, want the goal and the newest facts, whole sentences", res.Content)
	}
	second := lastUser(t, model.Requests()[1])
	compare.True(t, strings.Contains(second, "at most 140 tokens") && between(t, second, "summary") == long, "got %q, want the long one to be shortened", second)
	// What fails while shortening does not lose the summary.
	res = run(t, llmtest.Scripted(long, &llm.Error{Kind: llm.KindRateLimit}), req)
	compare.Equal(t, "strategy, note: want the cut summary", []string{"llm", ""}, []string{res.Strategy, res.Note})
}

// A strategy of somebody else is guarded too.
func TestForeignStrategy(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		strategy foreign
		replaces int
		note     string
	}{
		"too long":    {foreign{content: strings.Repeat("A fact. ", 2_000)}, 0, ""},
		"blank":       {foreign{content: "\n"}, 0, "fallback: the answer was empty"},
		"fails":       {foreign{err: errors.New("broken")}, 0, "fallback: the strategy failed"},
		"not smaller": {foreign{content: strings.Repeat("A fact. ", 160)}, 300, "fallback: the summary was not smaller than what it replaces"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := request()
			req.Replaces = tt.replaces
			res, err := summarize.New(tt.strategy, counter{}).Summarize(t.Context(), req)
			if err != nil || res.Note != tt.note {
				t.Fatalf("got note %q, %v, want %q", res.Note, err, tt.note)
			}
			wantSummary(t, req, res)
		})
	}
	res := must.Get(summarize.New(foreign{err: errors.New("broken")}, counter{}).Summarize(t.Context(), summarize.Request{Preset: summarize.PresetCompaction, Messages: rounds(8, 400), Limit: 800}))(t)
	compare.Equal(t, "of a tool loop", "steps", res.Strategy)
}

type foreign struct {
	content string
	err     error
}

func (f foreign) Summarize(context.Context, summarize.Request) (summarize.Result, error) {
	return summarize.Result{Content: f.content, Strategy: "foreign"}, f.err
}

// C3: every strategy of the table is what it is called, and makes summaries; the presets
// name none that is not there.
func TestKinds(t *testing.T) {
	t.Parallel()
	for _, kind := range summarize.Kinds() {
		material := summarize.Material{Count: counter{}}
		if kind.Model {
			material.Model = llmtest.Scripted(good)
		}
		strategy, name := kind.New(material), kind.Name
		if kind.Native { // the summary beside the provider's
			name = summarize.StrategyHybrid
		}
		req := request()
		res := must.Get(summarize.New(strategy, counter{}).Summarize(t.Context(), req))(t)
		compare.Equal(t, "strategy, with a model", []any{name, kind.Model}, []any{res.Strategy, res.Model != ""})
		wantSummary(t, req, res)
	}
	for _, name := range contextwindow.PresetNames() {
		p, err := contextwindow.Preset(name)
		if err != nil || summarize.KindOf(p.Strategy).New == nil {
			t.Errorf("%s: got the strategy %q, %v, want one that exists", name, p.Strategy, err)
		}
	}
	if summarize.KindOf("magic").New != nil {
		t.Error("got a strategy that is not there")
	}
}

// The code in docs/STRATEGIES.md is that of the example, which is compiled and run; and
// the strategies that it names are all that there are.
func TestStrategiesAreDocumented(t *testing.T) {
	t.Parallel()
	read := func(file string) string {
		raw := must.Get(os.ReadFile(file))(t)
		return string(raw)
	}
	doc, example := read("../../../docs/STRATEGIES.md"), read("example_test.go")
	_, code, _ := strings.Cut(example, "is in docs/STRATEGIES.md.\n\n")
	code, _, ok := strings.Cut(code, "\n// End of what is in docs")
	compare.True(t, ok && strings.Contains(doc, "```go\n"+code+"```\n"), "docs/STRATEGIES.md does not have the example's code:\n%s", code)
	for _, kind := range summarize.Kinds() {
		compare.Contains(t, fmt.Sprintf("docs/STRATEGIES.md says nothing of %s", kind.Name), "| `"+kind.Name+"` |", doc)
	}
}

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
	s := summarize.New(summarize.NewLLM(model, counter{}, nil), counter{})
	req := summarize.Request{Preset: summarize.PresetCompaction, Messages: rounds(8, 400), Limit: 200}
	for i := range req.Messages {
		req.Messages[i].Content = strings.Fields(tools)[i] + " " + req.Messages[i].Content
	}
	res := must.Get(s.Summarize(t.Context(), req))(t)
	compare.Equal(t, "strategy, calls", []any{"llm", 1}, []any{res.Strategy, len(model.Requests())})
	wantSummary(t, req, res)
}

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
				got := work(size)
				compare.True(t, got <= 32*size+256<<10, "%d KiB: %d KiB were counted", size>>10, got>>10)
			}
		})
	}
}

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
	told := strings.Contains(second, "Your last answer was not used: "+reason)
	compare.True(t, told != isError, "%.60v: second request told the reason: %v; it says:\n%s", answer, told, second)
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
