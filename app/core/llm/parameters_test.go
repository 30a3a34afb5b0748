package llm_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// The options of a run are refused for what they set themselves, and for what an answer needs;
// parameters of the agent that only tune an answer are not.
func TestLackingForRun(t *testing.T) {
	t.Parallel()
	all := []llm.Parameter{llm.Temperature, llm.TopPBeside, llm.Stop, llm.Seed, llm.JSONObject, llm.Tools, llm.StrictTools, llm.ForcedTools, llm.ParallelTools}
	tuned := core.Agent{ModelParameters: core.ModelParameters{Temperature: new(0.5), Seed: new(1)}}
	tool := []core.ClientTool{{Name: "f", Strict: new(true)}}
	for name, c := range map[string]struct {
		agent   core.Agent
		options core.RunOptions
		lacks   []llm.Parameter
		none    bool // the model has no tool choice
		want    []llm.Parameter
	}{
		"nothing":                      {tuned, core.RunOptions{}, all, true, nil},
		"its own temperature":          {tuned, core.RunOptions{ModelParameters: core.ModelParameters{Temperature: new(1.0)}}, all, false, []llm.Parameter{llm.Temperature}},
		"its own top_p":                {tuned, core.RunOptions{ModelParameters: core.ModelParameters{TopP: new(0.5)}}, []llm.Parameter{llm.TopPBeside}, false, []llm.Parameter{llm.TopPBeside}},
		"the agent's stop":             {core.Agent{ModelParameters: core.ModelParameters{Stop: []string{"x"}}}, core.RunOptions{}, all, false, []llm.Parameter{llm.Stop}},
		"tools":                        {core.Agent{}, core.RunOptions{Tools: tool, ToolChoice: "f", ParallelToolCalls: new(false)}, all, false, []llm.Parameter{llm.Tools, llm.StrictTools, llm.ForcedTools, llm.ParallelTools}},
		"parallel calls, as ever":      {core.Agent{Tools: []string{"g"}}, core.RunOptions{ParallelToolCalls: new(true)}, []llm.Parameter{llm.ParallelTools}, false, nil},
		"a choice without tools":       {core.Agent{}, core.RunOptions{ToolChoice: core.ToolChoiceNone, ParallelToolCalls: new(false)}, all, true, nil},
		"required, without any choice": {core.Agent{Tools: []string{"g"}}, core.RunOptions{ToolChoice: core.ToolChoiceRequired}, nil, true, []llm.Parameter{llm.ForcedTools}},
		"a model that takes all":       {tuned, core.RunOptions{Tools: tool, ToolChoice: "f", ParallelToolCalls: new(false)}, nil, false, nil},
	} {
		got := llm.Info{Lacks: c.lacks, NoToolChoice: c.none}.LackingForRun(c.agent, c.options)
		if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A fallback that lacks a parameter of tools is not sent it; the list of the others stays.
func TestWithParametersOfTools(t *testing.T) {
	t.Parallel()
	req := llm.Request{Tools: []llm.ToolSpec{{Name: "f", Strict: new(true)}}, ParallelToolCalls: new(true)}
	got := req.WithParameters(core.ModelParameters{}, llm.Info{Lacks: []llm.Parameter{llm.StrictTools, llm.ParallelTools}})
	if got.ParallelToolCalls != nil || got.Tools[0].Strict != nil || req.Tools[0].Strict == nil {
		t.Errorf("got %+v, want neither, and the request as it was", got)
	}
	if same := req.WithParameters(core.ModelParameters{}, llm.Info{}); same.ParallelToolCalls == nil || same.Tools[0].Strict == nil {
		t.Errorf("got %+v, want both", same)
	}
}

// What a model does not take is left out of options that may lose it, in a way that it takes the rest;
// what an answer is nothing without stays.
func TestLeaveOut(t *testing.T) {
	t.Parallel()
	given := core.RunOptions{
		ModelParameters: core.ModelParameters{
			Temperature: new(1.5), TopP: new(1.0), Stop: []string{"x"}, Seed: new(1), ReasoningEffort: "low", ResponseFormat: &core.ResponseFormat{Type: core.FormatJSONObject},
		},
		Tools: []core.ClientTool{{Name: "f", Strict: new(true)}}, ToolChoice: core.ToolChoiceRequired, ParallelToolCalls: new(false),
	}
	for _, p := range []llm.Parameter{
		llm.Temperature, llm.HighTemperature, llm.TopP, llm.TopPBeside, llm.Seed, llm.ReasoningEffort, llm.JSONObject, llm.StrictTools, llm.ForcedTools, llm.ParallelTools,
	} {
		info := llm.Info{Lacks: []llm.Parameter{p}}
		rest, ok := p.LeaveOut(given)
		if still := info.LackingForRun(core.Agent{}, rest); !ok || len(still) > 0 {
			t.Errorf("%s: got %v, and the model lacks %v", p, ok, still)
		}
		if before := info.LackingForRun(core.Agent{}, given); len(before) != 1 {
			t.Errorf("%s: the options have changed, the model lacks %v", p, before)
		}
	}
	if rest, _ := llm.JSONObject.LeaveOut(given); !strings.Contains(rest.Instructions, "JSON object") {
		t.Errorf("got the instructions %q, want the word JSON in place of the format", rest.Instructions)
	}
	for _, p := range []llm.Parameter{llm.Stop, llm.BlankStop, llm.JSONSchema, llm.Tools} {
		if _, ok := p.LeaveOut(given); ok {
			t.Errorf("%s is left out", p)
		}
	}
}
