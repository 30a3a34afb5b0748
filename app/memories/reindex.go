package memories

import (
	"context"

	"bobbin/app/core"
	"bobbin/app/core/embed"
)

// Reindex embeds one batch of stale memories with the model in use. What was done is
// in the rows: it may be broken off at any moment, repeated, and made by several at
// once; a memory that is changed meanwhile keeps what the change gave it. Texts that
// the model refuses are counted as failed and passed over; if the model does not
// answer at all the error is ErrModel, and the batch may be asked for again.
func (s *Service) Reindex(ctx context.Context, scope core.Scope, in core.Reindex) (core.Reindexed, error) {
	var f core.Faults
	if in.Limit == 0 {
		in.Limit = core.DefaultReindexBatch
	}
	if in.Limit < 1 || in.Limit > core.MaxReindexBatch {
		f.Add("limit", "must be between 1 and %d", core.MaxReindexBatch)
	}
	if err := f.Err(); err != nil {
		return core.Reindexed{}, err
	}
	from := scope
	if in.AllOwners {
		from = core.Scope{}
	}
	page, err := s.store.Stale(ctx, from, embed.Space(s.embedder), core.PageQuery{Limit: in.Limit, Cursor: in.Cursor})
	if err != nil {
		return core.Reindexed{}, err
	}
	out := core.Reindexed{NextCursor: page.NextCursor, EmbeddingModel: s.embedder.Model()}
	done, err := s.embedAll(ctx, page.Items)
	if err != nil {
		return core.Reindexed{}, err
	}
	out.Failed = len(page.Items) - len(done)
	if out.Embedded, err = s.store.SetVectors(ctx, done); err != nil {
		return core.Reindexed{}, err
	}
	out.Remaining, err = s.remaining(ctx, scope, in.AllOwners)
	return out, err
}

func (s *Service) remaining(ctx context.Context, scope core.Scope, all bool) (int, error) {
	if all {
		return s.store.CountAllStale(ctx, embed.Space(s.embedder))
	}
	return s.store.CountStale(ctx, scope, embed.Space(s.embedder))
}

// embedAll returns those of the memories that the model takes, with their vectors.
func (s *Service) embedAll(ctx context.Context, list []core.Memory) ([]core.Memory, error) {
	if len(list) == 0 {
		return nil, nil
	}
	texts := make([]string, len(list))
	for i, m := range list {
		texts[i] = m.Content
	}
	vectors, err := s.embed(ctx, texts)
	switch {
	case err == nil:
		for i := range list {
			list[i].Embedding, list[i].EmbeddingModel = vectors[i], s.embedder.Model()
		}
		return list, nil
	case !isRefused(err):
		return nil, s.failure(ctx, err)
	case len(list) == 1:
		s.log.WarnContext(ctx, "memory not embedded", "memory_id", string(list[0].ID), "model", s.embedder.Model(), "err", err)
		return nil, nil
	}
	// One of them is to blame. Halving finds it in few calls.
	left, err := s.embedAll(ctx, list[:len(list)/2])
	if err != nil {
		return nil, err
	}
	right, err := s.embedAll(ctx, list[len(list)/2:])
	return append(left, right...), err
}
