package handlers

import (
	"net/http"
	"slices"
	"time"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
)

// Usage answers /api/v1/usage.
type Usage struct {
	store core.UsageStore
}

// NewUsage returns the handlers of usage.
func NewUsage(s Services) *Usage { return &Usage{store: s.Usage} }

// usageDays is the default range of a usage report.
const usageDays = 30

// Get answers the usage of the caller's model calls: a page of groups, and the total.
func (h *Usage) Get(c *gin.Context) error {
	q := readQuery(c, "group_by", "from", "to", "limit", "cursor")
	query := core.UsageQuery{PageQuery: q.pageParams(), GroupBy: core.UsageGroup(q.textParam("group_by")), From: q.dateParam("from"), To: q.dateParam("to")}
	if _, ok := q.lookupParam("group_by"); !ok {
		query.GroupBy = core.UsageByDay
	}
	if !slices.Contains(core.UsageGroups(), query.GroupBy) {
		q.faults.Add("group_by", "must be session, user, agent, model or day")
	}
	// Whole days, so that the next page has the same range.
	tomorrow := time.Now().UTC().Truncate(day).Add(day)
	if query.To.IsZero() {
		query.To = tomorrow
	}
	if query.From.IsZero() {
		query.From = query.To.Add(-usageDays * day)
	}
	if !query.From.Before(query.To) {
		q.faults.Add("to", "must be after from")
	}
	if err := q.err(); err != nil {
		return err
	}
	report, err := h.store.Usage(c.Request.Context(), scopeOf(c), query)
	if err != nil {
		return err
	}
	if report.Items == nil {
		report.Items = []core.UsageRow{}
	}
	return writeJSON(c, http.StatusOK, report)
}

const day = 24 * time.Hour

// dateParam returns a time, or midnight UTC of a date; the zero time if the parameter is
// not given.
func (q *query) dateParam(name string) time.Time {
	text, ok := q.lookupParam(name)
	if !ok {
		return time.Time{}
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		// Only years of four digits can be stored.
		if t, err := time.Parse(layout, text); err == nil && t.UTC().Year() >= 1 && t.UTC().Year() <= 9999 {
			return t.UTC()
		}
	}
	q.faults.Add(name, "must be a day such as 2026-01-31, or a time such as 2026-01-31T12:00:00Z")
	return time.Time{}
}
