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
