package app_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bobbin/app"
	"bobbin/app/core/config"
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
		n, err := app.CountTokens(t.Context(), cfg, slog.New(slog.DiscardHandler), tt.model, "hello wörld")
		if err != nil {
			t.Fatalf("%q: %v", tt.model, err)
		}
		if n.Bytes != 12 || n.Characters != 11 || n.TokenCount != 4 || n.Model != tt.name || n.Window != tt.window || n.Estimate < n.TokenCount || n.Calibration.Measured {
			t.Errorf("%q: got %+v", tt.model, n)
		}
	}
	if _, err := app.CountTokens(t.Context(), cfg, slog.New(slog.DiscardHandler), "nosuch", "x"); err == nil || !strings.Contains(err.Error(), "nosuch") {
		t.Errorf("a model that is not known: %v", err)
	}
	if _, err := os.Stat(cfg.DataDir); !os.IsNotExist(err) {
		t.Errorf("the data folder was made: %v", err)
	}
}
