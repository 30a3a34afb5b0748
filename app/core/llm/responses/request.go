package responses

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

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
		Reasoning: reasoning{Effort: req.ReasoningEffort},
	}
	if f := req.ResponseFormat; f != nil && f.Type != core.FormatText {
		format := *f
		if f.Type == core.FormatJSONSchema {
			format.Name = cmp.Or(f.Name, core.DefaultSchemaName)
		}
		r.Text.Format = &format
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

// userItem returns a user's message: its text, then its images and PDFs as data URLs.
func userItem(turn llm.Message) item {
	var content []part
	if text := llm.PlainText(turn); text != llm.EmptyText || len(turn.Media) == 0 {
		content = append(content, part{Type: "input_text", Text: text})
	}
	for _, media := range turn.Media {
		data := ";base64," + base64.StdEncoding.EncodeToString(media.Data)
		if media.Type == core.PartFile { // only PDFs go with messages
			content = append(content, part{Type: "input_file", Filename: media.Name, FileData: "data:application/pdf" + data})
			continue
		}
		content = append(content, part{Type: "input_image", Detail: "auto", ImageURL: "data:" + media.MediaType + data})
	}
	return item{Role: "user", Content: content}
}

// assistantItems returns an assistant's message: its texts with their phases and its reasoning,
// each item in its place among the tool calls.
func (m *Model) assistantItems(turn llm.Message) (out []item) {
	text, textEnd, calls := llm.PlainText(turn), 0, 0
	if text == llm.EmptyText {
		text = ""
	}
	addText := func(end int, phase string) {
		if end > textEnd && end <= len(text) && (end == len(text) || utf8.RuneStart(text[end])) {
			out = append(out, outputMessage(text[textEnd:end], phase))
			textEnd = end
		}
	}
	addCalls := func(end int) {
		for ; calls < min(end, len(turn.ToolCalls)); calls++ {
			c := turn.ToolCalls[calls]
			out = append(out, item{Type: "function_call", Arguments: llm.Arguments(c), CallID: callID(c.ID), Name: c.Name})
		}
	}
	for _, kept := range m.keptItems(turn) {
		if kept.reasoning == nil {
			addCalls(kept.calls)
			addText(kept.offset, kept.phase)
			continue
		}
		addText(kept.offset, "")
		addCalls(kept.calls)
		out = append(out, *kept.reasoning)
	}
	addText(len(text), "")
	addCalls(len(turn.ToolCalls))
	if textEnd == 0 && calls == 0 { // the API refuses reasoning that nothing follows
		out = append(out, outputMessage(llm.EmptyText, ""))
	}
	return out
}

// outputMessage returns a text of the model. The API takes it without the id that it had.
func outputMessage(text, phase string) item {
	return item{Type: "message", Role: "assistant", Phase: phase, Content: []part{{Type: "output_text", Text: text, Annotations: []string{}}}}
}

// callID returns the id of a tool call as the API takes it, up to 64 bytes: the same for the
// call and its result, and unchanged where possible. A session that came from another
// provider has ids of that one's form.
func callID(id string) string {
	const longest, hashed = 64, 40
	if len(id) > longest {
		return llm.HashID(id, hashed)
	}
	return id
}
