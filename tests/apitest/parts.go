package apitest

import (
	"cmp"
	"context"
	"iter"

	"bobbin/app/api/handlers"
	"bobbin/app/core"
)

// Chat is the backend as the chat service.
type Chat struct{ *Backend }

// CreateSession answers the session with the given fields.
func (c Chat) CreateSession(ctx context.Context, tenant core.Tenant, s core.Session) (core.Session, error) {
	if err := c.recordCall(ctx, "CreateSession", tenant, s); err != nil {
		return core.Session{}, err
	}
	s.ID, s.Status, s.CreatedAt, s.UpdatedAt = SessionID, core.SessionIdle, Time(), Time()
	return s.WithExpiry(), nil
}

// OpenSession answers the session with the given fields.
func (c Chat) OpenSession(ctx context.Context, tenant core.Tenant, a core.Alias, s core.Session) (core.Session, error) {
	if err := c.recordCall(ctx, "OpenSession", tenant, a, s); err != nil {
		return core.Session{}, err
	}
	s.ID, s.Status, s.CreatedAt, s.UpdatedAt = SessionID, core.SessionIdle, Time(), Time()
	return s, nil
}

// UpdateSession answers the session.
func (c Chat) UpdateSession(ctx context.Context, tenant core.Tenant, id core.SessionID, p core.SessionPatch) (core.Session, error) {
	s := c.Session
	if p.Title != nil {
		s.Title = *p.Title
	}
	return s, c.recordCall(ctx, "UpdateSession", tenant, id, p)
}

// Send answers Backend.Accepted.
func (c Chat) Send(ctx context.Context, tenant core.Tenant, m core.SendMessage) (core.Accepted, error) {
	return core.Accepted{Run: c.Accepted, Session: c.Session, Message: c.Messages[0]}, c.recordCall(ctx, "Send", tenant, m)
}

// Wait answers Backend.Run.
func (c Chat) Wait(ctx context.Context, tenant core.Tenant, run core.Run) (core.Outcome, error) {
	return core.Outcome{Run: c.Run}, c.recordCall(ctx, "Wait", tenant, run.ID)
}

// Cancel answers Backend.Run as canceled if wait is set, else the accepted run.
func (c Chat) Cancel(ctx context.Context, tenant core.Tenant, id core.RunID, wait bool) (core.Run, error) {
	run := c.Accepted
	run.CancelRequested = true
	if wait {
		run = c.Run
		run.Status = core.RunCanceled
	}
	return run, c.recordCall(ctx, "Cancel", tenant, id, wait)
}

// Watch yields the durable events after from, then waits until ctx ends.
func (c Chat) Watch(ctx context.Context, tenant core.Tenant, id core.SessionID, from core.Cursor) iter.Seq2[core.Event, error] {
	err := c.recordCall(ctx, "Watch", tenant, id, from)
	return func(yield func(core.Event, error) bool) {
		for event, err := range c.streamEvents(ctx, from, err) {
			if !yield(event, err) {
				return
			}
		}
		<-ctx.Done()
		yield(core.Event{}, context.Cause(ctx))
	}
}

// WatchHeads yields nothing until ctx ends.
func (c Chat) WatchHeads(ctx context.Context, tenant core.Tenant) iter.Seq2[core.Event, error] {
	return func(yield func(core.Event, error) bool) {
		<-ctx.Done()
		yield(core.Event{}, context.Cause(ctx))
	}
}

// WatchRun yields the events after from.
func (c Chat) WatchRun(ctx context.Context, tenant core.Tenant, id core.RunID, from core.Cursor) iter.Seq2[core.Event, error] {
	return c.streamEvents(ctx, from, c.recordCall(ctx, "WatchRun", tenant, id, from))
}

// WatchAccepted is WatchRun from the run's first event.
func (c Chat) WatchAccepted(ctx context.Context, tenant core.Tenant, run core.Run) iter.Seq2[core.Event, error] {
	return c.WatchRun(ctx, tenant, run.ID, core.Cursor{})
}

func (c Chat) streamEvents(ctx context.Context, from core.Cursor, err error) iter.Seq2[core.Event, error] {
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
func (c Chat) Context(ctx context.Context, tenant core.Tenant, id core.SessionID) (core.ContextReport, error) {
	return c.Report, c.recordCall(ctx, "Context", tenant, id)
}

// Prompt records the call.
func (c Chat) Prompt(ctx context.Context, tenant core.Tenant, id core.SessionID) (core.PromptView, error) {
	return core.PromptView{}, c.recordCall(ctx, "Prompt", tenant, id)
}

// Summarize answers Backend.Summary with the focus.
func (c Chat) Summarize(ctx context.Context, tenant core.Tenant, id core.SessionID, focus string) (core.Summary, error) {
	s := c.Summary
	s.Focus = focus
	return s, c.recordCall(ctx, "Summarize", tenant, id, focus)
}

// Sessions is the backend as the repository of sessions.
type Sessions struct {
	*Backend
	core.SessionStore // the methods that the API does not call
}

// Get answers Backend.Session.
func (s Sessions) Get(ctx context.Context, tenant core.Tenant, id core.SessionID) (core.Session, error) {
	return s.Session, cmp.Or(s.recordCall(ctx, "Sessions.Get", tenant, id), missing("session", id, SessionID))
}

// List answers one page.
func (s Sessions) List(ctx context.Context, tenant core.Tenant, q core.SessionQuery) (core.Page[core.Session], error) {
	next := "next"
	return core.Page[core.Session]{Items: []core.Session{s.Session}, NextCursor: &next}, s.recordCall(ctx, "Sessions.List", tenant, q)
}

// Messages is the backend as the repository of messages.
type Messages struct {
	*Backend
	core.MessageStore // the methods that the API does not call
}

// Get answers one of Backend.Messages.
func (m Messages) Get(ctx context.Context, tenant core.Tenant, session core.SessionID, id core.MessageID) (core.Message, error) {
	if err := m.recordCall(ctx, "Messages.Get", tenant, session, id); err != nil {
		return core.Message{}, err
	}
	for _, message := range m.Backend.Messages {
		if message.ID == id {
			return message, nil
		}
	}
	return core.Message{}, missing("message", id, "")
}

// List answers all messages as one page.
func (m Messages) List(ctx context.Context, tenant core.Tenant, session core.SessionID, q core.MessageQuery) (core.Page[core.Message], error) {
	return core.Page[core.Message]{Items: m.Backend.Messages}, m.recordCall(ctx, "Messages.List", tenant, session, q)
}

// Runs is the backend as the repository of runs.
type Runs struct {
	*Backend
	core.RunStore // the methods that the API does not call
}

// Get answers Backend.Accepted for its id.
func (r Runs) Get(ctx context.Context, tenant core.Tenant, id core.RunID) (core.Run, error) {
	return r.Accepted, cmp.Or(r.recordCall(ctx, "Runs.Get", tenant, id), missing("run", id, r.Accepted.ID))
}

// List answers both runs as one page.
func (r Runs) List(ctx context.Context, tenant core.Tenant, session core.SessionID, q core.PageQuery) (core.Page[core.Run], error) {
	return core.Page[core.Run]{Items: []core.Run{r.Queued, r.Run}}, r.recordCall(ctx, "Runs.List", tenant, session, q)
}

// ListAll records the call.
func (r Runs) ListAll(ctx context.Context, tenant core.Tenant, q core.RunQuery) (core.RunList, error) {
	return core.RunList{}, r.recordCall(ctx, "Runs.ListAll", tenant, q)
}

// Pending answers the queued run.
func (r Runs) Pending(ctx context.Context, tenant core.Tenant, session core.SessionID) ([]core.Run, error) {
	return []core.Run{r.Queued}, r.recordCall(ctx, "Runs.Pending", tenant, session)
}

// Summaries is the backend as the repository of summaries.
type Summaries struct {
	*Backend
	core.SummaryStore // the methods that the API does not call
}

// Get answers version 1.
func (s Summaries) Get(ctx context.Context, tenant core.Tenant, session core.SessionID, version int) (core.Summary, error) {
	if err := s.recordCall(ctx, "Summaries.Get", tenant, session, version); err != nil {
		return core.Summary{}, err
	}
	if version != s.Summary.Version {
		return core.Summary{}, core.Errorf(core.ErrNotFound, "summary version %d does not exist", version)
	}
	return s.Summary, nil
}

// List answers one page.
func (s Summaries) List(ctx context.Context, tenant core.Tenant, session core.SessionID, q core.PageQuery) (core.Page[core.Summary], error) {
	return core.Page[core.Summary]{Items: []core.Summary{s.Summary}}, s.recordCall(ctx, "Summaries.List", tenant, session, q)
}

// Models answers the one model.
func (b *Backend) Models(string) []core.ModelChoice {
	return []core.ModelChoice{{Name: "demo", Provider: "demo", Window: 8192, Default: true}}
}

// Agents is the backend as the catalog.
type Agents struct{ *Backend }

// List answers the one agent.
func (a Agents) List() []core.Agent { return []core.Agent{a.Agent} }

// Get answers the agent of that name.
func (a Agents) Get(name string) (core.Agent, error) {
	return a.Agent, missing("agent", name, a.Agent.Name)
}

// Mermaid answers a drawing of the agent of that name.
func (a Agents) Mermaid(name string) (string, error) {
	_, err := a.Get(name)
	return "graph TD\n\tllm_node --> tool_node\n", err
}

// Services returns the backend as all services of the handlers.
func (b *Backend) Services() handlers.Services {
	return handlers.Services{
		Chat: Chat{b}, Sessions: Sessions{Backend: b}, Messages: Messages{Backend: b}, Runs: Runs{Backend: b}, Summaries: Summaries{Backend: b}, Agents: Agents{b}, Mermaid: Agents{b}.Mermaid, Models: b.Models,
		Transfer: Transfer{b}, Memories: Memories{b}, Usage: Usage{Backend: b}, Search: Search{b}, Files: Files{Backend: b}, Blobs: Files{Backend: b},
		Deliveries: Deliveries{Backend: b}, Redeliver: Deliveries{Backend: b}.Redeliver, Deletions: Deletions{b},
	}
}

// Metrics is a metric with fixed values.
type Metrics struct{}

// Expose answers one metric in Prometheus' text format.
func (Metrics) Expose() (mediaType string, body []byte, err error) {
	const text = "# HELP bobbin_runs_active Runs of this process that have not ended.\n# TYPE bobbin_runs_active gauge\nbobbin_runs_active 1\n"
	return "text/plain; version=0.0.4; charset=utf-8", []byte(text), nil
}

// Search is the backend as the search.
type Search struct{ *Backend }

// Messages answers one hit.
func (s Search) Messages(ctx context.Context, tenant core.Tenant, q core.SearchQuery) (core.SearchPage, error) {
	next := "next"
	hit := core.SearchHit{
		SessionID: SessionID, SessionTitle: "Greetings", MessageID: AnswerID, Seq: 2, Role: core.RoleAssistant,
		Excerpt: "Hi <there>", Pieces: []core.Piece{{Text: "Hi", Match: true}, {Text: " <there>"}}, Author: "Ada", Score: 2.5, CreatedAt: Time(),
	}
	return core.SearchPage{Page: core.Page[core.SearchHit]{Items: []core.SearchHit{hit}, NextCursor: &next}, Total: new(7), Meaning: core.MeaningUsed}, s.recordCall(ctx, "Search.Messages", tenant, q)
}
