package app_test

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"bobbin/app"
	"bobbin/app/core/config"
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
		if err != nil {
			t.Fatalf("%s: %v", tt.model, err)
		}
		if size, hint := a.Window(); size != tt.window || !strings.Contains(hint, tt.hint) || hint != "" && tt.hint == "" {
			t.Errorf("%s: got %d tokens, %q; want %d, %q", tt.model, size, hint, tt.window, tt.hint)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}
