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
	chat      summaryService
	sessions  sessionStore
	summaries summaryStore
}

// NewSummaries returns the handlers of summaries, and of the one in use.
func NewSummaries(s Services) *Summaries {
	return &Summaries{chat: s.Chat, sessions: s.Sessions, summaries: s.Summaries}
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
	version, err := versionParam(c, 1)
	if err != nil {
		return err
	}
	summary, err := h.summaries.Get(c.Request.Context(), scopeOf(c), session.ID, version)
	if err != nil {
		return err
	}
	return answer(c, http.StatusOK, summary)
}

// Diff answers how a version differs from another one, by default the one before.
func (h *Summaries) Diff(c *gin.Context) error {
	q := readQuery(c, "against")
	against := -1
	if q.text("against") != "" {
		n := q.number("against")
		if n > math.MaxInt32 {
			q.faults.Add("against", "must be a version, or 0 for none")
		}
		against = int(n)
	}
	if err := q.err(); err != nil {
		return err
	}
	id, err := idParam[core.SessionID](c, "session")
	if err != nil {
		return err
	}
	version, err := versionParam(c, 1)
	if err != nil {
		return err
	}
	diff, err := h.chat.DiffSummary(c.Request.Context(), scopeOf(c), id, version, against)
	if err != nil {
		return err
	}
	return answer(c, http.StatusOK, diff)
}

// summaryEdit is the body of Edit.
type summaryEdit struct {
	Content string `json:"content"`
	Version *int32 `json:"version"`
}

// Edit replaces the words of the summary in use and answers the new version.
func (h *Summaries) Edit(c *gin.Context) error {
	id, err := idParam[core.SessionID](c, "session")
	if err != nil {
		return err
	}
	body, err := readBody[summaryEdit](c)
	if err != nil {
		return err
	}
	edit := core.SummaryEdit{Content: body.Content}
	if body.Version != nil {
		if edit.Version = int(*body.Version); edit.Version < 1 {
			return invalid([]core.FieldError{{Field: "version", Detail: "must be the version that was edited, 1 or more"}})
		}
	}
	summary, err := h.chat.EditSummary(c.Request.Context(), scopeOf(c), id, edit)
	if err != nil {
		return err
	}
	return answer(c, http.StatusOK, summary)
}

// Restore makes an earlier version the one in use, 0 none, and answers the session.
func (h *Summaries) Restore(c *gin.Context) error {
	id, err := idParam[core.SessionID](c, "session")
	if err != nil {
		return err
	}
	version, err := versionParam(c, 0)
	if err != nil {
		return err
	}
	if _, err := readBody[struct{}](c); err != nil {
		return err
	}
	session, err := h.chat.RestoreSummary(c.Request.Context(), scopeOf(c), id, version)
	if err != nil {
		return err
	}
	return answer(c, http.StatusOK, session)
}

// versionParam returns the version in the path, at least the least one that is meant.
func versionParam(c *gin.Context, least int64) (int, error) {
	version, err := strconv.ParseInt(c.Param("version"), 10, 32)
	if err != nil || version < least {
		return 0, core.Errorf(core.ErrNotFound, "summary version %s does not exist", shorten(c.Param("version")))
	}
	return int(version), nil
}
