package client

import (
	"context"
	"io"
	"net/url"

	"bobbin/app/core"
)

// ImportMessages appends a history to a session, all of it or nothing. If the server restarts
// meanwhile, the request is repeated if its body can be read again, such as a bytes.Reader.
func (c *Client) ImportMessages(ctx context.Context, in core.ImportMessages) (core.Imported, error) {
	r := postRequest(sessionPath(in.SessionID, "/messages/import"), in.Body)
	if in.Source != "" {
		r.query = url.Values{"source": {string(in.Source)}}
	}
	r.header = map[string]string{"Content-Type": "application/json"}
	if in.Format == core.ImportLines {
		r.header["Content-Type"] = "application/jsonl"
	}
	return callJSON[core.Imported](ctx, c, r)
}

// ExportSession streams a session to w. After an error the written data is incomplete.
func (c *Client) ExportSession(ctx context.Context, id core.SessionID, format core.ExportFormat, w io.Writer) error {
	return c.downloadTo(ctx, getRequest(sessionPath(id, "/export"), url.Values{"format": {string(format)}}), w)
}
