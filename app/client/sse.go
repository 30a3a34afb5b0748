package client

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
)

// maxFrame is the maximum size of an event, in bytes. The largest contain a message of 1 MiB.
const maxFrame = 32 << 20

// errFrameTooLarge ends a stream with an event larger than maxFrame.
var errFrameTooLarge = errors.New("an event of the stream is too large")

// frame is one event of a stream, or a comment.
type frame struct {
	id      string // "" = the frame has none
	event   string
	data    []byte
	comment bool // a comment, which keeps the connection alive
}

// frameReader reads server-sent events as the HTML standard specifies: lines end in CR, LF or
// CRLF, an event ends with an empty line, data may have several lines, and an incomplete event
// at the end of the stream is dropped.
type frameReader struct {
	r             *bufio.Reader
	max           int
	skipLF        bool // the last line ended in CR: skip a following LF
	pastFirstLine bool // the first line was read
}

func newFrameReader(r io.Reader, limit int) *frameReader {
	return &frameReader{r: bufio.NewReaderSize(r, 16<<10), max: limit}
}

// nextFrame returns the next event or comment. Its error is io.EOF at the end of the stream,
// errFrameTooLarge, or that of the reader.
func (f *frameReader) nextFrame() (frame, error) {
	var got frame
	var size int
	var data bytes.Buffer
	for {
		line, err := f.readLine(f.max - size)
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
			parseField(&got, &data, line)
		}
	}
}

// parseField parses a line "name: value" and ignores unknown names.
func parseField(got *frame, data *bytes.Buffer, line []byte) {
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

// readLine returns the next line without its end.
func (f *frameReader) readLine(limit int) ([]byte, error) {
	var line []byte
	for {
		b, err := f.r.ReadByte()
		if err != nil {
			return nil, err // the line is incomplete
		}
		skip := f.skipLF && b == '\n'
		f.skipLF = false
		switch {
		case skip:
			continue
		case b == '\n' || b == '\r':
			f.skipLF = b == '\r'
			return f.trimByteOrderMark(line), nil
		case len(line) >= limit:
			return nil, errFrameTooLarge
		}
		line = append(line, b)
	}
}

// trimByteOrderMark removes a byte order mark from the first line.
func (f *frameReader) trimByteOrderMark(line []byte) []byte {
	if f.pastFirstLine {
		return line
	}
	f.pastFirstLine = true
	return bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
}
