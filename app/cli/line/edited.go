package line

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/chzyer/readline"
)

// Sequences by which a terminal is asked to mark pasted text, and not to.
const (
	markPastes   = "\x1b[?2004h"
	unmarkPastes = "\x1b[?2004l"
)

// Edited reads lines from a terminal.
type Edited struct {
	out    io.Writer
	in     *readline.CancelableStdin
	editor *readline.Instance
	pastes *pastes
}

// NewEdited returns a reader of the terminal's lines that shows the prompt. Close
// gives the terminal back as it was.
func NewEdited(in io.Reader, out io.Writer, prompt string) (*Edited, error) {
	p := newPastes(in)
	cancelable := readline.NewCancelableStdin(p)
	editor, err := readline.NewEx(&readline.Config{
		Prompt: prompt, Stdin: cancelable, Stdout: out, InterruptPrompt: "^C", EOFPrompt: "\n",
	})
	if err != nil {
		return nil, fmt.Errorf("open terminal: %w", err)
	}
	return &Edited{out: out, in: cancelable, editor: editor, pastes: p}, nil
}

// Line returns the next line. Text that was pasted in several lines is part of
// one. The error is ErrInterrupted after Ctrl-C.
func (e *Edited) Line(ctx context.Context) (string, error) {
	stop := context.AfterFunc(ctx, func() { _ = e.in.Close() })
	defer stop()
	fmt.Fprint(e.out, markPastes)
	line, err := e.editor.Readline()
	fmt.Fprint(e.out, unmarkPastes)
	if errors.Is(err, readline.ErrInterrupt) {
		return "", ErrInterrupted
	}
	return e.pastes.expand(line), err
}

// Close gives the terminal back.
func (e *Edited) Close() error {
	return errors.Join(e.in.Close(), e.editor.Close())
}
