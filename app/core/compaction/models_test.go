package compaction_test

import (
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
)

// script returns a model of the name that answers with it.
func script(name, provider string) *llm.Script {
	return llm.Scripted(always("## Facts\n- written by " + name)).
		WithInfo(llm.Info{Name: name, Provider: provider, Window: 128_000, MaxOutput: 8_000})
}

// W8, CONTEXT § 2: who writes the summary: the agent's model, then the global one,
// then what the preset says: the provider's cheap model or default_llm. Never the
// model that answers.
func TestSummaryModelPrecedence(t *testing.T) {
	t.Parallel()
	const cheap = "small"
	for _, tt := range []struct {
		name   string
		policy string
		agent  *string
		global string
		cheap  string // of the model that answers; empty = it has none
		want   string
	}{
		{"agent over all", "sliding", new("own"), "global", cheap, "own"},
		{"global", "sliding", nil, "global", cheap, "global"},
		{"default_llm", "window", nil, "", cheap, "default"},
		{"default_llm", "budget", nil, "", cheap, "default"},
		{"cheap", "sliding", nil, "", cheap, cheap},
		{"cheap", "ratio", nil, "", cheap, cheap},
		{"no cheap one", "ratio", nil, "", "", "default"},
		{"agent's empty name over the global one", "window", new(""), "global", cheap, "default"},
	} {
		t.Run(tt.policy+" "+tt.name, func(t *testing.T) {
			t.Parallel()
			settings := core.ContextSettings{Policy: tt.policy, SummaryModel: tt.agent}
			w := newWorld(t, settings, 8192)
			policy, err := contextwindow.Resolve(contextwindow.Global{SummaryModel: tt.global}, settings)
			if err != nil {
				t.Fatal(err)
			}
			w.profile.Policy = policy
			w.model.WithInfo(llm.Info{Name: "answerer", Provider: "scripted", Window: 8192, MaxOutput: 1024})
			w.models[""] = script("default", "scripted")
			for _, name := range []string{"own", "global"} {
				w.models[name] = script(name, "scripted")
			}
			if tt.cheap != "" {
				w.models[cheapOf("answerer")] = script(tt.cheap, "scripted")
			}
			w.turns(30, 110)
			w.ask("next")
			w.fit()
			if v := w.summaries[0]; v.Model != tt.want || !strings.Contains(v.Content, "written by "+tt.want) || v.Note != "" {
				t.Errorf("got model %q, note %q, content %q, want %q", v.Model, v.Note, v.Content, tt.want)
			}
			if n := len(w.model.Requests()); n != 0 {
				t.Errorf("the answering model was asked for the summary")
			}
		})
	}
}

// C3: the policy's strategy makes the summary; extractive needs no model.
func TestStrategyOfThePolicy(t *testing.T) {
	t.Parallel()
	for strategy, calls := range map[string]int{"llm": 1, "hybrid": 1, "extractive": 0} {
		w := newWorld(t, core.ContextSettings{Strategy: &strategy}, 8192)
		w.writer.Add(notes)
		w.turns(30, 110)
		w.ask("next")
		w.fit()
		if v := w.summaries[0]; v.Strategy != strategy || v.Note != "" || len(w.writer.Requests()) != calls {
			t.Errorf("got strategy %q, note %q and %d calls, want %q and %d", v.Strategy, v.Note, len(w.writer.Requests()), strategy, calls)
		}
	}
}

// B9, R2: what the prompts of the presets ask for.
func TestPresetsAskForLess(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]string{"budget": "700 tokens", "sliding": "300 tokens"} {
		w := newWorld(t, core.ContextSettings{Policy: policy}, 128_000)
		w.writer.Add(notes)
		w.turns(30, 500)
		w.ask("next")
		w.fit()
		if req := w.writer.Requests()[0]; !strings.Contains(req.System[0]+req.Messages[0].Content, want) {
			t.Errorf("%s: the prompt does not ask for %s:\n%.3000s", policy, want, req.System[0])
		}
	}
}
