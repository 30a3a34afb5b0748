package app

import (
	"fmt"
	"log/slog"
	"testing"

	"bobbin/app/core/config"
	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
)

// A message may name any model that its provider may have: what the configuration does
// not name shares a few labels.
func TestModelLabels(t *testing.T) {
	t.Parallel()
	known := tokens.NewModels(slog.New(slog.DiscardHandler))
	a := &App{named: map[string]bool{"fast": true, "gpt-4o-mini": true}}
	for name, want := range map[string]string{
		"fast": "fast", "gpt-4o-mini": "gpt-4o-mini", "gpt-4o": "gpt-4o*", "openai/gpt-4o-mini": "gpt-4o*", "gpt-4o-alice@example.com": "gpt-4o*",
		"ft:gpt-4o:acme:secret": "gpt-4o*", "openrouter/some/thing": "other", "bob's phone number is 123": "other", "": "other",
	} {
		if got := a.modelLabel(known, name); got != want {
			t.Errorf("%q: got label %q, want %q", name, got, want)
		}
	}
	labels := map[string]bool{}
	for i := range 10_000 {
		labels[a.modelLabel(known, fmt.Sprintf("gpt-4o-%d", i))] = true
		labels[a.modelLabel(known, fmt.Sprintf("openrouter/x/%d", i))] = true
	}
	if len(labels) > 5 {
		t.Errorf("got %d labels of 20,000 models that somebody made up: %v", len(labels), labels)
	}
}

// What the configuration names in any place has a label of its own, and so have agents
// and tools.
func TestNamedModels(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.DefaultLLM, cfg.ContextSummaryModel = "one", "two"
	cfg.Models = []config.Model{{Name: "one", Provider: "anthropic", BaseURL: "http://localhost"}, {Name: "three", Provider: "demo"}}
	cfg.AgentsDir = t.TempDir()
	a := &App{cfg: cfg, log: slog.New(slog.DiscardHandler)}
	if err := a.openRegistry(t.Context()); err != nil {
		t.Fatal(err)
	}
	set, err := newTools(cfg, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	a.toolset = set
	if a.catalog, err = loadAgents(cfg, set, globalContext(cfg, false), nil); err != nil {
		t.Fatal(err)
	}
	got := a.namedModels()
	for _, name := range []string{"one", "two", "three", llm.DefaultAnthropicModel} {
		if !got[name] {
			t.Errorf("%q is not among %v", name, got)
		}
	}
	if got[""] {
		t.Error("no name is a name")
	}
	if a.agentLabel("assistant") != "assistant" || a.agentLabel("gone") != "other" || a.toolLabel("calculator") != "calculator" || a.toolLabel("made_up") != "other" {
		t.Error("agents and tools that are configured have their names as labels, others have none")
	}
}
