package term

import (
	"strings"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"

	"bobbin/app/core"
)

// Clean returns text without control characters and characters that change the writing
// direction; it keeps line breaks and tabs. Text of models, tools and other users passes
// through it: otherwise it could move the cursor, or display something else than it says.
func Clean(text string) string { return core.StripControls(text) }

// CleanJSON returns an equivalent JSON document in which the characters that Clean removes
// are escaped.
func CleanJSON(document []byte) []byte {
	var out []byte
	for _, r := range string(document) {
		if core.IsSteering(r) {
			out = append(out, core.Literal(string(r))...)
			continue
		}
		out = utf8.AppendRune(out, r)
	}
	return out
}

// Line returns text on one line of at most width columns, truncated with … if it is longer;
// width 0 = unlimited.
func Line(text string, width int) string {
	text = strings.Join(strings.Fields(Clean(text)), " ")
	if width <= 0 {
		return text
	}
	return runewidth.Truncate(text, width, "…")
}

// Wrap returns text in lines of less than width columns; the second and later lines of a
// paragraph begin with indent. With width 0 it does not wrap.
func Wrap(text string, width int, indent string) string {
	text = Clean(text)
	if width <= 0 {
		return text
	}
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		out = append(out, layoutText([]span{{text: line}}, frame{width: width - 1, rest: indent}))
	}
	return strings.Join(out, "\n")
}
