package client

import (
	"context"

	"bobbin/app/core"
)

// PurgeSessions removes sessions for good. The server lets only the command line
// in, by the token of its data folder.
func (c *Client) PurgeSessions(ctx context.Context, in core.PurgeSessions) (core.PurgeReport, error) {
	return call[core.PurgeReport](ctx, c, post("/internal/v1/purge/sessions", in))
}

// PurgeUser removes everything of a user for good, under the same condition.
func (c *Client) PurgeUser(ctx context.Context, in core.PurgeUser) (core.PurgeReport, error) {
	return call[core.PurgeReport](ctx, c, post("/internal/v1/purge/users", in))
}
