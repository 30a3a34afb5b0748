package langchain

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
	maxLine   = 8 << 20  // one line of the answer
	maxAnswer = 64 << 20 // the whole answer
)

// sizeError says that a provider sent more than anybody can want.
type sizeError struct {
	what  string
	limit int
}

func (e *sizeError) Error() string {
	return fmt.Sprintf("%s is larger than %d MiB", e.what, e.limit>>20)
}

// event is one server-sent event.
type event struct {
	name string // empty = message
	data []byte
}

// eventReader reads server-sent events. Comments, ids and retry times are
// skipped. It forgives what servers do wrong: a last event without the empty
// line after it, several data lines that are events of their own, llama.cpp's
// field "error".
type eventReader struct {
	lines   *bufio.Reader
	read    int    // bytes so far
	pending []byte // a line that belongs to the next event
	atEnd   bool
}

func newEventReader(r io.Reader) *eventReader {
	return &eventReader{lines: bufio.NewReaderSize(r, 32<<10)}
}

// next returns the next event that has data; io.EOF after the last.
func (r *eventReader) next() (event, error) {
	var e event
	for {
		line, err := r.line()
		if err != nil {
			if errors.Is(err, io.EOF) && len(e.data) > 0 {
				return e, nil
			}
			return event{}, err
		}
		if len(line) == 0 {
			if len(e.data) > 0 {
				return e, nil
			}
			e = event{}
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			e.name = string(value)
		case "data", "error":
			if len(e.data) > 0 && complete(e.data) {
				r.pending = line
				return e, nil
			}
			if string(field) == "error" {
				e.name = "error"
			}
			e.data = appendLine(e.data, value)
		}
	}
}

// complete reports whether the data is an event already, so that what follows on
// the next line is another.
func complete(data []byte) bool { return isDone(data) || json.Valid(data) }

func isDone(data []byte) bool { return string(bytes.TrimSpace(data)) == "[DONE]" }

func appendLine(data, line []byte) []byte {
	if len(data) > 0 {
		data = append(data, '\n')
	}
	return append(data, line...)
}

// line returns the next line without its end. The slice stays as it is.
func (r *eventReader) line() ([]byte, error) {
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
		if len(line) > maxLine {
			return nil, &sizeError{"a line of the answer", maxLine}
		}
		if r.read > maxAnswer {
			return nil, &sizeError{"the answer", maxAnswer}
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
