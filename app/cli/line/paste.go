package line

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Sequences that a terminal puts around pasted text.
const (
	pasteBegin = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
)

// longPaste is from how many characters on a paste is not shown: the editor draws
// the whole line anew for each of them.
const longPaste = 400

// pastes reads what is typed. In the place of a paste that is long or has several
// lines it reads a mark, such as "[pasted 1: 3 lines]", which expand turns back
// into the text: the editor has only one line, and each line end would send it.
type pastes struct {
	in      io.Reader
	chunk   []byte
	pending []byte // read but not given yet
	open    bool   // the end of a paste is still to come
	pasted  []byte // of the open one

	mu    sync.Mutex
	texts []string // by number, from 1; guarded by mu
}

func newPastes(in io.Reader) *pastes { return &pastes{in: in, chunk: make([]byte, 4096)} }

// Read is part of io.Reader.
func (p *pastes) Read(b []byte) (int, error) {
	for {
		if n := p.take(b); n > 0 {
			return n, nil
		}
		n, err := p.in.Read(p.chunk)
		p.pending = append(p.pending, p.chunk[:n]...)
		if err != nil {
			// What was held back as the beginning of a sequence is none.
			if n := copy(b, p.pending); n > 0 && !p.open {
				p.pending = p.pending[n:]
				return n, nil
			}
			return 0, err
		}
	}
}

// take moves what can be given into b.
func (p *pastes) take(b []byte) int {
	if p.open && !p.finish() {
		return 0
	}
	given := p.pending
	if i := bytes.Index(given, []byte(pasteBegin)); i >= 0 {
		if i == 0 {
			p.open, p.pending = true, given[len(pasteBegin):]
			return p.take(b)
		}
		given = given[:i]
	} else {
		given = given[:len(given)-partial(given)]
	}
	n := copy(b, given)
	p.pending = p.pending[n:]
	return n
}

// finish reads on in an open paste and reports whether its end was found. What it
// stands for is then the next to be given.
func (p *pastes) finish() bool {
	p.pasted = append(p.pasted, p.pending...)
	p.pending = nil
	text, rest, found := bytes.Cut(p.pasted, []byte(pasteEnd))
	if !found {
		return false
	}
	p.open = false
	p.pending = append([]byte(p.mark(string(text))), rest...)
	p.pasted = nil
	return true
}

// partial returns how many bytes at the end may be the beginning of pasteBegin. A
// lone escape is a key, which must not wait for the next one: terminals send the
// sequence in one piece.
func partial(b []byte) int {
	for n := len(pasteBegin) - 1; n > 1; n-- {
		if bytes.HasSuffix(b, []byte(pasteBegin[:n])) {
			return n
		}
	}
	return 0
}

// mark returns what the editor gets for a paste.
func (p *pastes) mark(text string) string {
	text = strings.TrimRight(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text), "\n")
	lines := strings.Count(text, "\n") + 1
	if lines == 1 && utf8.RuneCountInString(text) < longPaste {
		return strings.Map(printable, strings.ReplaceAll(text, "\t", "    "))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.texts = append(p.texts, text)
	return markOf(len(p.texts), text)
}

func markOf(number int, text string) string {
	if lines := strings.Count(text, "\n") + 1; lines > 1 {
		return fmt.Sprintf("[pasted %d: %d lines]", number, lines)
	}
	return fmt.Sprintf("[pasted %d: %d characters]", number, utf8.RuneCountInString(text))
}

func printable(r rune) rune {
	if unicode.IsControl(r) {
		return -1
	}
	return r
}

// expand returns the line with the pasted texts in the places of their marks.
func (p *pastes) expand(line string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, text := range p.texts {
		line = strings.ReplaceAll(line, markOf(i+1, text), text)
	}
	return line
}
