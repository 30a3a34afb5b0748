package term_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"bobbin/app/cli/term"
	"bobbin/tests/must"
)

// hostile is a text with everything that a terminal obeys or that turns it round.
const hostile = "hi \x1b]52;c;ZXZpbA==\x07\x1b[2J \u009b31mC1 \u202egnp.exe\u202c \u2066x\u2069 \u200e\u061c\x7f\r done\tb\nc"

// hasControls reports whether the text holds a character that steers a terminal.
func hasControls(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
	})
}

// Nothing that is written steers a terminal, wherever its bytes are parted.
func TestOutputIsCleaned(t *testing.T) {
	t.Parallel()
	const want = "hi ]52;c;ZXZpbA==[2J 31mC1 gnp.exe x  done\tb\nc"
	for size := 1; size <= len(hostile); size++ {
		var b strings.Builder
		out := term.NewOutput(&b)
		for rest := hostile; rest != ""; {
			n := min(size, len(rest))
			if written, err := out.Write([]byte(rest[:n])); written != n || err != nil {
				t.Fatalf("got %d, %v, want %d", written, err, n)
			}
			rest = rest[n:]
		}
		if b.String() != want {
			t.Fatalf("in pieces of %d: got %q, want %q", size, b.String(), want)
		}
	}
	var b strings.Builder
	if _, err := term.NewOutput(&b).Write([]byte("a\x9b2Jb")); err != nil || b.String() != "a\ufffd2Jb" {
		t.Errorf("a byte that is no character: got %q, %v", b.String(), err)
	}
}

// An answer is cleaned for a terminal of any size, and for none.
func TestMarkdownIsCleaned(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	m := term.NewMarkdown(&b, 0, 0)
	m.Write(hostile)
	m.Close()
	if hasControls(b.String()) || !strings.Contains(b.String(), "gnp.exe") {
		t.Errorf("without a terminal: got %q", b.String())
	}
}

// A JSON document says the same without the characters themselves.
func TestCleanJSONSaysTheSame(t *testing.T) {
	t.Parallel()
	document := must.Get(json.Marshal(map[string]string{hostile: hostile + "é 日本 👍🏽"}))(t)
	clean := term.CleanJSON(document)
	if hasControls(string(clean)) {
		t.Errorf("got %q", clean)
	}
	var back map[string]string
	if err := json.Unmarshal(clean, &back); err != nil || back[hostile] != hostile+"é 日本 👍🏽" {
		t.Errorf("got %q, %v, want what was written", back, err)
	}
}
