package cli

import (
	"io"
	"os"

	"bobbin/app/core"
)

// maxText is the maximum size of a text file, in bytes; the server accepts less.
const maxText = 8 << 20

// readText reads a file; - is the standard input.
func (p *program) readText(name string) (string, error) {
	if name == "-" {
		return p.readInput(maxText)
	}
	f, err := os.Open(name)
	if err != nil {
		return "", core.Errorf(core.ErrInvalid, "%v", err)
	}
	defer f.Close()
	return readAll(f, maxText)
}

// readInput reads the standard input to its end.
func (p *program) readInput(maxBytes int64) (string, error) { return readAll(p.In, maxBytes) }

func readAll(r io.Reader, maxBytes int64) (string, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err == nil && int64(len(data)) > maxBytes {
		return "", core.Errorf(core.ErrTooLarge, "the input has more than %d bytes", maxBytes)
	}
	return string(data), err
}
