package term

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"bobbin/app/core"
)

const (
	// maxTextWidth is the maximum width of a line of text: longer lines are hard to read.
	maxTextWidth = 100
	// maxLine is the longest line whose Markdown is parsed, in bytes: matching marks takes
	// more than linear time.
	maxLine = 4 << 10
	// codeIndent is the prefix of lines of code.
	codeIndent = "  "
)

// Markdown writes an answer while it streams. It shows the current line as plain text, word
// by word, and replaces it by its rendering when the line is complete; it replaces a table
// when the table is complete. It does not change rows that have scrolled off the screen. Not
// safe for concurrent use.
type Markdown struct {
	w      io.Writer
	width  int // of text; 0 = no terminal: the text is written as it is
	height int

	line  strings.Builder // the current line
	shown string          // the part of its layout, or of its code, that is on the screen
	fence string          // the fence that closes the open code block; empty = none
	table []string        // the lines of the current table
	rows  int             // of the current table on the screen
	blank bool            // the previous line is empty
	first bool            // nothing is written yet
}

// NewMarkdown returns a Markdown for a terminal of width × height characters. Without a
// terminal (width 0) it writes the text unrendered, but cleaned.
func NewMarkdown(w io.Writer, width, height int) *Markdown {
	if width > 0 {
		// Terminals differ in where the next row begins after a full one.
		width = max(min(width-1, maxTextWidth), 10)
	}
	return &Markdown{w: Raw(w), width: width, height: height, first: true}
}

// Write adds text to the answer.
func (m *Markdown) Write(text string) {
	text = core.StripControls(text)
	if m.width == 0 {
		fmt.Fprint(m.w, text)
		m.blank = strings.HasSuffix(text, "\n")
		return
	}
	for part := range strings.SplitAfterSeq(text, "\n") {
		m.addPart(part)
	}
}

// Close writes the remaining text and ends the answer with a line break.
func (m *Markdown) Close() {
	if m.width == 0 {
		if !m.blank {
			fmt.Fprintln(m.w)
		}
		return
	}
	if m.line.Len() > 0 {
		m.addPart("\n")
	}
	m.endTable()
}

// addPart adds a piece of a line, which may end it.
func (m *Markdown) addPart(part string) {
	text, whole := strings.CutSuffix(part, "\n")
	m.line.WriteString(text)
	line := m.line.String()
	if len(line) > maxLine && m.fence == "" {
		for len(line) > maxLine { // all but the last piece are plain text
			head := core.Clip(line, maxLine)
			if space := strings.LastIndexByte(head, ' '); space > 0 && strings.HasPrefix(m.layoutPlain(head[:space]), m.shown) {
				head = head[:space]
			}
			m.showLayout(m.layoutPlain(head))
			fmt.Fprintln(m.w)
			line, m.shown = strings.TrimLeft(line[len(head):], " "), ""
		}
		m.line.Reset()
		m.line.WriteString(line)
	}
	if len(m.table) > 0 && (whole || strings.TrimSpace(line) != "") && !isTableRow(line) {
		m.endTable()
	}
	switch {
	case m.fence != "":
		m.showCode(line, whole)
	case whole:
		m.endLine(strings.TrimRight(line, " "))
	default:
		m.showLayout(layoutText([]span{{text: line}}, frame{width: m.width, open: true}))
	}
	if whole {
		m.line.Reset()
		m.shown = ""
		m.first = false
	}
}

func (m *Markdown) layoutPlain(line string) string {
	return layoutText([]span{{text: line}}, frame{width: m.width})
}

// showLayout writes what is missing on the screen of a layout.
func (m *Markdown) showLayout(text string) {
	fmt.Fprint(m.w, text[len(m.shown):])
	m.shown = text
}

// endLine replaces a complete line by its rendering.
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
		m.eraseRows(rowsOf(m.shown))
		m.fence = fence
		return
	}
	if isTableRow(line) {
		m.showLayout(m.layoutPlain(line))
		fmt.Fprintln(m.w)
		m.table = append(m.table, line)
		m.rows += rowsOf(m.shown)
		return
	}
	rendered := layoutText(blockOf(line, frame{width: m.width}))
	if !strings.HasPrefix(rendered, m.shown) && rowsOf(m.shown) < m.height {
		m.eraseRows(rowsOf(m.shown))
		m.shown = ""
	}
	if !strings.HasPrefix(rendered, m.shown) {
		rendered = m.layoutPlain(line) // its beginning has scrolled off the screen
	}
	m.showLayout(rendered)
	fmt.Fprintln(m.w)
}

// eraseRows removes the last rows from the screen; the cursor is in the last one.
func (m *Markdown) eraseRows(rows int) {
	if rows > 1 {
		fmt.Fprintf(m.w, "\x1b[%dA", rows-1)
	}
	fmt.Fprint(m.w, "\r\x1b[J")
}

func rowsOf(layout string) int { return strings.Count(layout, "\n") + 1 }

// showCode shows a line of a code block while it streams. It leaves wrapping to the terminal,
// so that the code can be copied.
func (m *Markdown) showCode(line string, whole bool) {
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
		m.showLayout(codeIndent + strings.ReplaceAll(line, "\t", "    "))
	}
	if whole {
		fmt.Fprintln(m.w)
		m.blank = false
	}
}

// fenceOf returns the fence that closes the code block opened by the line, or "".
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

func (m *Markdown) endTable() {
	lines, rows := m.table, m.rows
	m.table, m.rows = nil, 0
	if len(lines) == 0 || rows+1 >= m.height {
		return
	}
	if table := renderTable(lines, m.width); table != "" {
		// The cursor is below the table, in an empty row.
		m.eraseRows(rows + 1)
		fmt.Fprintln(m.w, table)
	}
}

// Beginnings of lines.
var (
	headings = regexp.MustCompile(`^ {0,3}(#{1,6})\s+(.*?)(\s+#+)?$`)
	items    = regexp.MustCompile(`^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$`)
	quotes   = regexp.MustCompile(`^ {0,3}> ?(.*)$`)
)

// blockOf returns the spans of a line and the frame to lay them out in.
func blockOf(line string, f frame) ([]span, frame) {
	if h := headings.FindStringSubmatch(line); h != nil {
		s := bold
		if h[1] == "#" {
			s |= underline
		}
		return spansOf(h[2], s), f
	}
	signs := strings.Join(strings.Fields(line), "")
	if len(signs) >= 3 && strings.Contains("-*_", signs[:1]) && strings.Trim(signs, signs[:1]) == "" {
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

// indentOf returns an indentation that leaves enough room for text.
func indentOf(indent string, width int) string {
	return strings.Repeat(" ", min(len(strings.ReplaceAll(indent, "\t", "    ")), width/3))
}
