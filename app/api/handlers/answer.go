package handlers

import (
	"bytes"
	"encoding/json"
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
	var buf bytes.Buffer
	if err := encodeView(c, &buf, body); err != nil {
		return err
	}
	Write(c, status, "application/json", buf.Bytes())
	return nil
}

// encodeView appends what the caller may see of body as JSON, and a line break.
func encodeView(c *gin.Context, buf *bytes.Buffer, body any) error {
	view, err := viewOf(c, body)
	if err != nil {
		return err
	}
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false) // nosniff and the media type keep browsers from reading it as HTML
	if err := enc.Encode(view); err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	return nil
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

// writePage writes a page as JSON, followed by more fields. Items are encoded one by one,
// so only one of them is in memory twice.
func writePage(c *gin.Context, page pager, more ...field) error {
	w := &pageWriter{c: c}
	w.buf.WriteString(`{"items":[`)
	w.writeItems(page.Each)
	w.buf.WriteString(`],"next_cursor":`)
	w.writeValue((*nextCursor)(page.Next()))
	for _, f := range more {
		w.buf.WriteString(`,"` + f.name + `":`)
		w.writeValue(f.value)
	}
	w.buf.WriteString("}\n")
	if w.err == nil {
		w.flush()
	}
	return w.err
}

// pageWriter writes an answer in pieces. It keeps the first error and stops.
type pageWriter struct {
	c   *gin.Context
	out *pacedWriter // nil = nothing is sent yet
	buf bytes.Buffer // not sent yet
	err error
}

// writeValue writes a value; a list of messages item by item.
func (w *pageWriter) writeValue(v any) {
	if list, ok := v.([]core.Message); ok {
		w.buf.WriteString("[")
		w.writeItems(core.Page[core.Message]{Items: list}.Each)
		w.buf.WriteString("]")
		return
	}
	w.encodeItem(v)
}

// writeItems writes the items of a list.
func (w *pageWriter) writeItems(items iter.Seq[any]) {
	comma := ""
	for item := range items {
		w.buf.WriteString(comma)
		w.encodeItem(item)
		comma = ","
	}
}

// encodeItem writes one value and sends the buffer when it is full.
func (w *pageWriter) encodeItem(v any) {
	if w.err != nil {
		return
	}
	if w.err = encodeView(w.c, &w.buf, v); w.err != nil {
		return
	}
	w.buf.Truncate(w.buf.Len() - len("\n"))
	if w.buf.Len() >= pieceBytes {
		w.flush()
	}
}

// flush sends the buffer.
func (w *pageWriter) flush() {
	if w.out == nil {
		w.c.Header("Content-Type", "application/json")
		w.c.Status(http.StatusOK)
		w.out = newPacedWriter(w.c)
	}
	if _, err := w.out.Write(w.buf.Bytes()); err != nil {
		w.err = fmt.Errorf("%w: %w", ErrGone, err)
	}
	w.buf.Reset()
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
