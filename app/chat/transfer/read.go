package transfer

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"

	"bobbin/app/core"
)

// entry is one message of a history, still to be read.
type entry struct {
	name string // where it is: "line 3", "message 3"
	raw  []byte // valid until the next entry
	err  error  // what is wrong with it already
}

// readEntries yields the messages of a history one by one. An error ends it: of the
// reader, or one that may be shown.
func (l Limits) readEntries(r io.Reader, format core.ImportFormat) iter.Seq2[entry, error] {
	r = &limited{r: r, left: l.Import, err: core.Errorf(core.ErrTooLarge, "the history is larger than %d bytes: import it in parts, cut between two questions", l.Import)}
	if format == core.ImportJSON { // a list, or the list "messages" of an object
		return func(yield func(entry, error) bool) {
			in := bufio.NewReader(r)
			if mark, err := in.Peek(3); err == nil && string(mark) == "\uFEFF" {
				_, _ = in.Discard(3) // it was just seen
			}
			values := &valueReader{r: in, most: l.Line, err: core.Errorf(core.ErrInvalid, "is longer than %d bytes", l.Line)}
			values.in = json.NewDecoder(values)
			values.in.UseNumber() // a number that no float64 holds is no error of ours
			d := &listReader{in: values.in, values: values, yield: yield}
			if err := d.readAll(); err != nil && !errors.Is(err, errLeft) {
				yield(entry{}, err)
			}
		}
	}
	return func(yield func(entry, error) bool) {
		n, in := 1, bufio.NewScanner(r)
		for in.Buffer(nil, l.Line+1); in.Scan(); n++ {
			raw := bytes.TrimSpace(in.Bytes())
			if n == 1 {
				raw = bytes.TrimPrefix(raw, []byte("\uFEFF"))
			}
			if len(raw) > 0 && !yield(entry{name: fmt.Sprintf("line %d", n), raw: raw}, nil) {
				return
			}
		}
		if err := in.Err(); errors.Is(err, bufio.ErrTooLong) { // nothing behind it can be read
			yield(entry{name: fmt.Sprintf("line %d", n), err: core.Errorf(core.ErrInvalid, "is longer than %d bytes", l.Line)}, nil)
		} else if err != nil {
			yield(entry{}, err)
		}
	}
}

// limited is a reader that fails behind its limit.
type limited struct {
	r    io.Reader
	left int64
	err  error
}

// Read is part of io.Reader.
func (l *limited) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, l.err
	}
	return n, err
}

// errLeft: the reader left the loop.
var errLeft = errors.New("the reader left")

// valueReader is a reader that fails behind a value that is too long: a decoder would hold
// all of it.
type valueReader struct {
	r    io.Reader
	in   *json.Decoder // which reads from here
	most int           // bytes of a value
	read int64
	err  error
}

// Read is part of io.Reader. It gives little at once, as a decoder reads ahead.
func (v *valueReader) Read(p []byte) (int, error) {
	const ahead = 64 << 10
	if v.read-v.in.InputOffset() >= int64(v.most)+ahead {
		return 0, v.err
	}
	n, err := v.r.Read(p[:min(len(p), ahead/2)])
	v.read += int64(n)
	return n, err
}

// listReader reads one JSON document.
type listReader struct {
	in     *json.Decoder
	values *valueReader
	n      int
	yield  func(entry, error) bool
}

// skipValue reads past the next value, whatever its length.
func (d *listReader) skipValue() error {
	for depth := 0; ; {
		token, err := d.in.Token()
		switch {
		case err != nil:
			return err
		case token == json.Delim('[') || token == json.Delim('{'):
			depth++
		case token == json.Delim(']') || token == json.Delim('}'):
			depth--
		}
		if depth > core.MaxJSONDepth {
			return core.Errorf(core.ErrInvalid, "the history is nested more than %d levels deep", core.MaxJSONDepth)
		}
		if depth == 0 {
			return nil
		}
	}
}

func (d *listReader) readAll() error {
	start, err := d.in.Token()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return d.explainError(err)
	}
	found := true
	switch start {
	case json.Delim('['):
		err = d.readElements()
	case json.Delim('{'):
		found, err = d.readObject()
	default:
		found = false
	}
	if err != nil {
		return err
	}
	if !found {
		return core.Errorf(core.ErrInvalid, "the history is neither a list of messages nor an export with a list of messages; messages line by line are sent as application/jsonl")
	}
	if _, err := d.in.Token(); !errors.Is(err, io.EOF) {
		return core.Errorf(core.ErrInvalid, "something stands behind the history; messages line by line are sent as application/jsonl")
	}
	return nil
}

// readObject reads an export, and reports whether it has messages.
func (d *listReader) readObject() (found bool, err error) {
	for d.in.More() {
		name, err := d.in.Token()
		if err != nil {
			return found, d.explainError(err)
		}
		if name != "messages" {
			if err := d.skipValue(); err != nil {
				return found, d.explainError(err)
			}
			continue
		}
		start, err := d.in.Token()
		if err != nil {
			return found, d.explainError(err)
		}
		if start != json.Delim('[') || found {
			return found, core.Errorf(core.ErrInvalid, "messages must be a list, and only one")
		}
		found = true
		if err := d.readElements(); err != nil {
			return found, err
		}
	}
	_, err = d.in.Token() // the closing brace
	return found, d.explainError(err)
}

// readElements reads a list to its end.
func (d *listReader) readElements() error {
	for d.in.More() {
		d.n++
		var raw json.RawMessage
		err := d.in.Decode(&raw)
		if err == nil && len(raw) > d.values.most {
			err = d.values.err
		}
		e := entry{name: fmt.Sprintf("message %d", d.n), raw: raw}
		switch {
		case errors.Is(err, d.values.err):
			e.err = err // nothing behind it can be read
		case err != nil:
			return d.explainError(err)
		}
		if !d.yield(e, nil) || e.err != nil {
			return errLeft
		}
	}
	_, err := d.in.Token() // the closing bracket
	return d.explainError(err)
}

// explainError says where the JSON is wrong; errors of the reader stay as they are.
func (d *listReader) explainError(err error) error {
	var syntax *json.SyntaxError
	if errors.Is(err, d.values.err) {
		return core.Errorf(core.ErrInvalid, "a value of the history, in or after message %d, %v", d.n, err)
	}
	if errors.As(err, &syntax) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return core.Errorf(core.ErrInvalid, "the history is not JSON: at byte %d, in or after message %d: %v; messages line by line are sent as application/jsonl",
			d.in.InputOffset(), d.n, err)
	}
	return err
}
