package tokens

import (
	"hash/maphash"
	"unicode/utf8"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// The tokens of a prompt's structure, besides its texts. The first two are OpenAI's for
// chat messages; the others are upper estimates of what providers add, and calibration
// corrects the rest.
const (
	MessageOverhead  = 4    // of each message
	ListOverhead     = 3    // of a list of messages, once
	ToolCallOverhead = 8    // of each tool call besides its name and arguments
	ToolOverhead     = 8    // of each tool definition besides its texts
	ImageTokens      = 1600 // of an image of unknown size: the max that common providers charge
	// PageTokens are of a page of a PDF that is sent as a file, besides its text: the model
	// gets an image of each page, too (Anthropic, "PDF support"; OpenAI, "File inputs"). An
	// image has at most about 1,600 tokens at Anthropic, and one of a page 765 at OpenAI
	// (four squares of 512 pixels).
	PageTokens = ImageTokens
)

// Message returns the tokens of a message in a prompt: its text, its tool calls (name and
// raw arguments), its other parts, and the overhead. Callers store it as
// core.Message.TokenCount and later only add up.
func (c *Counter) Message(m core.Message) int {
	return textCounter(c.Text).messageTokens(m.Content, m.Parts, m.ToolCalls)
}

// Prompted returns the tokens of a message in the form that a model receives, by the
// rules of Message; text counts a text.
func Prompted(text func(string) int, m llm.Message) int {
	n := textCounter(text).messageTokens(m.Content, m.Parts, m.ToolCalls)
	for _, media := range m.Media {
		n += Media(media.Part)
	}
	return n
}

// Tools returns the tokens of tool definitions: names, descriptions and JSON schemas.
func (c *Counter) Tools(tools []llm.ToolSpec) int {
	n := 0
	for _, t := range tools {
		n += ToolOverhead + c.Text(t.Name) + c.Text(t.Description) + c.Text(string(t.Parameters))
	}
	return n
}

// textCounter counts a text; its methods count messages and their parts.
type textCounter func(text string) int

func (r textCounter) messageTokens(content string, parts []core.Part, calls []core.ToolCall) int {
	n := MessageOverhead + r(content)
	for _, p := range parts {
		if p.Type == "reasoning" && len(calls) == 0 {
			continue // sent back only with tool calls
		}
		n += r.partTokens(p)
	}
	for _, call := range calls {
		n += ToolCallOverhead + r(call.Name) + r(call.Arguments)
	}
	return n
}

// partTokens counts the part, without what the message's content contains already.
func (r textCounter) partTokens(p core.Part) int {
	switch p.Type {
	case core.PartText: // is the content
		return 0
	case core.PartImage:
		return Image(p)
	case "reasoning":
		return r.reasoningTokens(p)
	case core.PartCompaction:
		if p.Text != "" {
			return r(p.Text)
		}
		return len(p.Signature) / blobBytes
	case core.PartFile:
		if p.Tokens > 0 {
			return p.Tokens
		}
	}
	return r(p.Text) + r(p.Name)
}

// Pages returns what a file costs besides its text when it is sent as it is; of an image 0.
func Pages(p core.Part) int {
	if p.Type != core.PartFile {
		return 0
	}
	return p.Pages * PageTokens
}

// Media returns what an image or a file costs that is sent as it is.
func Media(p core.Part) int {
	if p.Type == core.PartFile {
		return p.Tokens + Pages(p)
	}
	return Image(p)
}

// Image returns the tokens of an image, as counted when its message arrived.
func Image(p core.Part) int {
	if p.Tokens > 0 {
		return p.Tokens
	}
	return ImageTokens
}

// signatureBytes is how many bytes of a signature hold one token of the encrypted
// reasoning: base64 of about four bytes a token. The visible reasoning may be a summary
// of it, or empty.
const signatureBytes = 16.0 / 3

// Thought returns the tokens of a signed thought in a prompt; text counts a text.
func Thought(text func(string) int, p core.Part) int {
	if p.Tokens > 0 {
		return p.Tokens
	}
	return textCounter(text).reasoningTokens(p)
}

// reasoningTokens counts reasoning that is sent back, which only signed reasoning is.
func (r textCounter) reasoningTokens(p core.Part) int {
	if p.Signature == "" {
		return 0
	}
	return max(r(p.Text), int(float64(len(p.Signature))/signatureBytes))
}

// blobBytes is how many bytes of a compaction that nobody can read hold one token.
const blobBytes = 4

const maxEntries = 65_536 // of a cache: about 3 MB

// Counter counts cl100k_base tokens. All Counters of a process share the vocabulary, which
// the first count loads (about 0.01 s). Safe for concurrent use.
type Counter struct {
	// The cache has 128-bit hashes and not the strings: it keeps no user's text in memory. They have
	// random seeds, so nobody can construct a collision.
	cache *core.Cache[[2]uint64, int]
	seeds [2]maphash.Seed
}

// NewCounter returns a Counter.
func NewCounter() *Counter {
	return &Counter{core.NewCache[[2]uint64, int](maxEntries), [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
}

// Text returns the exact number of tokens of s. The names of special tokens
// ("<|endoftext|>") are plain text, and a byte that is not UTF-8 counts as U+FFFD, with
// which messages store it. The time is linear in the length of s for every text; counts
// are cached.
func (c *Counter) Text(s string) int {
	if s == "" {
		return 0
	}
	key := [2]uint64{maphash.String(c.seeds[0], s), maphash.String(c.seeds[1], s)}
	n, ok := c.cache.Get(key)
	if !ok {
		valid := s
		if !utf8.ValidString(s) {
			valid = string([]rune(s))
		}
		n = sharedVocabulary().countTokens(valid)
		c.cache.Set(key, n)
	}
	return n
}
