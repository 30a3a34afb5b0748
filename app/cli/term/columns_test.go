package term_test

import (
	"io"
	"strings"
	"testing"

	"bobbin/app/cli/term"
)

// A table has columns as wide as their cells; where the terminal is too narrow for it, everything is still
// said, and nothing is wider.
func TestWriteTable(t *testing.T) {
	t.Parallel()
	rows := [][]string{{"ID", "LAST USED", "NOTE"}, {"one", "", "日本"}, {"two", "yesterday", "a note that is longer than a narrow terminal"}}
	for _, width := range []int{0, 120} {
		var out strings.Builder
		term.WriteTable(&out, rows, width)
		want := "ID   LAST USED  NOTE\none             日本\ntwo  yesterday  a note that is longer than a narrow terminal\n"
		if out.String() != want {
			t.Errorf("width %d: got\n%s\nwant\n%s", width, &out, want)
		}
	}
	for _, width := range []int{20, 40} {
		s := newScreen(t, width)
		term.WriteTable(s, rows, width)
		want := "one note 日本 two last used yesterday, note a note that is longer than a narrow terminal"
		if got := flat(s); got != want || s.widest() >= width {
			t.Errorf("width %d: got %d columns, %q, want %q", width, s.widest(), got, want)
		}
	}
	term.WriteTable(io.Discard, rows[:1], 10) // titles alone
}
