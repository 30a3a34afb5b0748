package langchain

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/tmc/langchaingo/embeddings"
	"github.com/tmc/langchaingo/llms/openai"

	"bobbin/app/core/embed"
	"bobbin/app/core/llm"
)

// What one request for embeddings holds at most. OpenAI takes 2,048 texts of
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

// NewEmbedder returns the embedder that the options describe; Info, Extra and
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
	for batch := range batches(texts) {
		var vectors [][]float32
		err := llm.Repeat(ctx, e.Model(), e.backoff, func(ctx context.Context) (err error) {
			vectors, err = e.once(ctx, batch)
			return err
		})
		if err != nil {
			return nil, err
		}
		out = append(out, vectors...)
	}
	return out, nil
}

// batches splits the texts into what fits a request each.
func batches(texts []string) func(yield func([]string) bool) {
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

// once sends one request. langchaingo builds it and reads the numbers; the
// embedding, as its HTTP client, does what is between.
func (e *Embedder) once(ctx context.Context, texts []string) ([][]float32, error) {
	if ctx.Err() != nil {
		return nil, llm.CanceledError(ctx, e.model.options.Provider)
	}
	x := &embedding{model: e.model, texts: len(texts)}
	client, err := openai.New(
		openai.WithHTTPClient(x),
		openai.WithBaseURL(e.model.options.BaseURL),
		// What it does not know it cannot show in its errors; see Model.run.
		openai.WithModel(placeholder), openai.WithEmbeddingModel(placeholder),
		openai.WithToken(placeholder), openai.WithOrganization(""),
	)
	if err != nil {
		return nil, e.model.peer.Invalid(err)
	}
	// By default it would write over the caller's texts, to take the newlines out.
	embedder, err := embeddings.NewEmbedder(client, embeddings.WithStripNewLines(false), embeddings.WithBatchSize(len(texts)))
	if err != nil {
		return nil, e.model.peer.Invalid(err)
	}
	vectors, err := embedder.EmbedDocuments(ctx, slices.Clone(texts))
	switch {
	case x.err != nil: // not err: langchaingo flattens errors (O12)
		return nil, x.err
	case err != nil && !x.sent:
		return nil, e.model.peer.Invalid(err)
	case err != nil:
		return nil, e.spoiled("the answer cannot be read: " + e.model.peer.Scrub(err.Error()))
	}
	return e.checked(vectors, len(texts))
}

// checked returns the vectors at length 1, if they are what was asked for.
func (e *Embedder) checked(vectors [][]float32, want int) ([][]float32, error) {
	if len(vectors) != want {
		return nil, e.spoiled(fmt.Sprintf("got %d vectors for %d texts", len(vectors), want))
	}
	for i, v := range vectors {
		unit, err := embed.Unit(v, e.Dimension())
		if err != nil {
			return nil, e.spoiled("got " + err.Error())
		}
		e.dimension.CompareAndSwap(0, int64(len(v)))
		vectors[i] = unit
	}
	return vectors, nil
}

func (e *Embedder) spoiled(message string) *llm.Error {
	return &llm.Error{Kind: llm.KindUnknown, Provider: e.model.options.Provider, Message: message}
}

// EmbeddingProviders returns the providers whose models NewEmbedder can ask.
func EmbeddingProviders() []string {
	return []string{ProviderOpenAI, ProviderGemini, ProviderOllama, ProviderMistral, ProviderOpenRouter}
}
