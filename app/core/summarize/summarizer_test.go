package summarize_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

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
	if want := exact + 4 + 4 + 3; c.Estimated != want { // a block, a message, a list (B8)
		t.Errorf("got %d tokens estimated, want %d", c.Estimated, want)
	}
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
	if !strings.Contains(second, "at most 140 tokens") || between(t, second, "summary") != long {
		t.Errorf("got %q, want the long one to be shortened", second)
	}
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
}

type foreign struct {
	content string
	err     error
}

func (foreign) Name() string { return "foreign" }

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
		compare.Equal(t, "strategy, of the summary, with a model", []any{name, name, kind.Model}, []any{strategy.Name(), res.Strategy, res.Model != ""})
		wantSummary(t, req, res)
	}
	for _, name := range contextwindow.PresetNames() {
		p, err := contextwindow.Preset(name)
		if _, ok := summarize.KindOf(p.Strategy); err != nil || !ok {
			t.Errorf("%s: got the strategy %q, %v, want one that exists", name, p.Strategy, err)
		}
	}
	if _, ok := summarize.KindOf("magic"); ok {
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
	if !ok || !strings.Contains(doc, "```go\n"+code+"```\n") {
		t.Errorf("docs/STRATEGIES.md does not have the example's code:\n%s", code)
	}
	for _, kind := range summarize.Kinds() {
		compare.Contains(t, fmt.Sprintf("docs/STRATEGIES.md says nothing of %s", kind.Name), "| `"+kind.Name+"` |", doc)
	}
}
