package memories

import (
	"cmp"
	"context"
	"errors"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

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
