package client

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"bobbin/app/core"
)

// ExportUser streams all data of a user to w as a ZIP archive; "" = the calling end user.
// After an error the written data is incomplete.
func (c *Client) ExportUser(ctx context.Context, user string, w io.Writer) error {
	return c.downloadTo(ctx, getRequest("/api/v1/export", pageQuery(core.PageQuery{}, "user_id", user)), w)
}

// ExportUserOf is ExportUser for a user of any owner. It needs the token of the server's data
// folder, which the command line has.
func (c *Client) ExportUserOf(ctx context.Context, owner, user string, w io.Writer) error {
	return c.downloadTo(ctx, getRequest("/internal/v1/export", pageQuery(core.PageQuery{}, "owner", owner, "user_id", user)), w)
}

// downloadTo streams the response to w.
func (c *Client) downloadTo(ctx context.Context, r request, w io.Writer) error {
	r.header = map[string]string{"Accept": "*/*"}
	response, err := c.send(ctx, r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("export: the server answered with status %d", response.StatusCode)
	}
	if _, err := io.Copy(w, response.Body); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return nil
}

// PurgeSessions permanently removes sessions. It needs the token of the server's data folder,
// which the command line has.
func (c *Client) PurgeSessions(ctx context.Context, in core.PurgeSessions) (core.PurgeReport, error) {
	return callJSON[core.PurgeReport](ctx, c, postRequest("/internal/v1/purge/sessions", in))
}

// PurgeUser permanently removes all data of a user. It needs the same token.
func (c *Client) PurgeUser(ctx context.Context, in core.PurgeUser) (core.PurgeReport, error) {
	return callJSON[core.PurgeReport](ctx, c, postRequest("/internal/v1/purge/users", in))
}
