package coretest

import (
	"cmp"
	"context"
	"slices"

	"bobbin/app/core"
)

// Runs are the runs of a Store.
type Runs struct {
	core.RunStore // the methods that no test calls
	s             *Store
}

// Reports returns nothing: runs of this store have no reports.
func (r Runs) Reports(context.Context, core.Tenant, core.SessionID, int) ([]core.RunReport, int, error) {
	return nil, 0, nil
}

// isActive reports whether a run is running or waits for a decision.
func isActive(r *core.Run) bool { return r.Status == core.RunRunning || r.Status == core.RunWaiting }

// runsOf returns the runs of a session in queue order.
func (s *Store) runsOf(id core.SessionID) []*core.Run {
	var out []*core.Run
	for _, r := range s.runs {
		if r.SessionID == id {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b *core.Run) int { return cmp.Compare(a.QueueSeq, b.QueueSeq) })
	return out
}

// inRun is transact for a run that the tenant can see.
func (s *Store) inRun(ctx context.Context, call string, tenant core.Tenant, id core.RunID, f func(*Conversation, *core.Run) error) error {
	return s.transact(ctx, call, func() error {
		r := s.runs[id]
		if r == nil || r.Owner != tenant.Owner || tenant.User != "" && tenant.User != s.conversations[r.SessionID].Session.UserID {
			return core.Errorf(core.ErrNotFound, "run %s does not exist", id)
		}
		return f(s.conversations[r.SessionID], r)
	})
}

// inAttempt is transact for a run that the attempt owns.
func (s *Store) inAttempt(ctx context.Context, call string, id core.RunID, attempt int, f func(*Conversation, *core.Run) error) error {
	return s.transact(ctx, call, func() error {
		r := s.runs[id]
		if r == nil || r.Attempt != attempt || r.Status != core.RunRunning {
			return core.Errorf(core.ErrStale, "run %s is owned by another worker or has ended", id)
		}
		return f(s.conversations[r.SessionID], r)
	})
}

// Get returns a run.
func (r Runs) Get(ctx context.Context, tenant core.Tenant, id core.RunID) (out core.Run, err error) {
	err = r.s.inRun(ctx, "Runs.Get", tenant, id, func(_ *Conversation, run *core.Run) error {
		out = *run
		return nil
	})
	return out, err
}

// Active returns the session's running or waiting run.
func (r Runs) Active(ctx context.Context, tenant core.Tenant, session core.SessionID) (out core.Run, err error) {
	err = r.s.inSession(ctx, "Active", tenant, session, func(*Conversation) error {
		for _, run := range r.s.runsOf(session) {
			if isActive(run) {
				out = *run
				return nil
			}
		}
		return core.Errorf(core.ErrNotFound, "session %s has no active run", session)
	})
	return out, err
}

// Repeated returns the run that a client_message_id began.
func (r Runs) Repeated(ctx context.Context, tenant core.Tenant, session core.SessionID, clientMessageID string) (out core.Run, err error) {
	err = r.s.inSession(ctx, "Repeated", tenant, session, func(*Conversation) error {
		run := r.s.repeated(session, clientMessageID)
		if run == nil {
			return core.Errorf(core.ErrNotFound, "no message %s", clientMessageID)
		}
		out = *run
		return nil
	})
	return out, err
}

// repeated returns the run that a client_message_id began; nil if there is none.
func (s *Store) repeated(session core.SessionID, clientMessageID string) *core.Run {
	for _, run := range s.runsOf(session) {
		if clientMessageID != "" && run.ClientMessageID == clientMessageID {
			return run
		}
	}
	return nil
}

// Accept stores a run, and starts it if the session has nothing else to do.
func (r Runs) Accept(ctx context.Context, tenant core.Tenant, in core.AcceptRun) (out core.Accepted, err error) {
	err = r.s.inSession(ctx, "Accept", tenant, in.SessionID, func(c *Conversation) error {
		if run := r.s.repeated(in.SessionID, in.ClientMessageID); run != nil {
			out = core.Accepted{Run: *run, Session: c.Session, Message: c.messageOf(run), Repeated: true}
			return nil
		}
		known := r.s.runsOf(in.SessionID)
		busy := slices.ContainsFunc(known, func(run *core.Run) bool { return !run.Status.Ended() })
		if err := r.s.checkAdmission(c, in, busy); err != nil {
			return err
		}
		if _, err := r.s.answerCalls(c, in.Results); err != nil {
			return err
		}
		for _, run := range known {
			if run.Status == core.RunWaiting && in.Multitask == "" {
				r.s.closeApprovals(c, run, core.ApprovalInstead)
				out.Instead = true
			}
		}
		run := r.s.newRun(c, in)
		message := run.UserMessage()
		if in.Worker != "" && !busy {
			message = r.s.startRun(c, run, in.Worker)
		} else {
			c.emit(core.NewEvent(run.SessionID, run.ID, core.EventRunQueued, core.MessageData{Message: message}))
		}
		out.Run, out.Session, out.Message, out.Events = *run, c.Session, message, c.fresh
		return nil
	})
	return out, err
}

// checkAdmission returns the error of a run that must not be accepted.
func (s *Store) checkAdmission(c *Conversation, in core.AcceptRun, busy bool) error {
	queued, owned, ofUser := 0, 0, 0
	for _, run := range s.runs {
		if run.Status == core.RunQueued && run.SessionID == in.SessionID {
			queued++
		}
		if run.Owner == c.Session.Owner && (run.Status == core.RunQueued || run.Status == core.RunRunning) {
			owned++
			if in.User != "" && run.User == in.User {
				ofUser++
			}
		}
	}
	switch {
	case c.Session.ArchivedAt != nil:
		return core.Errorf(core.ErrConflict, "session %s is archived", in.SessionID)
	case in.SessionAgent != nil && *in.SessionAgent != (core.SessionAgent{Agent: c.Session.Agent, Model: c.Session.Model}):
		return core.Errorf(core.ErrStale, "session %s has another agent or model now", in.SessionID)
	case busy && in.Multitask == core.MultitaskReject:
		return core.Errorf(core.ErrConflict, "session %s is busy", in.SessionID)
	case busy && in.MaxQueued > 0 && queued >= in.MaxQueued,
		in.MaxOfUser > 0 && ofUser >= in.MaxOfUser, in.MaxOwned > 0 && owned >= in.MaxOwned:
		return core.Errorf(core.ErrRateLimited, "too many runs")
	}
	return nil
}

// newRun stores the next run of the session's queue.
func (s *Store) newRun(c *Conversation, in core.AcceptRun) *core.Run {
	c.queueSeq++
	run := &core.Run{
		ID: core.NewID[core.RunID](), SessionID: c.Session.ID, Owner: c.Session.Owner, User: in.User, QueueSeq: c.queueSeq,
		Status: core.RunQueued, Agent: in.Agent, AgentVersion: in.AgentVersion, Model: in.Model, Input: in.Input,
		UserMessageID: core.NewID[core.MessageID](), ClientMessageID: in.ClientMessageID,
		Multitask: cmp.Or(in.Multitask, core.MultitaskEnqueue), Options: in.Options, Webhook: in.Webhook, CreatedAt: core.Now(),
		FirstEvent: c.Session.LastEventSeq + 1,
	}
	s.runs[run.ID] = run
	return run
}

// messageOf returns the run's message, as stored if it is in the log.
func (c *Conversation) messageOf(run *core.Run) core.Message {
	if i := c.indexOf(run.UserMessageID); i >= 0 {
		return c.Messages[i]
	}
	return run.UserMessage()
}

// startRun starts the run; its message enters the log unless the run has waited for a decision.
func (s *Store) startRun(c *Conversation, run *core.Run, worker string) core.Message {
	if run.StartedAt == nil {
		now := core.Now()
		run.StartedAt = &now
	}
	run.Status = core.RunRunning
	s.leaseRun(run, worker)
	c.emitRun(core.EventRunStarted, run)
	return c.appendMessages([]core.Message{run.UserMessage()}, run.ID)[0]
}

// emitRun emits an event about a run, without the content of its message.
func (c *Conversation) emitRun(kind core.EventType, run *core.Run) {
	shown := *run
	shown.Input = run.Input.Emptied()
	c.emit(core.NewEvent(run.SessionID, run.ID, kind, core.RunData{Run: shown}))
}

// Write stores a step of a run.
func (r Runs) Write(ctx context.Context, w core.RunWrite) (out core.Written, err error) {
	known := false
	err = r.s.transact(ctx, "Write", func() error {
		last := r.s.writes[w.RunID]
		if known = w.ID != "" && last.id == w.ID && last.attempt == w.Attempt; known {
			out = last.written
			return nil
		}
		run := r.s.runs[w.RunID]
		switch {
		case run == nil || run.SessionID != w.SessionID || run.Attempt != w.Attempt || run.Status != core.RunRunning:
			return core.Errorf(core.ErrStale, "run %s is owned by another worker or has ended", w.RunID)
		case w.Wait != nil && run.CancelRequested:
			return core.Errorf(core.ErrCanceled, "run %s is to be canceled", w.RunID)
		}
		out = r.s.storeWrite(r.s.conversations[run.SessionID], run, w)
		r.s.writes[w.RunID] = lastWrite{w.ID, w.Attempt, out}
		return nil
	})
	return out, err
}

// storeWrite is Write for a write that is accepted.
func (s *Store) storeWrite(c *Conversation, run *core.Run, w core.RunWrite) core.Written {
	c.Writes = append(c.Writes, w)
	c.Calls = append(c.Calls, w.ModelCalls...)
	run.Usage = run.Usage.Add(w.Usage)
	if w.State != nil {
		run.State = w.State
	}
	if w.Context != nil {
		run.Context = w.Context
	}
	if len(w.Messages) > 0 || w.Wait != nil || w.End != nil {
		run.Partial = ""
	}
	if w.Next != "" {
		run.Partial, _ = core.Draft{Attempt: w.Attempt, MessageID: w.Next}.Encode() // of texts that can be written
	}
	stored := c.appendMessages(w.Messages, run.ID)
	c.finishTools(run.ID, stored)
	for _, e := range w.Events {
		e.RunID = cmp.Or(e.RunID, run.ID)
		c.emit(e)
	}
	if w.Wait != nil {
		s.setWaiting(c, run, *w.Wait)
	}
	if w.End != nil {
		c.endRun(run, *w.End)
	}
	return core.Written{Messages: stored, Events: c.fresh, Run: *run, MoreQueued: c.queueSeq > run.QueueSeq}
}

// endRun ends a run.
func (c *Conversation) endRun(run *core.Run, end core.RunEnd) {
	now := core.Now()
	run.Status, run.Error, run.FinishedAt = end.Status, end.Error, &now
	run.AnswerID = cmp.Or(end.AnswerID, run.AnswerID)
	run.LeaseOwner, run.LeaseUntil = "", nil
	c.emitRun(core.EventType("run."+string(end.Status)), run)
}

// SavePartial stores the draft.
func (r Runs) SavePartial(ctx context.Context, id core.RunID, attempt int, text string) error {
	return r.s.inAttempt(ctx, "SavePartial", id, attempt, func(c *Conversation, run *core.Run) error {
		run.Partial = text
		c.Partials = append(c.Partials, text)
		return nil
	})
}

// StartTools records the start of tools that must not run twice.
func (r Runs) StartTools(ctx context.Context, id core.RunID, attempt int, starts []core.ToolExecution) error {
	return r.s.inAttempt(ctx, "StartTools", id, attempt, func(c *Conversation, run *core.Run) error {
		for _, x := range starts {
			x.RunID, x.SessionID, x.Owner, x.Attempt, x.FinishedAt = run.ID, run.SessionID, run.Owner, run.Attempt, nil
			c.Starts = slices.DeleteFunc(c.Starts, func(old core.ToolExecution) bool { return old.RunID == id && old.CallID == x.CallID })
			c.Starts = append(c.Starts, x)
		}
		return nil
	})
}

// finishTools ends the executions whose results are in the log.
func (c *Conversation) finishTools(run core.RunID, messages []core.Message) {
	for _, m := range messages {
		for i, x := range c.Starts {
			if m.ToolCallID != "" && x.RunID == run && x.CallID == m.ToolCallID {
				now := core.Now()
				c.Starts[i].FinishedAt = &now
			}
		}
	}
}

// ToolExecutions returns what StartTools recorded.
func (r Runs) ToolExecutions(ctx context.Context, id core.RunID) (out []core.ToolExecution, err error) {
	err = r.s.transact(ctx, "ToolExecutions", func() error {
		if run := r.s.runs[id]; run != nil {
			out = slices.DeleteFunc(slices.Clone(r.s.conversations[run.SessionID].Starts), func(x core.ToolExecution) bool { return x.RunID != id })
		}
		return nil
	})
	return out, err
}

// RequestCancel cancels a queued run and marks a running one.
func (r Runs) RequestCancel(ctx context.Context, tenant core.Tenant, id core.RunID) (out core.Run, events []core.Event, err error) {
	err = r.s.inRun(ctx, "RequestCancel", tenant, id, func(c *Conversation, run *core.Run) error {
		switch {
		case run.Status == core.RunWaiting:
			r.s.closeApprovals(c, run, core.ApprovalCanceled)
		case run.Status == core.RunQueued && run.Attempt == 0:
			c.endRun(run, core.RunEnd{Status: core.RunCanceled})
		case !run.Status.Ended():
			run.CancelRequested = true
		}
		out, events = *run, c.fresh
		return nil
	})
	return out, events, err
}
