package client

import (
	"context"
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
