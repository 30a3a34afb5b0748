package term

import (
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/glamour"
	"github.com/charmbracelet/glamour/ansi"
	"github.com/charmbracelet/glamour/styles"
	"github.com/mattn/go-runewidth"
)

// Markdown writes an answer while it streams: the block that is being written
// stands as plain text, and is replaced by its rendering when it is whole. Not
// safe for concurrent use.
type Markdown struct {
	w       io.Writer
	width   int
	height  int
	render  *glamour.TermRenderer // nil = plain text only
	block   strings.Builder       // what stands on the screen unrendered
	inFence bool
	line    strings.Builder // the line that is being written
}

// NewMarkdown returns a Markdown for a terminal of width × height characters. For
// anything but a terminal (width 0) it passes the text on as it is.
func NewMarkdown(w io.Writer, width, height int) *Markdown {
	m := &Markdown{w: w, width: width, height: height}
	if width <= 0 {
		return m
	}
	r, err := glamour.NewTermRenderer(glamour.WithStyles(style()), glamour.WithWordWrap(min(width-2, maxTextWidth)))
	if err == nil {
		m.render = r
	}
	return m
}

// maxTextWidth is how wide a line of text is at most: longer ones are hard to read.
const maxTextWidth = 100

// style is glamour's plain one with bold, italics and underlining instead of
// signs. It uses no colors: they would depend on the terminal's background, and
// asking for that takes seconds where there is no answer.
func style() ansi.StyleConfig {
	yes, none := true, uint(0)
	s := styles.NoTTYStyleConfig
	s.Document.Margin = &none
	s.Document.BlockPrefix, s.Document.BlockSuffix = "", ""
	s.Strong = ansi.StylePrimitive{Bold: &yes}
	s.Emph = ansi.StylePrimitive{Italic: &yes}
	s.Heading = ansi.StyleBlock{StylePrimitive: ansi.StylePrimitive{Bold: &yes, BlockSuffix: "\n"}}
	for _, h := range []*ansi.StyleBlock{&s.H1, &s.H2, &s.H3, &s.H4, &s.H5, &s.H6} {
		*h = ansi.StyleBlock{}
	}
	s.H1.Underline = &yes
	s.Code = ansi.StyleBlock{StylePrimitive: ansi.StylePrimitive{Bold: &yes}}
	return s
}

// Write adds text to the answer.
func (m *Markdown) Write(text string) {
	if m.render == nil {
		fmt.Fprint(m.w, text)
		return
	}
	for _, part := range strings.SplitAfter(text, "\n") {
		m.add(part)
	}
}

// add takes a piece that ends a line or does not.
func (m *Markdown) add(part string) {
	fmt.Fprint(m.w, part)
	m.block.WriteString(part)
	m.line.WriteString(part)
	if !strings.HasSuffix(part, "\n") {
		return
	}
	line := strings.TrimSpace(m.line.String())
	m.line.Reset()
	if strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~") {
		m.inFence = !m.inFence
	}
	if line == "" && !m.inFence {
		m.flush()
	}
}

// Close renders what is left and ends the answer with a new line.
func (m *Markdown) Close() {
	if m.render == nil {
		fmt.Fprintln(m.w)
		return
	}
	if m.block.Len() > 0 && !strings.HasSuffix(m.block.String(), "\n") {
		m.add("\n")
	}
	m.flush()
}

// flush replaces the block on the screen by its rendering.
func (m *Markdown) flush() {
	raw := m.block.String()
	m.block.Reset()
	if strings.TrimSpace(raw) == "" {
		return
	}
	lines := m.lines(raw)
	if lines >= m.height {
		return // its beginning has left the screen and cannot be replaced
	}
	out, err := m.render.Render(raw)
	if err != nil {
		return
	}
	fmt.Fprintf(m.w, "\x1b[%dA\r\x1b[J%s\n\n", lines, trim(out))
}

// trim takes the padding away that glamour adds around a block.
func trim(rendered string) string {
	lines := strings.Split(rendered, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// lines returns how many lines of the terminal the text has filled.
func (m *Markdown) lines(text string) int {
	n := 0
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		n += max(runewidth.StringWidth(line)-1, 0)/m.width + 1
	}
	return n
}
