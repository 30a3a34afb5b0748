package anthropic

import (
	"encoding/json"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// setParameters adds the parameters of the request. A summary or a title asks every model
// for a temperature; those that refuse one are not sent it.
func (m *Model) setParameters(p *sdk.MessageNewParams, req llm.Request) {
	if req.Temperature != nil && !m.claude.fixedSampling() {
		p.Temperature = param.NewOpt(*req.Temperature)
	}
	if req.TopP != nil {
		p.TopP = param.NewOpt(*req.TopP)
	}
	p.StopSequences = req.Stop
	if f := req.ResponseFormat; f != nil && f.Type == core.FormatJSONSchema {
		// As raw JSON: the SDK's map would lose the order of the schema's keys.
		p.OutputConfig.Format = param.Override[sdk.JSONOutputFormatParam](outputFormat{Type: f.Type, Schema: f.Schema})
	}
}

// outputFormat is output_config.format.
type outputFormat struct {
	Type   core.FormatType `json:"type"`
	Schema json.RawMessage `json:"schema"`
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
