package responses

import (
	"encoding/base64"
	"fmt"
	"unicode/utf8"

	"github.com/openai/openai-go/v3/packages/param"
	sdk "github.com/openai/openai-go/v3/responses"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// inputItems returns the messages as items.
func (m *Model) inputItems(turns []llm.Message) (sdk.ResponseInputParam, error) {
	out := sdk.ResponseInputParam{}
	for i, turn := range turns {
		switch turn.Role {
		case core.RoleUser:
			out = append(out, userItem(turn))
		case core.RoleAssistant:
			out = append(out, m.assistantItems(turn)...)
		case core.RoleTool:
			result := sdk.ResponseInputItemParamOfFunctionCallOutput(turn.Content)
			result.OfFunctionCallOutput.CallID = param.NewOpt(callID(turn.ToolCallID))
			out = append(out, result)
		case core.RoleSystem:
			if m.options.Info.SystemMessages {
				out = append(out, developerItems(turn)...)
			}
		default:
			return nil, fmt.Errorf("message %d has the role %q", i, turn.Role)
		}
	}
	return out, nil
}

// developerItems returns a system message: the tools that it adds, and its text.
func developerItems(turn llm.Message) (out []sdk.ResponseInputItemUnionParam) {
	if len(turn.AddedTools) > 0 {
		out = append(out, sdk.ResponseInputItemParamOfAdditionalTools(toolParams(turn.AddedTools)))
	}
	if turn.Content != "" || len(out) == 0 {
		out = append(out, sdk.ResponseInputItemParamOfMessage(turn.Content, sdk.EasyInputMessageRoleDeveloper))
	}
	return out
}

// userItem returns a user's message: its text, then its images and PDFs as data URLs.
func userItem(turn llm.Message) sdk.ResponseInputItemUnionParam {
	var content sdk.ResponseInputMessageContentListParam
	if text := llm.PlainText(turn); text != llm.EmptyText || len(turn.Media) == 0 {
		content = append(content, sdk.ResponseInputContentParamOfInputText(text))
	}
	for _, media := range turn.Media {
		data := ";base64," + base64.StdEncoding.EncodeToString(media.Data)
		if media.Type == core.PartFile { // only PDFs go with messages
			content = append(content, sdk.ResponseInputContentUnionParam{OfInputFile: &sdk.ResponseInputFileParam{
				Filename: param.NewOpt(media.Name), FileData: param.NewOpt("data:application/pdf" + data),
			}})
			continue
		}
		content = append(content, sdk.ResponseInputContentUnionParam{OfInputImage: &sdk.ResponseInputImageParam{
			Detail: sdk.ResponseInputImageDetailAuto, ImageURL: param.NewOpt("data:" + media.MediaType + data),
		}})
	}
	return sdk.ResponseInputItemParamOfMessage(content, sdk.EasyInputMessageRoleUser)
}

// assistantItems returns an assistant's message: its texts with their phases and its reasoning,
// each item in its place among the tool calls.
func (m *Model) assistantItems(turn llm.Message) []sdk.ResponseInputItemUnionParam {
	var out []sdk.ResponseInputItemUnionParam
	text, textEnd, calls := llm.PlainText(turn), 0, 0
	if text == llm.EmptyText {
		text = ""
	}
	addText := func(end int, phase sdk.ResponseOutputMessagePhase) {
		if end > textEnd && end <= len(text) && (end == len(text) || utf8.RuneStart(text[end])) {
			out = append(out, outputMessage(text[textEnd:end], phase))
			textEnd = end
		}
	}
	addCalls := func(end int) {
		for ; calls < min(end, len(turn.ToolCalls)); calls++ {
			c := turn.ToolCalls[calls]
			out = append(out, sdk.ResponseInputItemParamOfFunctionCall(llm.Arguments(c), callID(c.ID), c.Name))
		}
	}
	for _, item := range m.keptItems(turn) {
		if item.reasoning == nil {
			addCalls(item.calls)
			addText(item.offset, item.phase)
			continue
		}
		addText(item.offset, "")
		addCalls(item.calls)
		out = append(out, sdk.ResponseInputItemUnionParam{OfReasoning: item.reasoning})
	}
	addText(len(text), "")
	addCalls(len(turn.ToolCalls))
	if textEnd == 0 && calls == 0 { // the API refuses reasoning that nothing follows
		out = append(out, outputMessage(llm.EmptyText, ""))
	}
	return out
}

// outputMessage returns a text of the model. The API takes it without the id that it had.
func outputMessage(text string, phase sdk.ResponseOutputMessagePhase) sdk.ResponseInputItemUnionParam {
	content := sdk.ResponseOutputMessageContentUnionParam{OfOutputText: &sdk.ResponseOutputTextParam{
		Text: text, Annotations: []sdk.ResponseOutputTextAnnotationUnionParam{},
	}}
	return sdk.ResponseInputItemUnionParam{OfOutputMessage: &sdk.ResponseOutputMessageParam{
		Content: []sdk.ResponseOutputMessageContentUnionParam{content}, Phase: phase,
	}}
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
