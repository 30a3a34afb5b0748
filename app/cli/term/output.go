package term

import (
	"io"
	"os"
	"sync"
	"unicode/utf8"
)

// Output is the standard output or standard error of the program. It passes all text through
// Clean, so that no text can control the terminal, or the terminal at the end of a pipe. What
// the program itself draws goes to Raw. Safe for concurrent use.
type Output struct {
	raw io.Writer

	mu   sync.Mutex
	part []byte // of an incomplete character; guarded by mu
}

// NewOutput returns the Output that writes to w.
func NewOutput(w io.Writer) *Output { return &Output{raw: w} }

// Write writes the text of b, cleaned.
func (o *Output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	text := append(o.part, b...)
	whole := len(text) - partialRuneLength(text)
	o.part = append([]byte(nil), text[whole:]...)
	if _, err := io.WriteString(o.raw, Clean(string(text[:whole]))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// partialRuneLength returns how many bytes at the end of b begin an incomplete character.
func partialRuneLength(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if tail := b[len(b)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}

// Fd returns the file descriptor, which identifies a terminal; an invalid one if the Output is
// not a file.
func (o *Output) Fd() uintptr {
	if f, ok := o.raw.(*os.File); ok {
		return f.Fd()
	}
	return ^uintptr(0)
}

// Raw returns the writer beneath an Output, and any other writer as it is.
func Raw(w io.Writer) io.Writer {
	if o, ok := w.(*Output); ok {
		return o.raw
	}
	return w
}
