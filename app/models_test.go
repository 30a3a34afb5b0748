package app_test

import (
	"bytes"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"bobbin/app"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// The start-up lines tell the window of the default model, and whom to ask where it
// is a guess (W9).
func TestWindow(t *testing.T) {
	for _, tt := range []struct {
		model   string
		context string // OLLAMA_CONTEXT_LENGTH
		window  int
		hint    string
	}{
		{"demo", "", 8192, ""},
		{"openai/gpt-4o", "", 128_000, ""},
		{"openai/mystery", "", 8192, "set context_window"},
		{"ollama/llama3.2", "", 4096, "set OLLAMA_CONTEXT_LENGTH"},
		{"ollama/llama3.2", "32768", 32768, ""},
	} {
		t.Setenv("OPENAI_API_KEY", "test")
		t.Setenv("OLLAMA_CONTEXT_LENGTH", tt.context)
		cfg := config.Default()
		cfg.DefaultLLM, cfg.DataDir = tt.model, t.TempDir()
		cfg.AgentsDir = filepath.Join(cfg.DataDir, "agents")
		cfg.Database.URL = config.NewSecretURL("sqlite://" + filepath.Join(cfg.DataDir, "bobbin.db"))
		a, err := app.New(t.Context(), cfg, app.Build{}, slog.New(slog.DiscardHandler))
		must.True(t, err == nil, "%s: %v", tt.model, err)
		if size, hint := a.Models.Window(); size != tt.window || !strings.Contains(hint, tt.hint) || hint != "" && tt.hint == "" {
			t.Errorf("%s: got %d tokens, %q; want %d, %q", tt.model, size, hint, tt.window, tt.hint)
		}
		must.Do(t, a.Close())
	}
}

// embedding_model takes provider:model, provider/model, a name of models, or
// nothing; what cannot embed is refused at the start, and no window is missed.
func TestEmbeddingModel(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "test")
	t.Setenv("OPENAI_BASE_URL", "")
	t.Setenv("MISTRAL_API_KEY", "")
	for name, want := range map[string]string{
		"":                              "hashing-384-v1 (offline: matches words, not meaning; embedding_model sets another)",
		"hashing-384-v1":                "hashing-384-v1 (offline: matches words, not meaning; embedding_model sets another)",
		"openai:text-embedding-3-small": "openai:text-embedding-3-small",
		"openai/text-embedding-3-small": "openai:text-embedding-3-small",
		"ollama:nomic-embed-text:v1.5":  "ollama:nomic-embed-text:v1.5",
		"house":                         "openai:bge-m3",
		"colon:name":                    "ollama:x",
		"mistral:mistral-embed":         "error: embedding_model: model mistral/mistral-embed needs an API key: set MISTRAL_API_KEY",
		"demo":                          "error: embedding_model: the provider demo has no embeddings",
		"nonsense":                      "error: embedding_model: model \"nonsense\" is not known",
	} {
		cfg := config.Default()
		cfg.DataDir = t.TempDir()
		cfg.AgentsDir = filepath.Join(cfg.DataDir, "agents")
		cfg.Database.URL = config.NewSecretURL("sqlite://" + filepath.Join(cfg.DataDir, "b.db"))
		cfg.DefaultLLM, cfg.EmbeddingModel = "demo", name
		cfg.Models = []config.Model{{Name: "house", Provider: "openai", Model: "bge-m3", BaseURL: "http://localhost:1/v1"}, {Name: "colon:name", Provider: "ollama", Model: "x"}}
		var log bytes.Buffer
		a, err := app.New(t.Context(), cfg, app.Build{}, slog.New(slog.NewTextHandler(&log, nil)))
		got := ""
		switch {
		case err != nil && !errors.Is(err, core.ErrInvalid):
			t.Errorf("%q: got error %v, want ErrInvalid", name, err)
		case err != nil:
			got = "error: " + err.Error()
		default:
			got = a.Embedding()
			must.Do(t, a.Close())
		}
		compare.True(t, strings.HasPrefix(got, want), "%q: got %q, want %q", name, got, want)
		compare.True(t, !strings.Contains(log.String(), "not known"), "%q: got the log %s", name, &log)
	}
}
