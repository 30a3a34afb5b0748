// Package integration_test runs the whole agent graph with mocked repositories:
// no database, no server, no network (S3).
package integration_test

import (
	"context"
	"slices"
	"sync"
	"time"

	"bobbin/app/core"
)

// repositories is a mock of everything that the graph needs of storage. It keeps
// the rules that the graph relies on: gapless seq, fencing, compare-and-set.
type repositories struct {
	mu        sync.Mutex
	session   core.Session   // guarded by mu
	log       []core.Message // guarded by mu
	run       core.Run       // guarded by mu
	summaries []core.Summary // guarded by mu
	events    []core.Event   // guarded by mu
	passing   []core.Event   // guarded by mu
	starts    []core.ToolExecution
	calls     []core.ModelCall
	after     []core.MessageID // what GetMessagesAfter was asked for; guarded by mu
	failApply error            // the next ApplyContext fails with it; guarded by mu
}

func newRepositories(agent string) *repositories {
	return &repositories{session: core.Session{
		ID: core.NewID[core.SessionID](), Owner: core.LocalOwner, Agent: agent, CreatedAt: core.Now(),
	}}
}

// say puts finished messages into the log, as earlier turns would have.
func (r *repositories) say(messages ...core.Message) {
	for _, m := range messages {
		r.append(m)
	}
}

func (r *repositories) append(m core.Message) core.Message {
	if m.ID == "" {
		m.ID = core.NewID[core.MessageID]()
	}
	m.SessionID, m.Owner, m.OnPath = r.session.ID, r.session.Owner, true
	m.Seq = int64(len(r.log) + 1)
	r.log = append(r.log, m)
	r.session.LastSeq, r.session.MessageCount = m.Seq, len(r.log)
	return m
}

// accept returns a claimed run for a message; saved says whether the claim has
// put the message into the log, as the real repository does.
func (r *repositories) accept(content string, tokens int, saved bool) core.Run {
	r.run = core.Run{
		ID: core.NewID[core.RunID](), SessionID: r.session.ID, Owner: r.session.Owner, Status: core.RunRunning,
		Agent: r.session.Agent, Attempt: 1, UserMessageID: core.NewID[core.MessageID](),
		Input: core.RunInput{Content: content, Source: core.SourceAPI, TokenCount: tokens}, CreatedAt: core.Now(),
	}
	if saved {
		r.append(r.run.UserMessage())
	}
	return r.run
}

// Get is Sessions.Get.
func (r *repositories) Get(_ context.Context, scope core.Scope, id core.SessionID) (core.Session, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if scope.Owner != r.session.Owner || id != r.session.ID {
		return core.Session{}, core.Errorf(core.ErrNotFound, "session %s does not exist", id)
	}
	return r.session, nil
}

// ApplyContext is Sessions.ApplyContext.
func (r *repositories) ApplyContext(_ context.Context, _ core.Scope, c core.ContextChange) (core.Session, []core.Event, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.failApply; err != nil {
		r.failApply = nil
		return core.Session{}, nil, err
	}
	if c.Expect != r.session.PromptRevision {
		return core.Session{}, nil, core.Errorf(core.ErrStale, "stale")
	}
	r.session.PromptRevision++
	r.session.PromptState = c.PromptState
	if s := c.Summary; s != nil {
		s.Version = len(r.summaries) + 1
		r.summaries = append(r.summaries, *s)
	}
	if s := c.Summary; s != nil && s.Kind == core.SummaryRolling {
		at := core.Now()
		r.session.ConversationSummary, r.session.SummaryThroughID = &s.Content, &s.ThroughID
		r.session.SummaryThroughSeq, r.session.SummaryTokens = s.ThroughSeq, s.TokenCount
		r.session.SummaryVersion, r.session.SummarizedCount = s.Version, s.MessagesCovered
		r.session.SummaryCount, r.session.LastSummarizedAt = len(r.summaries), &at
	}
	r.calls = append(r.calls, c.ModelCalls...)
	return r.session, r.number(c.Events), nil
}

// number gives durable events their numbers. The caller holds mu.
func (r *repositories) number(events []core.Event) []core.Event {
	for _, e := range events {
		e.Seq = int64(len(r.events) + 1)
		r.events = append(r.events, e)
	}
	return r.events[len(r.events)-len(events):]
}

// SummaryWork is Sessions.SummaryWork: nobody else makes summaries here.
func (r *repositories) SummaryWork(context.Context, core.Scope, core.SessionID) (core.SummaryWork, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return core.SummaryWork{Revision: r.session.PromptRevision}, nil
}

// SummaryFailed is Sessions.SummaryFailed.
func (r *repositories) SummaryFailed(_ context.Context, _ core.Scope, f core.SummaryFailure) ([]core.Event, error) {
	return f.Events, nil
}

// LeaseSummary is Sessions.LeaseSummary: it is always free.
func (r *repositories) LeaseSummary(context.Context, core.Scope, core.SessionID, string, time.Duration) (core.Grant, error) {
	return core.GrantGiven, nil
}

// FreeSummary is Sessions.FreeSummary.
func (r *repositories) FreeSummary(context.Context, core.SessionID, string) error { return nil }

// FreeSummaries is Sessions.FreeSummaries.
func (r *repositories) FreeSummaries(context.Context, string) error { return nil }

// GetMessagesAfter is Messages.GetMessagesAfter.
func (r *repositories) GetMessagesAfter(_ context.Context, _ core.Scope, _ core.SessionID, after core.MessageID) ([]core.Message, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.after = append(r.after, after)
	from := slices.IndexFunc(r.log, func(m core.Message) bool { return m.ID == after }) + 1
	return slices.Clone(r.log[from:]), nil
}

// Pinned is Messages.Pinned.
func (r *repositories) Pinned(context.Context, core.Scope, core.SessionID) ([]core.Message, error) {
	return nil, nil
}

// CountOnPath is Messages.CountOnPath.
func (r *repositories) CountOnPath(context.Context, core.Scope, core.SessionID) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.log), nil
}

// List is Summaries.List.
func (r *repositories) List(context.Context, core.Scope, core.SessionID, core.PageQuery) (core.Page[core.Summary], error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return core.Page[core.Summary]{Items: slices.Clone(r.summaries)}, nil
}

// Find is Summaries.Find.
func (r *repositories) Find(_ context.Context, _ core.Scope, _ core.SessionID, ids []core.SummaryID) ([]core.Summary, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.summaries), func(s core.Summary) bool { return !slices.Contains(ids, s.ID) }), nil
}

// Active is Runs.Active.
func (r *repositories) Active(context.Context, core.Scope, core.SessionID) (core.Run, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.run.Status != core.RunRunning {
		return core.Run{}, core.Errorf(core.ErrNotFound, "no run")
	}
	return r.run, nil
}

// StartTools is Runs.StartTools.
func (r *repositories) StartTools(_ context.Context, _ core.RunID, _ int, starts []core.ToolExecution) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.starts = append(r.starts, starts...)
	return nil
}

// ToolExecutions is Runs.ToolExecutions.
func (r *repositories) ToolExecutions(context.Context, core.RunID) ([]core.ToolExecution, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.starts), nil
}

// Append is runs.Journal.Append over Runs.Write.
func (r *repositories) Append(_ context.Context, w core.RunWrite) (core.Written, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.Attempt != r.run.Attempt || r.run.Status != core.RunRunning {
		return core.Written{}, core.Errorf(core.ErrStale, "the run belongs to another attempt")
	}
	var out core.Written
	for _, m := range w.Messages {
		known := slices.IndexFunc(r.log, func(have core.Message) bool { return have.ID == m.ID })
		if known >= 0 {
			out.Messages = append(out.Messages, r.log[known])
			continue
		}
		m = r.append(m)
		out.Messages = append(out.Messages, m)
		r.number([]core.Event{core.NewEvent(m.SessionID, w.RunID, core.EventMessageCreated, core.MessageData{Message: m})})
	}
	r.number(w.Events)
	r.calls = append(r.calls, w.ModelCalls...)
	r.run.Usage = r.run.Usage.Add(w.Usage)
	if w.Context != nil {
		r.run.Context = w.Context
	}
	if w.End != nil {
		r.run.Status, r.run.AnswerID, r.run.Error = w.End.Status, w.End.AnswerID, w.End.Error
	}
	out.Run = r.run
	return out, nil
}

// Publish is events.Feed.Publish; the events are kept by what wrote them.
func (r *repositories) Publish(context.Context, []core.Event) {}

// Delta is events.Feed.Delta.
func (r *repositories) Delta(_ context.Context, e core.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.passing = append(r.passing, e)
}
