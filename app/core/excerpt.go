package core

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Excerpt says what prompts show of a tool result that is stored whole and too
// large for them: its beginning and its end, in bytes. It is decided once, when the
// result is stored, and kept in the message's metadata, so that every prompt shows
// the same bytes.
type Excerpt struct {
	Head int `json:"head"`
	Tail int `json:"tail"`
}

// ToolReadResult is the name of the tool that reads the rest of such results.
const ToolReadResult = "read_result"

// ExcerptKey is the key of the excerpt in the metadata of a tool message.
const ExcerptKey = "excerpt"

// headParts of tailParts+headParts of an excerpt are the beginning.
const (
	headParts = 2
	tailParts = 1
)

// WithExcerpt returns the message, which has no metadata yet, with an excerpt of
// about that many bytes if its content is larger.
func WithExcerpt(m Message, limit int) Message {
	if limit <= 0 || len(m.Content) <= limit {
		return m
	}
	tail := len(m.Content) - limit*tailParts/(headParts+tailParts)
	for tail < len(m.Content) && !utf8.RuneStart(m.Content[tail]) {
		tail++
	}
	e := Excerpt{Head: len(Clip(m.Content, limit*headParts/(headParts+tailParts))), Tail: len(m.Content) - tail}
	m.Metadata = fmt.Appendf(nil, `{"%s":{"head":%d,"tail":%d}}`, ExcerptKey, e.Head, e.Tail)
	return m
}

// Excerpt returns what prompts show of the message; false = all of it.
func (m Message) Excerpt() (Excerpt, bool) {
	if m.Role != RoleTool || len(m.Metadata) == 0 {
		return Excerpt{}, false
	}
	var data struct {
		Excerpt *Excerpt `json:"excerpt"`
	}
	if json.Unmarshal(m.Metadata, &data) != nil || data.Excerpt == nil {
		return Excerpt{}, false
	}
	e, n := *data.Excerpt, len(m.Content)
	whole := e.Head < 0 || e.Tail < 0 || e.Head > n || e.Tail > n-e.Head || e.Head+e.Tail == n ||
		!utf8.RuneStart(m.Content[e.Head]) || e.Tail > 0 && !utf8.RuneStart(m.Content[n-e.Tail])
	return e, !whole
}

// Shown returns the content as prompts show it: whole, or its excerpt with a line
// that says what is left out and where it is. Readable says that the agent has the
// tool that reads the rest.
func (m Message) Shown(readable bool) string {
	e, ok := m.Excerpt()
	if !ok {
		return m.Content
	}
	n := len(m.Content)
	how := ""
	if readable {
		how = fmt.Sprintf(`; %s {"message_id": "%s", "offset": %d} reads on`, ToolReadResult, m.ID, e.Head)
	}
	return fmt.Sprintf("%s\n[… %d of %d bytes are left out here; the whole result is message %s%s …]\n%s",
		m.Content[:e.Head], n-e.Head-e.Tail, n, m.ID, how, m.Content[n-e.Tail:])
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
