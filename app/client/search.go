package client

import (
	"context"
	"time"

	"bobbin/app/core"
)

// Search returns a page of the messages that q finds, newest first. Excerpt is the
// server's to choose.
func (c *Client) Search(ctx context.Context, q core.SearchQuery) (core.SearchPage, error) {
	at := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format(time.RFC3339Nano)
	}
	all := ""
	if q.AllBranches {
		all = "true"
	}
	return call[core.SearchPage](ctx, c, get("/api/v1/search", pageQuery(q.PageQuery, "q", q.Text, "session_id", string(q.SessionID),
		"user_id", q.UserID, "role", string(q.Role), "after", at(q.After), "before", at(q.Before), "all_branches", all)))
}
