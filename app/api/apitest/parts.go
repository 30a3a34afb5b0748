package apitest

import (
	"context"
	"iter"

	"bobbin/app/core"
)

// Chat is the backend as the chat service.
type Chat struct{ *Backend }

// CreateSession answers the session with the fields given.
func (c Chat) CreateSession(ctx context.Context, scope core.Scope, s core.Session) (core.Session, error) {
	if err := c.called(ctx, "CreateSession", scope, s); err != nil {
		return core.Session{}, err
	}
	s.ID, s.CreatedAt, s.UpdatedAt = SessionID, Time(), Time()
	return s, nil
}

// UpdateSession answers the session.
func (c Chat) UpdateSession(ctx context.Context, scope core.Scope, id core.SessionID, p core.SessionPatch) (core.Session, error) {
	if err := c.called(ctx, "UpdateSession", scope, id, p); err != nil {
		return core.Session{}, err
	}
	s := c.Session
	if p.Title != nil {
		s.Title = *p.Title
	}
	return s, nil
}

// ArchiveSession does nothing.
func (c Chat) ArchiveSession(ctx context.Context, scope core.Scope, id core.SessionID) error {
	return c.called(ctx, "ArchiveSession", scope, id)
}

// Send answers that Backend.Accepted is accepted.
func (c Chat) Send(ctx context.Context, scope core.Scope, m core.SendMessage) (core.Accepted, error) {
	if err := c.called(ctx, "Send", scope, m); err != nil {
		return core.Accepted{}, err
	}
	return core.Accepted{Run: c.Accepted, Session: c.Session, Message: c.Messages[0]}, nil
}

// Wait answers Backend.Run.
func (c Chat) Wait(ctx context.Context, scope core.Scope, id core.RunID) (core.Run, error) {
	return c.Run, c.called(ctx, "Wait", scope, id)
}

// Cancel answers Backend.Run as canceled if it may wait, else the accepted run.
func (c Chat) Cancel(ctx context.Context, scope core.Scope, id core.RunID, wait bool) (core.Run, error) {
	if err := c.called(ctx, "Cancel", scope, id, wait); err != nil {
		return core.Run{}, err
	}
	run := c.Accepted
	run.CancelRequested = true
	if wait {
		run = c.Run
		run.Status = core.RunCanceled
	}
	return run, nil
}

// Watch yields the durable events after from, and waits for the end of ctx.
func (c Chat) Watch(ctx context.Context, scope core.Scope, id core.SessionID, from core.From) iter.Seq2[core.Event, error] {
	err := c.called(ctx, "Watch", scope, id, from)
	return func(yield func(core.Event, error) bool) {
		for event, err := range c.stream(ctx, from, err) {
			if !yield(event, err) {
				return
			}
		}
		<-ctx.Done()
		yield(core.Event{}, context.Cause(ctx))
	}
}

// WatchRun yields the events after from.
func (c Chat) WatchRun(ctx context.Context, scope core.Scope, id core.RunID, from core.From) iter.Seq2[core.Event, error] {
	return c.stream(ctx, from, c.called(ctx, "WatchRun", scope, id, from))
}

func (c Chat) stream(ctx context.Context, from core.From, err error) iter.Seq2[core.Event, error] {
	switch {
	case err != nil:
		return func(yield func(core.Event, error) bool) { yield(core.Event{}, err) }
	case c.Streaming != nil:
		return c.Streaming(ctx, from)
	}
	return func(yield func(core.Event, error) bool) {
		for _, e := range c.Events {
			known := e.Seq > 0 && (e.Seq <= from.After || from.Live)
			if !known && !yield(e, nil) {
				return
			}
		}
	}
}

// Context answers Backend.Report.
func (c Chat) Context(ctx context.Context, scope core.Scope, id core.SessionID) (core.ContextReport, error) {
	return c.Report, c.called(ctx, "Context", scope, id)
}

// Prompt answers Backend.Prompt.
func (c Chat) Prompt(ctx context.Context, scope core.Scope, id core.SessionID) (core.PromptView, error) {
	return c.Backend.Prompt, c.called(ctx, "Prompt", scope, id)
}

// Summarize answers Backend.Summary with the focus.
func (c Chat) Summarize(ctx context.Context, scope core.Scope, id core.SessionID, focus string) (core.Summary, error) {
	s := c.Summary
	s.Focus = focus
	return s, c.called(ctx, "Summarize", scope, id, focus)
}

// Sessions is the backend as the repository of sessions.
type Sessions struct{ *Backend }

// Get answers Backend.Session.
func (s Sessions) Get(ctx context.Context, scope core.Scope, id core.SessionID) (core.Session, error) {
	if err := s.called(ctx, "Sessions.Get", scope, id); err != nil {
		return core.Session{}, err
	}
	if id != SessionID {
		return core.Session{}, missing("session", id)
	}
	return s.Session, nil
}

// List answers one page.
func (s Sessions) List(ctx context.Context, scope core.Scope, q core.SessionQuery) (core.Page[core.Session], error) {
	next := "next"
	return core.Page[core.Session]{Items: []core.Session{s.Session}, NextCursor: &next}, s.called(ctx, "Sessions.List", scope, q)
}

// Messages is the backend as the repository of messages.
type Messages struct{ *Backend }

// Get answers one of Backend.Messages.
func (m Messages) Get(ctx context.Context, scope core.Scope, session core.SessionID, id core.MessageID) (core.Message, error) {
	if err := m.called(ctx, "Messages.Get", scope, session, id); err != nil {
		return core.Message{}, err
	}
	for _, message := range m.Backend.Messages {
		if message.ID == id {
			return message, nil
		}
	}
	return core.Message{}, missing("message", id)
}

// List answers all messages as one page.
func (m Messages) List(ctx context.Context, scope core.Scope, session core.SessionID, q core.MessageQuery) (core.Page[core.Message], error) {
	return core.Page[core.Message]{Items: m.Backend.Messages}, m.called(ctx, "Messages.List", scope, session, q)
}

// Runs is the backend as the repository of runs.
type Runs struct{ *Backend }

// Get answers Backend.Accepted for its id.
func (r Runs) Get(ctx context.Context, scope core.Scope, id core.RunID) (core.Run, error) {
	if err := r.called(ctx, "Runs.Get", scope, id); err != nil {
		return core.Run{}, err
	}
	if id != r.Accepted.ID {
		return core.Run{}, missing("run", id)
	}
	return r.Accepted, nil
}

// List answers both runs as one page.
func (r Runs) List(ctx context.Context, scope core.Scope, session core.SessionID, q core.PageQuery) (core.Page[core.Run], error) {
	return core.Page[core.Run]{Items: []core.Run{r.Queued, r.Run}}, r.called(ctx, "Runs.List", scope, session, q)
}

// Pending answers the queued run.
func (r Runs) Pending(ctx context.Context, scope core.Scope, session core.SessionID) ([]core.Run, error) {
	return []core.Run{r.Queued}, r.called(ctx, "Runs.Pending", scope, session)
}

// Summaries is the backend as the repository of summaries.
type Summaries struct{ *Backend }

// Get answers version 1.
func (s Summaries) Get(ctx context.Context, scope core.Scope, session core.SessionID, version int) (core.Summary, error) {
	if err := s.called(ctx, "Summaries.Get", scope, session, version); err != nil {
		return core.Summary{}, err
	}
	if version != s.Summary.Version {
		return core.Summary{}, core.Errorf(core.ErrNotFound, "summary version %d does not exist", version)
	}
	return s.Summary, nil
}

// List answers one page.
func (s Summaries) List(ctx context.Context, scope core.Scope, session core.SessionID, q core.PageQuery) (core.Page[core.Summary], error) {
	return core.Page[core.Summary]{Items: []core.Summary{s.Summary}}, s.called(ctx, "Summaries.List", scope, session, q)
}

// Agents is the backend as the catalog.
type Agents struct{ *Backend }

// List answers the one agent.
func (a Agents) List() []core.Agent { return []core.Agent{a.Agent} }

// Get answers the agent of that name.
func (a Agents) Get(name string) (core.Agent, error) {
	if name != a.Agent.Name {
		return core.Agent{}, missing("agent", name)
	}
	return a.Agent, nil
}

// Graph answers the graph of the agent of that name.
func (a Agents) Graph(name string) (core.GraphView, error) {
	_, err := a.Get(name)
	return a.Backend.Graph, err
}

// Mermaid answers a drawing of the agent of that name.
func (a Agents) Mermaid(name string) (string, error) {
	_, err := a.Get(name)
	return "graph TD\n\tllm_node --> tool_node\n", err
}
