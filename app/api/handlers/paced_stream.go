package handlers

import (
	"net/http"
	"strings"
	"sync"

	"github.com/gin-gonic/gin"
)

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
