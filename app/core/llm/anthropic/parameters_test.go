package anthropic_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/anthropic"
)

// The parameters of an agent are members of the request, under Anthropic's names; those
// that the model does not take are left out.
func TestParametersAreSent(t *testing.T) {
	t.Parallel()
	p := core.ModelParameters{
		Temperature: new(0.0), TopP: new(0.5), Stop: []string{"END"}, Seed: new(1), ReasoningEffort: "low",
		ResponseFormat: &core.ResponseFormat{Type: core.FormatJSONSchema, Schema: json.RawMessage(`{"type":"object","properties":{"z":{},"a":{}}}`)},
	}
	topP := p
	topP.Temperature = nil
	const format = `"output_config":{"format":{"type":"json_schema","schema":{"type":"object","properties":{"z":{},"a":{}}}}}`
	for name, tt := range map[string]struct {
		options    anthropic.Options
		parameters core.ModelParameters
		lacks      []llm.Parameter
		has, not   []string
	}{
		"all":                   {anthropic.Options{}, p, []llm.Parameter{llm.TopPBeside, llm.Seed, llm.ReasoningEffort}, []string{`"temperature":0`, `"stop_sequences":["END"]`, format}, []string{"top_p", "seed", "effort"}},
		"top_p":                 {anthropic.Options{}, topP, []llm.Parameter{llm.Seed, llm.ReasoningEffort}, []string{`"top_p":0.5`}, []string{"temperature"}},
		"Claude 4.7":            {anthropic.Options{Model: "claude-opus-4-7"}, p, []llm.Parameter{llm.Temperature, llm.TopP, llm.Seed, llm.ReasoningEffort}, []string{format}, []string{"top_p", "temperature"}},
		"Claude 4":              {anthropic.Options{Model: "claude-sonnet-4-20250514"}, p, []llm.Parameter{llm.TopPBeside, llm.Seed, llm.ReasoningEffort, llm.JSONSchema}, []string{`"temperature":0`}, []string{"output_config"}},
		"a budget for thinking": {anthropic.Options{Thinking: 2048}, p, []llm.Parameter{llm.Temperature, llm.TopP, llm.Seed, llm.ReasoningEffort}, []string{`"thinking":{`}, []string{"top_p", "temperature"}},
		"a high temperature":    {anthropic.Options{}, core.ModelParameters{Temperature: new(1.5)}, []llm.Parameter{llm.HighTemperature}, nil, []string{"temperature"}},
		"only white space":      {anthropic.Options{}, core.ModelParameters{Stop: []string{"\n"}}, []llm.Parameter{llm.BlankStop}, nil, []string{"stop_sequences"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := open(t, tt.options)
			if diff := cmp.Diff(tt.lacks, model.Info().Lacking(tt.parameters)); diff != "" {
				t.Errorf("the model lacks (-want +got):\n%s", diff)
			}
			req := llm.Request{Messages: []llm.Message{{Role: core.RoleUser, Content: "hi"}}, MaxOutputTokens: 4096}
			got := sent(t, tt.options, req.WithParameters(tt.parameters, model.Info())).raw()
			for _, part := range tt.has {
				if !strings.Contains(got, part) {
					t.Errorf("got the request %s, want %s in it", got, part)
				}
			}
			for _, part := range tt.not {
				if strings.Contains(got, part) {
					t.Errorf("got the request %s, want no %s in it", got, part)
				}
			}
		})
	}
}
