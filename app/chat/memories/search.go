package memories

import (
	"cmp"
	"context"
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// Search returns the memories of the scope that are nearest to the query, best first, equal
// ones by age, newest first; and how many were not searched because they are stale. The error
// is ErrModel if the query could not be embedded.
func (s *Service) Search(ctx context.Context, tenant core.Tenant, in core.MemorySearch) (core.MemoryMatches, error) {
	var f core.Faults
	in.Query = checkText(&f, "query", in.Query, MaxQuery)
	in.Limit = cmp.Or(in.Limit, core.DefaultMemoryMatches)
	if in.Limit < 1 || in.Limit > core.MaxMemoryMatches {
		f.Add("limit", "must be between 1 and %d", core.MaxMemoryMatches)
	}
	if in.MinScore == nil {
		in.MinScore = new(float32(-2)) // below every cosine, including rounding errors
	} else if !(*in.MinScore >= -1 && *in.MinScore <= 1) { // also rejects NaN
		f.Add("min_score", "must be between -1 and 1")
	}
	if err := f.Err(); err != nil {
		return core.MemoryMatches{}, err
	}
	list, err := s.embedTexts(ctx, []string{in.Query})
	if err != nil {
		return core.MemoryMatches{}, s.embedError(ctx, err)
	}
	space := core.VectorSpace{Model: s.Embedder.Model(), Dimension: len(list[0])}
	hits, searched, err := s.findNearest(ctx, tenant, space, list[0], in)
	if err != nil {
		return core.MemoryMatches{}, err
	}
	out := core.MemoryMatches{EmbeddingModel: space.Model, Matches: s.Matches, Searched: searched}
	if out.Stale, err = s.Store.CountStale(ctx, tenant, space); err != nil {
		return core.MemoryMatches{}, err
	}
	out.Items, err = s.loadMatches(ctx, tenant, hits)
	return out, err
}

// vectorBatch is how many vectors are read in one query.
const vectorBatch = 1000

// hit is a memory that a search found.
type hit struct {
	id    core.MemoryID
	score float32
}

// findNearest compares the query with every vector of the scope, read in batches. It returns the best
// hits, and how many were compared: invalid vectors are skipped.
func (s *Service) findNearest(ctx context.Context, tenant core.Tenant, space core.VectorSpace, query []float32, in core.MemorySearch) (hits []hit, searched int, err error) {
	least := *in.MinScore
	q := core.VectorQuery{Space: space, Limit: vectorBatch}
	for {
		batch, err := s.Store.Vectors(ctx, tenant, q)
		if err != nil {
			return nil, 0, err
		}
		for _, v := range batch {
			if len(v.Vector) != len(query) {
				continue
			}
			searched++
			if score := llm.DotProduct(query, v.Vector); score >= least {
				hits = append(hits, hit{v.ID, score})
			}
		}
		slices.SortFunc(hits, func(a, b hit) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.id, a.id)) })
		if len(hits) >= in.Limit {
			hits = hits[:in.Limit]
			least = hits[in.Limit-1].score // newer ones with the same score still get in
		}
		if len(batch) < vectorBatch {
			return hits, searched, nil
		}
		q.After = core.MemoryVector{ID: batch[vectorBatch-1].ID, UserID: batch[vectorBatch-1].UserID}
	}
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
	list, err := s.Store.Found(ctx, tenant, ids)
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
