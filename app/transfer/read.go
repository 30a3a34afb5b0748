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

// errTooMuch says that a history is too large.
func (l Limits) errTooMuch() error {
	return core.Errorf(core.ErrTooLarge, "the history is larger than %d bytes: import it in parts, cut between two questions", l.Import)
}

// entries yields the messages of a history one by one. An error ends it: of the
// reader, or one that may be shown.
func (l Limits) entries(r io.Reader, format core.ImportFormat) iter.Seq2[entry, error] {
	r = &limited{r: r, left: l.Import, err: l.errTooMuch()}
	if format == core.ImportJSON {
		return l.list(r)
	}
	return l.lines(r)
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

// lines yields the lines that are not blank.
func (l Limits) lines(r io.Reader) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		in := bufio.NewReaderSize(r, 64<<10)
		for n := 1; ; n++ {
			raw, tooLong, err := readLine(in, l.Line)
			if err != nil && !errors.Is(err, io.EOF) {
				yield(entry{}, err)
				return
			}
			if n == 1 {
				raw = bytes.TrimPrefix(raw, []byte("\uFEFF"))
			}
			e := entry{name: fmt.Sprintf("line %d", n), raw: bytes.TrimSpace(raw)}
			if tooLong {
				e.err = core.Errorf(core.ErrInvalid, "is longer than %d bytes", l.Line)
			}
			if (tooLong || len(e.raw) > 0) && !yield(e, nil) {
				return
			}
			if err != nil {
				return
			}
		}
	}
}

// readLine reads to the end of a line, and of one that is longer than most nothing.
// io.EOF comes with the last one.
func readLine(in *bufio.Reader, most int) (line []byte, tooLong bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		tooLong = tooLong || len(line)+len(part) > most+1
		if tooLong {
			line = nil
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, tooLong, err
		}
	}
}

// list yields the elements of a JSON list, or of the list "messages" of an object.
func (l Limits) list(r io.Reader) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		d := &listReader{in: json.NewDecoder(skipBOM(r)), most: l.Line, yield: yield}
		d.in.UseNumber() // a number that no float64 holds is no error of ours
		if err := d.all(); err != nil && !errors.Is(err, errLeft) {
			yield(entry{}, err)
		}
	}
}

// skipBOM returns the reader behind a byte order mark.
func skipBOM(r io.Reader) io.Reader {
	in := bufio.NewReader(r)
	if mark, err := in.Peek(3); err == nil && string(mark) == "\uFEFF" {
		_, _ = in.Discard(3) // it was just seen
	}
	return in
}

// errLeft: the reader left the loop.
var errLeft = errors.New("the reader left")

// listReader reads one JSON document.
type listReader struct {
	in    *json.Decoder
	most  int
	n     int
	yield func(entry, error) bool
}

func (d *listReader) all() error {
	start, err := d.in.Token()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return d.explain(err)
	}
	found := true
	switch start {
	case json.Delim('['):
		err = d.elements()
	case json.Delim('{'):
		found, err = d.object()
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

// object reads an export, and reports whether it has messages.
func (d *listReader) object() (found bool, err error) {
	for d.in.More() {
		name, err := d.in.Token()
		if err != nil {
			return found, d.explain(err)
		}
		if name != "messages" {
			var ignored json.RawMessage
			if err := d.in.Decode(&ignored); err != nil {
				return found, d.explain(err)
			}
			continue
		}
		start, err := d.in.Token()
		if err != nil {
			return found, d.explain(err)
		}
		if start != json.Delim('[') || found {
			return found, core.Errorf(core.ErrInvalid, "messages must be a list, and only one")
		}
		found = true
		if err := d.elements(); err != nil {
			return found, err
		}
	}
	_, err = d.in.Token() // the closing brace
	return found, d.explain(err)
}

// elements reads a list to its end.
func (d *listReader) elements() error {
	for d.in.More() {
		d.n++
		var raw json.RawMessage
		if err := d.in.Decode(&raw); err != nil {
			return d.explain(err)
		}
		e := entry{name: fmt.Sprintf("message %d", d.n), raw: raw}
		if len(raw) > d.most {
			e.err = core.Errorf(core.ErrInvalid, "is longer than %d bytes", d.most)
		}
		if !d.yield(e, nil) {
			return errLeft
		}
	}
	_, err := d.in.Token() // the closing bracket
	return d.explain(err)
}

// explain says where the JSON is wrong; errors of the reader stay as they are.
func (d *listReader) explain(err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return core.Errorf(core.ErrInvalid, "the history is not JSON: at byte %d, in or after message %d: %v; messages line by line are sent as application/jsonl",
			d.in.InputOffset(), d.n, err)
	}
	return err
}
