package repositories_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// space is where the tests' vectors lie.
func space() core.VectorSpace { return core.VectorSpace{Model: "m-1", Dimension: 2} }

// keep stores a memory of a user of ann's, with a vector in space.
func keep(t *testing.T, r *repositories.Memories, user, content string) core.Memory {
	t.Helper()
	m, err := r.Create(t.Context(), core.Memory{Owner: "ann", UserID: user, Content: content, Embedding: []float32{1, 0}, EmbeddingModel: "m-1"})
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	return m
}

// W11: create, get, list, update, delete.
func TestMemories(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		r := repositories.NewMemories(d.Gorm)
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

		if err := r.Delete(t.Context(), carol(), made.ID); err != nil {
			t.Errorf("delete: %v", err)
		}
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

// Pages neither repeat nor omit, also where times are equal and rows are written in
// between.
func TestMemoryPages(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		r := repositories.NewMemories(d.Gorm)
		at := core.Now().Add(-time.Hour)
		var want []core.MemoryID
		for i := range 25 {
			m, err := r.Create(t.Context(), core.Memory{Owner: "ann", UserID: "carol", Content: fmt.Sprint(i), CreatedAt: at.Add(time.Duration(i/10) * time.Second)})
			if err != nil {
				t.Fatal(err)
			}
			want = append([]core.MemoryID{m.ID}, want...)
		}
		var got []core.MemoryID
		q := core.PageQuery{Limit: 7}
		for {
			page := must.Get(r.List(t.Context(), carol(), q))(t)
			for _, m := range page.Items {
				got = append(got, m.ID)
			}
			if page.NextCursor == nil {
				break
			}
			q.Cursor = *page.NextCursor
			keep(t, r, "carol", "newer than the first page")
			must.Get(r.Update(t.Context(), ann(), core.Memory{ID: got[0], Content: "changed"}))(t)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("ids (-want +got):\n%s", diff)
		}
		_, err := r.List(t.Context(), ann(), core.PageQuery{Cursor: "nonsense"})
		wantError(t, "a bad cursor", err, core.ErrInvalid)
		_, err = r.List(t.Context(), ann(), core.PageQuery{Limit: 201})
		wantError(t, "a bad limit", err, core.ErrInvalid)
	})
}
