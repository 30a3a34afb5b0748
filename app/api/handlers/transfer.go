package handlers

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"regexp"
	"strings"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/ops"
	"bobbin/app/core"
)

// importMessages appends a history to the session, completely or not at all: 200. Its body is the history.
func (h Native) importMessages(c *gin.Context) error {
	var in ops.Import
	if err := readParams(c, &in); err != nil {
		return err
	}
	// As with other bodies, types that a web page can post without a CORS preflight are refused.
	media, _, _ := mime.ParseMediaType(c.GetHeader("Content-Type"))
	format := map[string]core.ImportFormat{
		"application/jsonl": core.ImportLines, "application/x-ndjson": core.ImportLines, "application/ndjson": core.ImportLines,
		"application/x-jsonlines": core.ImportLines, "application/json": core.ImportJSON,
	}[media]
	if format == "" {
		return &core.Error{Kind: core.ErrInvalid, Code: CodeMediaType,
			Message: "the history must be JSON Lines, with Content-Type: application/jsonl or application/x-ndjson, or a JSON list, with application/json"}
	}
	session, err := h.Sessions.Get(c.Request.Context(), scopeOf(c), in.SessionID)
	if err != nil {
		return err
	}
	var values core.JSONCounter
	history, err := spool(c, c.Request.Body, &values)
	if errors.Is(err, core.ErrTooLarge) {
		return HistoryTooLarge(err)
	}
	if err != nil {
		return err
	}
	defer history.Close()
	done, err := h.Transfer.Import(c.Request.Context(), scopeOf(c), core.ImportMessages{
		SessionID: session.ID, Body: history, Size: history.size, Values: values.Values(), Format: format, Source: cmp.Or(in.Source, core.SourceAPI),
	})
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, done)
}

// HistoryTooLarge returns the error of a history that is too large, with what to do.
func HistoryTooLarge(err error) error {
	return core.Errorf(core.ErrTooLarge, "%s: import the history in parts, split before a user message, or raise limits.import_bytes", err)
}

// exportSession sends the session as a file. An error in the middle breaks the connection, so
// that a partial file is not mistaken for a complete one.
func (h Native) exportSession(c *gin.Context, in ops.SessionExport) error {
	format := cmp.Or(in.Format, core.ExportJSON)
	kind := map[core.ExportFormat]struct{ media, extension string }{
		core.ExportJSON:     {"application/json", "json"},
		core.ExportLines:    {"application/jsonl", "jsonl"},
		core.ExportMarkdown: {"text/markdown; charset=utf-8", "md"},
	}[format]
	session, err := h.Sessions.Get(c.Request.Context(), scopeOf(c), in.SessionID)
	if err != nil {
		return err
	}
	out := beginFile(c, kind.media, fileName(session)+"."+kind.extension)
	if scopeOf(c).User != "" {
		session = userSession(session)
	}
	return h.Transfer.Export(c.Request.Context(), scopeOf(c), session, format, out)
}

// beginFile begins an answer that is a file. Its header is sent with the first bytes, so that an error
// before them is answered as any other.
func beginFile(c *gin.Context, mediaType, name string) io.Writer {
	c.Header("Content-Disposition", fmt.Sprintf("attachment; filename=%q", name))
	return Begin(c, http.StatusOK, mediaType)
}

// notInNames matches what file names leave out of titles.
var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// fileName returns a file name for the session that is valid on every file system: letters
// and digits of the title, and the end of the id, which is unique.
func fileName(s core.Session) string {
	const maxTitle = 60 // bytes
	title := strings.TrimLeft(notInNames.ReplaceAllString(strings.ToLower(s.Title), "-"), "-")
	title = strings.TrimRight(core.Clip(title, maxTitle), "-")
	id := string(s.ID)
	return cmp.Or(title, "bobbin") + "-" + id[max(0, len(id)-12):]
}
