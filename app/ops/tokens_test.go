package ops_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bobbin/app/core/config"
	"bobbin/app/ops"
)

// Counting needs neither a key of the model nor a database, and makes none.
func TestCountTokens(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.DefaultLLM = "demo"
	cfg.DataDir = filepath.Join(t.TempDir(), "data")
	cfg.Database.URL = config.NewSecretURL("sqlite://" + filepath.Join(cfg.DataDir, "bobbin.db"))
	for _, tt := range []struct {
		model, name string
		window      int
	}{{"", "demo", 8192}, {"gpt-4o", "gpt-4o", 128_000}, {"demo", "demo", 8192}} {
		n, err := ops.CountTokens(t.Context(), cfg, slog.New(slog.DiscardHandler), tt.model, "hello wörld")
		if err != nil {
			t.Fatalf("%q: %v", tt.model, err)
		}
		if n.Bytes != 12 || n.Characters != 11 || n.TokenCount != 4 || n.Model != tt.name || n.Window != tt.window || n.Estimate < n.TokenCount || n.Calibration.Measured {
			t.Errorf("%q: got %+v", tt.model, n)
		}
	}
	if _, err := ops.CountTokens(t.Context(), cfg, slog.New(slog.DiscardHandler), "nosuch", "x"); err == nil || !strings.Contains(err.Error(), "nosuch") {
		t.Errorf("a model that is not known: %v", err)
	}
	if _, err := os.Stat(cfg.DataDir); !os.IsNotExist(err) {
		t.Errorf("the data folder was made: %v", err)
	}
}

// W9: a model that nobody knows has a window of 8,192 and is warned of once; at Ollama
// it has that with which Ollama runs models. A configured window is no news.
func TestUnknownModels(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		model    config.Model
		window   int
		warnings int
	}{
		{config.Model{Name: "mystery", Provider: "openai", BaseURL: "http://127.0.0.1:1/v1"}, 8192, 1},
		{config.Model{Name: "mystery", Provider: "ollama", BaseURL: "http://127.0.0.1:1/v1"}, 4096, 1},
		{config.Model{Name: "mystery", Provider: "openai", BaseURL: "http://127.0.0.1:1/v1", ContextWindow: 50_000}, 50_000, 0},
		{config.Model{Name: "mystery", Model: "gpt-4o", Provider: "openai", BaseURL: "http://127.0.0.1:1/v1"}, 128_000, 0},
	} {
		cfg := config.Default()
		cfg.DefaultLLM, cfg.DataDir, cfg.Models = "demo", t.TempDir(), []config.Model{tt.model}
		cfg.Database.URL = config.NewSecretURL("sqlite://" + filepath.Join(cfg.DataDir, "bobbin.db"))
		var log bytes.Buffer
		n, err := ops.CountTokens(t.Context(), cfg, slog.New(slog.NewTextHandler(&log, nil)), "mystery", "hello")
		if err != nil {
			t.Fatal(err)
		}
		warning := fmt.Sprintf(`assuming a small context window; set context_window under models" model=mystery window=%d`, tt.window)
		if got := strings.Count(log.String(), warning); n.Window != tt.window || got != tt.warnings || strings.Count(log.String(), "level=WARN") != got {
			t.Errorf("%+v: got a window of %d and %d warnings, want %d and %d:\n%s", tt.model, n.Window, got, tt.window, tt.warnings, &log)
		}
	}
}
