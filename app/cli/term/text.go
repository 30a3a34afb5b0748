package term

import (
	"strings"
	"unicode"

	"github.com/mattn/go-runewidth"
)

// Clean returns text without the control characters that steer a terminal; lines
// and tabs stay. What models, tools and other users write must pass through it:
// it could otherwise move the cursor, or worse.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, text)
}

// Line returns text on one line of at most width columns, cut with … where it is
// longer; width 0 = not cut.
func Line(text string, width int) string {
	text = strings.Join(strings.Fields(Clean(text)), " ")
	if width <= 0 {
		return text
	}
	return runewidth.Truncate(text, width, "…")
}

// Wrap returns text in lines of less than width columns; the second and later
// lines of a paragraph begin with indent. With width 0 the text is as it was.
func Wrap(text string, width int, indent string) string {
	text = Clean(text)
	if width <= 0 {
		return text
	}
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		out = append(out, layout([]span{{text: line}}, frame{width: width - 1, rest: indent}))
	}
	return strings.Join(out, "\n")
}
