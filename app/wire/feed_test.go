package wire

import (
	"fmt"
	"log/slog"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/events"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// What webhooks are notified of wakes the deliveries whoever publishes it: also that a run
// waits for a person, and that one was canceled before it began. The publisher never waits.
func TestEventsWakeDeliveries(t *testing.T) {
	t.Parallel()
	for event, want := range map[core.EventType]int{
		core.EventRunWaiting: 1, core.EventRunCanceled: 1, core.EventRunFailed: 1, core.EventRunSucceeded: 1,
		core.EventRunStarted: 0, core.EventRunQueued: 0, core.EventMessageCreated: 0, core.EventDeliveryUpdated: 0,
	} {
		log := slog.New(slog.DiscardHandler)
		feed := events.New(events.NewLocal(1), nil, log)
		outbox := NewDeliveries(Deps{Feed: feed, Logger: log})
		notified := core.RunData{Delivers: want > 0}
		feed.Publish(t.Context(), []core.Event{{Type: core.EventMessageCreated}, {Type: event, Data: notified}, {Type: event, Data: notified}})
		compare.Equal(t, fmt.Sprintf("%s: elements", event), want, len(outbox.NewWork))
	}
}

// A message may name any model that its provider may have: what the configuration does
// not name shares a few labels.
func TestModelLabels(t *testing.T) {
	t.Parallel()
	labels := NewLabels()
	labels.current.Store(&configured{models: map[string]bool{"fast": true, "gpt-4o-mini": true}})
	for name, want := range map[string]string{
		"fast": "fast", "gpt-4o-mini": "gpt-4o-mini", "gpt-4o": "gpt-4o*", "openai/gpt-4o-mini": "gpt-4o*", "gpt-4o-alice@example.com": "gpt-4o*",
		"ft:gpt-4o:acme:secret": "gpt-4o*", "bob's phone number is 123": "other", "": "other",
	} {
		compare.Equal(t, fmt.Sprintf("%q: label", name), want, labels.modelLabel(name))
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
	log := slog.New(slog.DiscardHandler)
	models := must.Get(OpenModels(t.Context(), cfg, ModelOptions{Logger: log}))(t)
	set := NewTools(cfg, ToolParts{})
	agents := must.Get(LoadAgents(cfg, set, Models{}))(t)
	labels := NewLabels()
	labels.Set(cfg, models, agents)
	got := labels.current.Load().models
	for _, name := range []string{"one", "two", "three"} {
		compare.True(t, got[name], "%q is not among %v", name, got)
	}
	compare.True(t, !got[""], "no name is a name")
	if labels.agentLabel("assistant") != "assistant" || labels.agentLabel("gone") != "other" || labels.toolLabel("calculator") != "calculator" || labels.toolLabel("made_up") != "other" {
		t.Error("agents and tools that are configured have their names as labels, others have none")
	}
}
