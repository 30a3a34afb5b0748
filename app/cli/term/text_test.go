package term_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/mattn/go-runewidth"

	"bobbin/app/cli/term"
	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

func TestLine(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text  string
		width int
		want  string
	}{{"a\n b\t c", 0, "a b c"}, {"abcdef", 6, "abcdef"}, {"abcdefg", 6, "abcde…"}, {"日本語です", 6, "日本…"}, {"\x1b[31mred\x07", 0, "[31mred"}}
	for _, tt := range tests {
		compare.Equal(t, fmt.Sprintf("Line(%q, %d)", tt.text, tt.width), tt.want, term.Line(tt.text, tt.width))
	}
}

func TestWrap(t *testing.T) {
	t.Parallel()
	compare.Equal(t, "without a width", "one two\nthree", term.Wrap("one two\nthree", 0, "  "))
	compare.Equal(t, `term.Wrap("one two three\nfour", 10, "  ")`, "one two\n  three\nfour", term.Wrap("one two three\nfour", 10, "  "))
	compare.Equal(t, `term.Wrap("    indented text here", 14, "    ")`, "    indented\n    text here", term.Wrap("    indented text here", 14, "    "))
	for line := range strings.SplitSeq(term.Wrap(strings.Repeat("日本語 and ", 20), 21, "  "), "\n") {
		n := runewidth.StringWidth(line)
		compare.True(t, n <= 20, "%q has %d columns, want at most 20", line, n)
	}
}

func TestSentence(t *testing.T) {
	t.Parallel()
	fields := core.Errorf(core.ErrInvalid, "the message is invalid")
	fields.Fields = []core.FieldError{{Field: "content", Detail: "must not be empty"}}
	tests := []struct {
		err  error
		want string
	}{
		{errors.New("plain\x1b[2J"), "plain[2J"},
		{fmt.Errorf("send: %w", core.Errorf(core.ErrConflict, "it runs already")), "it runs already"},
		{fields, "the message is invalid\n  content: must not be empty"},
		{&url.Error{Op: "Post", URL: "http://127.0.0.1:1/api", Err: errors.New("connection refused")}, "connection refused"},
	}
	for _, tt := range tests {
		compare.Equal(t, fmt.Sprintf("Sentence(%v)", tt.err), tt.want, term.ErrorText(tt.err))
	}
}

// W9: the source of the window is shown unless it is the model's known window.
func TestDrawWindow(t *testing.T) {
	t.Parallel()
	for from, want := range map[string]string{
		"provider": "window 8,192, learned from a provider error (context_window in models overrides it)\n",
		"default":  "window 8,192, assumed for an unknown model (context_window in models sets it)\n",
		"model":    "", "configuration": "",
	} {
		var b strings.Builder
		term.DrawContext(&b, core.ContextReport{Model: "m", Policy: "window", Window: 8192, WindowFrom: from, Calibration: core.CalibrationView{Deviation: 0.15}}, time.Now(), 0)
		got := b.String()
		compare.True(t, (want == "" || strings.Contains(got, want)) && (want != "" || !strings.Contains(got, "window 8,192")), "%s: got\n%s\nwant %q", from, got, want)
		compare.Contains(t, from+": how far the estimate may be off", "estimated ± 15%", b.String())
	}
}

// A table has columns as wide as their cells; where the terminal is too narrow for it, everything is still
// said, and nothing is wider.
func TestWriteTable(t *testing.T) {
	t.Parallel()
	rows := [][]string{{"ID", "LAST USED", "NOTE"}, {"one", "", "日本"}, {"two", "yesterday", "a note that is longer than a narrow terminal"}}
	for _, width := range []int{0, 120} {
		var out strings.Builder
		term.WriteTable(&out, rows, width)
		want := "ID   LAST USED  NOTE\none             日本\ntwo  yesterday  a note that is longer than a narrow terminal\n"
		compare.Equal(t, fmt.Sprintf("width %d", width), want, out.String())
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
		must.True(t, b.String() == want, "in pieces of %d: got %q, want %q", size, b.String(), want)
	}
	var b strings.Builder
	if _, err := term.NewOutput(&b).Write([]byte("a\x9b2Jb")); err != nil || b.String() != "a\ufffd2Jb" {
		t.Errorf("a byte that is no character: got %q, %v", b.String(), err)
	}
}

// An answer is cleaned without a terminal, too.
func TestMarkdownIsCleaned(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	m := term.NewMarkdown(&b, 0, 0)
	m.Write(hostile)
	m.Close()
	compare.True(t, !hasControls(b.String()) && strings.Contains(b.String(), "gnp.exe"), "got %q", b.String())
}

// A JSON document says the same without the characters themselves.
func TestCleanJSONSaysTheSame(t *testing.T) {
	t.Parallel()
	document := must.Get(json.Marshal(map[string]string{hostile: hostile + "é 日本 👍🏽"}))(t)
	clean := term.CleanJSON(document)
	compare.True(t, !hasControls(string(clean)), "got %q", clean)
	var back map[string]string
	if err := json.Unmarshal(clean, &back); err != nil || back[hostile] != hostile+"é 日本 👍🏽" {
		t.Errorf("got %q, %v, want what was written", back, err)
	}
}
