package responses

import (
	"encoding/json"
	"slices"

	"github.com/openai/openai-go/v3/packages/param"
	sdk "github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/openai"
)

// leastOutput is the smallest output limit that the API takes, in tokens.
const leastOutput = 16

// requestBody returns the body of the request. What the API compares with the prompt before a
// thought depends on the request alone, message by message, so that the same messages give the
// same bytes.
func (m *Model) requestBody(req llm.Request) ([]byte, error) {
	items, err := m.inputItems(req.Messages)
	if err != nil {
		return nil, err
	}
	p := sdk.ResponseNewParams{
		Model: m.options.Model, Store: param.NewOpt(false), Tools: toolParams(req.Tools),
		Input: sdk.ResponseNewParamsInputUnion{OfInputItemList: items},
		Text:  sdk.ResponseTextConfigParam{Format: textFormat(req.ResponseFormat)},
	}
	if system := req.SystemText(); system != "" {
		p.Instructions = param.NewOpt(system)
	}
	if m.reasons() {
		p.Include = []sdk.ResponseIncludable{sdk.ResponseIncludableReasoningEncryptedContent}
	}
	if len(p.Tools) > 0 {
		p.ToolChoice = toToolChoice(req.ToolChoice)
		p.ParallelToolCalls = optional(req.ParallelToolCalls)
	}
	m.setParameters(&p, req)
	p.SetExtraFields(map[string]any{"stream": true})
	return json.Marshal(p)
}

// setParameters adds the parameters of the request. Summaries and titles ask every model for a
// temperature; those that refuse one are not sent it.
func (m *Model) setParameters(p *sdk.ResponseNewParams, req llm.Request) {
	if req.MaxOutputTokens > 0 {
		p.MaxOutputTokens = param.NewOpt(int64(max(req.MaxOutputTokens, leastOutput)))
	}
	if !openai.HasFixedSampling(m.options.Model) {
		p.Temperature = optional(req.Temperature)
	}
	p.TopP = optional(req.TopP)
	p.Reasoning.Effort = shared.ReasoningEffort(req.ReasoningEffort)
	if m.summarizes(req) {
		p.Reasoning.Summary = shared.ReasoningSummaryAuto
	}
}

// reasons reports whether the model may reason; others refuse to include what they do not have.
func (m *Model) reasons() bool {
	return !slices.Contains(m.options.Info.Lacks, llm.ReasoningEffort)
}

// optional returns the value as the SDK writes it; nil = it is left out.
func optional[T comparable](value *T) param.Opt[T] {
	if value == nil {
		return param.Opt[T]{}
	}
	return param.NewOpt(*value)
}

// functionTool is a tool as the API takes it. The SDK's map would lose the order of the
// schema's keys.
type functionTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

func toolParams(tools []llm.ToolSpec) []sdk.ToolUnionParam {
	var out []sdk.ToolUnionParam
	for _, t := range tools {
		tool := param.Override[sdk.FunctionToolParam](functionTool{
			Type: "function", Name: t.Name, Description: t.Description, Parameters: t.Schema(), Strict: t.Strict != nil && *t.Strict,
		})
		out = append(out, sdk.ToolUnionParam{OfFunction: &tool})
	}
	return out
}

// toToolChoice returns the choice as the API writes it; zero = the model decides.
func toToolChoice(c core.ToolChoice) (out sdk.ResponseNewParamsToolChoiceUnion) {
	switch {
	case c == core.ToolChoiceAuto:
	case c.Tool() != "":
		out.OfFunctionTool = &sdk.ToolChoiceFunctionParam{Name: c.Tool()}
	default:
		out.OfToolChoiceMode = param.NewOpt(sdk.ToolChoiceOptions(c))
	}
	return out
}

// schemaFormat is text.format of a schema, whose keys keep their order.
type schemaFormat struct {
	Type   core.FormatType `json:"type"`
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
	Strict *bool           `json:"strict,omitempty"`
}

// textFormat returns the format of the answer; zero = a text.
func textFormat(f *core.ResponseFormat) (out sdk.ResponseFormatTextConfigUnionParam) {
	switch {
	case f == nil:
	case f.Type == core.FormatJSONObject:
		out.OfJSONObject = &shared.ResponseFormatJSONObjectParam{}
	case f.Type == core.FormatJSONSchema:
		name := f.Name
		if name == "" {
			name = core.DefaultSchemaName
		}
		format := param.Override[sdk.ResponseFormatTextJSONSchemaConfigParam](schemaFormat{Type: f.Type, Name: name, Schema: f.Schema, Strict: f.Strict})
		out.OfJSONSchema = &format
	}
	return out
}
