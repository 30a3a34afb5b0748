package handlers

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
)

// How fast a reader must read.
const (
	writeTimeout = 30 * time.Second // a reader may lag this far behind minReadRate
	minReadRate  = 32 << 10         // bytes per second
)

// pieceBytes is how much of an answer is written at a time.
const pieceBytes = 64 << 10

// writeJSON writes what the caller may see of body as JSON.
func writeJSON(c *gin.Context, status int, body any) error {
	raw, err := encodeView(c, body)
	if err != nil {
		return err
	}
	Write(c, status, "application/json", append(raw, '\n'))
	return nil
}

// encodeView returns what the caller may see of body as JSON.
func encodeView(c *gin.Context, body any) ([]byte, error) {
	view, err := viewOf(c, body)
	if err != nil {
		return nil, err
	}
	raw, err := core.EncodeJSON(view)
	if err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	return raw, nil
}

// field is a field of an answer.
type field struct {
	name  string
	value any
}

// The fields of pages have types of their own: userView lists no general ones.
type (
	nextCursor     string
	lastEventID    int64
	searchTotal    int
	searchIndexing bool
)

// pager is a core.Page of any items.
type pager interface {
	Each(yield func(any) bool)
	Next() *string
}

// writePage writes a page as JSON, followed by more fields.
func writePage(c *gin.Context, page pager, more ...field) error {
	out := &fileWriter{c: c, header: func(h http.Header) { h.Set("Content-Type", "application/json") }}
	w := pageWriter{c, bufio.NewWriterSize(out, pieceBytes)}
	if err := w.writeItems(`{"items":`, page.Each); err != nil {
		return err
	}
	for _, f := range append([]field{{"next_cursor", (*nextCursor)(page.Next())}}, more...) {
		if err := w.writeValue(`,"`+f.name+`":`, f.value); err != nil {
			return err
		}
	}
	_, _ = w.WriteString("}\n")
	if err := w.Flush(); err != nil {
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	return nil
}

// pageWriter writes an answer in pieces. Until the first one is full, an error can still be answered.
type pageWriter struct {
	c *gin.Context
	*bufio.Writer
}

// writeValue writes a text and what the caller may see of a value.
func (w pageWriter) writeValue(before string, v any) error {
	if list, ok := v.([]core.Message); ok {
		return w.writeItems(before, core.Page[core.Message]{Items: list}.Each)
	}
	raw, err := encodeView(w.c, v)
	if err != nil {
		return err
	}
	_, _ = w.WriteString(before)
	if _, err := w.Write(raw); err != nil {
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	return nil
}

// writeItems writes a text and a list, one item after the other, so that only one of them is in memory
// twice.
func (w pageWriter) writeItems(before string, items iter.Seq[any]) error {
	_, _ = w.WriteString(before + "[")
	comma := ""
	for item := range items {
		if err := w.writeValue(comma, item); err != nil {
			return err
		}
		comma = ","
	}
	_, _ = w.WriteString("]")
	return nil
}

// Write writes a whole answer. It returns no error: the only one is that the client is gone.
func Write(c *gin.Context, status int, mediaType string, body []byte) {
	_, _ = Begin(c, status, mediaType).Write(body)
}

// Begin begins an answer and returns what writes its body, piece by piece.
func Begin(c *gin.Context, status int, mediaType string) io.Writer {
	c.Status(status)
	c.Header("Content-Type", mediaType)
	return newPacedWriter(c)
}

// pacedWriter writes an answer to a reader who must read at minReadRate.
type pacedWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	waited  time.Duration // time spent in writes
	written int64
}

// newPacedWriter returns a writer of the answer. It extends the write deadline, which may
// have passed while the request waited.
func newPacedWriter(c *gin.Context) *pacedWriter {
	w := &pacedWriter{ResponseWriter: c.Writer, control: http.NewResponseController(c.Writer)}
	w.extendDeadline()
	return w
}

// Write is part of io.Writer.
func (w *pacedWriter) Write(p []byte) (int, error) {
	total := 0
	for {
		piece := p[:min(len(p), pieceBytes)]
		w.extendDeadline()
		begin := time.Now()
		n, err := w.ResponseWriter.Write(piece)
		w.waited += time.Since(begin)
		w.written += int64(n)
		total += n
		if p = p[len(piece):]; err != nil || len(p) == 0 {
			return total, err
		}
	}
}

// extendDeadline sets the deadline by which the reader must have taken the next piece.
func (w *pacedWriter) extendDeadline() {
	left := writeTimeout + time.Duration(w.written/minReadRate)*time.Second - w.waited
	// Only the writers of tests do not support deadlines.
	_ = w.control.SetWriteDeadline(time.Now().Add(left))
}

// WriteNothing answers with a status and no body.
func WriteNothing(c *gin.Context, status int) {
	newPacedWriter(c)
	c.Status(status)
	c.Writer.WriteHeaderNow()
}
