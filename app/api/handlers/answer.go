package handlers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
)

// A reader gets this long for an answer, and more for a long one.
const (
	writeTimeout = 30 * time.Second
	slowest      = 32 << 10 // bytes a second
)

// answer writes body as JSON, as far as the caller may see it.
func answer(c *gin.Context, status int, body any) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false) // nosniff and the media type keep it from being read as HTML
	if err := enc.Encode(seen(c, body)); err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	Write(c, status, "application/json", buf.Bytes())
	return nil
}

// Write writes a whole answer under a deadline that fits its length. A reader
// that is gone is nobody's fault, so nothing is returned.
func Write(c *gin.Context, status int, mediaType string, body []byte) {
	begin(c, status, len(body))
	c.Header("Content-Type", mediaType)
	_, _ = c.Writer.Write(body)
}

// begin sets the status, and the deadline for an answer of that many bytes. The
// deadline of the server may have passed while the request was held.
func begin(c *gin.Context, status, bytes int) {
	limit := writeTimeout + time.Duration(bytes/slowest)*time.Second
	// Writers that know no deadlines are those of tests.
	_ = http.NewResponseController(c.Writer).SetWriteDeadline(time.Now().Add(limit))
	c.Status(status)
}

// noContent answers with status 204.
func noContent(c *gin.Context) error {
	WriteNothing(c, http.StatusNoContent)
	return nil
}

// WriteNothing answers with a status and no body.
func WriteNothing(c *gin.Context, status int) {
	begin(c, status, 0)
	c.Writer.WriteHeaderNow()
}
