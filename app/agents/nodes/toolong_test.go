package nodes_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
	"bobbin/tests/llmtest"
)

func tooLong(limit, requested int) *llm.Error {
	return &llm.Error{Kind: llm.KindContextLength, Provider: "scripted", Message: "too long", Limit: limit, Requested: requested}
}

// The provider's "context length exceeded" is not a failure. The
// prompt is planned again, strictly smaller each time, at most twice.
func TestRefusedAsTooLong(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		refusals  []any
		turns     int
		fails     bool
		tightened int // where the window may be right: near it, or where there are numbers
	}{
		"once, nothing told":       {[]any{tooLong(0, 0)}, 20, false, 1},
		"once, the limit told":     {[]any{tooLong(5000, 0)}, 20, false, 1},
		"once, both told":          {[]any{tooLong(5000, 7500)}, 20, false, 1},
		"twice":                    {[]any{tooLong(0, 0), tooLong(0, 0)}, 20, false, 1},
		"three times":              {[]any{tooLong(0, 0), tooLong(0, 0), tooLong(0, 0)}, 20, true, 1},
		"a limit above the window": {[]any{tooLong(1_000_000, 0)}, 20, false, 1},
		"a prompt of no size":      {[]any{tooLong(0, 1)}, 20, false, 1},
		"one turn":                 {[]any{tooLong(0, 0)}, 1, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 8192, append(c.refusals, "fits now")...)
			w.writer.Add(llmtest.Step{Text: []string{"short summary"}, Repeat: true})
			_, err := w.call(t.Context(), w.turns(c.turns, 120).begin("go"))
			if failed := kindOf(err) == llm.KindContextLength; failed != c.fails || err != nil && !failed {
				t.Fatalf("got error %v, want a refusal: %v", err, c.fails)
			}
			reqs := w.model.Requests()
			if want := min(len(c.refusals)+1, 3); len(reqs) != want {
				t.Fatalf("%d model calls, want %d", len(reqs), want)
			}
			for i := 1; i < len(reqs); i++ {
				if a, b := w.size(reqs[i-1]), w.size(reqs[i]); b >= a {
					t.Errorf("prompt %d has %d tokens, the refused one before %d", i+1, b, a)
				}
				if a, b := reqs[i-1].MaxOutputTokens, reqs[i].MaxOutputTokens; b > a {
					t.Errorf("call %d may answer with %d tokens, the refused one before with %d", i+1, b, a)
				}
			}
			if len(w.learned.tightened) != c.tightened {
				t.Errorf("the estimate was tightened %d times, want %d", len(w.learned.tightened), c.tightened)
			}
			if got := len(w.records()); got != len(reqs) {
				t.Errorf("%d calls are booked, want %d", got, len(reqs))
			}
		})
	}
}

// A limit that the provider told once holds for the rest of the run.
func TestToldLimitHoldsForTheRun(t *testing.T) {
	t.Parallel()
	const limit = 3000
	refused := 0
	var w *world
	w = newWorld(t, 32_000, llmtest.Step{Repeat: true, From: func(req llm.Request) llmtest.Step {
		switch {
		case w.size(req)+req.MaxOutputTokens > limit:
			refused++
			return llmtest.Fail(tooLong(limit, 0))
		case req.ToolChoice == core.ToolChoiceNone:
			return llmtest.Say("done")
		default:
			return llmtest.Call(call("c", "look"))
		}
	}}).with(says("look", strings.Repeat("word ", 800)))
	w.writer.Add(llmtest.Step{Text: []string{"short summary"}, Repeat: true})
	w.loop(w.turns(20, 120).begin("go"))
	if refused != 1 {
		t.Errorf("%d prompts were refused, want only the first", refused)
	}
}

// What the provider counted teaches the estimate at once.
func TestToldSizeTightens(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 8192, tooLong(8192, 12_000), "fits now")
	w.writer.Add(llmtest.Step{Text: []string{"short summary"}, Repeat: true})
	w.mustCall(w.turns(20, 120).begin("go"))
	raw, reserve := w.records()[0].Estimated, w.model.Requests()[0].MaxOutputTokens
	want := 12_000 / float64(raw+reserve)
	if got := w.learned.tightened[0]; got < 0.99*want || got > 1.01*want {
		t.Errorf("got ratio %.2f, want %.2f", got, want)
	}
	if got := w.learned.Estimate("scripted", ""); got.Factor < want || got == (tokens.Estimate{}) {
		t.Errorf("got estimate %+v, want a factor of at least %.2f", got, want)
	}
}

// Where the window turns out to be smaller and the provider's count is
// ours, the estimate was right: the window is learned, for the model, and not the count.
func TestSmallerWindowIsNoMiscount(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		told    func(raw, output int) *llm.Error
		tighten bool
	}{
		"as we count": {func(raw, _ int) *llm.Error {
			return &llm.Error{Kind: llm.KindContextLength, Limit: 4000, Prompt: raw, Requested: raw}
		}, false},
		"with the answer":   {func(raw, out int) *llm.Error { return tooLong(4000, raw+out) }, false},
		"more than we do":   {func(raw, out int) *llm.Error { return tooLong(4000, 2*(raw+out)) }, true},
		"nothing counted":   {func(int, int) *llm.Error { return tooLong(4000, 0) }, true},
		"the window we had": {func(raw, out int) *llm.Error { return tooLong(8192, raw+out) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var w *world
			w = newWorld(t, 8192, func(req llm.Request) llmtest.Step { return llmtest.Fail(c.told(w.size(req), req.MaxOutputTokens)) }, "fits now")
			w.writer.Add(llmtest.Step{Text: []string{"short summary"}, Repeat: true})
			w.mustCall(w.turns(20, 120).begin("go"))
			if got := len(w.learned.tightened) > 0; got != c.tighten {
				t.Errorf("the estimate was tightened: %v, want %v", got, c.tighten)
			}
			want := 4000
			if name == "the window we had" {
				want = 0
			}
			if got := w.learned.Window("scripted"); got != want {
				t.Errorf("got the window %d for the model, want %d", got, want)
			}
		})
	}
}

// What was refused stands in the run's report, also of a run that is taken over.
func TestOverflowsAreCountedOverAResume(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 8192, tooLong(0, 0), llmtest.Call(call("1", "look")), tooLong(0, 0), "done").with(says("look", "nothing"))
	w.writer.Add(llmtest.Step{Text: []string{"short summary"}, Repeat: true})
	s := w.mustUse(w.mustCall(w.turns(20, 120).begin("go")))
	if s.Run.Context != nil {
		t.Fatal("the state holds the report: the test proves nothing")
	}
	w.mustCall(w.resume(*w.run))
	var r core.ContextReport
	if err := json.Unmarshal(w.run.Context, &r); err != nil {
		t.Fatal(err)
	}
	if r.Overflows != 2 || len(r.Reasons) < 2 || !slices.Contains(r.Rungs, "summarize") {
		t.Errorf("got %d overflows, rungs %q, reasons %q: want those of both attempts", r.Overflows, r.Rungs, r.Reasons)
	}
}
