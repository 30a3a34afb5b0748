package repositories_test

import (
	"testing"

	"bobbin/app/core"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// space is where the tests' vectors lie.
func space() core.VectorSpace { return core.VectorSpace{Model: "m-1", Dimension: 2} }

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
		all := all(t, func(cursor string) (core.Page[core.Memory], error) {
			return r.Stale(t.Context(), core.Tenant{}, space(), core.PageQuery{Limit: 2, Cursor: cursor})
		})
		must.True(t, len(all) == 5, "got %d stale memories, want 5", len(all))
		compare.Equal(t, "stale of bob: len(page.Items)", 2, len(must.Get(r.Stale(t.Context(), bob(), space(), core.PageQuery{Limit: core.MaxReindexBatch}))(t).Items))
		wantError(t, "a bad cursor", compare.ErrorOf(r.Stale(t.Context(), bob(), space(), core.PageQuery{Limit: 9, Cursor: "x"})), core.ErrInvalid)

		changed, gone := all[0], all[2]
		must.Get(r.Update(t.Context(), ann(), core.Memory{ID: changed.ID, Content: "newer"}))(t)
		must.Do(t, r.Delete(t.Context(), ann(), gone.ID))
		for i := range all {
			all[i].Embedding, all[i].EmbeddingModel = []float32{0, 1}, "m-1"
		}
		compare.Equal(t, "n: want 3: one was changed and one deleted", 3, must.Get(r.SetVectors(t.Context(), all))(t))
		compare.Equal(t, "stale afterwards: want the one that was changed", 1, number(t)(r.CountStale(t.Context(), core.Tenant{}, space())))
		got := must.Get(r.Get(t.Context(), ann(), changed.ID))(t)
		compare.Equal(t, "the changed one", []any{"newer", ""}, []any{got.Content, got.EmbeddingModel})
		v := must.Get(r.Vectors(t.Context(), bob(), core.VectorQuery{Space: space(), Limit: 9}))(t)
		compare.True(t, len(v) == 2 && v[0].Vector[1] == 1, "vectors of bob: got %v", v)
		compare.Equal(t, "of none: n", 0, must.Get(r.SetVectors(t.Context(), nil))(t))
	})
}
