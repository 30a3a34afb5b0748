package compaction_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"bobbin/app/core"
)

// store is the repositories of a Keeper in memory, for one session. It keeps what
// the Keeper relies on: scope, gapless seq, events numbered with what they report,
// and the compare-and-set of ApplyContext, all or nothing.
type store struct {
	// before is called at each method, without the lock: it may fail the call, or
	// do what another process does at that moment. nil = nothing.
	before func(method string) error
	// after is called when the method has done its work; its error hides that.
	after func(method string) error

	mu        sync.Mutex
	session   core.Session     // guarded by mu, as all below
	log       []core.Message   // the current branch
	aside     []core.Message   // deleted, or on another branch
	run       core.Run         // in progress; without an id there is none
	summaries []core.Summary   // oldest version first
	events    []core.Event     // durable
	published []core.Event     // durable, as Publish got them
	passing   []core.Event     // as Delta got them
	calls     []core.ModelCall // booked
	reads     []core.MessageID // what GetMessagesAfter was asked for
	lease     lease
	breaker   core.Breaker
	waited    int // leases that were refused
}

// lease is who makes a summary.
type lease struct {
	holder string
	until  time.Time
}

func newStore() *store {
	return &store{session: core.Session{
		ID: core.NewID[core.SessionID](), Owner: core.LocalOwner, UserID: "ann", Agent: "tester", CreatedAt: core.Now(),
	}}
}

// at calls the hooks around do, which holds the lock.
func (s *store) at(method string, do func() error) error {
	if s.before != nil {
		if err := s.before(method); err != nil {
			return err
		}
	}
	s.mu.Lock()
	err := do()
	s.mu.Unlock()
	if err == nil && s.after != nil {
		err = s.after(method)
	}
	return err
}

// add appends messages to the log.
func (s *store) add(messages ...core.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range messages {
		if m.ID == "" {
			m.ID = core.NewID[core.MessageID]()
		}
		m.SessionID, m.Owner, m.OnPath = s.session.ID, s.session.Owner, true
		m.Seq = int64(len(s.log) + 1)
		s.log = append(s.log, m)
		s.session.LastSeq, s.session.MessageCount = m.Seq, len(s.log)
	}
}

// now returns the session, the versions of its summary and its log.
func (s *store) now() (core.Session, []core.Summary, []core.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.session, slices.Clone(s.summaries), slices.Clone(s.log)
}

func (s *store) knows(scope core.Scope, id core.SessionID) error {
	if scope.Owner != s.session.Owner || id != s.session.ID {
		return core.Errorf(core.ErrNotFound, "session %s does not exist", id)
	}
	return nil
}

// Get is Sessions.Get.
func (s *store) Get(_ context.Context, scope core.Scope, id core.SessionID) (out core.Session, err error) {
	err = s.at("Get", func() error {
		out = s.session
		return s.knows(scope, id)
	})
	return out, err
}

// ApplyContext is Sessions.ApplyContext.
func (s *store) ApplyContext(ctx context.Context, scope core.Scope, c core.ContextChange) (out core.Session, events []core.Event, err error) {
	err = s.at("ApplyContext", func() error {
		if err := s.knows(scope, c.SessionID); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if c.Expect != s.session.PromptRevision {
			return core.Errorf(core.ErrStale, "session %s was compacted by somebody else", c.SessionID)
		}
		if err := s.take(c); err != nil {
			return err
		}
		events = s.number(c.Events)
		s.calls = append(s.calls, c.ModelCalls...)
		out = s.session
		return nil
	})
	return out, events, err
}

// take does what the change says. The caller holds the lock.
func (s *store) take(c core.ContextChange) error {
	if c.Summary != nil && c.Summary.State == core.SummaryPrepared {
		for i := range s.summaries {
			if s.summaries[i].State == core.SummaryPrepared {
				s.summaries[i].State = core.SummaryDropped
			}
		}
		c.Summary.Version = len(s.summaries) + 1
		s.summaries = append(s.summaries, *c.Summary)
		s.judge(c)
		return nil
	}
	if c.Activate > 0 && (c.Activate > len(s.summaries) || s.summaries[c.Activate-1].State != core.SummaryPrepared) {
		return core.Errorf(core.ErrStale, "summary %d is not prepared", c.Activate)
	}
	s.session.PromptRevision++
	if len(c.PromptState) > 0 {
		s.session.PromptState = c.PromptState
	}
	switch {
	case c.Activate > 0:
		s.activate(s.summaries[c.Activate-1])
	case c.Summary != nil:
		s.activate(*c.Summary)
	}
	s.judge(c)
	return nil
}

// activate makes the summary one in use, a rolling one the session's own. Those that it
// takes over are dropped. The caller holds the lock.
func (s *store) activate(v core.Summary) {
	at := core.Now()
	for i, old := range s.summaries {
		passed := old.Kind == core.SummaryRun && old.ThroughSeq <= v.ThroughSeq && (v.Kind == core.SummaryRolling || old.FromSeq >= v.FromSeq)
		if passed || old.Kind == v.Kind && v.Kind == core.SummaryRolling {
			s.summaries[i].State = core.SummaryDropped
		}
	}
	v.State, v.ActivatedAt = core.SummaryActive, &at
	if v.Version == 0 {
		v.Version = len(s.summaries) + 1
		s.summaries = append(s.summaries, v)
	}
	s.summaries[v.Version-1] = v
	now := &s.session
	now.SummaryCount++
	if v.Kind == core.SummaryRun {
		return
	}
	now.ConversationSummary, now.SummaryThroughID, now.SummaryThroughSeq = &v.Content, &v.ThroughID, v.ThroughSeq
	now.SummaryVersion, now.SummaryTokens, now.SummarizedCount = v.Version, v.TokenCount, v.MessagesCovered
	now.LastSummarizedAt = v.ActivatedAt
}

// number numbers events and, as the repository does, tells completed ones the
// version. The caller holds the lock.
func (s *store) number(events []core.Event) []core.Event {
	var out []core.Event
	for _, e := range events {
		if e.Type == core.EventContextCompleted {
			var d core.ContextData
			if err := json.Unmarshal(e.Data, &d); err != nil {
				panic(err)
			}
			d.Version = s.session.SummaryVersion
			if d.Kind == core.SummaryRun {
				d.Version = len(s.summaries)
			}
			e = core.NewEvent(e.SessionID, e.RunID, e.Type, d)
		}
		e.Seq = int64(len(s.events) + 1)
		s.events = append(s.events, e)
		out = append(out, e)
	}
	return out
}

// GetMessagesAfter is Messages.GetMessagesAfter.
func (s *store) GetMessagesAfter(_ context.Context, scope core.Scope, id core.SessionID, after core.MessageID) (out []core.Message, err error) {
	err = s.at("GetMessagesAfter", func() error {
		s.reads = append(s.reads, after)
		from := slices.IndexFunc(s.log, func(m core.Message) bool { return m.ID == after }) + 1
		out = slices.Clone(s.log[from:])
		return s.knows(scope, id)
	})
	return out, err
}

// Pinned is Messages.Pinned.
func (s *store) Pinned(_ context.Context, scope core.Scope, id core.SessionID) (out []core.Message, err error) {
	err = s.at("Pinned", func() error {
		for _, m := range s.log {
			if m.Pinned {
				out = append(out, m)
			}
		}
		return s.knows(scope, id)
	})
	return out, err
}

// CountOnPath is Messages.CountOnPath.
func (s *store) CountOnPath(_ context.Context, scope core.Scope, id core.SessionID) (n int, err error) {
	err = s.at("CountOnPath", func() error {
		n = len(s.log)
		return s.knows(scope, id)
	})
	return n, err
}

// List is Summaries.List, newest first.
func (s *store) List(_ context.Context, scope core.Scope, id core.SessionID, q core.PageQuery) (out core.Page[core.Summary], err error) {
	err = s.at("List", func() error {
		out.Items = slices.Clone(s.summaries)
		slices.Reverse(out.Items)
		out.Items = out.Items[:min(q.Limit, len(out.Items))]
		return s.knows(scope, id)
	})
	return out, err
}

// Find is Summaries.Find.
func (s *store) Find(_ context.Context, scope core.Scope, id core.SessionID, ids []core.SummaryID) (out []core.Summary, err error) {
	err = s.at("Find", func() error {
		for _, v := range s.summaries {
			if slices.Contains(ids, v.ID) {
				out = append(out, v)
			}
		}
		return s.knows(scope, id)
	})
	return out, err
}

// Active is Runs.Active.
func (s *store) Active(_ context.Context, scope core.Scope, id core.SessionID) (out core.Run, err error) {
	err = s.at("Active", func() error {
		if s.run.ID == "" {
			return core.Errorf(core.ErrNotFound, "session %s has no active run", id)
		}
		out = s.run
		return s.knows(scope, id)
	})
	return out, err
}

// Publish is events.Feed.Publish.
func (s *store) Publish(_ context.Context, events []core.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.published = append(s.published, events...)
}

// Delta is events.Feed.Delta.
func (s *store) Delta(_ context.Context, e core.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passing = append(s.passing, e)
}
