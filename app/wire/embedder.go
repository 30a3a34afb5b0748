package wire

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"bobbin/app/chat/meaning"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/openai"
)

// embedTimeout is shorter than that of models that talk: somebody waits until a
// memory is stored.
const embedTimeout = 20 * time.Second

// OpenEmbedder returns what makes memories searchable.
func OpenEmbedder(cfg config.Config, m Models, log *slog.Logger) (llm.Embedder, error) {
	name := cfg.EmbeddingModel
	if name == "" || name == llm.HashingModel {
		return llm.HashEmbedder{}, nil
	}
	entry, err := m.Locate(m.embeddingName(name))
	if err != nil {
		return nil, core.Errorf(core.ErrInvalid, "embedding_model: %s", err)
	}
	if !slices.Contains(openai.EmbeddingProviders(), entry.Provider) {
		return nil, core.Errorf(core.ErrInvalid, "embedding_model: the provider %s has no embeddings; use one of %s, or leave it empty",
			entry.Provider, strings.Join(openai.EmbeddingProviders(), ", "))
	}
	return openai.NewEmbedder(openai.Options{
		Name: entry.Name, Model: entry.Model, Provider: entry.Provider, BaseURL: entry.BaseURL, APIKey: os.Getenv(entry.APIKeyEnv),
		Timeouts: openai.Timeouts{Headers: embedTimeout, Idle: embedTimeout},
	}, llm.Backoff{Logger: log})
}

// NewMeaning returns the search of messages by meaning beside words, and what embeds them in the
// background. Without an embedding model it is the search by words, and nil.
func NewMeaning(d Deps, e llm.Embedder) (core.SearchStore, *meaning.Embedder, error) {
	if e.Model() == llm.HashingModel {
		return d.Stores.Search, nil, nil
	}
	entry, err := d.Models.Locate(d.Models.embeddingName(d.Config.EmbeddingModel))
	if err != nil {
		return nil, nil, err
	}
	check := CheckEmbeddings(d, e)
	search := meaning.NewSearch(meaning.SearchOptions{
		Words: d.Stores.Search, Vectors: d.Stores.MessageVectors, Log: d.Stores.Messages, Embedder: e, CheckBudget: check, Logger: d.Logger,
	})
	return search, meaning.NewEmbedder(meaning.EmbedderOptions{
		Vectors: d.Stores.MessageVectors, Embedder: e, Model: entry.Info(), CheckBudget: check, Count: d.Counter.Text, Worker: d.Worker, Logger: d.Logger,
	}), nil
}

// CheckEmbeddings returns a function that returns an error if the owner may not spend anything on
// embeddings: while a limit in US dollars holds, all that may cost something, because their
// prices are not known.
func CheckEmbeddings(d Deps, e llm.Embedder) func(ctx context.Context, owner string) error {
	return func(ctx context.Context, owner string) error {
		if e.Model() == llm.HashingModel { // it works offline
			return nil
		}
		entry, err := d.Models.Locate(d.Models.embeddingName(d.Config.EmbeddingModel))
		if err != nil {
			return err
		}
		return d.Budget.Check(ctx, owner, llm.Info{Name: entry.Name, Provider: entry.Provider})
	}
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
