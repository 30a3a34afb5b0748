// Package term draws output for terminals: answers as they stream, with rendered Markdown,
// and pictures of context windows. It reads the user's input (Reader). docs/adr/0007 explains why it renders Markdown itself.
package term

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
	"golang.org/x/text/runes"
	"golang.org/x/text/transform"

	"bobbin/app/core"
)

// CleanJSON returns an equivalent JSON document in which the characters that Output removes
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
	text = strings.Join(strings.Fields(core.StripControls(text)), " ")
	if width <= 0 {
		return text
	}
	return runewidth.Truncate(text, width, "…")
}

// Wrap returns text in lines of less than width columns; the second and later lines of a
// paragraph begin with indent. With width 0 it does not wrap.
func Wrap(text string, width int, indent string) string {
	text = core.StripControls(text)
	if width <= 0 {
		return text
	}
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		out = append(out, layoutText([]span{{text: line}}, frame{width: width - 1, rest: indent}))
	}
	return strings.Join(out, "\n")
}

// ErrorText returns an error for people: the public message of a core.Error, and a failed
// request without its method and address.
func ErrorText(err error) string {
	var shown *core.Error
	var request *url.Error
	switch {
	case errors.As(err, &shown):
		text := shown.Message
		for _, f := range shown.Fields {
			text += "\n  " + f.Field + ": " + f.Detail
		}
		return core.StripControls(text)
	case errors.As(err, &request):
		return core.StripControls(request.Err.Error())
	default:
		return core.StripControls(err.Error())
	}
}

// Output is the standard output or standard error of the program. It removes control characters but line breaks and
// tabs, and those that change the writing direction (core.IsSteering): text of models, tools and other users could
// move the cursor, or display something else than it says. What the program itself draws goes to Raw. Safe for
// concurrent use.
type Output struct {
	raw io.Writer

	mu    sync.Mutex
	clean *transform.Writer // guarded by mu
}

// NewOutput returns the Output that writes to w.
func NewOutput(w io.Writer) *Output {
	return &Output{raw: w, clean: transform.NewWriter(w, runes.Remove(runes.Predicate(core.IsSteering)))}
}

// Write writes the text of b, cleaned. An incomplete character at its end waits for the rest.
func (o *Output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.clean.Write(b)
}

// Fd returns the file descriptor, which identifies a terminal; an invalid one if the Output is
// not a file.
func (o *Output) Fd() uintptr {
	if f, ok := o.raw.(*os.File); ok {
		return f.Fd()
	}
	return ^uintptr(0)
}

// Raw returns the writer beneath an Output, and any other writer as it is.
func Raw(w io.Writer) io.Writer {
	if o, ok := w.(*Output); ok {
		return o.raw
	}
	return w
}

// WriteTable writes rows in columns; the first row holds the titles. On a terminal that is narrower
// than the table each row is its first cell, and below it the others with their titles. Width is the
// terminal's width, 0 if there is none.
func WriteTable(w io.Writer, rows [][]string, width int) {
	sizes, total := make([]int, len(rows[0])), 0
	for i := range sizes {
		for _, row := range rows {
			sizes[i] = max(sizes[i], runewidth.StringWidth(row[i]))
		}
		total += sizes[i] + len("  ")
	}
	if width > 0 && total-len("  ") >= width {
		writeBlocks(w, rows, width)
		return
	}
	for _, row := range rows {
		line := ""
		for i, cell := range row {
			line += runewidth.FillRight(cell, sizes[i]) + "  "
		}
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
}

// writeBlocks writes the rows of a table below each other.
func writeBlocks(w io.Writer, rows [][]string, width int) {
	for _, row := range rows[1:] {
		var parts []string
		for i, cell := range row[1:] {
			if cell != "" {
				parts = append(parts, strings.ToLower(rows[0][i+1])+" "+cell)
			}
		}
		fmt.Fprintln(w, Wrap(row[0], width, ""))
		fmt.Fprintln(w, Wrap("  "+strings.Join(parts, ", "), width, "  "))
	}
}
