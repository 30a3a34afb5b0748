package memories

import (
	"context"
	"errors"

	"bobbin/app/core"
	"bobbin/app/core/embed"
	"bobbin/app/core/llm"
)

// embed returns the vectors of the texts, sound and all of one dimension, or the
// embedder's error.
func (s *Service) embed(ctx context.Context, texts []string) ([][]float32, error) {
	ctx, cancel := context.WithTimeout(ctx, s.embedTime)
	defer cancel()
	list, err := s.embedder.Embed(ctx, texts)
	if err != nil {
		return nil, err
	}
	if len(list) != len(texts) {
		return nil, errors.New("the embedder returned another number of vectors than it got texts")
	}
	d := s.embedder.Dimension()
	for i, v := range list {
		if list[i], err = embed.Unit(v, d); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// failure is what a caller hears of an embedder that failed.
func (s *Service) failure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	e := &core.Error{Kind: core.ErrModel, Code: "embedding", Message: "the embedding model " + s.embedder.Model() + " failed: " + reason(err), Err: err}
	if m := llm.AsError(err); m != nil {
		e.RetryAfter = m.RetryAfter
	}
	return e
}

// reason says in words that may be shown why nothing was embedded.
func reason(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "it did not answer in time"
	}
	m := llm.AsError(err)
	if m == nil {
		return "its answer cannot be used"
	}
	switch m.Kind {
	case llm.KindRateLimit:
		return "its provider accepts no more requests at the moment"
	case llm.KindAuth:
		return "its provider did not accept the API key"
	case llm.KindTimeout, llm.KindCanceled:
		return "it did not answer in time"
	case llm.KindOverloaded:
		return "its provider is overloaded or out of order"
	case llm.KindContextLength:
		return "the text is longer than it takes"
	case llm.KindNotFound:
		return "its provider does not know it; check embedding_model"
	case llm.KindNetwork:
		return "its provider cannot be reached"
	case llm.KindInvalid, llm.KindContentFilter:
		return "its provider refused the text"
	case llm.KindTruncated, llm.KindEmpty, llm.KindUnknown:
	}
	return "its answer cannot be used"
}

// isRefused reports whether the text itself was refused, so that another one may
// well be taken.
func isRefused(err error) bool {
	return llm.IsKind(err, llm.KindContextLength) || llm.IsKind(err, llm.KindInvalid) || llm.IsKind(err, llm.KindContentFilter)
}
