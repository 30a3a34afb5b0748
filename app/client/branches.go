package client

import (
	"context"
	"iter"
	"net/url"

	"bobbin/app/core"
)

// messagePath returns the path of a message, followed by rest.
func messagePath(session core.SessionID, id core.MessageID, rest string) string {
	return sessionPath(session, "/messages/"+url.PathEscape(string(id))+rest)
}

// Regenerate regenerates the answer to a message and yields the events of the run, like Send.
func (c *Client) Regenerate(ctx context.Context, r core.Regenerate) iter.Seq2[core.Event, error] {
	if r.ClientMessageID == "" {
		r.ClientMessageID = core.NewID[string]()
	}
	return c.runStream(ctx, postRequest(messagePath(r.SessionID, r.MessageID, "/regenerate"), struct {
		ClientMessageID string           `json:"client_message_id,omitempty"`
		Model           string           `json:"model,omitempty"`
		Multitask       core.Multitask   `json:"multitask,omitempty"`
		UserID          string           `json:"user_id,omitempty"`
		Source          core.Source      `json:"source,omitempty"`
		Options         *core.RunOptions `json:"options,omitempty"`
	}{r.ClientMessageID, r.Model, r.Multitask, r.User, r.Source, r.Options}))
}
