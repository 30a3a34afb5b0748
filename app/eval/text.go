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
	t.add(s)
	return t
}

// add adds a piece; no fact is found across two pieces.
func (t *text) add(s string) {
	t.b.WriteString(plain(s))
	t.b.WriteByte('\n')
}

// has reports whether the fact is said.
func (t *text) has(f Fact) bool { return strings.Contains(t.b.String(), plain(f.Text)) }

// plain returns the text in lower case, its blanks and line breaks as single blanks.
func plain(s string) string { return strings.ToLower(strings.Join(strings.Fields(s), " ")) }

// said returns what a message says: its content and its tool calls, both also as
// the values that they hold where they are JSON, without its escapes.
func said(content string, calls []core.ToolCall) string {
	parts := append([]string{content}, values(content)...)
	for _, c := range calls {
		parts = append(append(parts, c.Arguments), values(c.Arguments)...)
	}
	return strings.Join(parts, "\n")
}

// values returns the texts in a JSON object or list; none in anything else, and in
// what has no escapes.
func values(raw string) []string {
	raw = strings.TrimSpace(raw)
	if raw == "" || !strings.ContainsRune("{[", rune(raw[0])) || !strings.Contains(raw, `\`) {
		return nil
	}
	var v any
	if json.Unmarshal([]byte(raw), &v) != nil {
		return nil
	}
	return texts(v)
}

// texts returns the texts in a JSON value.
func texts(v any) []string {
	var out []string
	switch v := v.(type) {
	case string:
		out = append(out, v)
	case []any:
		for _, item := range v {
			out = append(out, texts(item)...)
		}
	case map[string]any:
		for _, item := range v {
			out = append(out, texts(item)...)
		}
	}
	return out
}
