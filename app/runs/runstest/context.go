package runstest

import (
	"context"
	"slices"

	"bobbin/app/core"
)

// ApplyContext stores what a compaction decided, if nobody else did meanwhile.
func (s Sessions) ApplyContext(ctx context.Context, scope core.Scope, c core.ContextChange) (core.Session, []core.Event, error) {
	var out core.Session
	var events []core.Event
	err := s.db.do(ctx, "ApplyContext", func() error {
		l, err := s.db.visible(scope, c.SessionID)
		if err != nil {
			return err
		}
		if c.Expect != l.session.PromptRevision {
			return core.Errorf(core.ErrStale, "session %s was compacted by somebody else", c.SessionID)
		}
		if err := l.take(c); err != nil {
			return err
		}
		for _, e := range c.Events {
			l.emit(e)
		}
		out, events = l.session, l.fresh
		return nil
	})
	return out, events, err
}

// take does what the change says of the session's summary.
func (l *log) take(c core.ContextChange) error {
	if c.Summary != nil && c.Summary.State == core.SummaryPrepared {
		s := *c.Summary
		s.Version = len(l.summaries) + 1
		l.summaries = append(l.summaries, s)
		l.prepared = s.Version
		return nil
	}
	if c.Activate > 0 && c.Activate != l.prepared {
		return core.Errorf(core.ErrStale, "summary %d is not prepared", c.Activate)
	}
	l.session.PromptRevision++
	if len(c.PromptState) > 0 {
		l.session.PromptState = c.PromptState
	}
	switch {
	case c.Activate > 0:
		l.adopt(l.summaries[c.Activate-1])
	case c.Summary != nil:
		l.adopt(*c.Summary)
	}
	return nil
}

// adopt stores the summary, unless it was prepared; a rolling one becomes the
// session's own.
func (l *log) adopt(s core.Summary) {
	if s.Version == 0 {
		s.Version = len(l.summaries) + 1
		l.summaries = append(l.summaries, s)
	}
	if s.Kind == core.SummaryRun {
		return
	}
	l.prepared = 0
	l.session.ConversationSummary, l.session.SummaryThroughID, l.session.SummaryThroughSeq = &s.Content, &s.ThroughID, s.ThroughSeq
	l.session.SummaryVersion, l.session.SummaryTokens, l.session.SummarizedCount = s.Version, s.TokenCount, s.MessagesCovered
	l.session.SummaryCount, l.session.LastSummarizedAt = s.Version, &s.CreatedAt
}

// Pinned returns the pinned messages.
func (s Messages) Pinned(ctx context.Context, scope core.Scope, session core.SessionID) ([]core.Message, error) {
	all, err := s.GetMessagesAfter(ctx, scope, session, "")
	return slices.DeleteFunc(all, func(m core.Message) bool { return !m.Pinned }), err
}

// CountOnPath returns how many messages the session has.
func (s Messages) CountOnPath(ctx context.Context, scope core.Scope, session core.SessionID) (int, error) {
	all, err := s.GetMessagesAfter(ctx, scope, session, "")
	return len(all), err
}

// Summaries is DB as repositories.Summaries.
type Summaries struct{ db *DB }

// SummaryStore returns the summaries in db.
func (db *DB) SummaryStore() Summaries { return Summaries{db} }

// Find returns what is there of these versions.
func (s Summaries) Find(ctx context.Context, scope core.Scope, session core.SessionID, ids []core.SummaryID) ([]core.Summary, error) {
	var out []core.Summary
	err := s.db.do(ctx, "Summaries.Find", func() error {
		l, err := s.db.visible(scope, session)
		if err == nil {
			out = slices.DeleteFunc(slices.Clone(l.summaries), func(v core.Summary) bool { return !slices.Contains(ids, v.ID) })
		}
		return err
	})
	return out, err
}

// List returns all versions, the newest first.
func (s Summaries) List(ctx context.Context, scope core.Scope, session core.SessionID, _ core.PageQuery) (core.Page[core.Summary], error) {
	var out core.Page[core.Summary]
	err := s.db.do(ctx, "Summaries.List", func() error {
		l, err := s.db.visible(scope, session)
		if err == nil {
			out.Items = slices.Clone(l.summaries)
			slices.Reverse(out.Items)
		}
		return err
	})
	return out, err
}

// StartTools notes that tools start which must not run twice.
func (s Runs) StartTools(ctx context.Context, id core.RunID, attempt int, starts []core.ToolExecution) error {
	return s.db.do(ctx, "StartTools", func() error {
		r := s.db.runs[id]
		if r == nil || r.Attempt != attempt || r.Status != core.RunRunning {
			return core.Errorf(core.ErrStale, "run %s is not this worker's any more", id)
		}
		l := s.db.sessions[r.SessionID]
		l.starts = append(l.starts, starts...)
		return nil
	})
}

// ToolExecutions returns what StartTools noted.
func (s Runs) ToolExecutions(ctx context.Context, id core.RunID) ([]core.ToolExecution, error) {
	var out []core.ToolExecution
	err := s.db.do(ctx, "ToolExecutions", func() error {
		for _, x := range s.db.sessions[s.db.runs[id].SessionID].starts {
			if x.RunID == id {
				out = append(out, x)
			}
		}
		return nil
	})
	return out, err
}
