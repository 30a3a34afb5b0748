package client

import (
	"context"
	"net/url"
	"strconv"

	"bobbin/app/core"
)

// Context returns what the next prompt of a session will consist of.
func (c *Client) Context(ctx context.Context, id core.SessionID) (core.ContextReport, error) {
	return callJSON[core.ContextReport](ctx, c, getRequest(sessionPath(id, "/context"), nil))
}

// Summarize summarizes a session now. The error is core.ErrConflict while another summary is
// in progress, and core.ErrUnprocessable if there is nothing to summarize.
func (c *Client) Summarize(ctx context.Context, id core.SessionID, focus string) (core.Summary, error) {
	return callJSON[core.Summary](ctx, c, postRequest(sessionPath(id, "/summarize"), map[string]string{"focus": focus}))
}

// Summaries returns a page of a session's summaries, newest version first.
func (c *Client) Summaries(ctx context.Context, id core.SessionID, q core.PageQuery) (core.Page[core.Summary], error) {
	return callJSON[core.Page[core.Summary]](ctx, c, getRequest(sessionPath(id, "/summaries"), pageQuery(q)))
}

// Summary returns one version.
func (c *Client) Summary(ctx context.Context, id core.SessionID, version int) (core.Summary, error) {
	return callJSON[core.Summary](ctx, c, getRequest(sessionPath(id, "/summaries/"+strconv.Itoa(version)), nil))
}

// Where returns where a message is in the next prompt of its session, and why.
func (c *Client) Where(ctx context.Context, id core.SessionID, message core.MessageID) (core.MessageLocation, error) {
	return callJSON[core.MessageLocation](ctx, c, getRequest(sessionPath(id, "/context/messages/"+url.PathEscape(string(message))), nil))
}

// RestoreSummary makes an earlier version active, or no version if it is 0, and returns the
// session.
func (c *Client) RestoreSummary(ctx context.Context, id core.SessionID, version int) (core.Session, error) {
	return callJSON[core.Session](ctx, c, postRequest(sessionPath(id, "/summaries/"+strconv.Itoa(version)+"/restore"), nil))
}

// DiffSummary compares a version with another one; against 0 means an empty summary, below 0
// the previous version.
func (c *Client) DiffSummary(ctx context.Context, id core.SessionID, version, against int) (core.SummaryDiff, error) {
	query := url.Values{}
	if against >= 0 {
		query.Set("against", strconv.Itoa(against))
	}
	return callJSON[core.SummaryDiff](ctx, c, getRequest(sessionPath(id, "/summaries/"+strconv.Itoa(version)+"/diff"), query))
}
