package client

import (
	"context"

	"bobbin/app/core"
)

// SlackThread returns the thread of Slack that the session is attached to, and what is wrong with
// its posts.
func (c *Client) SlackThread(ctx context.Context, id core.SessionID) (core.SlackThreadStatus, error) {
	return callJSON[core.SlackThreadStatus](ctx, c, getRequest(sessionPath(id, "/slack"), nil))
}

// AttachSlack attaches the session to a thread of Slack, or changes the mode of its thread,
// and returns the thread.
func (c *Client) AttachSlack(ctx context.Context, t core.SlackThread) (core.SlackThread, error) {
	return callJSON[core.SlackThread](ctx, c, putRequest(sessionPath(t.SessionID, "/slack"), struct {
		Team    string         `json:"team"`
		Channel string         `json:"channel"`
		Thread  string         `json:"thread"`
		Mode    core.SlackMode `json:"mode,omitempty"`
	}{t.Team, t.Channel, t.Thread, t.Mode}))
}
