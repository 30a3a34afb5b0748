package apitest

import (
	"context"

	"bobbin/app/core"
)

// Fork answers the session with the message as its last one.
func (c Chat) Fork(ctx context.Context, tenant core.Tenant, in core.ForkSession) (core.Session, error) {
	s := c.Session
	s.Title += " (fork)"
	return s, c.recordCall(ctx, "Fork", tenant, in)
}

// Regenerate answers Backend.Accepted.
func (c Chat) Regenerate(ctx context.Context, tenant core.Tenant, r core.Regenerate) (core.Accepted, error) {
	run := c.Accepted
	run.Input = core.RunInput{Source: r.Source, Regenerate: true}
	return core.Accepted{Run: run, Session: c.Session, Message: c.Messages[0]}, c.recordCall(ctx, "Regenerate", tenant, r)
}

// Select answers the session.
func (c Chat) Select(ctx context.Context, tenant core.Tenant, id core.SessionID, message core.MessageID) (core.Session, error) {
	return c.Session, c.recordCall(ctx, "Select", tenant, id, message)
}

// DeleteMessage does nothing.
func (c Chat) DeleteMessage(ctx context.Context, tenant core.Tenant, id core.SessionID, message core.MessageID) error {
	return c.recordCall(ctx, "DeleteMessage", tenant, id, message)
}

// Revise answers the user's message with the text.
func (c Chat) Revise(ctx context.Context, tenant core.Tenant, id core.SessionID, message core.MessageID, content string) (core.Message, error) {
	m, at := c.Messages[0], Time()
	m.Revisions = []core.Revision{{Content: m.Content, TokenCount: m.TokenCount, ReplacedAt: at}}
	m.Content, m.RevisedAt = content, &at
	return m, c.recordCall(ctx, "Revise", tenant, id, message, content)
}

// Pin answers the user's message.
func (c Chat) Pin(ctx context.Context, tenant core.Tenant, id core.SessionID, message core.MessageID, pinned bool) (core.Message, error) {
	m := c.Messages[0]
	m.Pinned = pinned
	return m, c.recordCall(ctx, "Pin", tenant, id, message, pinned)
}

// UpdateMessage answers the user's message with the patch.
func (c Chat) UpdateMessage(ctx context.Context, tenant core.Tenant, id core.SessionID, message core.MessageID, p core.MessagePatch) (core.Message, error) {
	m := c.Messages[0]
	if p.Metadata != nil {
		m.Metadata = p.Metadata
	}
	if p.Feedback != nil && p.Feedback.Rating != "" {
		feedback := *p.Feedback
		feedback.At = Time()
		m.Feedback = &feedback
	}
	return m, c.recordCall(ctx, "UpdateMessage", tenant, id, message, p)
}
