package tokens

import (
	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// What a prompt's structure costs besides its texts, in tokens. The first two are
// OpenAI's for chat messages (B8); the others are on the safe side of what
// providers add, and calibration corrects the rest.
const (
	MessageOverhead  = 4    // of each message
	ListOverhead     = 3    // of a list of messages, once
	ToolCallOverhead = 8    // of each tool call besides its name and arguments
	ToolOverhead     = 8    // of each tool definition besides its texts
	ImageTokens      = 1600 // of an image whose size is not known: the most that common providers charge
)

// Message returns what a message costs in a prompt: its text, its tool calls (name
// and raw arguments), what its other parts hold, and the overhead (B8). It is
// stored as core.Message.TokenCount and then only added up.
func (c *Counter) Message(m core.Message) int {
	return ruler(c.Text).message(m.Content, m.Parts, m.ToolCalls)
}

// Prompted returns the same for a message as a model sees it.
func (c *Counter) Prompted(m llm.Message) int { return Prompted(c.Text, m) }

// Prompted returns what a message costs as a model sees it, by the rules of Message;
// text counts a text.
func Prompted(text func(string) int, m llm.Message) int {
	n := ruler(text).message(m.Content, m.Parts, m.ToolCalls)
	for _, image := range m.Images {
		n += ruler(text).part(image.Part)
	}
	return n
}

// Messages returns what a list of messages costs, its own overhead included (B8).
func (c *Counter) Messages(list []core.Message) int {
	n := ListOverhead
	for _, m := range list {
		n += c.Message(m)
	}
	return n
}

// Tools returns what a list of tool definitions costs: names, descriptions and
// JSON schemas. No tools cost nothing.
func (c *Counter) Tools(tools []llm.ToolSpec) int {
	n := 0
	for _, t := range tools {
		n += ToolOverhead + c.Text(t.Name) + c.Text(t.Description) + c.Text(string(t.Parameters))
	}
	return n
}

// ruler counts a text; its methods count what has texts in it.
type ruler func(text string) int

func (r ruler) message(content string, parts []core.Part, calls []core.ToolCall) int {
	n := MessageOverhead + r(content)
	for _, p := range parts {
		if p.Type == "reasoning" && len(calls) == 0 {
			continue // goes back with tool calls only
		}
		n += r.part(p)
	}
	for _, call := range calls {
		n += ToolCallOverhead + r(call.Name) + r(call.Arguments)
	}
	return n
}

// part counts what is not in the message's content already.
func (r ruler) part(p core.Part) int {
	switch p.Type {
	case "text": // is the content
		return 0
	case core.PartImage:
		return Image(p)
	case core.PartFile:
		return r.file(p)
	case "reasoning":
		return r.reasoning(p)
	default:
		return r(p.Text) + r(p.Name)
	}
}

// Image returns what was counted for an image when its message came.
func Image(p core.Part) int {
	if p.Tokens > 0 {
		return p.Tokens
	}
	return ImageTokens
}

// file returns what was counted for a file when its message came.
func (r ruler) file(p core.Part) int {
	if p.Tokens > 0 {
		return p.Tokens
	}
	return r(p.Text) + r(p.Name)
}

// signatureBytes is how many bytes of a signature stand for one token of the
// thoughts that are encrypted in it: base64 of about four bytes a token. What is
// shown of the thoughts may be a summary of them, or nothing.
const signatureBytes = 16.0 / 3

// reasoning counts thoughts that are sent back, which only signed ones are.
func (r ruler) reasoning(p core.Part) int {
	if p.Signature == "" {
		return 0
	}
	return max(r(p.Text), int(float64(len(p.Signature))/signatureBytes))
}
