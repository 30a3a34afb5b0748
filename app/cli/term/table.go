package term

import (
	"regexp"
	"strings"
)

const (
	columnGap = " │ "
	// leastColumn is the narrowest that a column is made when a table is too wide.
	leastColumn = 6
)

var delimiter = regexp.MustCompile(`^ *\|( *:?-+:? *\|)+ *$`)

func isTableRow(line string) bool { return strings.HasPrefix(strings.TrimLeft(line, " "), "|") }

// renderTable returns the rows of a Markdown table in columns that fit the width;
// cells that are too long are wrapped. Empty for what is no table, or has too many
// columns.
func renderTable(lines []string, width int) string {
	if len(lines) < 2 || !delimiter.MatchString(closed(lines[1])) {
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
		t.add(cellsIn(line), s)
	}
	if !t.fit(width) {
		return ""
	}
	var out []string
	for i, cells := range t.rows {
		out = append(out, t.draw(cells)...)
		if i == 0 {
			out = append(out, t.rule())
		}
	}
	return strings.Join(out, "\n")
}

// table is a table on its way.
type table struct {
	rows    [][][]span
	sizes   []int    // width of each column
	aligned []string // cells of the delimiter row
}

func (t *table) add(cells []string, s style) {
	row := make([][]span, len(t.sizes))
	if last := len(row) - 1; len(cells) > len(row) {
		cells[last] = strings.Join(cells[last:], " | ") // nothing is left out
	}
	for i := range min(len(cells), len(row)) {
		row[i] = spansOf(cells[i], s)
		t.sizes[i] = max(t.sizes[i], widthOf(row[i]))
	}
	t.rows = append(t.rows, row)
}

// fit makes the widest columns narrower until the table fits, and reports whether
// it does.
func (t *table) fit(width int) bool {
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
		if t.sizes[widest] <= leastColumn {
			return false
		}
		t.sizes[widest]--
	}
	return true
}

// draw returns the lines of one row.
func (t *table) draw(cells [][]span) []string {
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
			parts = append(parts, t.pad(r, i))
		}
		lines[n] = strings.TrimRight(strings.Join(parts, columnGap), " ")
	}
	return lines
}

// pad fills a cell's row to the width of its column.
func (t *table) pad(r row, column int) string {
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

func (t *table) rule() string {
	parts := make([]string, len(t.sizes))
	for i, n := range t.sizes {
		parts[i] = strings.Repeat("─", n)
	}
	return strings.Join(parts, "─┼─")
}

func widthOf(spans []span) int {
	n := 0
	for _, c := range cellsOf(spans) {
		n += c.width
	}
	return n
}

// closed returns a table's line with a bar at its end.
func closed(line string) string {
	line = strings.TrimRight(line, " ")
	if strings.HasSuffix(line, "|") {
		return line
	}
	return line + "|"
}

// cellsIn splits a table's line at its bars; a bar after a backslash or in code is
// text.
func cellsIn(line string) []string {
	line = strings.TrimPrefix(strings.TrimSpace(closed(line)), "|")
	var cells []string
	begin := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '`':
			_, n := code(line[i:], 0)
			i += n - 1
		case '|':
			cells = append(cells, strings.TrimSpace(line[begin:i]))
			begin = i + 1
		}
	}
	if rest := strings.TrimSpace(line[begin:]); rest != "" {
		cells = append(cells, rest) // its bar is text
	}
	return cells
}
