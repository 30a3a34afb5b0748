package responses

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

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
	items := []item{}
	for i, turn := range req.Messages {
		switch turn.Role {
		case core.RoleUser:
			items = append(items, userItem(turn))
		case core.RoleAssistant:
			items = append(items, m.assistantItems(turn)...)
		case core.RoleTool:
			items = append(items, item{Type: "function_call_output", CallID: callID(turn.ToolCallID), Output: &turn.Content})
		case core.RoleSystem:
			if m.options.Info.SystemMessages && len(turn.AddedTools) > 0 {
				items = append(items, item{Type: "additional_tools", Role: "developer", Tools: toolList(turn.AddedTools)})
			}
			if m.options.Info.SystemMessages && (turn.Content != "" || len(turn.AddedTools) == 0) {
				items = append(items, item{Role: "developer", Content: turn.Content})
			}
		default:
			return nil, fmt.Errorf("message %d has the role %q", i, turn.Role)
		}
	}
	r := request{
		Instructions: req.SystemText(), Model: m.options.Model, Tools: toolList(req.Tools), Input: items, TopP: req.TopP, Stream: true,
		Text: textConfig{toTextFormat(req.ResponseFormat)}, Reasoning: reasoning{Effort: req.ReasoningEffort},
	}
	if m.reasons() {
		r.Include = []string{"reasoning.encrypted_content"}
	}
	if len(r.Tools) > 0 {
		r.ParallelToolCalls = req.ParallelToolCalls
		if name := req.ToolChoice.Tool(); name != "" {
			r.ToolChoice = item{Name: name, Type: "function"}
		} else if req.ToolChoice != core.ToolChoiceAuto {
			r.ToolChoice = req.ToolChoice
		}
	}
	if req.MaxOutputTokens > 0 {
		r.MaxOutputTokens = max(req.MaxOutputTokens, leastOutput)
	}
	// Summaries and titles ask every model for a temperature; those that refuse one are not sent it.
	if !openai.HasFixedSampling(m.options.Model) {
		r.Temperature = req.Temperature
	}
	if m.summarizes(req) {
		r.Reasoning.Summary = "auto"
	}
	return json.Marshal(r)
}

// reasons reports whether the model may reason; others refuse to include what they do not have.
func (m *Model) reasons() bool { return !slices.Contains(m.options.Info.Lacks, llm.ReasoningEffort) }

func toolList(tools []llm.ToolSpec) (out []functionTool) {
	for _, t := range tools {
		out = append(out, functionTool{
			Type: "function", Name: t.Name, Description: t.Description, Parameters: t.Schema(), Strict: t.Strict != nil && *t.Strict,
		})
	}
	return out
}

// toTextFormat returns the format of the answer; nil = a text.
func toTextFormat(f *core.ResponseFormat) *textFormat {
	switch {
	case f == nil || f.Type == core.FormatText:
		return nil
	case f.Type == core.FormatJSONSchema:
		return &textFormat{Type: f.Type, Name: cmp.Or(f.Name, core.DefaultSchemaName), Schema: f.Schema, Strict: f.Strict}
	}
	return &textFormat{Type: f.Type}
}
