package client

import (
	"context"
	"iter"

	"bobbin/app/api/ops"
	"bobbin/app/core"
)

// messageRequest returns the request that sends a message, or a new version of the message that it
// edits.
func messageRequest(m core.SendMessage) Request {
	in := ops.NewMessage{
		InSession: ops.InSession{SessionID: m.SessionID}, Content: m.Content, ClientMessageID: m.ClientMessageID, Model: m.Model, Multitask: m.Multitask,
		UserID: m.User, Author: m.Author, Source: m.Source, Metadata: m.Metadata, Options: (*ops.RunOptions)(m.Options), After: m.After,
	}
	if m.Webhook != nil {
		in.Webhook = &ops.NewWebhook{URL: string(m.Webhook.URL), Secret: m.Webhook.Secret}
	}
	if m.Parts != nil { // an empty list removes all
		in.Parts = []ops.FilePart{}
	}
	for _, p := range m.Parts {
		in.Parts = append(in.Parts, ops.FilePart{Type: p.Type, BlobID: p.BlobID, Name: p.Name})
	}
	if m.Edits != "" {
		return NewRequest(ops.EditMessage.Operation, ops.EditedMessage{NewMessage: in, MessageID: m.Edits})
	}
	return NewRequest(ops.SendMessage.Operation, in)
}

// Send sends a message, or a new version of a message that it edits, and yields the events of
// its run, up to the one that ends it. It reconnects; the message is accepted once and every
// event is yielded once. It generates a ClientMessageID if there is none. Leaving the loop
// does not stop the run: ops.CancelRun does. The first error ends the sequence.
func (c *Client) Send(ctx context.Context, m core.SendMessage) iter.Seq2[core.Event, error] {
	if m.ClientMessageID == "" {
		m.ClientMessageID = core.NewID[string]()
	}
	return c.runStream("", messageRequest(m)).allEvents(ctx, 0)
}

// Regenerate regenerates the answer to a message and yields the events of the run, like Send.
func (c *Client) Regenerate(ctx context.Context, in ops.Regenerate) iter.Seq2[core.Event, error] {
	if in.ClientMessageID == "" {
		in.ClientMessageID = core.NewID[string]()
	}
	return c.runStream("", NewRequest(ops.RegenerateMessage.Operation, in)).allEvents(ctx, 0)
}

// SendAndWait sends a message and returns when its run has ended, or after the server's time
// limit with the current state of the run.
func (c *Client) SendAndWait(ctx context.Context, m core.SendMessage) (answer ops.RunAnswer, err error) {
	err = c.callJSON(ctx, messageRequest(m), &answer)
	return answer, err
}

// SendAsync sends a message and returns its run immediately.
func (c *Client) SendAsync(ctx context.Context, m core.SendMessage) (core.Run, error) {
	r := messageRequest(m)
	r.Header["Prefer"] = "respond-async"
	var answer ops.RunAnswer
	err := c.callJSON(ctx, r, &answer)
	return answer.Run, err
}
