package runstest

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"bobbin/app/core"
)

// Runs is DB as repositories.Runs.
type Runs struct{ db *DB }

// RunStore returns the runs in db.
func (db *DB) RunStore() Runs { return Runs{db} }

// Accept commits a run, started if the session has nothing else to do.
func (s Runs) Accept(ctx context.Context, scope core.Scope, in core.AcceptRun) (core.Accepted, error) {
	var out core.Accepted
	err := s.db.do(ctx, "Accept", func() error {
		l, err := s.db.visible(scope, in.SessionID)
		if err != nil {
			return err
		}
		queued, active := 0, 0
		for _, r := range s.db.of(in.SessionID) {
			if in.ClientMessageID != "" && r.ClientMessageID == in.ClientMessageID {
				out = core.Accepted{Run: *r, Session: l.session, Message: r.UserMessage(), Repeated: true}
				return nil
			}
			if r.Status == core.RunQueued {
				queued++
			} else if !r.Status.Ended() {
				active++
			}
		}
		switch {
		case l.session.ArchivedAt != nil:
			return core.Errorf(core.ErrConflict, "archived")
		case in.Multitask == core.MultitaskReject && queued+active > 0:
			return core.Errorf(core.ErrConflict, "busy")
		case in.MaxQueued > 0 && queued >= in.MaxQueued && queued+active > 0:
			return core.Errorf(core.ErrRateLimited, "full")
		}
		out = s.accept(l, in, queued+active == 0)
		for _, r := range s.db.of(in.SessionID) {
			if r.Status == core.RunWaiting && in.Multitask == "" {
				s.closeOpen(l, r, core.ApprovalInstead)
				out.Instead, out.Events = true, l.fresh
			}
		}
		return nil
	})
	return out, err
}

func (s Runs) accept(l *log, in core.AcceptRun, starts bool) core.Accepted {
	l.queueSeq++
	in.Multitask = cmp.Or(in.Multitask, core.MultitaskEnqueue)
	r := &core.Run{
		ID: core.NewID[core.RunID](), SessionID: in.SessionID, Owner: l.session.Owner, User: in.User, QueueSeq: l.queueSeq,
		Status: core.RunQueued, Agent: in.Agent, AgentVersion: in.AgentVersion, Model: in.Model, Input: in.Input,
		UserMessageID: core.NewID[core.MessageID](), ClientMessageID: in.ClientMessageID, Multitask: in.Multitask, CreatedAt: core.Now(),
	}
	s.db.runs[r.ID] = r
	message := r.UserMessage()
	if starts {
		message = s.start(l, r, in.Worker)
	} else {
		l.emit(core.NewEvent(r.SessionID, r.ID, core.EventRunQueued, core.MessageData{Message: message}))
	}
	return core.Accepted{Run: *r, Session: l.session, Message: message, Events: l.fresh}
}

// start makes the run running.
func (s Runs) start(l *log, r *core.Run, worker string) core.Message {
	now := core.Now()
	r.Status, r.StartedAt = core.RunRunning, &now
	s.lease(r, worker)
	l.emit(core.NewEvent(r.SessionID, r.ID, core.EventRunStarted, core.RunData{Run: *r}))
	for _, m := range l.messages {
		if m.ID == r.UserMessageID { // it waited for a decision
			return m
		}
	}
	return l.add(r.UserMessage())
}

// lease gives the run's next attempt to the worker.
func (s Runs) lease(r *core.Run, worker string) {
	until := time.Now().Add(lease)
	r.Attempt++
	r.LeaseOwner, r.LeaseUntil = worker, &until
}

// Claim starts the session's oldest queued run, if none is active.
func (s Runs) Claim(ctx context.Context, session core.SessionID, worker string) (core.Claimed, error) {
	var out core.Claimed
	err := s.db.do(ctx, "Claim", func() error {
		l := s.db.sessions[session]
		var next *core.Run
		for _, r := range s.db.of(session) {
			if r.Status == core.RunQueued && next == nil {
				next = r
			} else if !r.Status.Ended() && r.Status != core.RunQueued {
				return core.Errorf(core.ErrNotFound, "busy")
			}
		}
		if next == nil {
			return core.Errorf(core.ErrNotFound, "nothing to start")
		}
		message := s.start(l, next, worker)
		resumed := *next
		resumed.Resumed = next.Attempt > 1
		out = core.Claimed{Run: resumed, Session: l.session, Message: message, Events: l.fresh}
		return nil
	})
	return out, err
}

// TakeOver leases runs whose lease is past to the worker; with all, also its replica's.
func (s Runs) TakeOver(ctx context.Context, worker string, all bool, limit int) ([]core.Run, error) {
	var out []core.Run
	err := s.db.do(ctx, "TakeOver", func() error {
		for _, r := range s.db.runs {
			lapsed := r.LeaseUntil == nil || !r.LeaseUntil.After(time.Now())
			if r.Status == core.RunRunning && (lapsed || all && strings.HasPrefix(r.LeaseOwner+"/", core.WorkersOf(worker))) && len(out) < limit {
				s.lease(r, worker)
				out = append(out, *r)
			}
		}
		return nil
	})
	return out, err
}

// Waiting returns sessions that have queued runs and no active one.
func (s Runs) Waiting(ctx context.Context, limit int) ([]core.SessionID, error) {
	var out []core.SessionID
	err := s.db.do(ctx, "Waiting", func() error {
		for id := range s.db.sessions {
			runs := s.db.of(id)
			queued := slices.ContainsFunc(runs, func(r *core.Run) bool { return r.Status == core.RunQueued })
			active := slices.ContainsFunc(runs, func(r *core.Run) bool { return !r.Status.Ended() && r.Status != core.RunQueued })
			if queued && !active && len(out) < limit {
				out = append(out, id)
			}
		}
		return nil
	})
	return out, err
}

// Renew lengthens leases and returns the runs that are not the worker's any more.
func (s Runs) Renew(ctx context.Context, worker string, runs []core.RunID) ([]core.RunID, error) {
	var lost []core.RunID
	err := s.db.do(ctx, "Renew", func() error {
		until := time.Now().Add(lease)
		for _, id := range runs {
			if r := s.db.runs[id]; r.Status == core.RunRunning && r.LeaseOwner == worker {
				r.LeaseUntil = &until
			} else {
				lost = append(lost, id)
			}
		}
		return nil
	})
	return lost, err
}

// Yield ends the lease of the attempt.
func (s Runs) Yield(ctx context.Context, run core.RunID, attempt int) error {
	return s.db.do(ctx, "Yield", func() error {
		r := s.db.runs[run]
		if r.Status != core.RunRunning || r.Attempt != attempt {
			return core.Errorf(core.ErrStale, "not yours")
		}
		now := time.Now()
		r.LeaseUntil = &now
		return nil
	})
}

// Release ends the leases of the worker.
func (s Runs) Release(ctx context.Context, worker string) error {
	return s.db.do(ctx, "Release", func() error {
		for _, r := range s.db.runs {
			if now := time.Now(); r.Status == core.RunRunning && r.LeaseOwner == worker {
				r.LeaseUntil = &now
			}
		}
		return nil
	})
}

// HandBack ends the worker's lease of one run.
func (s Runs) HandBack(ctx context.Context, worker string, run core.RunID) error {
	return s.db.do(ctx, "HandBack", func() error {
		if r, now := s.db.runs[run], time.Now(); r.Status == core.RunRunning && r.LeaseOwner == worker {
			r.LeaseUntil = &now
		}
		return nil
	})
}

// CancelRequested returns the worker's runs that somebody asked to cancel.
func (s Runs) CancelRequested(ctx context.Context, worker string) ([]core.RunID, error) {
	var out []core.RunID
	err := s.db.do(ctx, "CancelRequested", func() error {
		for id, r := range s.db.runs {
			if r.Status == core.RunRunning && r.LeaseOwner == worker && r.CancelRequested {
				out = append(out, id)
			}
		}
		return nil
	})
	return out, err
}

// Write stores a step of a run, if the attempt is the run's current one.
func (s Runs) Write(ctx context.Context, w core.RunWrite) (core.Written, error) {
	var out core.Written
	err := s.db.do(ctx, "Write", func() error {
		r := s.db.runs[w.RunID]
		if last := s.db.last[w.RunID]; w.ID != "" && last.id == w.ID && last.attempt == w.Attempt {
			out = last.written
			return nil
		}
		if r == nil || r.Attempt != w.Attempt || r.Status != core.RunRunning {
			return core.Errorf(core.ErrStale, "run %s is not this worker's any more", w.RunID)
		}
		if w.Wait != nil && r.CancelRequested {
			return core.Errorf(core.ErrCanceled, "run %s is to be canceled", w.RunID)
		}
		l := s.db.sessions[r.SessionID]
		for _, m := range w.Messages {
			out.Messages = append(out.Messages, l.add(m))
		}
		for _, e := range w.Events {
			l.emit(e)
		}
		if len(w.Messages) > 0 || w.End != nil {
			r.Partial = ""
		}
		if w.Next != "" {
			r.Partial, _ = core.Draft{Attempt: w.Attempt, MessageID: w.Next}.Encode() // of texts that can be written
		}
		r.Usage = r.Usage.Add(w.Usage)
		if w.Wait != nil {
			s.wait(l, r, *w.Wait)
		}
		if w.End != nil {
			s.end(l, r, *w.End)
		}
		out.Run, out.Events = *r, l.fresh
		s.db.last[w.RunID] = lastWrite{w.ID, w.Attempt, out}
		return nil
	})
	return out, err
}

func (s Runs) end(l *log, r *core.Run, end core.RunEnd) {
	now := core.Now()
	r.Status, r.Error, r.AnswerID, r.FinishedAt = end.Status, end.Error, end.AnswerID, &now
	r.LeaseOwner, r.LeaseUntil = "", nil
	kind := core.EventType("run." + string(end.Status))
	l.emit(core.NewEvent(r.SessionID, r.ID, kind, core.RunData{Run: *r}))
}

// SavePartial keeps the text on its way.
func (s Runs) SavePartial(ctx context.Context, id core.RunID, attempt int, text string) error {
	return s.db.do(ctx, "SavePartial", func() error {
		r := s.db.runs[id]
		if r == nil || r.Attempt != attempt || r.Status != core.RunRunning {
			return core.Errorf(core.ErrStale, "stale")
		}
		r.Partial = text
		s.db.partials = append(s.db.partials, text)
		return nil
	})
}

// RequestCancel cancels a queued run and marks a running one.
func (s Runs) RequestCancel(ctx context.Context, scope core.Scope, id core.RunID) (core.Run, []core.Event, error) {
	var out core.Run
	var events []core.Event
	err := s.db.do(ctx, "RequestCancel", func() error {
		r, err := s.find(scope, id)
		if err != nil {
			return err
		}
		l := s.db.sessions[r.SessionID]
		switch {
		case r.Status == core.RunWaiting:
			s.closeOpen(l, r, core.ApprovalCanceled)
		case r.Status == core.RunQueued && r.Attempt == 0:
			s.end(l, r, core.RunEnd{Status: core.RunCanceled})
		case !r.Status.Ended():
			r.CancelRequested = true
		}
		out, events = *r, l.fresh
		return nil
	})
	return out, events, err
}

// Get returns a run.
func (s Runs) Get(ctx context.Context, scope core.Scope, id core.RunID) (core.Run, error) {
	var out core.Run
	err := s.db.do(ctx, "Runs.Get", func() error {
		r, err := s.find(scope, id)
		if err == nil {
			out = *r
		}
		return err
	})
	return out, err
}

// Active returns the session's running or waiting run.
func (s Runs) Active(ctx context.Context, scope core.Scope, session core.SessionID) (core.Run, error) {
	var out core.Run
	err := s.db.do(ctx, "Active", func() error {
		for _, r := range s.db.of(session) {
			if r.Status == core.RunRunning || r.Status == core.RunWaiting {
				out = *r
				return nil
			}
		}
		return core.Errorf(core.ErrNotFound, "session %s has no active run", session)
	})
	return out, err
}

func (s Runs) find(scope core.Scope, id core.RunID) (*core.Run, error) {
	r := s.db.runs[id]
	if r == nil || r.Owner != scope.Owner {
		return nil, core.Errorf(core.ErrNotFound, "run %s does not exist", id)
	}
	return r, nil
}
