package providerhttp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Bounds on what a provider may send, in bytes.
const (
	MaxLine   = 8 << 20  // one line of the answer
	MaxAnswer = 64 << 20 // the whole answer
)

// SizeError is the error of an answer that is too large.
type SizeError struct {
	what  string
	limit int
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("%s is larger than %d MiB", e.what, e.limit>>20)
}

// Event is one server-sent event.
type Event struct {
	Name string // empty = message
	Data []byte
}

// Events reads server-sent events. Comments, ids and retry times are
// skipped. It forgives what servers do wrong: a last event without the empty
// line after it, several data lines that are events of their own, llama.cpp's
// field "error".
type Events struct {
	lines      *bufio.Reader
	beforeWait func() error // called when the next line has not come yet
	read       int          // bytes so far
	pending    []byte       // a line that belongs to the next event
	data       []byte       // of the last event
	atEnd      bool
}

// Next returns the next event that has data, which the one after it overwrites; io.EOF after the last.
func (r *Events) Next() (e Event, err error) {
	e.Data = r.data[:0]
	defer func() { r.data = e.Data }()
	for {
		line, err := r.readLine()
		if err != nil {
			if errors.Is(err, io.EOF) && len(e.Data) > 0 {
				return e, nil
			}
			return e, err
		}
		if len(line) == 0 {
			if len(e.Data) > 0 {
				return e, nil
			}
			e.Name = ""
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			e.Name = string(value)
		case "data", "error":
			if len(e.Data) > 0 && (IsDone(e.Data) || json.Valid(e.Data)) { // an event already: this line is another
				r.pending = bytes.Clone(line)
				return e, nil
			}
			if string(field) == "error" {
				e.Name = "error"
			}
			if len(e.Data) > 0 {
				e.Data = append(e.Data, '\n')
			}
			e.Data = append(e.Data, value...)
		}
	}
}

// IsDone reports whether the data is [DONE], with which servers of the OpenAI
// dialect end.
func IsDone(data []byte) bool { return string(bytes.TrimSpace(data)) == "[DONE]" }

// readLine returns the next line without its end. The next read overwrites it.
func (r *Events) readLine() ([]byte, error) {
	if r.pending != nil {
		line := r.pending
		r.pending = nil
		return line, nil
	}
	if r.atEnd {
		return nil, io.EOF
	}
	if here, _ := r.lines.Peek(r.lines.Buffered()); !bytes.Contains(here, []byte("\n")) {
		if err := r.beforeWait(); err != nil {
			return nil, err
		}
	}
	var line []byte
	for {
		part, err := r.lines.ReadSlice('\n')
		if line == nil && !errors.Is(err, bufio.ErrBufferFull) {
			line = part
		} else {
			line = append(line, part...)
		}
		r.read += len(part)
		if len(line) > MaxLine {
			return nil, &SizeError{"a line of the answer", MaxLine}
		}
		if r.read > MaxAnswer {
			return nil, &SizeError{"the answer", MaxAnswer}
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && (!errors.Is(err, io.EOF) || len(line) == 0) {
			return nil, err
		}
		r.atEnd = err != nil
		return bytes.TrimRight(line, "\r\n"), nil
	}
}
