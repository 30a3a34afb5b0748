package memories

import (
	"cmp"
	"context"
	"fmt"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

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
