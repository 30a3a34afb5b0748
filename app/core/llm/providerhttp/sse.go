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
	lines   *bufio.Reader
	read    int    // bytes so far
	pending []byte // a line that belongs to the next event
	atEnd   bool
}

// Next returns the next event that has data; io.EOF after the last.
func (r *Events) Next() (Event, error) {
	var e Event
	for {
		line, err := r.readLine()
		if err != nil {
			if errors.Is(err, io.EOF) && len(e.Data) > 0 {
				return e, nil
			}
			return Event{}, err
		}
		if len(line) == 0 {
			if len(e.Data) > 0 {
				return e, nil
			}
			e = Event{}
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			e.Name = string(value)
		case "data", "error":
			if len(e.Data) > 0 && (IsDone(e.Data) || json.Valid(e.Data)) { // an event already: this line is another
				r.pending = line
				return e, nil
			}
			if string(field) == "error" {
				e.Name = "error"
			}
			if len(e.Data) > 0 {
				value = append(append(e.Data, '\n'), value...)
			}
			e.Data = value
		}
	}
}

// IsDone reports whether the data is [DONE], with which servers of the OpenAI
// dialect end.
func IsDone(data []byte) bool { return string(bytes.TrimSpace(data)) == "[DONE]" }

// readLine returns the next line without its end. The slice is not overwritten.
func (r *Events) readLine() ([]byte, error) {
	if r.pending != nil {
		line := r.pending
		r.pending = nil
		return line, nil
	}
	if r.atEnd {
		return nil, io.EOF
	}
	var line []byte
	for {
		part, err := r.lines.ReadSlice('\n')
		line = append(line, part...)
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
