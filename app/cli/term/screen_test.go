package term_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mattn/go-runewidth"
)

// screen is a terminal that is high enough for everything: it understands what
// this package sends.
type screen struct {
	t        *testing.T
	width    int
	rows     [][]string // cells; the right half of a wide one is empty
	row, col int
	last     int      // the cell that was written last
	styles   []string // as they were switched on, with the text up to the next
}

func newScreen(t *testing.T, width int) *screen {
	t.Helper()
	return &screen{t: t, width: width, rows: [][]string{nil}}
}

// Write is part of io.Writer.
func (s *screen) Write(p []byte) (int, error) {
	text := string(p)
	for text != "" {
		if strings.HasPrefix(text, "\x1b[") {
			end := strings.IndexAny(text, "mAJKH")
			if end < 0 {
				s.t.Fatalf("a sequence is cut: %q", text)
			}
			s.control(text[2:end], text[end])
			text = text[end+1:]
			continue
		}
		r := []rune(text)[0]
		s.put(r)
		text = text[len(string(r)):]
	}
	return len(p), nil
}

func (s *screen) control(argument string, command byte) {
	switch command {
	case 'm':
		s.styles = append(s.styles, argument+":")
	case 'A':
		n := 0
		if _, err := fmt.Sscan(argument, &n); err != nil || n > s.row {
			s.t.Fatalf("up by %q from row %d", argument, s.row)
		}
		s.row -= n
	case 'J':
		s.rows = s.rows[:s.row+1]
		s.rows[s.row] = s.rows[s.row][:min(s.col, len(s.rows[s.row]))]
	case 'K':
		s.rows[s.row] = s.rows[s.row][:min(s.col, len(s.rows[s.row]))]
	default:
		s.t.Fatalf("unexpected sequence %q", argument+string(command))
	}
}

func (s *screen) put(r rune) {
	switch {
	case r == '\n':
		s.row, s.col = s.row+1, 0
		if s.row == len(s.rows) {
			s.rows = append(s.rows, nil)
		}
		return
	case r == '\r':
		s.col = 0
		return
	case r < ' ' || r == 0x7f:
		s.t.Fatalf("control character %q on the screen", r)
	}
	if n := len(s.styles); n > 0 {
		s.styles[n-1] += string(r)
	}
	line := s.rows[s.row]
	width := runewidth.RuneWidth(r)
	if s.col > 0 && (width == 0 || strings.HasSuffix(line[s.last], "\u200d")) {
		s.join(r)
		return
	}
	if s.col+width > s.width {
		s.put('\n')
		line = s.rows[s.row]
	}
	for len(line) < s.col+width {
		line = append(line, "")
	}
	s.last = s.col
	line[s.col] = string(r)
	s.rows[s.row] = line
	s.col += width
}

// join adds r to the cell before; a variation selector may make that wide.
func (s *screen) join(r rune) {
	line := s.rows[s.row]
	line[s.last] += string(r)
	if runewidth.StringWidth(line[s.last]) > s.col-s.last {
		s.rows[s.row] = append(line[:s.col], "")
		s.col++
	}
}

// text returns what stands on the screen.
func (s *screen) text() string {
	var lines []string
	for _, row := range s.rows {
		lines = append(lines, strings.TrimRight(strings.Join(row, ""), " "))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// widest returns the columns of the widest row.
func (s *screen) widest() int {
	n := 0
	for _, row := range s.rows {
		n = max(n, len(row))
	}
	return n
}

// styled returns the pieces of text that have a style.
func (s *screen) styled() []string {
	var out []string
	for _, piece := range s.styles {
		if !strings.HasPrefix(piece, "0:") {
			out = append(out, piece)
		}
	}
	return out
}
