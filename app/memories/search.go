package memories

import (
	"context"
	"runtime"
	"slices"
	"sync"

	"bobbin/app/core"
)

// Search returns the memories of the scope that are nearest to the query, the best
// first, of equals the newest; and how many were not searched because they are
// stale. The error is ErrModel if the query could not be embedded.
func (s *Service) Search(ctx context.Context, scope core.Scope, in core.MemorySearch) (core.MemoryMatches, error) {
	in, err := checkedSearch(in)
	if err != nil {
		return core.MemoryMatches{}, err
	}
	list, err := s.embed(ctx, []string{in.Query})
	if err != nil {
		return core.MemoryMatches{}, s.failure(ctx, err)
	}
	space := core.VectorSpace{Model: s.embedder.Model(), Dimension: len(list[0])}
	best := newNearest(in.Limit, *in.MinScore)
	held, err := s.indexes.with(ctx, scope.Owner, space, func(x *index) { searchIndex(x, list[0], scope.User, best) })
	if err == nil && !held {
		err = each(ctx, s.store, scope, space, func(v core.MemoryVector) error {
			best.compare(list[0], v)
			return nil
		})
	}
	if err != nil {
		return core.MemoryMatches{}, err
	}
	out := core.MemoryMatches{EmbeddingModel: space.Model, Matches: s.matches, Searched: best.searched}
	if out.Stale, err = s.store.CountStale(ctx, scope, space); err != nil {
		return core.MemoryMatches{}, err
	}
	out.Items, err = s.found(ctx, scope, best.hits)
	return out, err
}

// checkedSearch returns the search with no field left open.
func checkedSearch(in core.MemorySearch) (core.MemorySearch, error) {
	var f core.Faults
	in.Query = text(&f, "query", in.Query, MaxQuery)
	if in.Limit == 0 {
		in.Limit = core.DefaultMemoryMatches
	}
	if in.Limit < 1 || in.Limit > core.MaxMemoryMatches {
		f.Add("limit", "must be between 1 and %d", core.MaxMemoryMatches)
	}
	if in.MinScore == nil {
		in.MinScore = new(float32(-2)) // below every cosine, with what rounding adds
	} else if !(*in.MinScore >= -1 && *in.MinScore <= 1) { // not a number, too
		f.Add("min_score", "must be between -1 and 1")
	}
	return in, f.Err()
}

// found reads the memories that were found, and leaves out those that went
// meanwhile.
func (s *Service) found(ctx context.Context, scope core.Scope, hits []hit) ([]core.MemoryMatch, error) {
	out := make([]core.MemoryMatch, 0, len(hits))
	if len(hits) == 0 {
		return out, nil
	}
	ids := make([]core.MemoryID, len(hits))
	for i, h := range hits {
		ids[i] = h.id
	}
	list, err := s.store.Found(ctx, scope, ids)
	if err != nil {
		return out, err
	}
	for _, h := range hits {
		at := slices.IndexFunc(list, func(m core.Memory) bool { return m.ID == h.id })
		if at >= 0 {
			out = append(out, core.MemoryMatch{Memory: s.shown(list[at]), Score: min(max(h.score, -1), 1)})
		}
	}
	return out, nil
}

// parallelRows is how many vectors make it worth to search with several cores, and
// maxWorkers how many of them one search may take.
const (
	parallelRows = 16 * blockRows
	maxWorkers   = 8
)

// searchIndex searches all of an index.
func searchIndex(x *index, query []float32, user string, best *nearest) {
	rows := len(x.ids)
	workers := min(runtime.GOMAXPROCS(0), maxWorkers, rows/parallelRows+1)
	if workers == 1 {
		x.search(query, user, 0, rows, best)
		return
	}
	parts := make([]*nearest, workers)
	var wait sync.WaitGroup
	for i := range parts {
		parts[i] = newNearest(best.limit, best.least)
		wait.Go(func() { x.search(query, user, i*rows/workers, (i+1)*rows/workers, parts[i]) })
	}
	wait.Wait()
	for _, part := range parts {
		best.merge(part)
	}
}
