package llm_test

import (
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
