package openai

import (
	"testing"

	"bobbin/app/core/llm"
)

// embedder is an embedding model of a provider.
type embedder struct{ llm.Embedder }

func (embedder) Model() string  { return "openai:text-embedding-3-small" }
func (embedder) Dimension() int { return 2 }

// The embedding model has three names: that of the settings, the provider's, and both parts of the latter.
func TestNamesOfTheEmbeddingModel(t *testing.T) {
	t.Parallel()
	a := &API{EmbeddingModel: "my-embed", Embedder: embedder{}}
	for name, known := range map[string]bool{"my-embed": true, "text-embedding-3-small": true, "openai:text-embedding-3-small": true, "": false, "openai": false, "other": false} {
		if err := a.checkEmbedding(embeddingRequest{Model: name, Input: []string{"x"}}); (err == nil) != known {
			t.Errorf("%q: got %v, want known %v", name, err, known)
		}
	}
}
