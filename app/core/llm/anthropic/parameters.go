package anthropic

import (
	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// setParameters adds the parameters of the request. A summary or a title asks every model
// for a temperature; those that refuse one are not sent it.
func (m *Model) setParameters(r *request, req llm.Request) {
	if !m.claude.fixedSampling() {
		r.Temperature = req.Temperature
	}
	r.TopP, r.StopSequences = req.TopP, req.Stop
	if f := req.ResponseFormat; f != nil && f.Type == core.FormatJSONSchema {
		r.OutputConfig = &outputConfig{outputFormat{string(f.Type), f.Schema}}
	}
}

// lackedParameters returns the parameters that the model does not take. Thinking excludes sampling
// parameters; schemas came with Claude 4.5.
func lackedParameters(o Options) []llm.Parameter {
	claude := generationOf(o.Model)
	out := []llm.Parameter{llm.Seed, llm.ReasoningEffort, llm.JSONObject, llm.BlankStop}
	if claude.fixedSampling() || o.Thinking > 0 {
		out = append(out, llm.Temperature, llm.TopP)
	} else {
		out = append(out, llm.HighTemperature, llm.TopPBeside)
	}
	if !claude.IsSince(4, 5) { // as schemas of answers, so those of tools
		out = append(out, llm.JSONSchema, llm.StrictTools)
	}
	return out
}
