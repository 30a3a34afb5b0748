package eval

import (
	"encoding/json"
	"strings"

	"bobbin/app/core"
)

// text is what was said somewhere, to look for facts in.
type text struct{ b strings.Builder }

// newText returns the text of a first piece.
func newText(s string) *text {
	t := &text{}
	t.addPiece(s)
	return t
}

// addPiece adds a piece; no fact is found across two pieces.
func (t *text) addPiece(s string) {
	t.b.WriteString(plainText(s))
	t.b.WriteByte('\n')
}

// hasFact reports whether the fact is said word for word.
func (t *text) hasFact(f Fact) bool {
	return strings.Contains(t.b.String(), plainText(f.Text))
}

// plainText returns the text in lower case, its blanks and line breaks as single blanks.
func plainText(s string) string { return strings.ToLower(strings.Join(strings.Fields(s), " ")) }

// messageTexts returns what a message says: its content and its tool calls, both also as
// the values that they hold where they are JSON, without its escapes.
func messageTexts(content string, calls []core.ToolCall) string {
	parts := append([]string{content}, jsonTexts(content)...)
	for _, c := range calls {
		parts = append(append(parts, c.Arguments), jsonTexts(c.Arguments)...)
	}
	return strings.Join(parts, "\n")
}

// jsonTexts returns the texts in a JSON object or list; none in anything else, and in
// what has no escapes.
func jsonTexts(raw string) []string {
	raw = strings.TrimSpace(raw)
	if raw == "" || !strings.ContainsRune("{[", rune(raw[0])) || !strings.Contains(raw, `\`) {
		return nil
	}
	var v any
	if json.Unmarshal([]byte(raw), &v) != nil {
		return nil
	}
	return textsOf(v)
}

// textsOf returns the texts in a JSON value.
func textsOf(v any) []string {
	var out []string
	switch v := v.(type) {
	case string:
		out = append(out, v)
	case []any:
		for _, item := range v {
			out = append(out, textsOf(item)...)
		}
	case map[string]any:
		for _, item := range v {
			out = append(out, textsOf(item)...)
		}
	}
	return out
}
