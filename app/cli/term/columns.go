package term

import (
	"fmt"
	"io"
	"strings"

	"github.com/mattn/go-runewidth"
)

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
