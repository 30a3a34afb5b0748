package memories_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/chat/memories"
	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/seed"
)

// embedder is one whose answers a test chooses.
type embedder struct {
	llm.HashEmbedder
	name  string
	calls atomic.Int64
	fails atomic.Pointer[error]                           // nil = it works
	takes func(text string) error                         // nil = everything
	waits func(ctx context.Context, texts []string) error // nil = not
}

func (e *embedder) Model() string { return e.name }

func (e *embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	e.calls.Add(1)
	if e.waits != nil {
		if err := e.waits(ctx, texts); err != nil {
			return nil, err
		}
	}
	if err := e.fails.Load(); err != nil {
		return nil, *err
	}
	for _, text := range texts {
		if e.takes != nil {
			if err := e.takes(text); err != nil {
				return nil, err
			}
		}
	}
	return e.HashEmbedder.Embed(ctx, texts)
}

func (e *embedder) fail(err error) {
	if e.fails.Store(&err); err == nil {
		e.fails.Store(nil)
	}
}

func ann() core.Tenant { return core.Tenant{Owner: "ann"} }

// newService returns a process over a database.
func newService(d *db.DB, e llm.Embedder) *memories.Service {
	return memories.New(memories.Options{Store: repositories.NewMemories(d.Gorm), Embedder: e, Matches: core.MatchesMeaning, Logger: slog.New(slog.DiscardHandler)})
}

func words(r *rand.Rand) string {
	all := []string{"pump", "valve", "supplier", "invoice", "inspection", "Friday", "coolant", "水泵", "检查", "tea", "milk", "address", "Graz", "sensor"}
	var b strings.Builder
	for range 1 + r.IntN(5) {
		b.WriteString(all[r.IntN(len(all))] + " ")
	}
	return b.String()
}

// W11: whatever is written by whichever replica, each of them finds the same, in the
// same order, as a comparison with every memory does.
func TestMemorySearchIsExact(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		e := &embedder{name: "e-1"}
		all := []*memories.Service{newService(d, e), newService(d, e)}
		r := seed.Rand(t, 5)
		kept := map[core.MemoryID]core.Memory{} // of ann
		users := []string{"", "carol", "dave"}
		anyOne := func() core.MemoryID {
			ids := slices.Sorted(func(yield func(core.MemoryID) bool) {
				for id := range kept {
					if !yield(id) {
						return
					}
				}
			})
			return ids[r.IntN(len(ids))]
		}
		for step := range 300 {
			s := all[r.IntN(len(all))]
			switch op := r.IntN(10); {
			case op < 4 || len(kept) == 0:
				tenant := core.Tenant{Owner: []string{"ann", "ann", "ann", "bob"}[r.IntN(4)], User: users[r.IntN(3)]}
				m := must.Get(s.Create(t.Context(), tenant, core.Memory{Content: words(r)}))(t)
				if tenant.Owner == "ann" {
					kept[m.ID] = m.Memory
				}
			case op < 6:
				m := must.Get(s.Update(t.Context(), ann(), core.Memory{ID: anyOne(), Content: words(r)}))(t)
				kept[m.ID] = m.Memory
			case op < 7:
				id := anyOne()
				must.Do(t, s.Store.Delete(t.Context(), ann(), id))
				delete(kept, id)
			default:
				tenant := core.Tenant{Owner: "ann", User: users[r.IntN(3)]}
				query, limit := words(r), 1+r.IntN(20)
				want := nearestOf(t, kept, tenant, query, limit)
				for i, s := range all {
					got := must.Get(s.Search(t.Context(), tenant, core.MemorySearch{Query: query, Limit: limit}))(t)
					if diff := cmp.Diff(want, got.Items); diff != "" {
						t.Fatalf("step %d, replica %d, %q of %q (-want +got):\n%s", step, i, query, tenant.User, diff)
					}
				}
			}
		}
	})
}

// nearestOf compares with every memory.
func nearestOf(t *testing.T, kept map[core.MemoryID]core.Memory, tenant core.Tenant, query string, limit int) []core.MemoryMatch {
	t.Helper()
	texts, list := []string{query}, []core.Memory{}
	for _, m := range kept {
		if tenant.User == "" || m.UserID == tenant.User {
			texts, list = append(texts, m.Content), append(list, m)
		}
	}
	vectors := must.Get(llm.HashEmbedder{}.Embed(t.Context(), texts))(t)
	out := make([]core.MemoryMatch, 0, len(list))
	for i, m := range list {
		v, err := llm.UnitVector(vectors[i+1], 0) // as the service makes sure of it
		must.Do(t, err)
		q := must.Get(llm.UnitVector(vectors[0], 0))(t)
		m.Owner = "ann"
		out = append(out, core.MemoryMatch{Memory: m, Score: min(llm.DotProduct(q, v), 1)})
	}
	slices.SortFunc(out, func(a, b core.MemoryMatch) int {
		switch {
		case a.Score != b.Score && a.Score > b.Score:
			return -1
		case a.Score != b.Score:
			return 1
		default:
			return strings.Compare(string(b.Memory.ID), string(a.Memory.ID))
		}
	})
	return out[:min(limit, len(out))]
}

// A memory whose text cannot be embedded is stored, says so, and is found after it
// was reindexed; nothing is lost when the embedder fails in the middle.
func TestMemoriesOutliveTheirEmbedder(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		e := &embedder{name: "e-1"}
		s := newService(d, e)
		first := must.Get(s.Create(t.Context(), ann(), core.Memory{Content: "the pump"}))(t)
		compare.True(t, first.Notice == "" && !first.Stale && first.EmbeddingModel == "e-1" && first.Dimension == 384, "got %+v, want it embedded", first)
		e.fail(&llm.Error{Kind: llm.KindOverloaded, Message: "secret words of the provider"})
		second := must.Get(s.Create(t.Context(), ann(), core.Memory{Content: "the pump is new"}))(t)
		if !strings.Contains(second.Notice, "overloaded") || strings.Contains(second.Notice, "secret") || !second.Stale || second.EmbeddingModel != "" {
			t.Errorf("got %+v, want it stale with a notice", second)
		}
		changed := must.Get(s.Update(t.Context(), ann(), core.Memory{ID: first.ID, Content: "the old pump"}))(t)
		compare.True(t, changed.Notice != "" && changed.Stale && changed.Content == "the old pump", "got %+v, want it changed and stale", changed)
		if _, err := s.Search(t.Context(), ann(), core.MemorySearch{Query: "pump"}); !errors.Is(err, core.ErrModel) || strings.Contains(err.Error(), "secret") {
			t.Errorf("search: got error %v, want one of the model", err)
		}
		compare.Error(t, "reindex: want one of the model", core.ErrModel, compare.ErrorOf(s.Reindex(t.Context(), ann(), core.Reindex{})))
		e.fail(nil)
		got := must.Get(s.Search(t.Context(), ann(), core.MemorySearch{Query: "pump"}))(t)
		compare.True(t, len(got.Items) == 0 && got.Stale == 2 && got.Searched == 0 && got.EmbeddingModel == "e-1", "before reindex: got %+v, want 2 stale", got)
		done, err := s.Reindex(t.Context(), ann(), core.Reindex{})
		must.Do(t, err)
		compare.Equal(t, "reindex", core.Reindexed{Embedded: 2, EmbeddingModel: "e-1"}, done)
		got, err = s.Search(t.Context(), ann(), core.MemorySearch{Query: "old pump"})
		must.Do(t, err)
		compare.True(t, len(got.Items) == 2 && got.Stale == 0 && got.Items[0].Memory.ID == first.ID && got.Searched == 2, "after reindex: got %+v, want both", got)
		calls := e.calls.Load()
		same := must.Get(s.Update(t.Context(), ann(), core.Memory{ID: first.ID, Content: "the old pump", Metadata: []byte(`{"a":1}`)}))(t)
		if same.Stale || e.calls.Load() != calls || string(same.Metadata) == "" {
			t.Errorf("the same content: got %+v after %d more calls, want it not embedded anew", same, e.calls.Load()-calls)
		}
	})
}

// Another embedding model makes every memory stale; reindex goes through all of
// them in batches, beside writers, and passes over what the model refuses.
func TestReindex(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		before := newService(d, &embedder{name: "e-1"})
		var refused core.MemoryID
		for i := range 50 {
			owner := core.Tenant{Owner: []string{"ann", "bob"}[i%2]}
			content := fmt.Sprintf("pump %d", i)
			if i == 20 {
				content = "far too long"
			}
			m := must.Get(before.Create(t.Context(), owner, core.Memory{Content: content}))(t)
			if i == 20 {
				refused = m.ID
			}
		}
		e := &embedder{name: "e-2", takes: func(text string) error {
			if text == "far too long" {
				return &llm.Error{Kind: llm.KindContextLength}
			}
			return nil
		}}
		s := newService(d, e)
		got := must.Get(s.Search(t.Context(), ann(), core.MemorySearch{Query: "pump"}))(t)
		compare.True(t, len(got.Items) == 0 && got.Stale == 25, "with another model: got %d items, %d stale; want none of 25", len(got.Items), got.Stale)
		m, err := s.Get(t.Context(), ann(), refused)
		compare.True(t, err == nil && m.Stale, "get: got %+v, error %v, want it stale", m, err)
		// Only ann's own.
		done := must.Get(s.Reindex(t.Context(), ann(), core.Reindex{Limit: 5}))(t)
		compare.True(t, done.Embedded == 5 && done.Remaining == 20 && done.NextCursor != nil, "a batch of ann's: got %+v, want 5 embedded and 20 left", done)
		var wg sync.WaitGroup
		wg.Go(func() { // somebody who goes on writing
			for i := range 20 {
				compare.Error(t, "create", nil, compare.ErrorOf(s.Create(t.Context(), ann(), core.Memory{Content: fmt.Sprintf("valve %d", i)})))
			}
		})
		embedded, failed, q := 0, 0, core.Reindex{AllOwners: true, Limit: 7}
		for {
			done := must.Get(s.Reindex(t.Context(), ann(), q))(t)
			embedded, failed = embedded+done.Embedded, failed+done.Failed
			if done.NextCursor == nil {
				break
			}
			q.Cursor = *done.NextCursor
		}
		wg.Wait()
		compare.True(t, embedded == 44 && failed == 1, "got %d embedded and %d refused, want 44 and 1", embedded, failed)
		for owner, want := range map[string]int{"ann": 1, "bob": 0} {
			got := must.Get(s.Search(t.Context(), core.Tenant{Owner: owner}, core.MemorySearch{Query: "pump"}))(t)
			if got.Stale != want || got.Searched != 25-want+map[string]int{"ann": 20}[owner] {
				t.Errorf("%s: got %d searched and %d stale, want %d stale", owner, got.Searched, got.Stale, want)
			}
		}
		for _, limit := range []int{-1, 257} {
			compare.Error(t, fmt.Sprintf("limit %d", limit), core.ErrInvalid, compare.ErrorOf(s.Reindex(t.Context(), ann(), core.Reindex{Limit: limit})))
		}
	})
}

// What callers send is bounded, and said by field.
func TestMemoryInputs(t *testing.T) {
	t.Parallel()
	s := newService(dbtest.SQLite(t), llm.HashEmbedder{})
	for name, in := range map[string]core.Memory{
		"content is empty": {Content: " \n"}, "content has 32769 bytes": {Content: strings.Repeat("x", 32<<10+1)},
		"metadata must be a JSON object": {Content: "x", Metadata: []byte(`[]`)}, "metadata has": {Content: "x", Metadata: []byte(`{"a":"` + strings.Repeat("x", 16<<10) + `"}`)},
	} {
		_, err := s.Create(t.Context(), ann(), in)
		compare.True(t, errors.Is(err, core.ErrInvalid) && strings.Contains(err.Error(), name), "create: got error %v, want %q", err, name)
		compare.Error(t, "update: "+name, core.ErrInvalid, compare.ErrorOf(s.Update(t.Context(), ann(), in)))
	}
	low, high := float32(-1.1), float32(1.1)
	for name, q := range map[string]core.MemorySearch{
		"query is empty": {}, "query has": {Query: strings.Repeat("x", 9<<10)}, "limit": {Query: "x", Limit: 101},
		"min_score": {Query: "x", MinScore: &low}, "min_score must be": {Query: "x", MinScore: &high},
	} {
		if _, err := s.Search(t.Context(), ann(), q); !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("search: got error %v, want %q", err, name)
		}
	}
	compare.Equal(t, "what can be stored", "a\uFFFDb\uFFFD", must.Get(s.Create(t.Context(), ann(), core.Memory{Content: "a\x00b\xff"}))(t).Content)
	half := float32(0.5)
	got, err := s.Search(t.Context(), ann(), core.MemorySearch{Query: "nothing of it", MinScore: &half})
	compare.True(t, err == nil && got.Items != nil && len(got.Items) == 0 && got.Searched == 1, "got %+v, error %v, want an empty list", got, err)
}

// An embedder that hangs is not waited for longer than its time; who leaves leaves
// nothing behind.
func TestMemoryOfAnEmbedderThatHangs(t *testing.T) {
	t.Parallel()
	e := &embedder{name: "e-1", waits: func(ctx context.Context, _ []string) error {
		<-ctx.Done()
		return llm.CanceledError(ctx, "e")
	}}
	s := memories.New(memories.Options{Store: repositories.NewMemories(dbtest.SQLite(t).Gorm), Embedder: e, EmbedTime: 20 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	m, err := s.Create(t.Context(), ann(), core.Memory{Content: "x"})
	compare.True(t, err == nil && strings.Contains(m.Notice, "in time"), "got %+v, error %v, want it stored without a vector", m, err)
	ctx, cancel := context.WithCancel(t.Context())
	e.waits = func(context.Context, []string) error { cancel(); return ctx.Err() }
	compare.Error(t, "err: want it canceled", context.Canceled, compare.ErrorOf(s.Create(ctx, ann(), core.Memory{Content: "y"})))
	compare.Equal(t, "memories: the first alone", 1, len(must.Get(s.List(t.Context(), ann(), core.PageQuery{}))(t).Items))
}
