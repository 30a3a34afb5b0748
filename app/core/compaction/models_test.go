package compaction_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/tests/compare"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

// script returns a model of the name that answers with it.
func script(name, provider string) *llmtest.Script {
	return llmtest.Scripted(always(notes + "\nwritten by " + name)).
		WithInfo(llm.Info{Name: name, Provider: provider, Window: 128_000, MaxOutput: 8_000})
}

// pricing refuses the models without a price, as a limit in US dollars does.
type pricing []string

func (p pricing) check(_ context.Context, _ string, m llm.Info) error {
	if slices.Contains(p, m.Name) {
		return nil
	}
	return core.ErrModelUnpriced(m.Name)
}

// W8: who writes the summary: the model that the agent's file names, then the
// global one, then what the preset prefers of the agent's provider (its small model or
// default_llm), then the model that answers. The conversation goes to no other provider. A limit in US dollars
// leaves out a small model without a price. Where no model has one, or the named one is missing, the summary is
// made without any, and says why (B7).
func TestSummaryModelPrecedence(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		policy string
		agent  *string
		global string
		beside llm.Preference // what there is of the agent's provider
		priced pricing        // nil = no limit
		want   string         // a model, or the note of a summary without one
	}{
		{"agent over all", "sliding", new("own"), "global", llm.PreferSmall, nil, "own"},
		{"global", "sliding", nil, "global", llm.PreferSmall, nil, "global"},
		{"default_llm", "window", nil, "", llm.PreferDefault, nil, "default"},
		{"small", "sliding", nil, "", llm.PreferSmall, nil, "small"},
		{"small", "ratio", nil, "", llm.PreferSmall, nil, "small"},
		{"agent's empty name over the global one", "window", new(""), "global", llm.PreferDefault, nil, "default"},
		{"its own", "window", nil, "", llm.PreferSmall, nil, "answerer"},
		{"its own", "budget", nil, "", llm.PreferDefault, nil, "answerer"},
		{"its own", "sliding", nil, "", llm.PreferDefault, nil, "answerer"},
		{"its own", "ratio", nil, "", llm.PreferOwn, nil, "answerer"},
		{"all have prices", "sliding", nil, "", llm.PreferSmall, pricing{"small", "answerer"}, "small"},
		{"its own has a price", "sliding", nil, "", llm.PreferSmall, pricing{"answerer"}, "answerer"},
		{"none has a price", "sliding", nil, "", llm.PreferSmall, pricing{}, "fallback: the summary model has no price, and a limit in US dollars holds"},
		{"missing", "sliding", new("nobody"), "", llm.PreferSmall, nil, "fallback: the summary model cannot be used"},
	} {
		t.Run(tt.policy+" "+tt.name, func(t *testing.T) {
			t.Parallel()
			settings := core.ContextSettings{Policy: tt.policy, SummaryModel: tt.agent}
			w := newWorld(t, settings, 8192)
			w.profile.Policy = must.Get(contextwindow.Resolve(contextwindow.Global{SummaryModel: tt.global}, settings))(t)
			if tt.priced != nil {
				w.options.Budget = tt.priced.check
				w.keeper = compaction.New(w.options)
			}
			w.model.Add(always(notes + "\nwritten by answerer"))
			w.model.WithInfo(llm.Info{Name: "answerer", Provider: "scripted", Window: 8192, MaxOutput: 1024})
			for _, name := range []string{"own", "global", ""} { // "" = default_llm, of whatever provider
				w.models[name] = script(name, "scripted")
			}
			if tt.beside != llm.PreferOwn {
				w.models[preferred(tt.beside, "answerer")] = script(string(tt.beside), "scripted")
			}
			w.turns(30, 110)
			w.ask("next")
			w.fit()
			if v := w.Summaries[0]; v.Model+v.Note != tt.want || v.Model != "" && !strings.Contains(v.Content, "written by "+tt.want) {
				t.Errorf("got model %q, note %q, content %q, want %q", v.Model, v.Note, v.Content, tt.want)
			}
			if n := len(w.model.Requests()); n > 0 != (tt.want == "answerer") {
				t.Errorf("the answering model was asked %d times", n)
			}
		})
	}
}

// The agent's parameters hold for answers and not for summaries, and its output limit leaves
// more of the window for the prompt, as the model's own would.
func TestParametersHoldForAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.ContextSettings{Timing: new("inline")}, 8_192)
	w.writer.Add(always(notes))
	w.profile.Agent.ModelParameters = core.ModelParameters{
		Temperature: new(1.5), TopP: new(0.5), MaxOutputTokens: 300, Stop: []string{"END"}, Seed: new(1),
		ReasoningEffort: "low", ResponseFormat: &core.ResponseFormat{Type: core.FormatJSONObject},
	}
	w.turns(30, 110)
	w.ask("what next?")
	turn, d := w.fit()
	compare.Equal(t, "plan: usable tokens and answers of: want 7892 and 300", []int{8_192 - 300, 300}, []int{d.Budget.Usable, d.MaxOutput})
	req, _, err := w.keeper.Request(t.Context(), turn, d)
	must.Do(t, err)
	p := w.profile.Agent.ModelParameters
	got := core.ModelParameters{
		Temperature: req.Temperature, TopP: req.TopP, MaxOutputTokens: req.MaxOutputTokens, Stop: req.Stop, Seed: req.Seed,
		ReasoningEffort: req.ReasoningEffort, ResponseFormat: req.ResponseFormat,
	}
	compare.Equal(t, "parameters of the answer", p, got)
	asked := w.writer.Requests()
	if len(asked) == 0 {
		t.Fatal("got no summary")
	}
	for _, r := range asked {
		if r.TopP != nil || r.Stop != nil || r.Seed != nil || r.ReasoningEffort != "" || r.ResponseFormat != nil || r.MaxOutputTokens == 300 || r.Temperature != nil && *r.Temperature == 1.5 {
			t.Errorf("a summary was asked for with the agent's parameters: %+v", r)
		}
	}

	// A model with a lower limit of its own keeps it.
	w.profile.Model = llmtest.Scripted().WithInfo(llm.Info{Name: "answerer", Provider: "scripted", Window: 8_192, MaxOutput: 200})
	if _, d := w.fit(); d.MaxOutput != 200 {
		t.Errorf("got answers of %d tokens, want the 200 of the model", d.MaxOutput)
	}
}
