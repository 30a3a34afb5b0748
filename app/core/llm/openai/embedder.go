package openai

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync/atomic"

	"bobbin/app/core/llm"
)

// The max content of a request for embeddings. OpenAI takes 2,048 texts of
// 300,000 tokens together; smaller servers less.
const (
	maxEmbedTexts = 64
	maxEmbedBytes = 256 << 10
)

// Embedder is one embedding model of one provider of the OpenAI dialect, OpenAI
// and Ollama among them. Safe for concurrent use.
type Embedder struct {
	model     *Model
	backoff   llm.Backoff
	dimension atomic.Int64 // 0 = nothing came yet
}

// NewEmbedder returns the embedder that the options describe; Info and
// LegacyMaxTokens are for models that talk. Nothing is sent before the first Embed.
func NewEmbedder(options Options, backoff llm.Backoff) (*Embedder, error) {
	model, err := New(options)
	if err != nil {
		return nil, err
	}
	return &Embedder{model: model, backoff: backoff}, nil
}

// Model is provider:model, by which the vectors are known.
func (e *Embedder) Model() string { return e.model.options.Provider + ":" + e.model.options.Model }

// Dimension is that of the vectors so far; 0 = none came yet.
func (e *Embedder) Dimension() int { return int(e.dimension.Load()) }

// Embed returns a vector of length 1 for each text, in order. It sends several
// requests where there is much text, and repeats those that failed for now. Errors
// are *llm.Error, as of Stream.
func (e *Embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, 0, len(texts))
	for batch := range splitBatches(texts) {
		var vectors [][]float32
		err := llm.Repeat(ctx, e.Model(), e.backoff, func(ctx context.Context) (err error) {
			vectors, err = e.embedOnce(ctx, batch)
			return err
		})
		if err != nil {
			return nil, err
		}
		out = append(out, vectors...)
	}
	return out, nil
}

// splitBatches splits the texts into what fits a request each.
func splitBatches(texts []string) func(yield func([]string) bool) {
	return func(yield func([]string) bool) {
		first, size := 0, 0
		for i, text := range texts {
			if i > first && (i-first >= maxEmbedTexts || size+len(text) > maxEmbedBytes) {
				if !yield(texts[first:i]) {
					return
				}
				first, size = i, 0
			}
			size += len(text)
		}
		if first < len(texts) {
			yield(texts[first:])
		}
	}
}

// embedOnce sends one request.
func (e *Embedder) embedOnce(ctx context.Context, texts []string) ([][]float32, error) {
	m := e.model
	if ctx.Err() != nil {
		return nil, llm.CanceledError(ctx, m.options.Provider)
	}
	body, err := json.Marshal(embeddingRequest{Model: m.options.Model, Input: texts})
	if err != nil {
		return nil, m.peer.Invalid(err)
	}
	var vectors [][]float32
	failure := m.peer.Do(ctx, func(ctx context.Context) (*http.Request, error) {
		return m.newRequest(ctx, "/embeddings", "application/json", body)
	}, func(response *http.Response, body io.Reader) (err error) {
		answer := embeddingAnswer{model: m, header: response.Header, texts: len(texts)}
		vectors, err = answer.read(body)
		return err
	})
	if failure != nil {
		return nil, failure
	}
	return e.checkVectors(vectors)
}

// checkVectors returns the vectors at length 1. All have the same dimension.
func (e *Embedder) checkVectors(vectors [][]float32) ([][]float32, error) {
	for i, v := range vectors {
		unit, err := llm.UnitVector(v, e.Dimension())
		if err != nil {
			return nil, &llm.Error{Kind: llm.KindUnknown, Provider: e.model.options.Provider, Message: "got " + err.Error()}
		}
		e.dimension.CompareAndSwap(0, int64(len(v)))
		vectors[i] = unit
	}
	return vectors, nil
}

// EmbeddingProviders returns the providers whose models NewEmbedder can ask.
func EmbeddingProviders() []string {
	return []string{ProviderOpenAI, ProviderGemini, ProviderOllama, ProviderMistral, ProviderOpenRouter}
}
