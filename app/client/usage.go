package client

import (
	"context"
	"time"

	"bobbin/app/core"
)

// SessionDetail returns one session with its usage.
func (c *Client) SessionDetail(ctx context.Context, id core.SessionID) (core.SessionDetail, error) {
	return call[core.SessionDetail](ctx, c, get(sessionPath(id, ""), nil))
}

// Usage returns a page of what the caller's model calls came to. Zero times are
// the last 30 days.
func (c *Client) Usage(ctx context.Context, q core.UsageQuery) (core.UsageReport, error) {
	moment := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format(time.RFC3339)
	}
	return call[core.UsageReport](ctx, c, get("/api/v1/usage", pageQuery(q.PageQuery,
		"group_by", string(q.GroupBy), "from", moment(q.From), "to", moment(q.To))))
}
