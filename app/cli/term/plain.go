package term

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Plain reads lines of any length from a pipe or a file.
type Plain struct {
	lines chan result
	stop  chan struct{}
}

type result struct {
	line string
	err  error
}

// NewPlain returns a reader of r's lines. Its goroutine ends when r does: a blocked read
// cannot be interrupted.
func NewPlain(r io.Reader) *Plain {
	p := &Plain{lines: make(chan result), stop: make(chan struct{})}
	go p.readLines(bufio.NewReader(r))
	return p
}

// NewWhole returns a reader whose only line is the whole content of r, at most maxBytes.
func NewWhole(r io.Reader, maxBytes int64) *Plain {
	p := &Plain{lines: make(chan result), stop: make(chan struct{})}
	go func() {
		text, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
		switch {
		case err != nil:
			p.sendResult(result{err: err})
			return
		case int64(len(text)) > maxBytes:
			p.sendResult(result{err: fmt.Errorf("the input has more than %d bytes", maxBytes)})
			return
		case p.sendResult(result{line: string(text)}):
			p.sendResult(result{err: io.EOF})
		}
	}()
	return p
}

func (p *Plain) readLines(r *bufio.Reader) {
	for {
		line, err := r.ReadString('\n')
		if err == nil || line != "" {
			if !p.sendResult(result{line: strings.TrimRight(line, "\r\n")}) {
				return
			}
		}
		if err != nil {
			p.sendResult(result{err: err})
			return
		}
	}
}

func (p *Plain) sendResult(r result) bool {
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

// Close stops reading; the underlying reader stays open.
func (p *Plain) Close() error {
	close(p.stop)
	return nil
}
