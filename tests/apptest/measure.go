package apptest

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"bobbin/tests/process"
)

// IsLong reports whether the long forms of tests run.
func IsLong() bool { return os.Getenv("BOBBIN_TEST_LONG") != "" }

// Patience is how long tests wait for what takes a moment: long enough for a busy machine.
const Patience = 2 * time.Minute

// ChooseSize is how much a test does: CI has the short form, BOBBIN_TEST_LONG=1 the long one
// (make show-…). What is wanted of both is the same.
func ChooseSize[T any](short, full T) T {
	if IsLong() {
		return full
	}
	return short
}

// Table is figures to be logged under a title, aligned.
type Table struct {
	title string
	rows  [][]any
}

// NewTable returns a table without rows.
func NewTable(format string, args ...any) *Table { return &Table{title: fmt.Sprintf(format, args...)} }

// AddRow adds a line: what was measured, and its values.
func (tb *Table) AddRow(cells ...any) { tb.rows = append(tb.rows, cells) }

// Log prints the table.
func (tb *Table) Log(t testing.TB) {
	t.Helper()
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	for _, row := range tb.rows {
		fmt.Fprint(w, "  ")
		for i, cell := range row {
			if i > 0 {
				fmt.Fprint(w, "\t")
			}
			fmt.Fprint(w, cell)
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		t.Error(err)
	}
	t.Logf("\n%s\n%s", tb.title, b.String())
}

// PauseBriefly is for loops that ask until something has happened: asking without a pause
// keeps it from happening.
func PauseBriefly(t testing.TB) { process.Pause(t.Context(), 20*time.Millisecond) }
