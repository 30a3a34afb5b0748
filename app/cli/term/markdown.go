package term

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"bobbin/app/core"
)

const (
	// maxTextWidth is how wide a line of text is at most: longer ones are hard to read.
	maxTextWidth = 100
	// maxLine is the longest line whose Markdown is looked for, in bytes: to find what
	// belongs together takes time.
	maxLine = 4 << 10
	// codeIndent stands before lines of code.
	codeIndent = "  "
)

// Markdown writes an answer while it streams. The line that is being written
// stands as plain text, word by word, and is replaced by its rendering when it is
// whole; a table as soon as it is. What has left the screen stays as it is. Not
// safe for concurrent use.
type Markdown struct {
	w      io.Writer
	width  int // of text; 0 = no terminal: everything is passed on as it is
	height int

	line  strings.Builder // the line that is being written
	shown string          // what of its layout, or of its code, is on the screen
	fence string          // what closes the code block that is open; empty = none
	table []string        // the lines of a table that is being written
	rows  int             // that it takes on the screen
	blank bool            // the line before is empty
	first bool            // nothing was written yet
}

// NewMarkdown returns a Markdown for a terminal of width × height characters. For
// anything but a terminal (width 0) it passes the text on as it is.
func NewMarkdown(w io.Writer, width, height int) *Markdown {
	if width > 0 {
		// A row that is quite full would leave it to the terminal where the next one begins.
		width = max(min(width-1, maxTextWidth), 10)
	}
	return &Markdown{w: w, width: width, height: height, first: true}
}

// Write adds text to the answer.
func (m *Markdown) Write(text string) {
	if m.width == 0 {
		fmt.Fprint(m.w, text)
		m.blank = strings.HasSuffix(text, "\n")
		return
	}
	for part := range strings.SplitAfterSeq(Clean(text), "\n") {
		m.add(part)
	}
}

// Close writes what is held back and ends the answer with a new line.
func (m *Markdown) Close() {
	if m.width == 0 {
		if !m.blank {
			fmt.Fprintln(m.w)
		}
		return
	}
	if m.line.Len() > 0 {
		m.add("\n")
	}
	m.endTable()
}

// add takes a piece of a line, or its end.
func (m *Markdown) add(part string) {
	text, whole := strings.CutSuffix(part, "\n")
	m.line.WriteString(text)
	line := m.line.String()
	if len(line) > maxLine && m.fence == "" {
		line = m.breakLine(line)
	}
	if len(m.table) > 0 && (whole || strings.TrimSpace(line) != "") && !isTableRow(line) {
		m.endTable()
	}
	switch {
	case m.fence != "":
		m.code(line, whole)
	case whole:
		m.endLine(strings.TrimRight(line, " "))
	default:
		m.show(layout([]span{{text: line}}, frame{width: m.width, open: true}))
	}
	if whole {
		m.line.Reset()
		m.shown = ""
		m.first = false
	}
}

// breakLine ends a line that is too long as plain text, as often as it takes, and
// returns what is left of it.
func (m *Markdown) breakLine(line string) string {
	for len(line) > maxLine {
		head := core.Clip(line, maxLine)
		if space := strings.LastIndexByte(head, ' '); space > 0 && strings.HasPrefix(m.raw(head[:space]), m.shown) {
			head = head[:space]
		}
		m.show(m.raw(head))
		fmt.Fprintln(m.w)
		line, m.shown = strings.TrimLeft(line[len(head):], " "), ""
	}
	m.line.Reset()
	m.line.WriteString(line)
	return line
}

// raw returns the layout of a line as plain text.
func (m *Markdown) raw(line string) string {
	return layout([]span{{text: line}}, frame{width: m.width})
}

// show brings the screen from the beginning of a layout to more of it.
func (m *Markdown) show(text string) {
	fmt.Fprint(m.w, text[len(m.shown):])
	m.shown = text
}

// endLine puts the rendering of a line in its place.
func (m *Markdown) endLine(line string) {
	if line == "" {
		if !m.blank && !m.first {
			fmt.Fprintln(m.w)
		}
		m.blank = true
		return
	}
	m.blank = false
	if fence := fenceOf(line); fence != "" {
		m.erase(rowsOf(m.shown))
		m.fence = fence
		return
	}
	if isTableRow(line) {
		m.show(m.raw(line))
		fmt.Fprintln(m.w)
		m.table = append(m.table, line)
		m.rows += rowsOf(m.shown)
		return
	}
	rendered := render(line, m.width)
	if !strings.HasPrefix(rendered, m.shown) && rowsOf(m.shown) < m.height {
		m.erase(rowsOf(m.shown))
		m.shown = ""
	}
	if !strings.HasPrefix(rendered, m.shown) {
		rendered = m.raw(line) // its beginning has left the screen
	}
	m.show(rendered)
	fmt.Fprintln(m.w)
}

// erase takes the last rows off the screen; the cursor stands in the last one.
func (m *Markdown) erase(rows int) {
	if rows > 1 {
		fmt.Fprintf(m.w, "\x1b[%dA", rows-1)
	}
	fmt.Fprint(m.w, "\r\x1b[J")
}

func rowsOf(layout string) int { return strings.Count(layout, "\n") + 1 }

// code shows a line of a code block, as it comes. Long lines are left to the
// terminal, so that they can be copied.
func (m *Markdown) code(line string, whole bool) {
	trimmed := strings.TrimSpace(line)
	if maybe := strings.Trim(trimmed, m.fence[:1]) == ""; maybe {
		if whole && len(trimmed) >= len(m.fence) {
			m.fence = ""
			return
		}
		if !whole {
			return // it may become the end of the block
		}
	}
	if line != "" {
		m.show(codeIndent + strings.ReplaceAll(line, "\t", "    "))
	}
	if whole {
		fmt.Fprintln(m.w)
		m.blank = false
	}
}

// fenceOf returns what closes the code block that the line opens, or "".
func fenceOf(line string) string {
	line = strings.TrimLeft(line, " ")
	for _, c := range []string{"`", "~"} {
		fence := line[:len(line)-len(strings.TrimLeft(line, c))]
		if len(fence) >= 3 && !strings.Contains(line[len(fence):], "`") {
			return fence
		}
	}
	return ""
}

// endTable puts the rendering of a table in the place of its lines.
func (m *Markdown) endTable() {
	lines, rows := m.table, m.rows
	m.table, m.rows = nil, 0
	if len(lines) == 0 || rows+1 >= m.height {
		return
	}
	if table := renderTable(lines, m.width); table != "" {
		// The cursor stands below the table, in a row where nothing is yet.
		m.erase(rows + 1)
		fmt.Fprintln(m.w, table)
	}
}

// What lines begin with.
var (
	headings = regexp.MustCompile(`^ {0,3}(#{1,6})\s+(.*?)(\s+#+)?$`)
	items    = regexp.MustCompile(`^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$`)
	quotes   = regexp.MustCompile(`^ {0,3}> ?(.*)$`)
)

// render returns a line that is no code and no table as it looks.
func render(line string, width int) string {
	return layout(blockOf(line, frame{width: width}))
}

// blockOf returns what a line says, and where it stands.
func blockOf(line string, f frame) ([]span, frame) {
	if h := headings.FindStringSubmatch(line); h != nil {
		s := bold
		if h[1] == "#" {
			s |= underline
		}
		return spansOf(h[2], s), f
	}
	if isRule(line) {
		return []span{{text: strings.Repeat("─", min(f.width, 40))}}, f
	}
	if q := quotes.FindStringSubmatch(line); q != nil {
		f.first, f.rest = f.first+"│ ", f.rest+"│ "
		return blockOf(q[1], f)
	}
	if it := items.FindStringSubmatch(line); it != nil {
		mark := it[2]
		if len(mark) == 1 {
			mark = "•"
		}
		indent := indentOf(it[1], f.width)
		f.first += indent + mark + " "
		f.rest += indent + strings.Repeat(" ", len([]rune(mark))+1)
		return spansOf(it[3], 0), f
	}
	text := strings.TrimLeft(line, " \t")
	indent := indentOf(line[:len(line)-len(text)], f.width)
	f.first, f.rest = f.first+indent, f.rest+indent
	return spansOf(text, 0), f
}

// indentOf returns an indentation that leaves room for text.
func indentOf(indent string, width int) string {
	return strings.Repeat(" ", min(len(strings.ReplaceAll(indent, "\t", "    ")), width/3))
}

// isRule reports whether the line is a rule: three or more of one sign.
func isRule(line string) bool {
	signs := strings.Join(strings.Fields(line), "")
	return len(signs) >= 3 && strings.Contains("-*_", signs[:1]) && strings.Trim(signs, signs[:1]) == ""
}
