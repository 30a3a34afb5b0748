package core

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Excerpt says what prompts show of a tool result that is stored whole and too
// large for them: its beginning and its end, in bytes. It is decided once, when the
// result is stored, and kept in the message's metadata, so that every prompt shows
// the same bytes.
type Excerpt struct {
	Head int `json:"head"`
	Tail int `json:"tail"`
	// Described: both are of the text with descriptions of the data in it (base64, hex), which no model can read.
	Described bool `json:"described,omitempty"`
}

// ToolReadResult is the name of the tool that reads the rest of such results.
const ToolReadResult = "read_result"

// ExcerptKey is the key of the excerpt in the metadata of a message.
const ExcerptKey = "excerpt"

// WithExcerpt returns the message, which has no metadata yet, with its ExcerptOf.
func WithExcerpt(m Message, limit int) Message {
	if e, ok := ExcerptOf(m, limit); ok {
		m.Metadata, _ = json.Marshal(map[string]Excerpt{ExcerptKey: e})
	}
	return m
}

// ExcerptOf returns an excerpt of about limit bytes of a message without one whose content is larger, or has
// data; false = prompts show all of it. A limit of 0 is none.
func ExcerptOf(m Message, limit int) (e Excerpt, ok bool) {
	if _, _, ok := m.Excerpt(); ok {
		return e, false
	}
	text := describeEncoded(m.Content)
	e = Excerpt{Head: len(text), Described: len(text) != len(m.Content)}
	if limit <= 0 || len(text) <= limit {
		return e, e.Described
	}
	e.Head, e.Tail = limit*2/3, limit/3
	return e.of(text), true
}

// of returns the excerpt in whole characters of the text; all of it if that is shorter.
func (e Excerpt) of(text string) Excerpt {
	n := len(text)
	if e.Head < 0 || e.Tail < 0 || e.Head >= n || e.Tail >= n-e.Head {
		e.Head, e.Tail = n, 0
		return e
	}
	e.Head = len(Clip(text, e.Head))
	for e.Tail > 0 && !utf8.RuneStart(text[n-e.Tail]) {
		e.Tail--
	}
	return e
}

// Excerpt returns what prompts show of the message, and the text that it is of: the content, or the
// one that describes data; false = all of it. Only of a tool's result something else is left out.
func (m Message) Excerpt() (_ Excerpt, text string, ok bool) {
	var data struct{ Excerpt *Excerpt }
	if !bytes.Contains(m.Metadata, []byte(`"`+ExcerptKey+`"`)) || json.Unmarshal(m.Metadata, &data) != nil || data.Excerpt == nil {
		return Excerpt{}, "", false
	}
	text = m.Content
	if data.Excerpt.Described {
		text = describeEncoded(text)
	}
	e := *data.Excerpt
	if e.Described && e.Tail == 0 { // it was whole
		e.Head = max(e.Head, 64<<10)
	}
	e = e.of(text) // data may have been described otherwise when the excerpt was made
	if m.Role != RoleTool {
		e.Head, e.Tail = len(text), 0
	}
	return e, text, e.Described || e == *data.Excerpt && e.Head < len(text)
}

// Shown returns the content as prompts show it: whole, or its excerpt with a line
// that says what is left out and where it is, and with descriptions of data. Readable says
// that the agent has the tool that reads the rest.
func (m Message) Shown(readable bool) string {
	e, text, ok := m.Excerpt()
	if !ok {
		return m.Content
	}
	n := len(text)
	if e.Head+e.Tail == n {
		return text
	}
	how, offset := "", e.Head
	if e.Described {
		offset = 0 // the data is in the result that is read
	}
	if readable {
		how = fmt.Sprintf(`; %s {"message_id": "%s", "offset": %d} reads on`, ToolReadResult, m.ID, offset)
	}
	return fmt.Sprintf("%s\n[… %d of %d bytes are left out here; the whole result is message %s%s …]\n%s",
		text[:e.Head], n-e.Head-e.Tail, n, m.ID, how, text[n-e.Tail:])
}

// ReplacedKey is the key in the metadata of a message that counts the characters of its
// texts that could not be stored.
const ReplacedKey = "replaced_characters"

// ReplaceMetadata returns the new metadata of a message with those members of the old one
// that Bobbin wrote: prompts are made by them.
func ReplaceMetadata(old, replacement json.RawMessage) (json.RawMessage, error) {
	var before, after map[string]json.RawMessage
	if len(old) > 0 {
		if err := json.Unmarshal(old, &before); err != nil {
			return nil, fmt.Errorf("stored metadata: %w", err)
		}
	}
	if err := json.Unmarshal(replacement, &after); err != nil || after == nil {
		return nil, Errorf(ErrInvalid, "metadata must be a JSON object")
	}
	for _, key := range []string{ExcerptKey, ReplacedKey} {
		delete(after, key)
		if value, ok := before[key]; ok {
			after[key] = value
		}
	}
	return json.Marshal(after)
}

// RecalledPassages says which passages a prompt quoted before the message of its run, without
// their texts.
type RecalledPassages struct {
	Tokens   int               `json:"token_count"` // cl100k_base, of the message that quoted them
	Passages []RecalledPassage `json:"passages"`    // in the order of the log
}

// RecalledPassage is a part of a message's text in a single line: bytes of it.
type RecalledPassage struct {
	MessageID MessageID `json:"message_id"`
	From      int       `json:"from"`
	To        int       `json:"to"`
	CutBefore bool      `json:"cut_before,omitempty" doc:"… stands before it."`
	CutAfter  bool      `json:"cut_after,omitempty" doc:"… stands behind it."`
}

// omitted marks omitted text in a quotation.
const omitted = "…"

// FindPassage returns the part of the message that the quotation shows; false if it does not
// show the message's own text.
func FindPassage(m Message, quotation string) (RecalledPassage, bool) {
	line := quotableLine(m.Content)
	for _, p := range []RecalledPassage{{}, {CutAfter: true}, {CutBefore: true}, {CutBefore: true, CutAfter: true}} {
		text, before, after := quotation, true, true
		if p.CutBefore {
			text, before = strings.CutPrefix(text, omitted)
		}
		if p.CutAfter {
			text, after = strings.CutSuffix(text, omitted)
		}
		if i := strings.Index(line, text); i >= 0 && before && after && text != "" {
			p.MessageID, p.From, p.To = m.ID, i, i+len(text)
			return p, true
		}
	}
	return RecalledPassage{}, false
}

// Quote returns the passage of its message; false if the message is shorter by now.
func (p RecalledPassage) Quote(m Message) (string, bool) {
	line := quotableLine(m.Content)
	if p.From < 0 || p.From >= p.To || p.To > len(line) {
		return "", false
	}
	text := line[p.From:p.To]
	if p.CutBefore {
		text = omitted + text
	}
	if p.CutAfter {
		text += omitted
	}
	return text, true
}

// quotableLine returns the text without control characters in a single line, as searches quote
// it.
func quotableLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}
