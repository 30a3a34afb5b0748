package e2e_test

import (
	"os"
	"path/filepath"
	"testing"

	"bobbin/app/core/config"
	"bobbin/tests/apptest"
)

// withFallback gives the default agent a fallback model.
func withFallback(t *testing.T, models string) apptest.Setting {
	return func(c *config.Config) {
		if err := os.MkdirAll(c.AgentsDir, 0o755); err != nil {
			t.Fatal(err)
		}
		file := "name: assistant\nsystem_prompt: Be kind.\ntools: [calculator]\nfallback_models: " + models + "\n"
		if err := os.WriteFile(filepath.Join(c.AgentsDir, "assistant.yaml"), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
