package repositories_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// space is where the tests' vectors lie.
func space() core.VectorSpace { return core.VectorSpace{Model: "m-1", Dimension: 2} }

// keep stores a memory of a user of ann's, with a vector in space.
func keep(t *testing.T, r *repositories.Memories, user, content string) core.Memory {
	t.Helper()
	return must.Get(r.Create(t.Context(), core.Memory{Owner: "ann", UserID: user, Content: content, Embedding: []float32{1, 0}, EmbeddingModel: "m-1"}))(t)
}

// W11: create, get, list, update, delete.
func TestMemories(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		r := repositories.NewMemories(s.Gorm)
		made := keep(t, r, "carol", "likes tea")
		if !core.ValidID(made.ID) || made.Dimension != 2 || made.CreatedAt.IsZero() {
			t.Errorf("got %+v, want an id, a dimension and times", made)
		}
		want := made
		want.Embedding = nil
		got, err := r.Get(t.Context(), carol(), made.ID)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("get: error %v (-want +got):\n%s", err, diff)
		}

		// The same content keeps its vector, another one does not.
		for _, step := range []struct {
			in    core.Memory
			model string
		}{
			{core.Memory{Content: "likes tea", Metadata: json.RawMessage(`{"a": 1}`)}, "m-1"},
			{core.Memory{Content: "likes milk"}, ""},
			{core.Memory{Content: "likes milk", Embedding: []float32{0, 1}, EmbeddingModel: "m-2"}, "m-2"},
			{core.Memory{Content: "likes juice", Embedding: []float32{0, 1}, EmbeddingModel: "m-1"}, "m-1"},
		} {
			step.in.ID = made.ID
			got, err := r.Update(t.Context(), ann(), step.in)
			if err != nil || got.EmbeddingModel != step.model || got.Content != step.in.Content || got.UserID != "carol" || got.UpdatedAt.Before(made.UpdatedAt) {
				t.Errorf("update to %q: got %+v, error %v; want the model %q", step.in.Content, got, err, step.model)
			}
			stored, err := r.Get(t.Context(), ann(), made.ID)
			if diff := cmp.Diff(got, stored, cmp.Comparer(equalJSON)); err != nil || diff != "" {
				t.Errorf("after the update: error %v (-returned +stored):\n%s", err, diff)
			}
		}

		compare.Error(t, "delete", nil, r.Delete(t.Context(), carol(), made.ID))
		wantNotFound(t, "delete again", r.Delete(t.Context(), ann(), made.ID))
		_, err = r.Get(t.Context(), ann(), made.ID)
		wantNotFound(t, "get after delete", err)
		_, err = r.Create(t.Context(), core.Memory{Content: "nobody's"})
		wantError(t, "create without an owner", err, core.ErrInvalid)
		_, err = r.Create(t.Context(), core.Memory{Owner: "ann", Content: "a\x00b"})
		wantError(t, "create what cannot be stored", err, core.ErrInvalid)
		_, err = r.Create(t.Context(), core.Memory{Owner: "ann", Content: "x", Metadata: json.RawMessage(`[1]`)})
		wantError(t, "create with metadata that are no object", err, core.ErrInvalid)
	})
}

func equalJSON(a, b json.RawMessage) bool {
	var x, y any
	return string(a) == string(b) || json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && cmp.Equal(x, y)
}

// Only vectors of the space are read, in batches that neither repeat nor omit.
func TestVectorsOfASpace(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		r := repositories.NewMemories(s.Gorm)
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
		compare.Equal(t, "vectors", want, got)
		for what, pair := range map[string][2]int{
			"stale":                        {number(t)(r.CountStale(t.Context(), ann(), space())), 4},
			"stale, dimension not known":   {number(t)(r.CountStale(t.Context(), ann(), core.VectorSpace{Model: "m-1"})), 3},
			"stale of carol":               {number(t)(r.CountStale(t.Context(), carol(), space())), 0},
			"stale of carol, by another":   {number(t)(r.CountStale(t.Context(), carol(), core.VectorSpace{Model: "m-9"})), 3},
			"stale of all":                 {number(t)(r.CountAllStale(t.Context(), space())), 4},
			"stale of all, no dimension":   {number(t)(r.CountAllStale(t.Context(), core.VectorSpace{Model: "m-1"})), 3},
			"stale of one who has nothing": {number(t)(r.CountStale(t.Context(), bob(), space())), 0},
		} {
			compare.Equal(t, what, pair[1], pair[0])
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
	each(t, func(t *testing.T, s *store) {
		r := repositories.NewMemories(s.Gorm)
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
		compare.Equal(t, "stale of bob: len(page.Items)", 2, len(must.Get(r.Stale(t.Context(), bob(), space(), core.PageQuery{Limit: 9}))(t).Items))
		_, err := r.Stale(t.Context(), bob(), space(), core.PageQuery{Limit: 9, Cursor: "x"})
		wantError(t, "a bad cursor", err, core.ErrInvalid)

		changed, gone := all[0], all[2]
		must.Get(r.Update(t.Context(), ann(), core.Memory{ID: changed.ID, Content: "newer"}))(t)
		must.Do(t, r.Delete(t.Context(), ann(), gone.ID))
		for i := range all {
			all[i].Embedding, all[i].EmbeddingModel = []float32{0, 1}, "m-1"
		}
		compare.Equal(t, "n: want 3: one was changed and one deleted", 3, must.Get(r.SetVectors(t.Context(), all))(t))
		compare.Equal(t, "stale afterwards: want the one that was changed", 1, number(t)(r.CountAllStale(t.Context(), space())))
		got, err := r.Get(t.Context(), ann(), changed.ID)
		if err != nil || got.Content != "newer" || got.EmbeddingModel != "" {
			t.Errorf("the changed one: got %+v, error %v", got, err)
		}
		if v, err := r.Vectors(t.Context(), bob(), core.VectorQuery{Space: space(), Limit: 9}); err != nil || len(v) != 2 || v[0].Vector[1] != 1 {
			t.Errorf("vectors of bob: got %v, error %v", v, err)
		}
		compare.Equal(t, "of none: n", 0, must.Get(r.SetVectors(t.Context(), nil))(t))
	})
}
