package memories

import (
	"context"
	"runtime"
	"slices"
	"sync"

	"bobbin/app/core"
)

// Search returns the memories of the scope that are nearest to the query, best first, equal
// ones by age, newest first; and how many were not searched because they are stale. The error
// is ErrModel if the query could not be embedded.
func (s *Service) Search(ctx context.Context, tenant core.Tenant, in core.MemorySearch) (core.MemoryMatches, error) {
	in, err := checkSearch(in)
	if err != nil {
		return core.MemoryMatches{}, err
	}
	list, err := s.embedTexts(ctx, []string{in.Query})
	if err != nil {
		return core.MemoryMatches{}, s.embedError(ctx, err)
	}
	space := core.VectorSpace{Model: s.embedder.Model(), Dimension: len(list[0])}
	best := newNearest(in.Limit, *in.MinScore)
	held, err := s.indexes.withIndex(ctx, tenant.Owner, space, func(x *index) { searchIndex(x, list[0], tenant.User, best) })
	if err == nil && !held {
		err = eachVector(ctx, s.store, tenant, space, func(v core.MemoryVector) error {
			best.compareVector(list[0], v)
			return nil
		})
	}
	if err != nil {
		return core.MemoryMatches{}, err
	}
	out := core.MemoryMatches{EmbeddingModel: space.Model, Matches: s.matches, Searched: best.searched}
	if out.Stale, err = s.store.CountStale(ctx, tenant, space); err != nil {
		return core.MemoryMatches{}, err
	}
	out.Items, err = s.loadMatches(ctx, tenant, best.hits)
	return out, err
}

// checkSearch returns the search with defaults filled in.
func checkSearch(in core.MemorySearch) (core.MemorySearch, error) {
	var f core.Faults
	in.Query = checkText(&f, "query", in.Query, MaxQuery)
	if in.Limit == 0 {
		in.Limit = core.DefaultMemoryMatches
	}
	if in.Limit < 1 || in.Limit > core.MaxMemoryMatches {
		f.Add("limit", "must be between 1 and %d", core.MaxMemoryMatches)
	}
	if in.MinScore == nil {
		in.MinScore = new(float32(-2)) // below every cosine, including rounding errors
	} else if !(*in.MinScore >= -1 && *in.MinScore <= 1) { // also rejects NaN
		f.Add("min_score", "must be between -1 and 1")
	}
	return in, f.Err()
}

// loadMatches reads the memories of the hits, and skips those that were deleted meanwhile.
func (s *Service) loadMatches(ctx context.Context, tenant core.Tenant, hits []hit) ([]core.MemoryMatch, error) {
	out := make([]core.MemoryMatch, 0, len(hits))
	if len(hits) == 0 {
		return out, nil
	}
	ids := make([]core.MemoryID, len(hits))
	for i, h := range hits {
		ids[i] = h.id
	}
	list, err := s.store.Found(ctx, tenant, ids)
	if err != nil {
		return out, err
	}
	for _, h := range hits {
		at := slices.IndexFunc(list, func(m core.Memory) bool { return m.ID == h.id })
		if at >= 0 {
			out = append(out, core.MemoryMatch{Memory: s.publicMemory(list[at]), Score: min(max(h.score, -1), 1)})
		}
	}
	return out, nil
}

// parallelRows is the number of vectors from which a search uses several cores, and maxWorkers
// the most that one search uses.
const (
	parallelRows = 16 * blockRows
	maxWorkers   = 8
)

// searchIndex searches all of an index.
func searchIndex(x *index, query []float32, user string, best *nearest) {
	rows := len(x.ids)
	workers := min(runtime.GOMAXPROCS(0), maxWorkers, rows/parallelRows+1)
	if workers == 1 {
		x.searchSlots(query, user, 0, rows, best)
		return
	}
	parts := make([]*nearest, workers)
	var wait sync.WaitGroup
	for i := range parts {
		parts[i] = newNearest(best.limit, best.minScore)
		wait.Go(func() { x.searchSlots(query, user, i*rows/workers, (i+1)*rows/workers, parts[i]) })
	}
	wait.Wait()
	for _, part := range parts {
		best.mergeHits(part)
	}
}
