package handlers

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
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
	view, err := viewOf(c, body)
	if err != nil {
		return err
	}
	raw, err := core.EncodeJSON(view)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	HoldOf(c).Keep(AnswerBytes + int64(len(raw))) // the reader may be slow, and body is not needed any more
	Write(c, status, "application/json", append(raw, '\n'))
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

// PacedStream is the writer of an answer that a library writes, which may be an event stream.
// Its reader must keep pace. Safe for concurrent use.
type PacedStream struct {
	header  http.Header
	flusher *http.ResponseController

	mu     sync.Mutex
	out    *pacedWriter // guarded by mu
	closed bool         // guarded by mu
}

// NewPacedStream returns the writer of the answer. The caller closes it before it returns.
func NewPacedStream(c *gin.Context) *PacedStream {
	c.Header("X-Accel-Buffering", "no")
	return &PacedStream{header: c.Writer.Header(), flusher: http.NewResponseController(ServerWriter(c.Writer)), out: newPacedWriter(c)}
}

// Header is part of http.ResponseWriter.
func (w *PacedStream) Header() http.Header { return w.header }

// WriteHeader is part of http.ResponseWriter.
func (w *PacedStream) WriteHeader(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.out.WriteHeader(status)
	}
}

// Write is part of http.ResponseWriter. It returns ErrGone after Close.
func (w *PacedStream) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return 0, ErrGone
	}
	return w.out.Write(p)
}

// FlushError sends what is written.
func (w *PacedStream) FlushError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return ErrGone
	}
	return w.flusher.Flush()
}

// KeepAlive writes a comment on an idle event stream, so that proxies keep the connection open.
// The caller has seen the library set the headers.
func (w *PacedStream) KeepAlive() error {
	if !strings.HasPrefix(w.header.Get("Content-Type"), "text/event-stream") {
		return nil
	}
	if _, err := w.Write([]byte(": keep-alive\n\n")); err != nil {
		return err
	}
	return w.FlushError()
}

// Close ends writing.
func (w *PacedStream) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
}
