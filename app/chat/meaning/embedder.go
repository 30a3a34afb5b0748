package meaning

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/db/repositories"
)

// The bounds of embedding in the background.
const (
	batchMessages = 64
	maxEmbedded   = 8_000 // bytes of a text: its beginning
	batchTime     = 20 * time.Second
	idlePause     = 2 * time.Second  // when there is nothing to embed
	failurePause  = 30 * time.Second // after a failure of the model
)

// EmbedderOptions configure an Embedder. All are required.
type EmbedderOptions struct {
	Vectors     *repositories.MessageVectors
	Embedder    llm.Embedder
	Model       llm.Info                                      // its name, provider and price
	CheckBudget func(ctx context.Context, owner string) error // of embeddings
	Count       func(text string) int                         // cl100k_base tokens
	Worker      string                                        // names this process in the lease
	Logger      *slog.Logger
}

// Embedder embeds messages in the background.
type Embedder struct{ EmbedderOptions }

// NewEmbedder returns an Embedder.
func NewEmbedder(o EmbedderOptions) *Embedder { return &Embedder{o} }

// Run embeds messages until ctx ends.
func (e *Embedder) Run(ctx context.Context) error {
	return core.Repeat(ctx, nil, func(ctx context.Context) (pause time.Duration) {
		n, err := e.EmbedBatch(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			e.Logger.WarnContext(ctx, "messages not embedded", "model", e.Embedder.Model(), "err", err)
			pause = failurePause
		case n == 0:
			pause = idlePause
		}
		return pause
	})
}

// EmbedBatch embeds the next messages of a session and returns how many; 0 = there is nothing
// to do, or another process does it.
func (e *Embedder) EmbedBatch(ctx context.Context) (int, error) {
	space := llm.SpaceOf(e.Embedder)
	if claimed, err := e.Vectors.Claim(ctx, e.Worker, space); err != nil || !claimed {
		return 0, err
	}
	var spent []string // owners who may spend no more
	for {
		next, err := e.Vectors.Unembedded(ctx, space, spent, batchMessages)
		if err != nil || next.SessionID == "" {
			return 0, err
		}
		if e.CheckBudget(ctx, next.Owner) != nil {
			spent = append(spent, next.Owner)
			continue
		}
		return len(next.Messages), e.embedMessages(ctx, next)
	}
}

func (e *Embedder) embedMessages(ctx context.Context, next core.Unembedded) error {
	start := time.Now()
	texts := make([]string, len(next.Messages))
	for i, m := range next.Messages {
		texts[i] = core.Clip(m.Content, maxEmbedded)
	}
	vectors, err := llm.EmbedAccepted(ctx, func(ctx context.Context, texts []string) ([][]float32, error) {
		ctx, cancel := context.WithTimeout(ctx, batchTime)
		defer cancel()
		return e.Embedder.Embed(ctx, texts)
	}, texts)
	if err != nil {
		return err
	}
	list, tokens := make([]core.MessageVector, len(vectors)), 0
	for i, m := range next.Messages {
		list[i] = core.MessageVector{MessageID: m.ID, SessionID: m.SessionID, Vector: vectors[i]}
		tokens += e.Count(texts[i])
	}
	usage := core.Usage{InputTokens: tokens} // embedding servers rarely report it
	err = e.Vectors.StoreVectors(ctx, next, llm.SpaceOf(e.Embedder), list, core.ModelCall{
		ID: core.NewID[string](), Purpose: core.PurposeEmbedding, Model: e.Model.Name, Provider: e.Model.Provider, Estimated: tokens,
		Usage: usage, Cost: e.Model.Cost(&usage), Duration: time.Since(start), CreatedAt: core.Now(),
	})
	if errors.Is(err, core.ErrNotFound) { // the session is gone
		return nil
	}
	return err
}
