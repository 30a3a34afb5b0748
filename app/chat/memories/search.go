package memories

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// Search returns the memories of the scope that are nearest to the query, best first, equal
// ones by age, newest first; and how many were not searched because they are stale. The error
// is ErrModel if the query could not be embedded.
func (s *Service) Search(ctx context.Context, tenant core.Tenant, in core.MemorySearch) (core.MemoryMatches, error) {
	var f core.Faults
	in.Query = checkText(&f, "query", in.Query, maxQuery)
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

// Reindex embeds one batch of stale memories with the current model. Progress is stored in the
// rows: Reindex may be interrupted at any time, repeated, and run concurrently. A memory that
// is changed meanwhile keeps the result of the change. Texts that the model refuses are counted
// as failed and skipped; if the model does not respond at all, the error is ErrModel, and the
// batch may be requested again.
func (s *Service) Reindex(ctx context.Context, tenant core.Tenant, in core.Reindex) (core.Reindexed, error) {
	in.Limit = cmp.Or(in.Limit, core.DefaultReindexBatch)
	if in.Limit < 1 || in.Limit > core.MaxReindexBatch {
		return core.Reindexed{}, core.Faults{{Field: "limit", Detail: fmt.Sprintf("must be between 1 and %d", core.MaxReindexBatch)}}.Err()
	}
	from := tenant
	if in.AllOwners {
		from = core.Tenant{}
	}
	page, err := s.Store.Stale(ctx, from, llm.SpaceOf(s.Embedder), core.PageQuery{Limit: in.Limit, Cursor: in.Cursor})
	if err != nil {
		return core.Reindexed{}, err
	}
	out := core.Reindexed{NextCursor: page.NextCursor, EmbeddingModel: s.Embedder.Model()}
	done, err := s.embedAll(ctx, page.Items)
	if err != nil {
		return core.Reindexed{}, err
	}
	out.Failed = len(page.Items) - len(done)
	if out.Embedded, err = s.Store.SetVectors(ctx, done); err != nil {
		return core.Reindexed{}, err
	}
	out.Remaining, err = s.Store.CountStale(ctx, from, llm.SpaceOf(s.Embedder))
	return out, err
}

// embedAll returns the memories that the model accepts, with their vectors.
func (s *Service) embedAll(ctx context.Context, list []core.Memory) ([]core.Memory, error) {
	if len(list) == 0 {
		return nil, nil
	}
	texts := make([]string, len(list))
	for i, m := range list {
		texts[i] = m.Content
	}
	vectors, err := llm.EmbedAccepted(ctx, s.embedTexts, texts)
	if err != nil {
		return nil, s.embedError(ctx, err)
	}
	var accepted []core.Memory
	for i, m := range list {
		if vectors[i] == nil {
			s.Logger.WarnContext(ctx, "memory not embedded: the model refuses its text", "memory_id", string(m.ID), "model", s.Embedder.Model())
			continue
		}
		m.Embedding, m.EmbeddingModel = vectors[i], s.Embedder.Model()
		accepted = append(accepted, m)
	}
	return accepted, nil
}

// embedTexts returns the vectors of the texts, or the embedder's error.
func (s *Service) embedTexts(ctx context.Context, texts []string) ([][]float32, error) {
	ctx, cancel := context.WithTimeout(ctx, s.EmbedTime)
	defer cancel()
	return s.Embedder.Embed(ctx, texts)
}

// embedError returns the error that a caller sees when the embedder failed.
func (s *Service) embedError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if core.IsSpendRefusal(err) {
		return err
	}
	e := &core.Error{Kind: core.ErrModel, Code: "embedding", Message: "the embedding model " + s.Embedder.Model() + " failed: " + reasonOf(err), Err: err}
	if m := llm.AsError(err); m != nil {
		e.RetryAfter = m.RetryAfter
	}
	return e
}

// reasonOf returns why the embedder failed, in words that callers may see.
func reasonOf(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "it did not answer in time"
	}
	var refused *core.Error
	if core.IsSpendRefusal(err) && errors.As(err, &refused) {
		return refused.Message
	}
	unusable := "its response is not usable"
	m := llm.AsError(err)
	if m == nil {
		return unusable
	}
	return cmp.Or(map[llm.ErrorKind]string{
		llm.KindRateLimit:     "its provider is limiting requests at the moment",
		llm.KindAuth:          "its provider did not accept the API key",
		llm.KindTimeout:       "it did not answer in time",
		llm.KindCanceled:      "it did not answer in time",
		llm.KindOverloaded:    "its provider is overloaded or unavailable",
		llm.KindContextLength: "the text is too long for it",
		llm.KindNotFound:      "its provider does not know it; check embedding_model",
		llm.KindNetwork:       "its provider cannot be reached",
		llm.KindInvalid:       "its provider refused the text",
		llm.KindContentFilter: "its provider refused the text",
	}[m.Kind], unusable)
}
