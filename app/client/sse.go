package client

import (
	"bufio"
	"bytes"
	"io"
)

// maxFrame is the maximum size of an event, in bytes. The largest contain a message of 1 MiB.
const maxFrame = 32 << 20

// frame is one event of a stream, or a comment.
type frame struct {
	id    string // "" = the frame has none
	event string
	data  []byte // nil = a comment, which keeps the connection alive
}

// newFrames returns a scanner of a stream's frames. An incomplete one at the end is dropped.
func newFrames(r io.Reader) *bufio.Scanner {
	frames, searched := bufio.NewScanner(r), 0
	frames.Buffer(nil, maxFrame)
	frames.Split(func(data []byte, _ bool) (int, []byte, error) {
		end := bytes.Index(data[searched:], []byte("\n\n"))
		if end < 0 {
			searched = max(0, len(data)-1)
			return 0, nil, nil
		}
		end += searched
		searched = 0
		return end + 2, data[:end], nil
	})
	return frames
}

// parseFrame reads a frame as the server writes it: on one line each, the id, the name and the data.
func parseFrame(text []byte) (f frame) {
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		switch name, value, _ := bytes.Cut(line, []byte(": ")); string(name) {
		case "id":
			f.id = string(value)
		case "event":
			f.event = string(value)
		case "data":
			f.data = bytes.Clone(value)
		}
	}
	return f
}
