package client

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
)

// maxFrame bounds one event, in bytes. The largest hold a message of 1 MiB.
const maxFrame = 32 << 20

// errFrameTooLarge ends a stream whose event is larger than maxFrame.
var errFrameTooLarge = errors.New("an event of the stream is too large")

// frame is one event of a stream, or a comment.
type frame struct {
	id      string // "" = the frame has none
	event   string
	data    []byte
	comment bool // nothing but a sign of life
}

// frameReader reads server-sent events as the HTML standard says: lines end in
// CR, LF or CRLF, an event ends with an empty line, data may have several lines,
// what is cut off by the end of the stream is dropped.
type frameReader struct {
	r      *bufio.Reader
	max    int
	skipLF bool // the last line ended in CR: an LF belongs to it
	begun  bool // the first line was read
}

func newFrameReader(r io.Reader, limit int) *frameReader {
	return &frameReader{r: bufio.NewReaderSize(r, 16<<10), max: limit}
}

// next returns the next event or comment. At the end of the stream it returns
// io.EOF, else the reader's error or errFrameTooLarge.
func (f *frameReader) next() (frame, error) {
	var got frame
	var size int
	var data bytes.Buffer
	for {
		line, err := f.line(f.max - size)
		if err != nil {
			return frame{}, err
		}
		size += len(line)
		switch {
		case len(line) == 0 && data.Len() > 0:
			got.data = data.Bytes()[:data.Len()-1] // without the last line's end
			return got, nil
		case len(line) == 0:
			got, size = frame{}, 0 // no data, no event
		case line[0] == ':':
			if data.Len() == 0 && got.id == "" && got.event == "" {
				return frame{comment: true, event: strings.TrimSpace(string(line[1:]))}, nil
			}
		default:
			field(&got, &data, line)
		}
	}
}

// field takes one line "name: value"; unknown names are ignored.
func field(got *frame, data *bytes.Buffer, line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		data.Write(value)
		data.WriteByte('\n')
	case "event":
		got.event = string(value)
	case "id":
		if !bytes.ContainsRune(value, 0) {
			got.id = string(value)
		}
	}
}

// line returns the next line without its end.
func (f *frameReader) line(limit int) ([]byte, error) {
	var line []byte
	for {
		b, err := f.r.ReadByte()
		if err != nil {
			return nil, err // what was read of the line is cut off
		}
		skip := f.skipLF && b == '\n'
		f.skipLF = false
		switch {
		case skip:
			continue
		case b == '\n' || b == '\r':
			f.skipLF = b == '\r'
			return f.first(line), nil
		case len(line) >= limit:
			return nil, errFrameTooLarge
		}
		line = append(line, b)
	}
}

// first takes a byte order mark off the first line.
func (f *frameReader) first(line []byte) []byte {
	if f.begun {
		return line
	}
	f.begun = true
	return bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
}
