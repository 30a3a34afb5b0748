package anthropic

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// builder puts the messages of a request together.
type builder struct {
	model    *Model
	messages []message
	lasting  [2]int // how many messages precede one that is Passing, and how many blocks the last of them has; zero = none
}

// addAll appends the messages; those of one role that follow each other become
// one.
func (b *builder) addAll(turns []llm.Message) error {
	for i := 0; i < len(turns); i++ {
		switch turn := turns[i]; turn.Role {
		case core.RoleUser:
			if turn.Passing && len(b.messages) > 0 {
				b.lasting = [2]int{len(b.messages), len(b.messages[len(b.messages)-1].content)}
			}
			b.addBlocks("user", userMessage(turn)...)
		case core.RoleAssistant:
			b.addBlocks("assistant", b.assistantBlocks(turn)...)
			end := i + 1
			for end < len(turns) && turns[end].Role == core.RoleTool {
				end++
			}
			b.addResults(turns[i+1:end], turn.ToolCalls)
			i = end - 1
		case core.RoleTool:
			b.addResults(turns[i:i+1], nil)
		case core.RoleSystem:
			if b.model.options.Info.SystemMessages {
				b.addBlocks("system", systemMessage(turn)...)
			}
		default:
			return fmt.Errorf("message %d has the role %q", i, turn.Role)
		}
	}
	return nil
}

// systemMessage returns a system message among the others: changes of the tools, and its text.
func systemMessage(turn llm.Message) (out []block) {
	for _, name := range turn.RemovedTools {
		out = append(out, block{Type: "tool_removal", Tool: &changedTool{Type: "tool_reference", Name: name}})
	}
	for _, added := range toolList(turn.AddedTools) {
		out = append(out, block{Type: "tool_addition", Tool: &changedTool{Type: "tool_definition", Definition: &added}})
	}
	if turn.Content != "" || len(out) == 0 {
		out = append(out, textBlock(turn.Content))
	}
	return out
}

// userMessage returns a user's message: its images and documents, which Claude wants first, and
// its text.
func userMessage(turn llm.Message) (out []block) {
	for _, media := range turn.Media {
		b := block{Type: "image", Source: &source{Type: "base64", MediaType: media.MediaType, Data: base64.StdEncoding.EncodeToString(media.Data)}}
		if media.Type == core.PartFile { // only PDFs go with messages
			b.Type, b.Title, b.Source.MediaType = "document", media.Name, "application/pdf"
		}
		out = append(out, b)
	}
	if text := llm.PlainText(turn); len(out) == 0 || !isBlank(text) && text != llm.EmptyText {
		out = append(out, textBlock(text))
	}
	return out
}

// addBlocks appends the blocks to the last message if that has the role too.
func (b *builder) addBlocks(role string, blocks ...block) {
	if n := len(b.messages); n > 0 && b.messages[n-1].role == role {
		b.messages[n-1].content = append(b.messages[n-1].content, blocks...)
		return
	}
	b.messages = append(b.messages, message{role, blocks})
}

// assistantBlocks returns an assistant's message: its thoughts, each in its place in the
// text, and all its tool calls.
func (b *builder) assistantBlocks(turn llm.Message) (out []block) {
	addText := func(text string) {
		if !isBlank(text) {
			out = append(out, textBlock(text))
		}
	}
	text, at := llm.PlainText(turn), 0
	if text == llm.EmptyText {
		text = ""
	}
	for _, p := range b.model.thinkingBlocks(turn) {
		if p.Offset > at && p.Offset <= len(text) && (p.Offset == len(text) || utf8.RuneStart(text[p.Offset])) {
			addText(text[at:p.Offset])
			at = p.Offset
		}
		if p.Name == redacted {
			out = append(out, block{Type: "redacted_thinking", Data: p.Signature})
		} else {
			out = append(out, block{Type: "thinking", opaque: opaque{Signature: p.Signature}, Thinking: &p.Text})
		}
	}
	addText(text[at:])
	for _, c := range turn.ToolCalls {
		out = append(out, block{Type: "tool_use", id: callID(c.ID), arguments: llm.Arguments(c), Name: c.Name})
	}
	if len(out) == 0 {
		out = append(out, textBlock(llm.EmptyText))
	}
	return out
}

// redacted is the name of a part whose signature is all there is: thoughts that
// the provider does not show.
const redacted = "redacted"

// addResults appends the results of the calls, in the order of the calls; what
// answers none of them comes after.
func (b *builder) addResults(turns []llm.Message, calls []core.ToolCall) {
	place := func(turn llm.Message) int {
		i := slices.IndexFunc(calls, func(c core.ToolCall) bool { return c.ID == turn.ToolCallID })
		if i < 0 {
			return len(calls)
		}
		return i
	}
	turns = slices.Clone(turns)
	slices.SortStableFunc(turns, func(x, y llm.Message) int { return place(x) - place(y) })
	for _, turn := range turns {
		result := block{Type: "tool_result", ToolUseID: callID(turn.ToolCallID)}
		if text := llm.PlainText(turn); !isBlank(text) && text != llm.EmptyText {
			result.Content = []block{textBlock(text)}
		}
		b.addBlocks("user", result)
	}
}

// textBlock returns a block with the text; the API refuses blank ones.
func textBlock(text string) block {
	if isBlank(text) {
		text = llm.EmptyText
	}
	return block{Type: "text", Text: text}
}

func isBlank(text string) bool { return strings.TrimSpace(text) == "" }

// takenID is what the API takes as the id of a tool call.
var takenID = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// callID returns the id of a tool call as the API takes it: the same for the call
// and its result, and unchanged where possible. A session that came from another
// provider has ids of that one's form.
func callID(id string) string {
	if takenID.MatchString(id) {
		return id
	}
	const hashed = 40
	return llm.HashID(id, hashed)
}
