package llm

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"bobbin/app/core"
)

// PromptMarks are short hashes of a prompt, from which the first part is found that differs in the
// next prompt. Stored with the session; the zero value is of no prompt.
type PromptMarks struct {
	Model    string `json:"model,omitempty"`
	System   string `json:"system,omitempty"` // of the first system block
	Blocks   string `json:"blocks,omitempty"` // of the others
	Tools    string `json:"tools,omitempty"`  // of the tools, the answer's format and the effort
	Messages int    `json:"messages,omitempty"`
	Every    int    `json:"every,omitempty"`   // messages between two marks
	Marks    []byte `json:"marks,omitempty"`   // markBytes each, of all messages so far; the last one of all messages
	Passing  int    `json:"passing,omitempty"` // the message that the next prompt does not have, from 1; 0 = none
	Summary  int    `json:"summary,omitempty"` // version of the summary in the prompt
	Cached   int    `json:"cached,omitempty"`  // tokens that the provider read from its cache or wrote to it
	Answer   string `json:"answer,omitempty"`  // the provider's id of the answer, where it diagnoses its cache
	all      []byte // a mark after each message; not stored
}

// Sizes of the marks. A mark that is the same by chance, one time in 65,536, moves the difference
// to the next one.
const (
	markBytes = 2
	maxMarks  = 96
	partBytes = 4 // of the other hashes, as characters
)

// MarkPrompt returns the marks of the request as the model gets it.
func MarkPrompt(info Info, req Request) PromptMarks {
	system := slices.DeleteFunc(slices.Clone(req.System), func(s string) bool { return s == "" })
	marks := PromptMarks{
		Model:    hashOfModel(info),
		Tools:    NewPrefix(Info{}, nil, req.Tools, req.ResponseFormat, req.ReasoningEffort).String()[:partBytes],
		Messages: len(req.Messages), Every: 1,
	}
	if len(system) > 0 {
		marks.System, marks.Blocks = hashOf(Info{}, system[:1], nil), hashOf(Info{}, system[1:], nil)
	}
	for (len(req.Messages)+marks.Every-1)/marks.Every > maxMarks {
		marks.Every *= 2
	}
	marks.all = runningMarks(req.Messages)
	for n := range ends(len(req.Messages), marks.Every) {
		marks.Marks = append(marks.Marks, marks.all[(n-1)*markBytes:n*markBytes]...)
	}
	marks.Passing = 1 + slices.IndexFunc(req.Messages, func(m Message) bool { return m.Passing })
	return marks
}

// hashOfModel returns a short hash of the model and its account.
func hashOfModel(info Info) string {
	return hashOf(Info{ThoughtOrigin: info.Name, Account: info.Account}, nil, nil)
}

// hashOf returns a short hash of system blocks and tools for a model.
func hashOf(info Info, system []string, tools []ToolSpec) string {
	return NewPrefix(info, system, tools, nil, "").String()[:partBytes]
}

// ends yields after how many messages there is a mark.
func ends(messages, every int) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for n := every; n < messages; n += every {
			if !yield(n) {
				return
			}
		}
		if messages > 0 {
			yield(messages)
		}
	}
}

// runningMarks returns a mark after each message, of it and all messages before it. Files count by
// their names: their contents are large.
func runningMarks(messages []Message) []byte {
	var prefix Prefix
	marks := make([]byte, 0, markBytes*len(messages))
	for _, m := range messages {
		files := make([]string, len(m.Media))
		for i, media := range m.Media {
			files[i] = string(media.BlobID) + media.Name
		}
		m.Media = nil
		m.ToolCallID += strings.Join(files, "\x00")
		prefix = prefix.With(m)
		marks = append(marks, prefix.sum[:markBytes]...)
	}
	return marks
}

// Difference returns the first part that differs in a later prompt, whose marks MarkPrompt has just
// returned; index is that of the message, from 1, and within how many from there on may be it.
// PromptSame if the prompt begins the later one, or goes further but is the same so far.
func (p PromptMarks) Difference(later PromptMarks) (part core.PromptPart, index, within int) {
	switch {
	case p.Messages == 0:
		return core.PromptSame, 0, 0
	case p.Model != later.Model:
		return core.PromptModel, 0, 0
	case p.System != later.System || p.Blocks != later.Blocks:
		return core.PromptSystem, 0, 0
	case p.Tools != later.Tools:
		return core.PromptTools, 0, 0
	}
	before, i := 0, 0
	for n := range ends(p.Messages, p.Every) {
		if n > later.Messages || i+markBytes > len(p.Marks) {
			break
		}
		if !bytes.Equal(p.Marks[i:i+markBytes], later.all[(n-1)*markBytes:n*markBytes]) {
			return core.PromptOfMessage, before + 1, n - before
		}
		before, i = n, i+markBytes
	}
	return core.PromptSame, 0, 0
}

// DecodeMarks reads stored marks; none for what cannot be decoded.
func DecodeMarks(raw []byte) (p PromptMarks) {
	if json.Unmarshal(raw, &p) != nil || p.Every < 1 {
		return PromptMarks{}
	}
	return p
}

// Encode returns the marks as they are stored.
func (p PromptMarks) Encode() []byte {
	raw, err := json.Marshal(p)
	if err != nil {
		panic("prompt marks: " + err.Error()) // plain values only
	}
	return raw
}
