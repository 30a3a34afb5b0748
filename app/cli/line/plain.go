package line

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
)

// Plain reads lines of any length from a pipe or a file.
type Plain struct {
	lines chan read
	stop  chan struct{}
}

type read struct {
	line string
	err  error
}

// NewPlain returns a reader of r's lines. Its goroutine ends when r does: a read
// that hangs cannot be ended otherwise.
func NewPlain(r io.Reader) *Plain {
	p := &Plain{lines: make(chan read), stop: make(chan struct{})}
	go p.read(bufio.NewReader(r))
	return p
}

func (p *Plain) read(r *bufio.Reader) {
	for {
		line, err := r.ReadString('\n')
		if err == nil || line != "" {
			if !p.give(read{line: strings.TrimRight(line, "\r\n")}) {
				return
			}
		}
		if err != nil {
			p.give(read{err: err})
			return
		}
	}
}

func (p *Plain) give(r read) bool {
	select {
	case p.lines <- r:
		return true
	case <-p.stop:
		return false
	}
}

// Line returns the next line without its end.
func (p *Plain) Line(ctx context.Context) (string, error) {
	select {
	case r := <-p.lines:
		if r.err != nil && !errors.Is(r.err, io.EOF) {
			return "", r.err
		}
		if r.err != nil {
			return "", io.EOF
		}
		return r.line, nil
	case <-ctx.Done():
		return "", io.EOF
	}
}

// Close ends the reading; what it reads from stays open.
func (p *Plain) Close() error {
	close(p.stop)
	return nil
}
