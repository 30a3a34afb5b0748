package apptest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bobbin/app/core/config"
	"bobbin/tests/must"
	"bobbin/tests/provider"
)

// NewAsking starts a Bobbin whose agent "careful" may use the calculator when a person
// agrees to each call, the time once somebody agreed in the session, and the history
// freely. The model calls the tools that a message names.
func NewAsking(t testing.TB, url string, settings ...Setting) *Bobbin {
	t.Helper()
	arguments := map[string]string{"calculator": `{"expression": "6*7"}`, "current_time": `{}`, "search_history": `{"query": "bees"}`}
	p := NewProvider(t, provider.Options{Calls: func(r provider.Received) []provider.Call {
		last := r.Messages[len(r.Messages)-1]
		var calls []provider.Call
		for _, word := range strings.Fields(last.Text) {
			if a, ok := arguments[word]; ok && last.Role == "user" {
				calls = append(calls, provider.Call{ID: "call_" + word, Name: word, Arguments: a})
			}
		}
		return calls
	}})
	return New(t, url, append([]Setting{WithModel("house", 32_000, 2048, p), WithAgent("careful", `name: careful
system_prompt: You ask before you act.
tools: [calculator, current_time, search_history]
tool_settings:
  calculator: {approval: always}
  current_time: {approval: first}
`)}, settings...)...)
}

// NewProvider starts a fake provider and stops it after the test.
func NewProvider(t testing.TB, o provider.Options) *provider.Server {
	t.Helper()
	p := must.Get(provider.New(o))(t)
	t.Cleanup(p.Close)
	return p
}

// WithModel adds a model of the provider's; the first one is the default.
func WithModel(name string, window, maxOutput int, p *provider.Server) Setting {
	return func(c *config.Config) {
		c.Models = append(c.Models, config.Model{
			Name: name, Provider: "openai", BaseURL: p.URL, ContextWindow: window, MaxOutputTokens: maxOutput,
		})
		c.DefaultLLM = c.Models[0].Name
	}
}

// WithGrace sets how long work in hand may go on when Bobbin stops.
func WithGrace(d time.Duration) Setting {
	return func(c *config.Config) { c.Limits.ShutdownGrace = d }
}

// WithAgent writes an agent's file.
func WithAgent(name, text string) Setting {
	return func(c *config.Config) {
		if err := os.MkdirAll(c.AgentsDir, 0o700); err != nil {
			panic(err)
		}
		if err := os.WriteFile(filepath.Join(c.AgentsDir, name+".yaml"), []byte(text), 0o600); err != nil {
			panic(err)
		}
	}
}
