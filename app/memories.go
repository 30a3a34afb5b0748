package app

import (
	"os"
	"slices"
	"strings"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/embed"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/langchain"
	"bobbin/app/memories"
)

// embedTimeout is shorter than that of models that talk: somebody waits until a
// memory is stored.
const embedTimeout = 20 * time.Second

// openEmbedder returns what makes memories searchable.
func (a *App) openEmbedder() (embed.Embedder, error) {
	name := a.cfg.EmbeddingModel
	if name == "" || name == embed.HashingModel {
		return embed.Hashing{}, nil
	}
	entry, err := a.models.Locate(a.embeddingName(name))
	if err != nil {
		return nil, core.Errorf(core.ErrInvalid, "embedding_model: %s", err)
	}
	if !slices.Contains(langchain.EmbeddingProviders(), entry.Provider) {
		return nil, core.Errorf(core.ErrInvalid, "embedding_model: the provider %s has no embeddings; use one of %s, or leave it empty",
			entry.Provider, strings.Join(langchain.EmbeddingProviders(), ", "))
	}
	return langchain.NewEmbedder(langchain.Options{
		Name: entry.Name, Model: entry.Model, Provider: entry.Provider, BaseURL: entry.BaseURL, APIKey: os.Getenv(entry.APIKeyEnv),
		Timeouts: langchain.Timeouts{Headers: embedTimeout, Idle: embedTimeout},
	}, llm.Backoff{Logger: a.log})
}

// embeddingName returns the name as the registry of models knows it: a configured
// one, or provider/model for provider:model.
func (a *App) embeddingName(name string) string {
	if slices.Contains(a.models.Names(), name) {
		return name
	}
	provider, model, found := strings.Cut(name, ":")
	if found && slices.Contains(langchain.EmbeddingProviders(), provider) {
		return provider + "/" + model
	}
	return name
}

// buildMemories builds the use cases of memories.
func (a *App) buildMemories() *memories.Service {
	matches := core.MatchesMeaning
	if a.offlineEmbedder() {
		matches = core.MatchesWords
	}
	return memories.New(memories.Options{
		Store: a.repos.memories, Embedder: a.embedder, Matches: matches,
		IndexBytes: int64(a.cfg.Limits.MemoryIndexBytes), Logger: a.log,
	})
}

func (a *App) offlineEmbedder() bool { return a.embedder.Model() == embed.HashingModel }

// Embedding says what makes memories searchable, for the start-up lines.
func (a *App) Embedding() string {
	if a.offlineEmbedder() {
		return a.embedder.Model() + " (offline: matches words, not meaning; embedding_model sets another)"
	}
	return a.embedder.Model()
}
