package apitest

import (
	"context"

	"bobbin/app/core"
)

// Fork answers the session with the message as its last one.
func (c Chat) Fork(ctx context.Context, scope core.Scope, in core.ForkSession) (core.Session, error) {
	s := c.Session
	s.Title += " (fork)"
	return s, c.called(ctx, "Fork", scope, in)
}

// Regenerate answers that Backend.Accepted is accepted.
func (c Chat) Regenerate(ctx context.Context, scope core.Scope, r core.Regenerate) (core.Accepted, error) {
	run := c.Accepted
	run.Input = core.RunInput{Source: r.Source, Regenerate: true}
	return core.Accepted{Run: run, Session: c.Session, Message: c.Messages[0]}, c.called(ctx, "Regenerate", scope, r)
}

// Select answers the session.
func (c Chat) Select(ctx context.Context, scope core.Scope, id core.SessionID, message core.MessageID) (core.Session, error) {
	return c.Session, c.called(ctx, "Select", scope, id, message)
}

// DeleteMessage does nothing.
func (c Chat) DeleteMessage(ctx context.Context, scope core.Scope, id core.SessionID, message core.MessageID) error {
	return c.called(ctx, "DeleteMessage", scope, id, message)
}

// Pin answers the user's message.
func (c Chat) Pin(ctx context.Context, scope core.Scope, id core.SessionID, message core.MessageID, pinned bool) (core.Message, error) {
	m := c.Messages[0]
	m.Pinned = pinned
	return m, c.called(ctx, "Pin", scope, id, message, pinned)
}
