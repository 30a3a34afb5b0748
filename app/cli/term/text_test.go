package term_test

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/mattn/go-runewidth"

	"bobbin/app/cli/term"
	"bobbin/app/core"
)

func TestLine(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text  string
		width int
		want  string
	}{
		{"a\n b\t c", 0, "a b c"},
		{"abcdef", 6, "abcdef"},
		{"abcdefg", 6, "abcde…"},
		{"日本語です", 6, "日本…"},
		{"\x1b[31mred\x07", 0, "[31mred"},
	}
	for _, tt := range tests {
		if got := term.Line(tt.text, tt.width); got != tt.want {
			t.Errorf("Line(%q, %d) = %q, want %q", tt.text, tt.width, got, tt.want)
		}
	}
}

func TestWrap(t *testing.T) {
	t.Parallel()
	if got := term.Wrap("one two\nthree", 0, "  "); got != "one two\nthree" {
		t.Errorf("without a width: %q", got)
	}
	if got, want := term.Wrap("one two three\nfour", 10, "  "), "one two\n  three\nfour"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := term.Wrap("    indented text here", 14, "    "), "    indented\n    text here"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for line := range strings.SplitSeq(term.Wrap(strings.Repeat("日本語 and ", 20), 21, "  "), "\n") {
		if n := runewidth.StringWidth(line); n > 20 {
			t.Errorf("%q has %d columns, want at most 20", line, n)
		}
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
		if got := term.ErrorText(tt.err); got != tt.want {
			t.Errorf("Sentence(%v) = %q, want %q", tt.err, got, tt.want)
		}
	}
}
