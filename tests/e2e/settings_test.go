package e2e_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/must"
	"bobbin/tests/provider"
)

// withAgentFile writes an agent's file.
func withAgentFile(t *testing.T, name, text string) apptest.Setting {
	return func(c *config.Config) {
		t.Helper()
		must.Do(t, errors.Join(os.MkdirAll(c.AgentsDir, 0o700), os.WriteFile(filepath.Join(c.AgentsDir, name+".yaml"), []byte("name: "+name+"\n"+text), 0o600)))
	}
}

// withClaude adds a model that is spoken to as Anthropic's.
func withClaude(name, model string, p *provider.Server) apptest.Setting {
	return func(c *config.Config) {
		c.Models = append(c.Models, config.Model{Name: name, Provider: "anthropic", Model: model, BaseURL: p.URL, ContextWindow: 16_000, MaxOutputTokens: 2_048})
	}
}

// twoOwners gives a house the owners alice and bob.
func twoOwners(c *config.Config) {
	c.Auth.Keys = []config.APIKey{
		{Name: "alice", Secret: config.NewSecret("alice's secret")}, {Name: "bob", Secret: config.NewSecret("bob's secret")},
	}
}
