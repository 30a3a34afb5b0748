package handlers

import (
	"math"
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
)

// Summaries answers /api/v1/sessions/{id}/summaries.
type Summaries struct {
	chat      chatService
	sessions  core.SessionStore
	summaries core.SummaryStore
}

// NewSummaries returns the handlers of summaries.
func NewSummaries(s Services) *Summaries {
	return &Summaries{chat: s.Chat, sessions: s.Sessions, summaries: s.Summaries}
}

// List answers a page of a session's summaries, newest version first.
func (h *Summaries) List(c *gin.Context) error {
	q := readQuery(c, "limit", "cursor")
	query := q.pageParams()
	if err := q.err(); err != nil {
		return err
	}
	session, err := sessionParam(c, h.sessions)
	if err != nil {
		return err
	}
	page, err := h.summaries.List(c.Request.Context(), scopeOf(c), session.ID, query)
	if err != nil {
		return err
	}
	return writePage(c, page)
}

// Get answers one version.
func (h *Summaries) Get(c *gin.Context) error {
	session, err := sessionParam(c, h.sessions)
	if err != nil {
		return err
	}
	version, err := versionParam(c, 1)
	if err != nil {
		return err
	}
	summary, err := h.summaries.Get(c.Request.Context(), scopeOf(c), session.ID, version)
	return respond(c, http.StatusOK, summary, err)
}

// Diff answers the differences to another version, by default the previous one.
func (h *Summaries) Diff(c *gin.Context) error {
	q := readQuery(c, "against")
	against := -1
	if _, ok := q.lookupParam("against"); ok {
		n := q.numberParam("against")
		if n > math.MaxInt32 {
			q.faults.Add("against", "must be a version, or 0 for none")
		}
		against = int(n)
	}
	if err := q.err(); err != nil {
		return err
	}
	id := core.SessionID(c.Param("id"))
	version, err := versionParam(c, 1)
	if err != nil {
		return err
	}
	diff, err := h.chat.DiffSummary(c.Request.Context(), scopeOf(c), id, version, against)
	return respond(c, http.StatusOK, diff, err)
}

// Edit replaces the text of the active summary and answers the new version.
func (h *Summaries) Edit(c *gin.Context) error {
	id := core.SessionID(c.Param("id"))
	body, err := readBody[struct {
		Content string `json:"content"`
		Version *int32 `json:"version"`
	}](c)
	if err != nil {
		return err
	}
	edit := core.SummaryEdit{Content: body.Content}
	if body.Version != nil {
		if edit.Version = int(*body.Version); edit.Version < 1 {
			return invalidError([]core.FieldError{{Field: "version", Detail: "must be the version that was edited, 1 or more"}})
		}
	}
	summary, err := h.chat.EditSummary(c.Request.Context(), scopeOf(c), id, edit)
	return respond(c, http.StatusOK, summary, err)
}

// Restore makes an earlier version the active one, or none with version 0, and answers the
// session.
func (h *Summaries) Restore(c *gin.Context) error {
	id := core.SessionID(c.Param("id"))
	version, err := versionParam(c, 0)
	if err != nil {
		return err
	}
	if _, err := readBody[struct{}](c); err != nil {
		return err
	}
	session, err := h.chat.RestoreSummary(c.Request.Context(), scopeOf(c), id, version)
	return respond(c, http.StatusOK, session, err)
}

// versionParam returns the version in the path, which must be at least minVersion.
func versionParam(c *gin.Context, minVersion int64) (int, error) {
	version, err := strconv.ParseInt(c.Param("version"), 10, 32)
	if err != nil || version < minVersion {
		return 0, core.Errorf(core.ErrNotFound, "summary version %s does not exist", shortenInput(c.Param("version")))
	}
	return int(version), nil
}
