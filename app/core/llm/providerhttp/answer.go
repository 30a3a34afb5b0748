package providerhttp

import (
	"bufio"
	"errors"
	"io"
	"strings"
)

// WebPage is the error message for an answer that is a web page.
const WebPage = "a web page came instead of an answer: is the base_url right?"

// firstByte returns the first byte that is not blank, without taking it.
func firstByte(r *bufio.Reader) (byte, error) {
	for range MaxLine {
		b, err := r.ReadByte()
		if errors.Is(err, io.EOF) {
			return 0, ErrTruncated
		}
		if err != nil {
			return 0, err
		}
		// Blank, or of a byte order mark.
		if strings.IndexByte(" \t\r\n\xEF\xBB\xBF", b) < 0 {
			return b, r.UnreadByte()
		}
	}
	return 0, &SizeError{"the blank beginning of the answer", MaxLine}
}

// readWhole reads the answer of a server that did not stream.
func readWhole(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxAnswer+1))
	if err != nil {
		return nil, err
	}
	if len(text) > MaxAnswer {
		return nil, &SizeError{"the answer", MaxAnswer}
	}
	return text, nil
}
