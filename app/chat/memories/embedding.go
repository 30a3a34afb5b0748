package memories

import (
	"context"
	"errors"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// embedTexts returns the vectors of the texts, valid and of the same dimension, or the
// embedder's error.
func (s *Service) embedTexts(ctx context.Context, texts []string) ([][]float32, error) {
	ctx, cancel := context.WithTimeout(ctx, s.EmbedTime)
	defer cancel()
	list, err := s.Embedder.Embed(ctx, texts)
	if err != nil {
		return nil, err
	}
	if len(list) != len(texts) {
		return nil, errors.New("the embedder returned a different number of vectors than texts")
	}
	d := s.Embedder.Dimension()
	for i, v := range list {
		if list[i], err = llm.UnitVector(v, d); err != nil {
			return nil, err
		}
	}
	return list, nil
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
	m := llm.AsError(err)
	if m == nil {
		return "its response is not usable"
	}
	switch m.Kind {
	case llm.KindRateLimit:
		return "its provider is limiting requests at the moment"
	case llm.KindAuth:
		return "its provider did not accept the API key"
	case llm.KindTimeout, llm.KindCanceled:
		return "it did not answer in time"
	case llm.KindOverloaded:
		return "its provider is overloaded or unavailable"
	case llm.KindContextLength:
		return "the text is too long for it"
	case llm.KindNotFound:
		return "its provider does not know it; check embedding_model"
	case llm.KindNetwork:
		return "its provider cannot be reached"
	case llm.KindInvalid, llm.KindContentFilter:
		return "its provider refused the text"
	case llm.KindTruncated, llm.KindEmpty, llm.KindUnknown:
	}
	return "its response is not usable"
}
