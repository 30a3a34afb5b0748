// Package line reads what the user types, a line at a time: with editing, history
// and pasted text on a terminal (Edited), and from a pipe or a file (Plain).
//
// Both return io.EOF at the end of the input and when their context ends. Neither
// is safe for concurrent use.
package line

import "errors"

// ErrInterrupted says that the user pressed Ctrl-C instead of ending the line.
var ErrInterrupted = errors.New("interrupted")
