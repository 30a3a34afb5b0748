package term

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/ergochat/readline"
)

// ErrInterrupted means that the user pressed Ctrl-C instead of finishing the line.
var ErrInterrupted = errors.New("interrupted")

// Reader reads the user's input line by line until it is closed: with editing, history and
// pasted text on a terminal (Edited), and from a pipe or a file (Plain). Line returns io.EOF at
// the end of the input and when its context ends. Close does not close the underlying file. Not
// safe for concurrent use.
type Reader interface {
	Line(ctx context.Context) (string, error)
	Close() error
}

// Plain reads lines of any length from a pipe or a file.
type Plain struct{ lines chan result }

type result struct {
	line string
	err  error
}

// NewPlain returns a reader of r's lines. Its goroutine ends when r does and all lines are read: a blocked read
// cannot be interrupted.
func NewPlain(r io.Reader) *Plain {
	p := &Plain{lines: make(chan result)}
	go func() {
		in := bufio.NewReader(r)
		for {
			line, err := in.ReadString('\n')
			if err == nil || line != "" {
				p.lines <- result{line: strings.TrimRight(line, "\r\n")}
			}
			if err != nil {
				p.lines <- result{err: err}
				return
			}
		}
	}()
	return p
}

// NewWhole returns a reader whose only line is the text.
func NewWhole(text string) *Plain {
	p := &Plain{lines: make(chan result, 2)}
	p.lines <- result{line: text}
	p.lines <- result{err: io.EOF}
	return p
}

// Line returns the next line without its end.
func (p *Plain) Line(ctx context.Context) (string, error) {
	select {
	case r := <-p.lines:
		return r.line, r.err
	case <-ctx.Done():
		return "", io.EOF
	}
}

// Close does nothing; the underlying reader stays open.
func (*Plain) Close() error { return nil }

// Sequences that turn a terminal's marking of pasted text on and off.
const (
	markPastes   = "\x1b[?2004h"
	unmarkPastes = "\x1b[?2004l"
)

// The editor asks the terminal for the cursor's position before each prompt, and waits for the
// answer. Pseudo-terminals of scripts never answer, so cursorAnswerer does: a prompt always
// starts at the beginning of a row.
const (
	askCursor   = "\x1b[6n"
	cursorStart = "\x1b[1;1R"
)

// cursorAnswerer answers the question for the cursor instead of the terminal.
type cursorAnswerer struct {
	io.Writer
	input *pasteReader
}

// Write implements io.Writer.
func (a cursorAnswerer) Write(b []byte) (int, error) {
	if string(b) == askCursor { // nobody reads the input meanwhile
		a.input.pending = append([]byte(cursorStart), a.input.pending...)
		return len(b), nil
	}
	return a.Writer.Write(b)
}

// Edited reads lines from a terminal.
type Edited struct {
	out    io.Writer
	editor *readline.Instance
	pastes *pasteReader
}

// NewEdited returns a reader of the terminal's lines that shows the prompt. Close restores
// the terminal.
func NewEdited(in io.Reader, out io.Writer, prompt string) (*Edited, error) {
	p := &pasteReader{in: in, chunk: make([]byte, 4096)}
	editor, err := readline.NewFromConfig(&readline.Config{
		Prompt: prompt, Stdin: p, Stdout: cursorAnswerer{out, p}, InterruptPrompt: "^C", EOFPrompt: "\n",
	})
	if err != nil {
		return nil, fmt.Errorf("open terminal: %w", err)
	}
	return &Edited{out: out, editor: editor, pastes: p}, nil
}

// Line returns the next line. Pasted text of several lines is part of one line. The error is
// ErrInterrupted after Ctrl-C.
func (e *Edited) Line(ctx context.Context) (string, error) {
	stop := context.AfterFunc(ctx, func() { _ = e.editor.Close() })
	defer stop()
	fmt.Fprint(e.out, markPastes)
	line, err := e.editor.ReadLine()
	fmt.Fprint(e.out, unmarkPastes)
	if errors.Is(err, readline.ErrInterrupt) {
		return "", ErrInterrupted
	}
	e.pastes.mu.Lock()
	defer e.pastes.mu.Unlock()
	for i, text := range e.pastes.texts {
		line = strings.ReplaceAll(line, placeholderText(i+1, text), text)
	}
	return line, err
}

// Close restores the terminal. It does not interrupt a read of the underlying reader.
func (e *Edited) Close() error { return e.editor.Close() }

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
		return strings.Map(func(r rune) rune {
			if unicode.IsControl(r) {
				return -1
			}
			return r
		}, strings.ReplaceAll(text, "\t", "    "))
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
