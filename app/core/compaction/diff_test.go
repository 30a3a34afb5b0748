package compaction_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"bobbin/app/core"
	"bobbin/tests/must"
	"bobbin/tests/seed"
)

// diff is Diff, which must succeed.
func (w *world) diff(version, against int) core.SummaryDiff {
	w.t.Helper()
	d := must.Get(w.control().Diff(w.t.Context(), w.scope(), w.Session.ID, version, against))(w.t)
	return d
}

// A diff by lines and sentences, against the version before, another one
// or nothing.
func TestDiff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.ContextSettings{}, 8192)
	w.turns(4, 10)
	w.another(2, "## Facts\n- Rex is a dog.\n- It rains. Ann is here.\n")
	w.another(4, "## Facts\n- Rex is a dog.\n- It snows. Ann is here.\n- 他来了。她走了。")
	want := core.SummaryDiff{Version: 2, Against: 1, Added: 3, Removed: 1, Equal: 3, Ops: []core.DiffOp{
		{Op: "equal", Pieces: []string{"## Facts\n", "- Rex is a dog.\n"}},
		{Op: "removed", Pieces: []string{"- It rains. "}},
		{Op: "added", Pieces: []string{"- It snows. "}},
		{Op: "equal", Pieces: []string{"Ann is here.\n"}},
		{Op: "added", Pieces: []string{"- 他来了。", "她走了。"}},
	}}
	if diff := cmp.Diff(want, w.diff(2, -1)); diff != "" {
		t.Errorf("against the version before (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(w.diff(2, 1), w.diff(2, -1)); diff != "" {
		t.Errorf("against version 1 (-named +by default):\n%s", diff)
	}
	if got := w.diff(1, 2); got.Added != 1 || got.Removed != 3 || got.Version != 1 || got.Against != 2 {
		t.Errorf("backwards: got %+v", got)
	}
	for _, against := range []int{-1, 0} {
		if got := w.diff(1, against); got.Against != 0 || got.Added != 4 || got.Removed+got.Equal != 0 {
			t.Errorf("the first against %d: got %+v, want all of it new", against, got)
		}
	}
	if got := w.diff(2, 2); got.Added+got.Removed != 0 || len(got.Ops) != 1 {
		t.Errorf("against itself: got %+v", got)
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
		if counts[core.DiffAdded] != d.Added || counts[core.DiffRemoved] != d.Removed || counts[core.DiffEqual] != d.Equal {
			r.Errorf("got %v, counted %+v", counts, d)
		}
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
