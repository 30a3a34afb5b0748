package repositories_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// Only vectors of the space are read, in batches that neither repeat nor omit.
func TestVectorsOfASpace(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		r := repositories.NewMemories(d.Gorm)
		want := map[core.MemoryID]bool{}
		for i := range 10 {
			want[keep(t, r, []string{"", "carol", "dave"}[i%3], "x").ID] = true
		}
		for _, m := range []core.Memory{
			{}, {Embedding: []float32{1, 0}, EmbeddingModel: "m-0"}, {Embedding: []float32{1, 0}, EmbeddingModel: "m-2"}, {Embedding: []float32{1, 0, 0}, EmbeddingModel: "m-1"},
		} {
			m.Owner, m.Content = "ann", "stale"
			must.Get(r.Create(t.Context(), m))(t)
		}
		q, got := core.VectorQuery{Space: space(), Limit: 3}, map[core.MemoryID]bool{}
		for {
			batch := must.Get(r.Vectors(t.Context(), ann(), q))(t)
			for _, v := range batch {
				if got[v.ID] || len(v.Vector) != 2 {
					t.Errorf("got %+v, want each once with its vector", v)
				}
				got[v.ID] = true
			}
			if len(batch) < 3 {
				break
			}
			q.After = batch[2]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("vectors (-want +got):\n%s", diff)
		}
		for what, pair := range map[string][2]int{
			"stale":                        {number(t)(r.CountStale(t.Context(), ann(), space())), 4},
			"stale, dimension not known":   {number(t)(r.CountStale(t.Context(), ann(), core.VectorSpace{Model: "m-1"})), 3},
			"stale of carol":               {number(t)(r.CountStale(t.Context(), carol(), space())), 0},
			"stale of carol, by another":   {number(t)(r.CountStale(t.Context(), carol(), core.VectorSpace{Model: "m-9"})), 3},
			"stale of all":                 {number(t)(r.CountAllStale(t.Context(), space())), 4},
			"stale of all, no dimension":   {number(t)(r.CountAllStale(t.Context(), core.VectorSpace{Model: "m-1"})), 3},
			"stale of one who has nothing": {number(t)(r.CountStale(t.Context(), bob(), space())), 0},
		} {
			if pair[0] != pair[1] {
				t.Errorf("%s: got %d, want %d", what, pair[0], pair[1])
			}
		}
	})
}

func number(t *testing.T) func(int, error) int {
	t.Helper()
	return func(n int, err error) int {
		if err != nil {
			t.Error(err)
		}
		return n
	}
}

// Stale memories come in pages; a vector is stored only if its memory is still as it
// was read.
func TestSetVectors(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		r := repositories.NewMemories(d.Gorm)
		for _, owner := range []string{"ann", "bob", "ann", "ann", "bob"} {
			must.Get(r.Create(t.Context(), core.Memory{Owner: owner, Content: "x"}))(t)
		}
		var all []core.Memory
		q := core.PageQuery{Limit: 2}
		for {
			page := must.Get(r.Stale(t.Context(), core.Tenant{}, space(), q))(t)
			all = append(all, page.Items...)
			if page.NextCursor == nil {
				break
			}
			q.Cursor = *page.NextCursor
		}
		if len(all) != 5 {
			t.Fatalf("got %d stale memories, want 5", len(all))
		}
		if page, err := r.Stale(t.Context(), bob(), space(), core.PageQuery{Limit: 9}); err != nil || len(page.Items) != 2 {
			t.Errorf("stale of bob: got %d, error %v, want 2", len(page.Items), err)
		}
		_, err := r.Stale(t.Context(), bob(), space(), core.PageQuery{Limit: 9, Cursor: "x"})
		wantError(t, "a bad cursor", err, core.ErrInvalid)

		changed, gone := all[0], all[2]
		must.Get(r.Update(t.Context(), ann(), core.Memory{ID: changed.ID, Content: "newer"}))(t)
		must.Do(t, r.Delete(t.Context(), ann(), gone.ID))
		for i := range all {
			all[i].Embedding, all[i].EmbeddingModel = []float32{0, 1}, "m-1"
		}
		if n, err := r.SetVectors(t.Context(), all); err != nil || n != 3 {
			t.Errorf("got %d stored, error %v, want 3: one was changed and one deleted", n, err)
		}
		if n := number(t)(r.CountAllStale(t.Context(), space())); n != 1 {
			t.Errorf("got %d stale afterwards, want the one that was changed", n)
		}
		got, err := r.Get(t.Context(), ann(), changed.ID)
		if err != nil || got.Content != "newer" || got.EmbeddingModel != "" {
			t.Errorf("the changed one: got %+v, error %v", got, err)
		}
		if v, err := r.Vectors(t.Context(), bob(), core.VectorQuery{Space: space(), Limit: 9}); err != nil || len(v) != 2 || v[0].Vector[1] != 1 {
			t.Errorf("vectors of bob: got %v, error %v", v, err)
		}
		if n, err := r.SetVectors(t.Context(), nil); n != 0 || err != nil {
			t.Errorf("of none: got %d, error %v", n, err)
		}
	})
}
