package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"bobbin/app/core"
)

// messagePath returns the path of a message, with what follows it.
func messagePath(session core.SessionID, id core.MessageID, rest string) string {
	return sessionPath(session, "/messages/"+url.PathEscape(string(id))+rest)
}

func regenerateRequest(r core.Regenerate) request {
	return post(messagePath(r.SessionID, r.MessageID, "/regenerate"), struct {
		ClientMessageID string         `json:"client_message_id,omitempty"`
		Model           string         `json:"model,omitempty"`
		Multitask       core.Multitask `json:"multitask,omitempty"`
		UserID          string         `json:"user_id,omitempty"`
		Source          core.Source    `json:"source,omitempty"`
	}{r.ClientMessageID, r.Model, r.Multitask, r.User, r.Source})
}

// Regenerate has a message answered anew and yields the events of the run, like
// Send.
func (c *Client) Regenerate(ctx context.Context, r core.Regenerate) iter.Seq2[core.Event, error] {
	if r.ClientMessageID == "" {
		r.ClientMessageID = core.NewID[string]()
	}
	return c.runStream(ctx, regenerateRequest(r))
}

// RegenerateAndWait has a message answered anew and returns when the run has ended,
// or after the server's time limit with the run as it is then.
func (c *Client) RegenerateAndWait(ctx context.Context, r core.Regenerate) (Answer, error) {
	return call[Answer](ctx, c, regenerateRequest(r))
}

// SelectMessage makes the branch through a message the current path and returns
// the session.
func (c *Client) SelectMessage(ctx context.Context, session core.SessionID, id core.MessageID) (core.Session, error) {
	return call[core.Session](ctx, c, post(messagePath(session, id, "/select"), nil))
}

// DeleteMessage is a user's own deletion of a message.
func (c *Client) DeleteMessage(ctx context.Context, session core.SessionID, id core.MessageID) error {
	r := get(messagePath(session, id, ""), nil)
	r.method = http.MethodDelete
	_, err := call[struct{}](ctx, c, r)
	return err
}

// PinMessage pins a message or unpins it, and returns it.
func (c *Client) PinMessage(ctx context.Context, session core.SessionID, id core.MessageID, pinned bool) (core.Message, error) {
	r := post(messagePath(session, id, "/pin"), struct {
		Pinned bool `json:"pinned"`
	}{pinned})
	r.method = http.MethodPut
	return call[core.Message](ctx, c, r)
}

// ForkSession copies a session up to a message, or with its current path, and
// returns the copy.
func (c *Client) ForkSession(ctx context.Context, id core.SessionID, message core.MessageID) (core.Session, error) {
	return call[core.Session](ctx, c, post(sessionPath(id, "/fork"), struct {
		MessageID core.MessageID `json:"message_id,omitempty"`
	}{message}))
}
