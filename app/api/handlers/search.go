package handlers

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
)

// Search answers /api/v1/search.
type Search struct {
	search searchStore
}

// NewSearch returns the handler of searches.
func NewSearch(s Services) *Search { return &Search{search: s.Search} }

// Messages answers a page of the messages that q finds, newest first.
func (h *Search) Messages(c *gin.Context) error {
	q := readQuery(c, "q", "session_id", "user_id", "role", "after", "before", "all_branches", "limit", "cursor")
	query := core.SearchQuery{
		PageQuery: q.page(), Text: q.text("q"), SessionID: core.SessionID(q.text("session_id")), UserID: q.text("user_id"),
		Role: q.role("role"), After: q.time("after"), Before: q.time("before"), AllBranches: q.flag("all_branches"),
	}
	if query.Text == "" {
		q.faults.Add("q", "is missing; write what to look for")
	}
	if err := q.err(); err != nil {
		return err
	}
	if err := checkUser(c, query.UserID); err != nil {
		return err
	}
	page, err := h.search.Messages(c.Request.Context(), scopeOf(c), query)
	if err != nil {
		return err
	}
	page.Page = listOf(page.Page)
	return answer(c, http.StatusOK, page)
}

// role returns who speaks, "" if the parameter is not given.
func (q *query) role(name string) core.Role {
	switch r := core.Role(q.text(name)); r {
	case "", core.RoleUser, core.RoleAssistant, core.RoleTool, core.RoleSystem:
		return r
	default:
		q.faults.Add(name, "must be user, assistant, tool or system")
		return ""
	}
}

// time returns a point in time, the zero time if the parameter is not given.
func (q *query) time(name string) time.Time {
	text := q.text(name)
	if text == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		q.faults.Add(name, "must be a time such as 2026-01-31T12:00:00Z")
	}
	return t
}
