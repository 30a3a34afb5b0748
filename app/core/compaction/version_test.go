package compaction_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/tests/compare"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
	"bobbin/tests/seed"
)

// sizes is a world with models of several windows, and what its prompts had.
type sizes struct {
	*world
	models map[int]*llmtest.Script // by window
}

// newSizes returns a world whose agent has the policy, and a model for each window.
func newSizes(t *testing.T, policy string, windows ...int) sizes {
	t.Helper()
	w := sizes{newWorld(t, core.ContextSettings{Policy: policy}, windows[0]), map[int]*llmtest.Script{}}
	w.writer.Add(always(notes))
	loop := must.Get(contextwindow.ResolveLoop(policy, core.CompactionSettings{}))(t)
	w.profile.Loop = loop
	for _, window := range windows {
		w.models[window] = llmtest.Scripted().WithInfo(llm.Info{Name: fmt.Sprintf("of %d", window), Provider: "scripted", Window: window, MaxOutput: 512})
	}
	return w
}

// prompt says something, has the model of the window answer it after tool rounds with
// results of these sizes, and returns the turn and the messages of before that its last
// prompt has verbatim.
func (w sizes) prompt(window, size int, rounds ...int) (compaction.Turn, []core.MessageID) {
	w.t.Helper()
	w.profile.Model = w.models[window]
	w.ask(strings.Repeat("word ", size))
	for _, size := range rounds {
		w.use(size)
	}
	turn, d := w.fit()
	w.request(turn, d)
	var verbatim []core.MessageID
	for _, s := range d.History {
		if s.Place == core.PlaceVerbatim {
			verbatim = append(verbatim, s.ID)
		}
	}
	answer := w.said(core.RoleAssistant, strings.Repeat("said ", size))
	answer.RunID = w.run.ID
	w.add(answer)
	w.endRun()
	return turn, verbatim
}

// A smaller model that answers once folds nothing away for the larger one: after the
// switch back its prompt has every message that it had before, and no model was called for
// that.
func TestSwitchBackForgetsNothing(t *testing.T) {
	t.Parallel()
	w := newSizes(t, "window", 128_000, 8_192)
	w.turns(60, 100) // 12,000 tokens: nothing for the one, too much for the other
	_, before := w.prompt(128_000, 20)
	small, _ := w.prompt(8_192, 20)
	if small.Session.SummaryVersion == 0 || small.Session.SummaryMadeFor == 0 {
		t.Fatalf("got version %d, made for %d, want a summary for the small model", small.Session.SummaryVersion, small.Session.SummaryMadeFor)
	}
	w.profile.Model = w.models[128_000]
	if r := w.report(); r.Coverage.Summarized != 0 || !strings.HasPrefix(r.SummaryReason, "nothing is summarized any more: version 1 was made for a smaller model") {
		t.Errorf("got %d summarized, reason %q, want the report of the next prompt, in which nothing is", r.Coverage.Summarized, r.SummaryReason)
	}
	calls := len(w.writer.Requests())
	back, after := w.prompt(128_000, 20)
	if back.Session.SummaryVersion != 0 || !contains(after, before) {
		t.Errorf("got version %d and %d of %d messages word for word, want all", back.Session.SummaryVersion, len(after), len(before))
	}
	again, _ := w.prompt(8_192, 20)
	w.profile.Model = w.models[8_192]
	if r := w.report(); r.SummaryVersion != 1 || len(r.Versions) != 1 || !strings.Contains(r.SummaryReason, "Version 1 covers the first") {
		t.Errorf("got version %d of %+v, reason %q, want version 1 and what it stands for", r.SummaryVersion, r.Versions, r.SummaryReason)
	}
	if again.Session.SummaryVersion != small.Session.SummaryVersion || len(w.writer.Requests()) != calls {
		t.Errorf("got version %d and %d calls, want version %d again and none", again.Session.SummaryVersion, len(w.writer.Requests())-calls, small.Session.SummaryVersion)
	}
}

// tokensFrom returns the tokens of the messages from the first of the given ones on.
func (w sizes) tokensFrom(ids []core.MessageID) int {
	sum, found := 0, false
	for _, m := range w.Messages {
		if found = found || len(ids) > 0 && m.ID == ids[0]; found {
			sum += m.TokenCount
		}
	}
	return sum
}

// contains reports whether all has each of some.
func contains[T comparable](all, some []T) bool {
	return !slices.ContainsFunc(some, func(x T) bool { return !slices.Contains(all, x) })
}

// Whatever models answer in between: a model's prompt has every message verbatim that
// its last prompt had, unless its own trigger was crossed since. A summary that a person
// wrote or requested is valid for all of them.
func TestRandomSwitchesForgetNothing(t *testing.T) {
	t.Parallel()
	seed.Check(t, func(rt *rapid.T) {
		w := newSizes(t, rapid.SampledFrom([]string{"window", "ratio"}).Draw(rt, "policy"), 65_536, 16_384, 4_096)
		last := map[int][]core.MessageID{}
		w.turns(rapid.IntRange(1, 20).Draw(rt, "turns"), rapid.SampledFrom([]int{40, 150}).Draw(rt, "size"))
		for range rapid.IntRange(2, 8).Draw(rt, "prompts") {
			window := rapid.SampledFrom([]int{65_536, 16_384, 4_096}).Draw(rt, "window")
			rounds := rapid.SliceOfN(rapid.SampledFrom([]int{10, 300, 900}), 0, 6).Draw(rt, "rounds")
			turn, verbatim := w.prompt(window, rapid.SampledFrom([]int{10, 150, 450}).Draw(rt, "words"), rounds...)
			trigger := turn.Session.SummaryMadeFor
			noted := slices.ContainsFunc(w.Summaries, func(s core.Summary) bool { return s.Kind == core.SummaryRun && s.MadeFor > window/2 })
			own := noted || trigger > window/2 || w.tokensFrom(last[window]) > window*6/10 // a trigger is at three quarters, of the summary, too
			if !own && !contains(verbatim, last[window]) {
				rt.Fatalf("the model of %d had %d messages word for word, then %d, with version %d made for %d",
					window, len(last[window]), len(verbatim), turn.Session.SummaryVersion, trigger)
			}
			last[window] = verbatim
		}
	})
}

// A version that people made is valid for every model: no model goes back behind it.
func TestVersionsOfPeopleHoldForAll(t *testing.T) {
	t.Parallel()
	w := newSizes(t, "window", 128_000, 8_192)
	w.turns(30, 100)
	must.Get(w.keeper.Summarize(t.Context(), w.scope(), w.Session.ID, ""))(t)
	w.turns(60, 100)
	w.prompt(8_192, 20)
	back, _ := w.prompt(128_000, 20)
	compare.Equal(t, "version made for: want the one that was asked for", []int{1, 0}, []int{back.Session.SummaryVersion, back.Session.SummaryMadeFor})
}

// diff is Diff, which must succeed.
func (w *world) diff(version, against int) core.SummaryDiff {
	w.t.Helper()
	return must.Get(w.control().Diff(w.t.Context(), w.scope(), w.Session.ID, version, against))(w.t)
}

// The last line of one version is the same line where the other one goes on.
func TestDiffOfLastLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.ContextSettings{}, 8192)
	w.turns(4, 10)
	w.another(2, "- first\n- last")
	w.another(4, "- first\n- new\n- last\n- more")
	want := []core.DiffOp{{Op: "equal", Pieces: []string{"- first\n"}}, {Op: "added", Pieces: []string{"- new\n"}}, {Op: "equal", Pieces: []string{"- last"}}, {Op: "added", Pieces: []string{"\n", "- more"}}}
	compare.Equal(t, "longer", want, w.diff(2, 1).Ops)
	for i, op := range w.diff(1, 2).Ops {
		compare.Equal(t, "shorter: pieces", want[i].Pieces, op.Pieces)
	}
}

// A diff loses nothing: from its pieces both texts can be put together again.
func TestDiffLaw(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.ContextSettings{}, 8192)
	w.turns(4, 10)
	w.another(2, "before")
	w.another(4, "after")
	words := rapid.SliceOfN(rapid.SampledFrom([]string{"one", "two ", ". ", "? ", "\n", "\n\n", "。", "- x", "…", ".\n", " ", "\t", "é", ".) "}), 0, 40)
	seed.Check(t, func(r *rapid.T) {
		before, after := strings.Join(words.Draw(r, "before"), ""), strings.Join(words.Draw(r, "after"), "")
		w.Summaries[0].Content, w.Summaries[1].Content = before, after
		d := w.diff(2, 1)
		var was, is strings.Builder
		counts, last := map[string]int{}, ""
		for _, op := range d.Ops {
			text := strings.Join(op.Pieces, "")
			if op.Op != core.DiffAdded {
				was.WriteString(text)
			}
			if op.Op != core.DiffRemoved {
				is.WriteString(text)
			}
			if op.Op == last || len(op.Pieces) == 0 {
				r.Errorf("got %q twice, or without pieces", op.Op)
			}
			last = op.Op
			counts[op.Op] += len(op.Pieces)
		}
		if was.String() != before || is.String() != after {
			r.Errorf("got %q and %q, want %q and %q", was.String(), is.String(), before, after)
		}
		compare.Equal(r, "counted", []int{d.Added, d.Removed, d.Equal}, []int{counts[core.DiffAdded], counts[core.DiffRemoved], counts[core.DiffEqual]})
	})
}

// Versions that do not exist or whose words are gone.
func TestDiffErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.ContextSettings{}, 8192)
	w.turns(4, 10)
	w.another(2, "first")
	w.another(4, "second")
	w.Summaries[0].State, w.Summaries[0].Content = core.SummaryErased, ""
	for _, tt := range []struct {
		version, against int
		kind             error
	}{{9, -1, core.ErrNotFound}, {2, 9, core.ErrNotFound}, {2, 1, core.ErrUnprocessable}, {1, 0, core.ErrUnprocessable}} {
		if _, err := w.control().Diff(t.Context(), w.scope(), w.Session.ID, tt.version, tt.against); !errors.Is(err, tt.kind) {
			t.Errorf("%d against %d: got %v, want %v", tt.version, tt.against, err, tt.kind)
		}
	}
}
