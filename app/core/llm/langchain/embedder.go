package langchain

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"

	"github.com/tmc/langchaingo/llms/openai"

	"bobbin/app/core/llm"
	"bobbin/app/core/llm/providerhttp"
)

// The max content of a request for embeddings. OpenAI takes 2,048 texts of
// 300,000 tokens together; smaller servers less.
const (
	maxEmbedTexts = 64
	maxEmbedBytes = 256 << 10
)

// Embedder is one embedding model of one server of the OpenAI dialect, OpenAI and Ollama among them.
// Vectors come in the order in which the server sends them. Safe for concurrent use.
type Embedder struct {
	options   Options
	peer      *providerhttp.Peer
	logger    *slog.Logger
	dimension atomic.Int64 // 0 = nothing came yet
}

// NewEmbedder returns the embedder that the options describe; the BaseURL is required, and Info is
// not used. Nothing is sent before the first Embed. Options that cannot work are core.ErrInvalid.
func NewEmbedder(o Options, logger *slog.Logger) (*Embedder, error) {
	o, err := o.Complete(o.Provider, "")
	if err != nil {
		return nil, err
	}
	return &Embedder{options: o, logger: logger, peer: o.NewPeer()}, nil
}

// Model is provider:model, by which the vectors are known.
func (e *Embedder) Model() string { return e.options.Provider + ":" + e.options.Model }

// Dimension is that of the vectors so far; 0 = none came yet.
func (e *Embedder) Dimension() int { return int(e.dimension.Load()) }

// Embed returns a vector of length 1 for each text, in order. It sends several
// requests where there is much text, and repeats those that failed for now. Errors
// are *llm.Error, as of Stream.
func (e *Embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, 0, len(texts))
	for first := 0; first < len(texts); {
		end, size := first, 0
		for end < len(texts) && (end == first || end-first < maxEmbedTexts && size+len(texts[end]) <= maxEmbedBytes) {
			size += len(texts[end])
			end++
		}
		err := llm.Repeat(ctx, e.Model(), e.logger, func(ctx context.Context) error {
			vectors, err := e.embedOnce(ctx, texts[first:end])
			out = append(out, vectors...)
			return err
		})
		if err != nil {
			return nil, err
		}
		first = end
	}
	return out, nil
}

// embedOnce sends one request. It returns vectors of length 1 and of the same dimension.
func (e *Embedder) embedOnce(ctx context.Context, texts []string) ([][]float32, error) {
	if ctx.Err() != nil {
		return nil, llm.CanceledError(ctx, e.options.Provider)
	}
	exchange := &providerhttp.Exchange{Peer: e.peer}
	// Without any key langchaingo would search the environment and the home directory for one, and send it to any address.
	client, err := openai.New(openai.WithBaseURL(e.options.BaseURL), openai.WithToken(cmp.Or(e.options.APIKey, "-")), openai.WithOrganization(""),
		openai.WithModel(e.options.Model), openai.WithEmbeddingModel(e.options.Model), openai.WithHTTPClient(&http.Client{Transport: exchange}))
	if err != nil {
		return nil, e.peer.Invalid(err)
	}
	vectors, err := client.CreateEmbedding(ctx, texts)
	if exchange.Err != nil { // not err, which has lost its type
		return nil, exchange.Err
	}
	for i := 0; err == nil && i < len(vectors); i++ {
		if vectors[i], err = llm.UnitVector(vectors[i], e.Dimension()); err == nil {
			e.dimension.CompareAndSwap(0, int64(len(vectors[i])))
		}
	}
	if err != nil {
		message := "the answer is not what was asked for: " + e.peer.Scrub(err.Error())
		return nil, &llm.Error{Kind: llm.KindUnknown, Provider: e.options.Provider, Message: message, Err: err}
	}
	return vectors, nil
}
