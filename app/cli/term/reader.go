package term

import (
	"context"
	"errors"
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
