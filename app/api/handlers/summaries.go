package handlers

import (
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
)

// Summaries answers /api/v1/sessions/{id}/summaries.
type Summaries struct {
	sessions  sessionStore
	summaries summaryStore
}

// NewSummaries returns the handlers of summaries.
func NewSummaries(s Services) *Summaries {
	return &Summaries{sessions: s.Sessions, summaries: s.Summaries}
}

// List answers a page of a session's summaries, newest version first.
func (h *Summaries) List(c *gin.Context) error {
	q := readQuery(c, "limit", "cursor")
	query := q.page()
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
	return answer(c, http.StatusOK, listOf(page))
}

// Get answers one version.
func (h *Summaries) Get(c *gin.Context) error {
	session, err := sessionParam(c, h.sessions)
	if err != nil {
		return err
	}
	version, err := strconv.ParseInt(c.Param("version"), 10, 32)
	if err != nil || version < 1 {
		return core.Errorf(core.ErrNotFound, "summary version %s does not exist", shorten(c.Param("version")))
	}
	summary, err := h.summaries.Get(c.Request.Context(), scopeOf(c), session.ID, int(version))
	if err != nil {
		return err
	}
	return answer(c, http.StatusOK, summary)
}
