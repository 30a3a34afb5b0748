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
	store usageStore
}

// NewUsage returns the handlers of usage.
func NewUsage(s Services) *Usage { return &Usage{store: s.Usage} }

// usageDays is how far back usage goes that is asked for without a beginning.
const usageDays = 30

// Get answers what the caller's model calls came to, a page of groups and the total.
func (h *Usage) Get(c *gin.Context) error {
	q := readQuery(c, "group_by", "from", "to", "limit", "cursor")
	query := core.UsageQuery{PageQuery: q.page(), GroupBy: core.UsageGroup(q.text("group_by")), From: q.moment("from"), To: q.moment("to")}
	if query.GroupBy == "" {
		query.GroupBy = core.UsageByDay
	}
	if !slices.Contains(core.UsageGroups(), query.GroupBy) {
		q.faults.Add("group_by", "must be session, user, agent, model or day")
	}
	// Whole days: the same page a minute later has the same bounds.
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
	return answer(c, http.StatusOK, report)
}

const day = 24 * time.Hour

// moment returns a time, or the midnight of UTC with which a day begins; the zero
// time if the parameter is not given.
func (q *query) moment(name string) time.Time {
	text := q.text(name)
	if text == "" {
		return time.Time{}
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		// Other years than those of four digits cannot be stored.
		if t, err := time.Parse(layout, text); err == nil && t.UTC().Year() >= 1 && t.UTC().Year() <= 9999 {
			return t.UTC()
		}
	}
	q.faults.Add(name, "must be a day such as 2026-01-31, or a time such as 2026-01-31T12:00:00Z")
	return time.Time{}
}
