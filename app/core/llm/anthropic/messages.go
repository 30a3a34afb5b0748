package anthropic

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// builder puts the messages of a request together.
type builder struct {
	model    *Model
	messages []sdk.MessageParam
	lasting  [2]int // how many messages precede one that is Passing, and how many blocks the last of them has; zero = none
}

// addAll appends the messages; those of one role that follow each other become
// one.
func (b *builder) addAll(turns []llm.Message) error {
	for i := 0; i < len(turns); i++ {
		switch turn := turns[i]; turn.Role {
		case core.RoleUser:
			if turn.Passing && len(b.messages) > 0 {
				b.lasting = [2]int{len(b.messages), len(b.messages[len(b.messages)-1].Content)}
			}
			b.addBlocks(sdk.MessageParamRoleUser, userMessage(turn)...)
		case core.RoleAssistant:
			b.addBlocks(sdk.MessageParamRoleAssistant, b.assistantBlocks(turn)...)
			end := i + 1
			for end < len(turns) && turns[end].Role == core.RoleTool {
				end++
			}
			b.addResults(turns[i+1:end], turn.ToolCalls)
			i = end - 1
		case core.RoleTool:
			b.addResults(turns[i:i+1], nil)
		case core.RoleSystem:
			if err := b.addSystem(turn); err != nil {
				return err
			}
		default:
			return fmt.Errorf("message %d has the role %q", i, turn.Role)
		}
	}
	return nil
}

// addSystem appends a system message if the model takes any.
func (b *builder) addSystem(turn llm.Message) error {
	if !b.model.options.Info.SystemMessages {
		return nil
	}
	blocks, err := systemMessage(turn)
	b.addBlocks(sdk.MessageParamRoleSystem, blocks...)
	return err
}

// putFirst puts a compaction before the messages.
func (b *builder) putFirst(compaction core.Part) error {
	first, err := compactionMessage(compaction)
	if err != nil {
		return err
	}
	b.messages = slices.Insert(b.messages, 0, first)
	if b.lasting[0] > 0 {
		b.lasting[0]++
	}
	return nil
}

// userMessage returns a user's message: its images and documents, which Claude wants first, and
// its text.
func userMessage(turn llm.Message) []sdk.ContentBlockParamUnion {
	var out []sdk.ContentBlockParamUnion
	for _, media := range turn.Media {
		data := base64.StdEncoding.EncodeToString(media.Data)
		if media.Type == core.PartFile {
			document := sdk.NewDocumentBlock(sdk.Base64PDFSourceParam{Data: data})
			document.OfDocument.Title = sdk.String(media.Name)
			out = append(out, document)
			continue
		}
		out = append(out, sdk.NewImageBlockBase64(media.MediaType, data))
	}
	if text := llm.PlainText(turn); len(out) == 0 || !isBlank(text) && text != llm.EmptyText {
		out = append(out, textBlock(text))
	}
	return out
}

// addBlocks appends the blocks to the last message if that has the role too.
func (b *builder) addBlocks(role sdk.MessageParamRole, blocks ...sdk.ContentBlockParamUnion) {
	if n := len(b.messages); n > 0 && b.messages[n-1].Role == role {
		b.messages[n-1].Content = append(b.messages[n-1].Content, blocks...)
		return
	}
	b.messages = append(b.messages, sdk.MessageParam{Role: role, Content: blocks})
}

// assistantBlocks returns an assistant's message: its thoughts, each in its place in the
// text, and all its tool calls.
func (b *builder) assistantBlocks(turn llm.Message) []sdk.ContentBlockParamUnion {
	var out []sdk.ContentBlockParamUnion
	addText := func(text string) {
		if !isBlank(text) {
			out = append(out, sdk.NewTextBlock(text))
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
		out = append(out, thinkingBlock(p))
	}
	addText(text[at:])
	for _, c := range turn.ToolCalls {
		out = append(out, sdk.NewToolUseBlock(callID(c.ID), rawArguments(llm.Arguments(c)), c.Name))
	}
	if len(out) == 0 {
		out = append(out, sdk.NewTextBlock(llm.EmptyText))
	}
	return out
}

// rawArguments are the arguments of a call as the model wrote them: the bytes of a prompt must not
// change, because providers cache it.
type rawArguments string

// MarshalJSON returns them; the SDK would rewrite a json.RawMessage.
func (a rawArguments) MarshalJSON() ([]byte, error) { return []byte(a), nil }

// redacted is the name of a part whose signature is all there is: thoughts that
// the provider does not show.
const redacted = "redacted"

func thinkingBlock(p core.Part) sdk.ContentBlockParamUnion {
	if p.Name == redacted {
		return sdk.NewRedactedThinkingBlock(p.Signature)
	}
	return sdk.NewThinkingBlock(p.Signature, p.Text)
}

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
		result := &sdk.ToolResultBlockParam{ToolUseID: callID(turn.ToolCallID)}
		if text := llm.PlainText(turn); !isBlank(text) && text != llm.EmptyText {
			result.Content = []sdk.ToolResultBlockParamContentUnion{{OfText: &sdk.TextBlockParam{Text: text}}}
		}
		b.addBlocks(sdk.MessageParamRoleUser, sdk.ContentBlockParamUnion{OfToolResult: result})
	}
}

// textBlock returns a block with the text; the API refuses blank ones.
func textBlock(text string) sdk.ContentBlockParamUnion {
	if isBlank(text) {
		text = llm.EmptyText
	}
	return sdk.NewTextBlock(text)
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
