package handlers

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
)

// Transfer answers …/messages/import and …/export.
type Transfer struct {
	transfer transferService
	sessions sessionStore
}

// NewTransfer returns the handlers of histories that come and go.
func NewTransfer(s Services) *Transfer {
	return &Transfer{transfer: s.Transfer, sessions: s.Sessions}
}

// Import puts a history at the end of the session, whole or not at all: 200.
func (h *Transfer) Import(c *gin.Context) error {
	id, err := idParam[core.SessionID](c, "session")
	if err != nil {
		return err
	}
	q := readQuery(c, "source")
	if err := q.err(); err != nil {
		return err
	}
	source, err := sourceOf(core.Source(q.text("source")))
	if err != nil {
		return err
	}
	format, err := importFormat(c.GetHeader("Content-Type"))
	if err != nil {
		return err
	}
	done, err := h.transfer.Import(c.Request.Context(), scopeOf(c), core.ImportMessages{
		SessionID: id, Body: faultReader{c.Request.Body}, Format: format, Source: source,
	})
	if err != nil {
		return err
	}
	return answer(c, http.StatusOK, done)
}

// importFormat returns what the media type stands for. As with other bodies, those
// that a web page may post without asking are refused.
func importFormat(header string) (core.ImportFormat, error) {
	media, _, err := mime.ParseMediaType(header)
	if err == nil {
		switch media {
		case "application/jsonl", "application/x-ndjson", "application/ndjson", "application/x-jsonlines":
			return core.ImportLines, nil
		case "application/json":
			return core.ImportJSON, nil
		}
	}
	return "", &core.Error{Kind: core.ErrInvalid, Code: CodeMediaType,
		Message: "the history must be lines of JSON, with Content-Type: application/jsonl or application/x-ndjson, or a list, with application/json"}
}

// faultReader reads a body; its errors may be shown.
type faultReader struct{ io.Reader }

// Read is part of io.Reader.
func (r faultReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	var tooLarge *http.MaxBytesError
	switch {
	case err == nil || errors.Is(err, io.EOF):
		return n, err
	case errors.As(err, &tooLarge):
		return n, core.Errorf(core.ErrTooLarge, "the history is larger than %d bytes: import it in parts, cut between two questions", tooLarge.Limit)
	default:
		return n, BodyFault(err)
	}
}

// exportType is how a format is sent.
type exportType struct{ media, extension string }

// exportTypeOf returns how the format is sent, false for one that there is not.
func exportTypeOf(format core.ExportFormat) (exportType, bool) {
	t, ok := map[core.ExportFormat]exportType{
		core.ExportJSON:     {"application/json", "json"},
		core.ExportLines:    {"application/jsonl", "jsonl"},
		core.ExportMarkdown: {"text/markdown; charset=utf-8", "md"},
	}[format]
	return t, ok
}

// Export sends the session as a file. After an error in the middle the connection
// breaks off, so that half a file is not taken for a whole one.
func (h *Transfer) Export(c *gin.Context) error {
	q := readQuery(c, "format")
	format := core.ExportFormat(q.text("format"))
	if format == "" {
		format = core.ExportJSON
	}
	kind, ok := exportTypeOf(format)
	if !ok {
		q.faults.Add("format", "must be json, jsonl or markdown")
	}
	if err := q.err(); err != nil {
		return err
	}
	session, err := sessionParam(c, h.sessions)
	if err != nil {
		return err
	}
	out := &fileWriter{c: c, header: func(header http.Header) {
		header.Set("Content-Type", kind.media)
		header.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", fileName(session)+"."+kind.extension))
	}}
	if scopeOf(c).User != "" {
		session = seenSession(session)
	}
	if err := h.transfer.Export(c.Request.Context(), scopeOf(c), session, format, out); err != nil {
		return err
	}
	out.begin() // there may have been nothing to write
	return nil
}

// fileWriter begins the answer with the first bytes and gives the reader time for
// each piece.
type fileWriter struct {
	c      *gin.Context
	header func(http.Header)
	begun  bool
}

// Write is part of io.Writer.
func (w *fileWriter) Write(p []byte) (int, error) {
	w.begin()
	limit := writeTimeout + time.Duration(len(p)/slowest)*time.Second
	// Writers that know no deadlines are those of tests.
	_ = http.NewResponseController(w.c.Writer).SetWriteDeadline(time.Now().Add(limit))
	return w.c.Writer.Write(p)
}

// begin sets the header of the answer, once.
func (w *fileWriter) begin() {
	if w.begun {
		return
	}
	w.begun = true
	w.header(w.c.Writer.Header())
	w.c.Status(http.StatusOK)
}

// fileName returns a name for the session that every file system takes: letters
// and digits of the title, and the end of the id, which differs between any two.
func fileName(s core.Session) string {
	const most = 60
	var b strings.Builder
	gap := false
	for _, r := range strings.ToLower(s.Title) {
		if b.Len() >= most {
			break
		}
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') {
			gap = b.Len() > 0
			continue
		}
		if gap {
			b.WriteByte('-')
			gap = false
		}
		b.WriteRune(r)
	}
	if b.Len() == 0 {
		b.WriteString("bobbin")
	}
	id := string(s.ID)
	return b.String() + "-" + id[max(0, len(id)-12):]
}
