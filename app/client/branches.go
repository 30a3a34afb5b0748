package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"bobbin/app/core"
)

// messagePath returns the path of a message, followed by rest.
func messagePath(session core.SessionID, id core.MessageID, rest string) string {
	return sessionPath(session, "/messages/"+url.PathEscape(string(id))+rest)
}

func regenerateRequest(r core.Regenerate) request {
	return postRequest(messagePath(r.SessionID, r.MessageID, "/regenerate"), struct {
		ClientMessageID string           `json:"client_message_id,omitempty"`
		Model           string           `json:"model,omitempty"`
		Multitask       core.Multitask   `json:"multitask,omitempty"`
		UserID          string           `json:"user_id,omitempty"`
		Source          core.Source      `json:"source,omitempty"`
		Options         *core.RunOptions `json:"options,omitempty"`
	}{r.ClientMessageID, r.Model, r.Multitask, r.User, r.Source, r.Options})
}

// Regenerate regenerates the answer to a message and yields the events of the run, like Send.
func (c *Client) Regenerate(ctx context.Context, r core.Regenerate) iter.Seq2[core.Event, error] {
	if r.ClientMessageID == "" {
		r.ClientMessageID = core.NewID[string]()
	}
	return c.runStream(ctx, regenerateRequest(r))
}

// RegenerateAndWait regenerates the answer to a message and returns when the run has ended, or
// after the server's time limit with the current state of the run.
func (c *Client) RegenerateAndWait(ctx context.Context, r core.Regenerate) (Answer, error) {
	return callJSON[Answer](ctx, c, regenerateRequest(r))
}

// SelectMessage makes the branch of a message the current path and returns the session.
func (c *Client) SelectMessage(ctx context.Context, session core.SessionID, id core.MessageID) (core.Session, error) {
	return callJSON[core.Session](ctx, c, postRequest(messagePath(session, id, "/select"), nil))
}

// ReviseMessage replaces the text of a user's message in place and returns the message.
func (c *Client) ReviseMessage(ctx context.Context, session core.SessionID, id core.MessageID, content string) (core.Message, error) {
	answer, err := callJSON[struct {
		Message core.Message `json:"message"`
	}](ctx, c, request{method: http.MethodPatch, path: messagePath(session, id, ""), body: struct {
		Content string `json:"content"`
		Run     bool   `json:"run"`
	}{Content: content}})
	return answer.Message, err
}

// DeleteMessage deletes a message.
func (c *Client) DeleteMessage(ctx context.Context, session core.SessionID, id core.MessageID) error {
	return c.sendDelete(ctx, messagePath(session, id, ""), nil)
}

// PinMessage pins or unpins a message and returns it.
func (c *Client) PinMessage(ctx context.Context, session core.SessionID, id core.MessageID, pinned bool) (core.Message, error) {
	return callJSON[core.Message](ctx, c, putRequest(messagePath(session, id, "/pin"), struct {
		Pinned bool `json:"pinned"`
	}{pinned}))
}

// ForkSession copies a session up to a message, or its whole current path, and returns the
// copy.
func (c *Client) ForkSession(ctx context.Context, id core.SessionID, message core.MessageID) (core.Session, error) {
	return callJSON[core.Session](ctx, c, postRequest(sessionPath(id, "/fork"), struct {
		MessageID core.MessageID `json:"message_id,omitempty"`
	}{message}))
}
