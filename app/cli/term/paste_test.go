package term

// The sequences arrive in pieces of any size; what the editor gets for a paste is
// an algorithm of its own, and is tested from inside.

import (
	"io"
	"strings"
	"testing"
)

// pieces is a reader that gives one piece at a time.
type pieces struct{ rest []string }

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.rest[0])
	if p.rest[0] = p.rest[0][n:]; p.rest[0] == "" {
		p.rest = p.rest[1:]
	}
	return n, nil
}

func typed(t *testing.T, in ...string) (line, meant string) {
	t.Helper()
	p := newPasteReader(&pieces{in})
	got, err := io.ReadAll(p)
	if err != nil {
		t.Fatalf("%q: %v", in, err)
	}
	return string(got), p.expandPlaceholders(string(got))
}

func TestPastes(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", minHiddenPaste)
	tests := []struct{ name, in, line, meant string }{
		{"typed", "abc\r", "abc\r", "abc\r"},
		{"arrow keys", "a\x1b[A\x1b[200", "a\x1b[A\x1b[200", "a\x1b[A\x1b[200"},
		{"escape", "\x1b", "\x1b", "\x1b"},
		{"one line", "a" + pasteBegin + "b c\n" + pasteEnd + "d", "ab cd", "ab cd"},
		{"tabs and controls", pasteBegin + "a\tb\x03\x1bc" + pasteEnd, "a    bc", "a    bc"},
		{"lines", "say: " + pasteBegin + "a\r\nb\rc\n" + pasteEnd + "!", "say: [pasted 1: 3 lines]!", "say: a\nb\nc!"},
		{"two", pasteBegin + "a\nb" + pasteEnd + " " + pasteBegin + "c\nd\ne" + pasteEnd, "[pasted 1: 2 lines] [pasted 2: 3 lines]", "a\nb c\nd\ne"},
		{"edited", pasteBegin + "a\nb" + pasteEnd + "[pasted 1: 3 lines]", "[pasted 1: 2 lines][pasted 1: 3 lines]", "a\nb[pasted 1: 3 lines]"},
		{"long", pasteBegin + long + pasteEnd, "[pasted 1: 400 characters]", long},
		{"begin within", pasteBegin + "a" + pasteBegin + "b" + pasteEnd, "a[200~b", "a[200~b"},
		{"not ended", "a" + pasteBegin + "b", "a", "a"},
		{"empty", pasteBegin + pasteEnd + "a", "a", "a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, in := range [][]string{{tt.in}, bytesOf(tt.in)} {
				line, meant := typed(t, in...)
				if line != tt.line || meant != tt.meant {
					t.Errorf("in %d pieces: got %q = %q, want %q = %q", len(in), line, meant, tt.line, tt.meant)
				}
			}
		})
	}
}

// bytesOf splits what is typed as finely as it comes: an escape that is no key
// does not come alone.
func bytesOf(text string) []string {
	var out []string
	for i := range len(text) {
		if n := len(out); n > 0 && strings.HasSuffix(out[n-1], "\x1b") {
			out[n-1] += text[i : i+1]
			continue
		}
		out = append(out, text[i:i+1])
	}
	return out
}
