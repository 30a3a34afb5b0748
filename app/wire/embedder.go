package wire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"bobbin/app/chat/meaning"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/langchain"
	"bobbin/app/core/llm/openai"
	"bobbin/app/core/llm/providerhttp"
)

// embedTimeout is shorter than that of models that talk: somebody waits until a
// memory is stored.
const embedTimeout = 20 * time.Second

// OpenEmbedder returns what makes memories searchable, and its prices.
func OpenEmbedder(cfg config.Config, m Models, log *slog.Logger) (llm.Embedder, llm.Info, error) {
	name := cfg.EmbeddingModel
	if name == "" || name == llm.HashingModel {
		return llm.HashEmbedder{}, llm.Info{}, nil
	}
	entry, err := m.Locate(m.embeddingName(name))
	if err != nil {
		return nil, llm.Info{}, core.Errorf(core.ErrInvalid, "embedding_model: %s", err)
	}
	if !slices.Contains(openai.EmbeddingProviders(), entry.Provider) {
		return nil, llm.Info{}, core.Errorf(core.ErrInvalid, "embedding_model: the provider %s has no embeddings; use one of %s, or leave it empty",
			entry.Provider, strings.Join(openai.EmbeddingProviders(), ", "))
	}
	e, err := langchain.NewEmbedder(langchain.Options{
		Name: entry.Name, Model: entry.Model, Provider: entry.Provider, BaseURL: cmp.Or(entry.BaseURL, openai.BaseURL(entry.Provider)), APIKey: os.Getenv(entry.APIKeyEnv),
		Timeouts: providerhttp.Timeouts{Headers: embedTimeout, Idle: embedTimeout},
	}, log)
	return e, entry.Info, err
}

// NewMeaning returns the search of messages by meaning beside words, and what embeds them in the
// background, which charges the owners of the messages. Without an embedding model it is the
// search by words, and nil.
func NewMeaning(d Deps, uncharged llm.Embedder, info llm.Info) (core.SearchStore, *meaning.Embedder) {
	if uncharged.Model() == llm.HashingModel {
		return d.Stores.Search, nil
	}
	search := meaning.NewSearch(meaning.SearchOptions{
		Words: d.Stores.Search, Vectors: d.Stores.MessageVectors, Embedder: ChargeEmbedder(d, uncharged, info), Logger: d.Logger,
	})
	return search, meaning.NewEmbedder(meaning.EmbedderOptions{
		Vectors: d.Stores.MessageVectors, Embedder: uncharged, Model: info,
		CheckBudget: func(ctx context.Context, owner string) error { return d.Budget.Check(ctx, owner, info) },
		Count:       d.Counter.Text, Worker: d.Worker, Logger: d.Logger,
	})
}

// ChargeEmbedder returns an embedder that charges its calls to the caller in the context: it
// refuses those that the caller's spend limits do not allow, and records the others. What works
// offline costs nothing.
func ChargeEmbedder(d Deps, e llm.Embedder, info llm.Info) llm.Embedder {
	if e.Model() == llm.HashingModel {
		return e
	}
	return chargedEmbedder{Embedder: e, deps: d, model: info}
}

// chargedEmbedder is an embedder whose calls count in the usage of who makes them.
type chargedEmbedder struct {
	llm.Embedder
	deps  Deps
	model llm.Info
}

// Embed returns core.ErrSpendLimit and core.ErrModelUnpriced, too. A call that its caller cancels
// counts: the provider may have done the work.
func (e chargedEmbedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	caller, known := core.IdentityFrom(ctx)
	if !known { // the command line
		caller.Owner = core.LocalOwner
	}
	if err := e.deps.Budget.Check(ctx, caller.Owner, e.model); err != nil {
		return nil, err
	}
	start := time.Now()
	vectors, err := e.Embedder.Embed(ctx, texts)
	if err != nil && !errors.Is(ctx.Err(), context.Canceled) {
		return nil, err
	}
	call := core.ModelCall{
		ID: core.NewID[string](), Owner: caller.Owner, User: caller.User, Purpose: core.PurposeEmbedding,
		Model: e.model.Name, Provider: e.model.Provider, Duration: time.Since(start), CreatedAt: core.Now(),
	}
	for _, text := range texts {
		call.Usage.InputTokens += e.deps.Counter.Text(text) // embedding servers rarely report it
	}
	call.Estimated, call.Cost = call.Usage.InputTokens, e.model.Cost(&call.Usage)
	if err != nil {
		call.Error = string(llm.KindCanceled)
	}
	recording, cancel := context.WithTimeout(context.WithoutCancel(ctx), embedTimeout)
	defer cancel()
	if recordErr := e.deps.Stores.ModelCalls.RecordCall(recording, call); recordErr != nil {
		return nil, errors.Join(err, fmt.Errorf("record embedding: %w", recordErr))
	}
	return vectors, err
}

// embeddingName returns the name as the registry of models knows it: a configured
// one, or provider/model for provider:model.
func (m Models) embeddingName(name string) string {
	if slices.Contains(m.Names(), name) {
		return name
	}
	provider, model, found := strings.Cut(name, ":")
	if found && slices.Contains(openai.EmbeddingProviders(), provider) {
		return provider + "/" + model
	}
	return name
}

// DescribeEmbedder says what makes memories searchable, for people.
func DescribeEmbedder(e llm.Embedder) string {
	if e.Model() == llm.HashingModel {
		return e.Model() + " (offline: matches words, not meaning; embedding_model sets another)"
	}
	return e.Model()
}
