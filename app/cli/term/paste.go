package term

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

// minHiddenPaste is the length, in characters, from which a paste is not shown: the editor
// redraws the whole line for each character.
const minHiddenPaste = 400

// pasteReader reads what the user types. It replaces a paste that is long or has several
// lines by a placeholder such as "[pasted 1: 3 lines]", which expandPlaceholders turns back
// into the text: the editor has only one line, and each line break would submit it.
type pasteReader struct {
	in      io.Reader
	chunk   []byte
	pending []byte // read but not returned yet
	inPaste bool   // the end of the paste has not arrived
	pasted  []byte // text of the open paste

	mu    sync.Mutex
	texts []string // by number, from 1; guarded by mu
}

func newPasteReader(in io.Reader) *pasteReader {
	return &pasteReader{in: in, chunk: make([]byte, 4096)}
}

// Read implements io.Reader.
func (p *pasteReader) Read(b []byte) (int, error) {
	for {
		if n := p.copyPending(b); n > 0 {
			return n, nil
		}
		n, err := p.in.Read(p.chunk)
		p.pending = append(p.pending, p.chunk[:n]...)
		if err != nil {
			// The bytes held back as the possible beginning of a sequence are text.
			if n := copy(b, p.pending); n > 0 && !p.inPaste {
				p.pending = p.pending[n:]
				return n, nil
			}
			return 0, err
		}
	}
}

// copyPending moves the bytes that are complete into b.
func (p *pasteReader) copyPending(b []byte) int {
	if p.inPaste && !p.finishPaste() {
		return 0
	}
	given := p.pending
	if i := bytes.Index(given, []byte(pasteBegin)); i >= 0 {
		if i == 0 {
			p.inPaste, p.pending = true, given[len(pasteBegin):]
			return p.copyPending(b)
		}
		given = given[:i]
	} else {
		given = given[:len(given)-partialMarkerLength(given)]
	}
	n := copy(b, given)
	p.pending = p.pending[n:]
	return n
}

// finishPaste looks for the end of the open paste and reports whether it found it. The next
// pending bytes are then what the editor gets for the paste.
func (p *pasteReader) finishPaste() bool {
	p.pasted = append(p.pasted, p.pending...)
	p.pending = nil
	text, rest, found := bytes.Cut(p.pasted, []byte(pasteEnd))
	if !found {
		return false
	}
	p.inPaste = false
	p.pending = append([]byte(p.placeholderFor(string(text))), rest...)
	p.pasted = nil
	return true
}

// partialMarkerLength returns how many bytes at the end may be the beginning of pasteBegin. A
// single escape is a key and must not wait for the next one: terminals send the sequence at
// once.
func partialMarkerLength(b []byte) int {
	for n := len(pasteBegin) - 1; n > 1; n-- {
		if bytes.HasSuffix(b, []byte(pasteBegin[:n])) {
			return n
		}
	}
	return 0
}

// placeholderFor returns what the editor gets for a paste: short text, or a placeholder.
func (p *pasteReader) placeholderFor(text string) string {
	text = strings.TrimRight(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text), "\n")
	lines := strings.Count(text, "\n") + 1
	if lines == 1 && utf8.RuneCountInString(text) < minHiddenPaste {
		return strings.Map(dropControl, strings.ReplaceAll(text, "\t", "    "))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.texts = append(p.texts, text)
	return placeholderText(len(p.texts), text)
}

func placeholderText(number int, text string) string {
	if lines := strings.Count(text, "\n") + 1; lines > 1 {
		return fmt.Sprintf("[pasted %d: %d lines]", number, lines)
	}
	return fmt.Sprintf("[pasted %d: %d characters]", number, utf8.RuneCountInString(text))
}

func dropControl(r rune) rune {
	if unicode.IsControl(r) {
		return -1
	}
	return r
}

// expandPlaceholders replaces the placeholders in a line by the pasted texts.
func (p *pasteReader) expandPlaceholders(line string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, text := range p.texts {
		line = strings.ReplaceAll(line, placeholderText(i+1, text), text)
	}
	return line
}
