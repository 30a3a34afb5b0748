package compaction_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

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
	if d.Budget.Usable != 8_192-300 || d.MaxOutput != 300 {
		t.Errorf("plan: got %d usable tokens and answers of %d, want 7892 and 300", d.Budget.Usable, d.MaxOutput)
	}
	req, _, err := w.keeper.Request(t.Context(), turn, d)
	must.Do(t, err)
	p := w.profile.Agent.ModelParameters
	got := core.ModelParameters{
		Temperature: req.Temperature, TopP: req.TopP, MaxOutputTokens: req.MaxOutputTokens, Stop: req.Stop, Seed: req.Seed,
		ReasoningEffort: req.ReasoningEffort, ResponseFormat: req.ResponseFormat,
	}
	if diff := cmp.Diff(p, got); diff != "" {
		t.Errorf("parameters of the answer (-want +got):\n%s", diff)
	}
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
