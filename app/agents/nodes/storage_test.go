package nodes_test

import (
	"context"
	"slices"
	"sync"
	"time"

	"bobbin/app/core"
)

// storage is the repositories and the journal in memory, with the rules that the
// nodes rely on: gapless seq, fencing, compare-and-set.
type storage struct {
	mu        sync.Mutex
	session   core.Session          // guarded by mu
	messages  []core.Message        // guarded by mu
	run       core.Run              // guarded by mu
	summaries []core.Summary        // guarded by mu
	events    []core.Event          // guarded by mu; all, the passing ones too
	writes    []core.RunWrite       // guarded by mu
	starts    []core.ToolExecution  // guarded by mu
	after     []core.MessageID      // guarded by mu; what GetMessagesAfter was asked for
	fault     func(op string) error // guarded by mu; decides which operation fails
}

func newStorage() *storage {
	return &storage{session: core.Session{ID: core.NewID[core.SessionID](), Owner: core.LocalOwner, Agent: "tester", CreatedAt: core.Now()}}
}

// append puts a message into the log.
func (s *storage) append(m core.Message) core.Message {
	if m.ID == "" {
		m.ID = core.NewID[core.MessageID]()
	}
	m.SessionID, m.Owner, m.OnPath = s.session.ID, s.session.Owner, true
	m.Seq = int64(len(s.messages) + 1)
	s.messages = append(s.messages, m)
	s.session.LastSeq, s.session.MessageCount = m.Seq, len(s.messages)
	return m
}

// accept returns a claimed run; its message is in the log.
func (s *storage) accept(in core.RunInput) core.Run {
	s.run = core.Run{
		ID: core.NewID[core.RunID](), SessionID: s.session.ID, Owner: s.session.Owner, Status: core.RunRunning,
		Agent: s.session.Agent, Attempt: 1, UserMessageID: core.NewID[core.MessageID](), Input: in, CreatedAt: core.Now(),
	}
	s.append(s.run.UserMessage())
	return s.run
}

func (s *storage) failing(op string) error {
	if s.fault == nil {
		return nil
	}
	return s.fault(op)
}

// Get is Sessions.Get.
func (s *storage) Get(_ context.Context, scope core.Scope, id core.SessionID) (core.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.failing("Get"); err != nil {
		return core.Session{}, err
	}
	if scope.Owner != s.session.Owner || id != s.session.ID {
		return core.Session{}, core.Errorf(core.ErrNotFound, "session %s does not exist", id)
	}
	return s.session, nil
}

// ApplyContext is Sessions.ApplyContext.
func (s *storage) ApplyContext(_ context.Context, _ core.Scope, c core.ContextChange) (core.Session, []core.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Expect != s.session.PromptRevision {
		return core.Session{}, nil, core.Errorf(core.ErrStale, "stale")
	}
	s.session.PromptRevision++
	s.session.PromptState = c.PromptState
	if sum := c.Summary; sum != nil {
		sum.Version = len(s.summaries) + 1
		s.summaries = append(s.summaries, *sum)
	}
	if sum := c.Summary; sum != nil && sum.Kind == core.SummaryRolling {
		s.session.ConversationSummary, s.session.SummaryThroughID = &sum.Content, &sum.ThroughID
		s.session.SummaryThroughSeq, s.session.SummaryTokens = sum.ThroughSeq, sum.TokenCount
		s.session.SummaryVersion, s.session.SummarizedCount = sum.Version, sum.MessagesCovered
	}
	return s.session, c.Events, nil
}

// SummaryWork is Sessions.SummaryWork: nobody else makes summaries here.
func (s *storage) SummaryWork(context.Context, core.Scope, core.SessionID) (core.SummaryWork, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return core.SummaryWork{Revision: s.session.PromptRevision}, nil
}

// SummaryFailed is Sessions.SummaryFailed.
func (s *storage) SummaryFailed(_ context.Context, _ core.Scope, f core.SummaryFailure) ([]core.Event, error) {
	return f.Events, nil
}

// LeaseSummary is Sessions.LeaseSummary: it is always free.
func (s *storage) LeaseSummary(context.Context, core.Scope, core.SessionID, string, time.Duration) (core.Grant, error) {
	return core.GrantGiven, nil
}

// FreeSummary is Sessions.FreeSummary.
func (s *storage) FreeSummary(context.Context, core.SessionID, string) error { return nil }

// FreeSummaries is Sessions.FreeSummaries.
func (s *storage) FreeSummaries(context.Context, string) error { return nil }

// GetMessagesAfter is Messages.GetMessagesAfter.
func (s *storage) GetMessagesAfter(_ context.Context, _ core.Scope, _ core.SessionID, after core.MessageID) ([]core.Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.failing("GetMessagesAfter"); err != nil {
		return nil, err
	}
	s.after = append(s.after, after)
	from := slices.IndexFunc(s.messages, func(m core.Message) bool { return m.ID == after }) + 1
	return slices.Clone(s.messages[from:]), nil
}

// Pinned is Messages.Pinned.
func (s *storage) Pinned(context.Context, core.Scope, core.SessionID) ([]core.Message, error) {
	return nil, nil
}

// CountOnPath is Messages.CountOnPath.
func (s *storage) CountOnPath(context.Context, core.Scope, core.SessionID) (int, error) {
	return len(s.messages), nil
}

// List is Summaries.List.
func (s *storage) List(context.Context, core.Scope, core.SessionID, core.PageQuery) (core.Page[core.Summary], error) {
	return core.Page[core.Summary]{Items: s.summaries}, nil
}

// Find is Summaries.Find.
func (s *storage) Find(_ context.Context, _ core.Scope, _ core.SessionID, ids []core.SummaryID) ([]core.Summary, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.summaries), func(n core.Summary) bool { return !slices.Contains(ids, n.ID) }), nil
}

// Active is Runs.Active.
func (s *storage) Active(context.Context, core.Scope, core.SessionID) (core.Run, error) {
	return s.run, nil
}

// StartTools is Runs.StartTools.
func (s *storage) StartTools(_ context.Context, _ core.RunID, _ int, starts []core.ToolExecution) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.failing("StartTools"); err != nil {
		return err
	}
	s.starts = append(s.starts, starts...)
	return nil
}

// ToolExecutions is Runs.ToolExecutions.
func (s *storage) ToolExecutions(context.Context, core.RunID) ([]core.ToolExecution, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.starts), s.failing("ToolExecutions")
}

// Append is runs.Journal.Append: like it, it writes also when ctx has ended.
func (s *storage) Append(_ context.Context, w core.RunWrite) (core.Written, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.failing("Append"); err != nil {
		return core.Written{}, err
	}
	if w.Attempt != s.run.Attempt || s.run.Status != core.RunRunning {
		return core.Written{}, core.Errorf(core.ErrStale, "the run belongs to another attempt")
	}
	s.writes = append(s.writes, w)
	var out core.Written
	for _, m := range w.Messages {
		m = s.append(m)
		out.Messages = append(out.Messages, m)
		s.events = append(s.events, core.NewEvent(m.SessionID, w.RunID, core.EventMessageCreated, core.MessageData{Message: m}))
	}
	s.events = append(s.events, w.Events...)
	s.run.Usage = s.run.Usage.Add(w.Usage)
	if w.Context != nil {
		s.run.Context = w.Context
	}
	if w.End != nil {
		s.run.Status, s.run.AnswerID = w.End.Status, w.End.AnswerID
	}
	out.Run = s.run
	return out, nil
}

// Delta is runs.Journal.Delta.
func (s *storage) Delta(_ context.Context, e core.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
}

// Publish is events.Feed.Publish.
func (s *storage) Publish(_ context.Context, events []core.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, events...)
}

// of returns the events of the types so far, in order.
func (s *storage) of(types ...core.EventType) []core.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []core.Event
	for _, e := range s.events {
		if slices.Contains(types, e.Type) {
			out = append(out, e)
		}
	}
	return out
}

// last returns the newest message of the log.
func (s *storage) last() core.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.messages[len(s.messages)-1]
}

// records returns what was booked.
func (s *storage) records() []core.ModelCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []core.ModelCall
	for _, w := range s.writes {
		out = append(out, w.ModelCalls...)
	}
	return out
}
