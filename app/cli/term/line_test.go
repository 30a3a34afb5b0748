package term_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"bobbin/app/cli/term"
	"bobbin/tests/compare"
	"bobbin/tests/logtext"
	"bobbin/tests/must"
)

func TestPlain(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<20)
	tests := []struct {
		name, in string
		want     []string
	}{
		{"empty", "", nil},
		{"lines", "a\n\nb\n", []string{"a", "", "b"}},
		{"no end", "a\nb", []string{"a", "b"}},
		{"windows", "a\r\nb\r\n", []string{"a", "b"}},
		{"long", long + "\nb", []string{long, "b"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := term.NewPlain(strings.NewReader(tt.in))
			defer p.Close()
			var got []string
			for {
				text, err := p.Line(t.Context())
				if errors.Is(err, io.EOF) {
					break
				}
				must.Do(t, err)
				got = append(got, text)
			}
			compare.Equal(t, "", tt.want, got)
		})
	}
}

// edited returns an editor and where to type.
func edited(t *testing.T) (*term.Edited, io.Writer, *logtext.Log) {
	t.Helper()
	r, w := io.Pipe()
	out := &logtext.Log{}
	e := must.Get(term.NewEdited(r, out, "> "))(t)
	t.Cleanup(func() {
		_ = w.Close()
		_ = e.Close()
	})
	return e, w, out
}

// What is typed and pasted arrives in pieces of any size, but for a key. A paste of several lines is one message.
func TestEdited(t *testing.T) { // not parallel: the editor has globals
	e, keys, out := edited(t)
	long := strings.Repeat("é", 400)
	go func() {
		typed := []string{"Helo", "\x1b[D", "l\r", "\x1b[200~a\nb\x1b[201~ c\r", "\x1b[2", "00~a\r\nb\rc\n\x1b[20", "1~ \x1b[200~d\ne\x1b[201~\r", "\x1b[200~a\tb\x03\x1bc\x1b[201~\r", "\x1b[200~a\nb\x1b[201~[pasted 1: 3 lines]\r"}
		for _, typed := range append(typed, "\x1b[200~"+long+"\x1b[201~\r", "abc\x03", "日本\x7f\r") {
			_, _ = io.WriteString(keys, typed) // the reader sees what is missing
		}
	}()
	for _, want := range []string{"Hello", "a\nb c", "a\nb\nc d\ne", "a    bc", "a\nb[pasted 1: 3 lines]", long} {
		compare.Equal(t, "got", want, must.Get(e.Line(t.Context()))(t))
	}
	compare.Error(t, "Ctrl-C", term.ErrInterrupted, compare.ErrorOf(e.Line(t.Context())))
	compare.Equal(t, "got", "日", must.Get(e.Line(t.Context()))(t))
	s := out.String()
	compare.True(t, strings.Count(s, "\x1b[?2004h") == strings.Count(s, "\x1b[?2004l"), "marking of pastes is switched on and off differently often: %q", s)
}
