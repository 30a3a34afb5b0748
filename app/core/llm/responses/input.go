package responses

import (
	"encoding/base64"
	"unicode/utf8"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

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
