package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"bobbin/app/core"
)

// Context returns what the next prompt of a session will be made of.
func (c *Client) Context(ctx context.Context, id core.SessionID) (core.ContextReport, error) {
	return call[core.ContextReport](ctx, c, get(sessionPath(id, "/context"), nil))
}

// Prompt returns the exact prompt that would be sent now.
func (c *Client) Prompt(ctx context.Context, id core.SessionID) (core.PromptView, error) {
	return call[core.PromptView](ctx, c, get(sessionPath(id, "/context/prompt"), nil))
}

// Summarize makes a summary now. The error is core.ErrConflict while one is made,
// and core.ErrUnprocessable if there is nothing to summarize.
func (c *Client) Summarize(ctx context.Context, id core.SessionID, focus string) (core.Summary, error) {
	return call[core.Summary](ctx, c, post(sessionPath(id, "/summarize"), map[string]string{"focus": focus}))
}

// Summaries returns a page of a session's summaries, newest version first.
func (c *Client) Summaries(ctx context.Context, id core.SessionID, q core.PageQuery) (core.Page[core.Summary], error) {
	return call[core.Page[core.Summary]](ctx, c, get(sessionPath(id, "/summaries"), pageQuery(q)))
}

// Summary returns one version.
func (c *Client) Summary(ctx context.Context, id core.SessionID, version int) (core.Summary, error) {
	return call[core.Summary](ctx, c, get(sessionPath(id, "/summaries/"+strconv.Itoa(version)), nil))
}

// Where returns where a message is in the next prompt of its session, and why.
func (c *Client) Where(ctx context.Context, id core.SessionID, message core.MessageID) (core.MessageWhere, error) {
	return call[core.MessageWhere](ctx, c, get(sessionPath(id, "/context/messages/"+url.PathEscape(string(message))), nil))
}

// DryRun returns what the next prompt would be like under other conditions.
func (c *Client) DryRun(ctx context.Context, id core.SessionID, ask core.DryRun) (core.ContextPlan, error) {
	return call[core.ContextPlan](ctx, c, post(sessionPath(id, "/context/plan"), struct {
		Model   string `json:"model,omitempty"`
		Policy  string `json:"policy,omitempty"`
		Content string `json:"content,omitempty"`
	}{ask.Model, ask.Policy, ask.Content}))
}

// EditSummary replaces the words of the summary in use and returns the new version.
// The error is core.ErrConflict if edit.Version is not the one in use.
func (c *Client) EditSummary(ctx context.Context, id core.SessionID, edit core.SummaryEdit) (core.Summary, error) {
	r := post(sessionPath(id, "/summary"), struct {
		Content string `json:"content"`
		Version int    `json:"version,omitempty"`
	}{edit.Content, edit.Version})
	r.method = http.MethodPut
	return call[core.Summary](ctx, c, r)
}

// RestoreSummary makes an earlier version the one in use, 0 none, and returns the
// session.
func (c *Client) RestoreSummary(ctx context.Context, id core.SessionID, version int) (core.Session, error) {
	return call[core.Session](ctx, c, post(sessionPath(id, "/summaries/"+strconv.Itoa(version)+"/restore"), nil))
}

// DiffSummary compares a version with another one: against 0 is nothing, below 0 the
// version before.
func (c *Client) DiffSummary(ctx context.Context, id core.SessionID, version, against int) (core.SummaryDiff, error) {
	query := url.Values{}
	if against >= 0 {
		query.Set("against", strconv.Itoa(against))
	}
	return call[core.SummaryDiff](ctx, c, get(sessionPath(id, "/summaries/"+strconv.Itoa(version)+"/diff"), query))
}
