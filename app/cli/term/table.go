package term

import (
	"regexp"
	"strings"
)

const (
	columnGap = " │ "
	// minColumnWidth is the minimum width of a column in a table that is too wide.
	minColumnWidth = 6
)

var delimiter = regexp.MustCompile(`^ *\|( *:?-+:? *\|)+ *$`)

func isTableRow(line string) bool { return strings.HasPrefix(strings.TrimLeft(line, " "), "|") }

// renderTable returns a Markdown table in columns that fit the width, with long cells wrapped.
// It returns "" if the lines are not a table, or have too many columns.
func renderTable(lines []string, width int) string {
	if len(lines) < 2 || !delimiter.MatchString(withClosingBar(lines[1])) {
		return ""
	}
	head := cellsIn(lines[0])
	t := table{sizes: make([]int, len(head)), aligned: cellsIn(lines[1])}
	if len(t.aligned) != len(head) {
		return ""
	}
	for i, line := range append([]string{lines[0]}, lines[2:]...) {
		s := style(0)
		if i == 0 {
			s = bold
		}
		cells := cellsIn(line)
		row := make([][]span, len(t.sizes))
		if last := len(row) - 1; len(cells) > len(row) {
			cells[last] = strings.Join(cells[last:], " | ") // keep surplus cells
		}
		for i := range min(len(cells), len(row)) {
			row[i] = spansOf(cells[i], s)
			spans := row[i]
			n := 0
			for _, c := range cellsOf(spans) {
				n += c.width
			}
			t.sizes[i] = max(t.sizes[i], n)
		}
		t.rows = append(t.rows, row)
	}
	if !t.shrinkToFit(width) {
		return ""
	}
	var out []string
	for i, cells := range t.rows {
		out = append(out, t.drawRow(cells)...)
		if i == 0 {
			parts := make([]string, len(t.sizes))
			for i, n := range t.sizes {
				parts[i] = strings.Repeat("─", n)
			}
			out = append(out, strings.Join(parts, "─┼─"))
		}
	}
	return strings.Join(out, "\n")
}

type table struct {
	rows    [][][]span
	sizes   []int    // width of each column
	aligned []string // cells of the delimiter row
}

// shrinkToFit narrows the widest columns until the table fits, and reports whether it does.
func (t *table) shrinkToFit(width int) bool {
	total := (len(t.sizes) - 1) * len([]rune(columnGap))
	for _, n := range t.sizes {
		total += n
	}
	for ; total > width; total-- {
		widest := 0
		for i, n := range t.sizes {
			if n > t.sizes[widest] {
				widest = i
			}
		}
		if t.sizes[widest] <= minColumnWidth {
			return false
		}
		t.sizes[widest]--
	}
	return true
}

func (t *table) drawRow(cells [][]span) []string {
	columns := make([][]row, len(cells))
	height := 1
	for i, c := range cells {
		columns[i] = layoutRows(c, frame{width: t.sizes[i]})
		height = max(height, len(columns[i]))
	}
	lines := make([]string, height)
	for n := range lines {
		var parts []string
		for i, column := range columns {
			var r row
			if n < len(column) {
				r = column[n]
			}
			parts = append(parts, t.padCell(r, i))
		}
		lines[n] = strings.TrimRight(strings.Join(parts, columnGap), " ")
	}
	return lines
}

// padCell fills a cell's row to the width of its column.
func (t *table) padCell(r row, column int) string {
	space := max(t.sizes[column]-r.width, 0)
	left := 0
	if column < len(t.aligned) && strings.HasSuffix(t.aligned[column], ":") {
		left = space
		if strings.HasPrefix(t.aligned[column], ":") {
			left = space / 2
		}
	}
	return strings.Repeat(" ", left) + r.text + strings.Repeat(" ", space-left)
}

// withClosingBar returns a line of a table with a bar at its end.
func withClosingBar(line string) string {
	line = strings.TrimRight(line, " ")
	if strings.HasSuffix(line, "|") {
		return line
	}
	return line + "|"
}

// cellsIn splits a line of a table at its bars; a bar after a backslash or in code is text.
func cellsIn(line string) []string {
	line = strings.TrimPrefix(strings.TrimSpace(withClosingBar(line)), "|")
	var cells []string
	begin := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '`':
			_, n := parseCode(line[i:], 0)
			i += n - 1
		case '|':
			cells = append(cells, strings.TrimSpace(line[begin:i]))
			begin = i + 1
		}
	}
	if rest := strings.TrimSpace(line[begin:]); rest != "" {
		cells = append(cells, rest) // the last bar is text
	}
	return cells
}
