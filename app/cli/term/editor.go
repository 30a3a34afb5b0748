package term

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/ergochat/readline"
)

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
	p := newPasteReader(in)
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
	return e.pastes.expandPlaceholders(line), err
}

// Close restores the terminal. It does not interrupt a read of the underlying reader.
func (e *Edited) Close() error { return e.editor.Close() }
