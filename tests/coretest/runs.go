package coretest

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/conversation"
)

// Runs are the runs of a Store.
type Runs struct {
	core.RunStore // the methods that no test calls
	s             *Store
}

// Reports returns the reports of the newest runs that have one.
func (r Runs) Reports(ctx context.Context, tenant core.Tenant, session core.SessionID, limit int) (list []core.RunReport, older int, err error) {
	err = r.s.inSession(ctx, "Reports", tenant, session, func(*Conversation) error {
		for _, run := range r.s.runsOf(session) {
			if len(run.Context) == 0 {
				continue
			}
			report := core.RunReport{RunID: run.ID, At: run.CreatedAt}
			if err := json.Unmarshal(run.Context, &report.Report); err != nil {
				return err
			}
			list = append(list, report)
		}
		older = max(len(list)-limit, 0)
		list = list[older:]
		return nil
	})
	return list, older, err
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
			return conversation.StaleRun(id)
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
		state := r.s.stateOfCalls(in.SessionID, in.Results.Results, true)
		r.s.count(c, &state, in)
		if err := conversation.Admit(state, in); err != nil {
			return err
		}
		change, err := conversation.Accept(state, in)
		if err != nil {
			return err
		}
		out = core.Accepted{Run: r.s.enqueue(c, change), Message: change.Message, Instead: change.Instead}
		r.s.apply(c, change)
		if out.Run.Status == core.RunRunning {
			out.Message = c.appendMessages([]core.Message{change.Message}, out.Run.ID)[0]
		}
		out.Session, out.Events, out.Known = c.Session, c.fresh, c.Session.LastEventSeq
		return nil
	})
	return out, err
}

// count adds to the state of a session what decides whether a message is accepted.
func (s *Store) count(c *Conversation, state *conversation.State, in core.AcceptRun) {
	state.Session, state.LastQueue, state.Now = c.Session, c.queueSeq, time.Now()
	for _, run := range s.runs {
		switch {
		case run.SessionID != in.SessionID:
		case run.Status == core.RunQueued:
			state.Queued++
		case isActive(run):
			state.Active++
		}
		if run.Owner == c.Session.Owner && (run.Status == core.RunQueued || run.Status == core.RunRunning) {
			state.Owned++
			if in.User != "" && run.User == in.User {
				state.OfUser++
			}
		}
	}
}

// enqueue stores the accepted run of a change.
func (s *Store) enqueue(c *Conversation, change conversation.Change) core.Run {
	run := *change.Accepted
	s.runs[run.ID], c.queueSeq = &run, run.QueueSeq
	return run
}

// messageOf returns the run's message, as stored if it is in the log.
func (c *Conversation) messageOf(run *core.Run) core.Message {
	if i := c.indexOf(run.UserMessageID); i >= 0 {
		return c.Messages[i]
	}
	return run.UserMessage()
}

// Write stores a step of a run.
func (r Runs) Write(ctx context.Context, w core.RunWrite) (out core.Written, err error) {
	known := false
	err = r.s.transact(ctx, "Write", func() error {
		last, run := r.s.writes[w.RunID], r.s.runs[w.RunID]
		if known = w.ID != "" && last.id == w.ID && last.attempt == w.Attempt && run.Attempt == w.Attempt; known {
			out = last.written
			return nil
		}
		if run == nil || run.SessionID != w.SessionID || run.Attempt != w.Attempt || run.Status != core.RunRunning {
			return conversation.StaleRun(w.RunID)
		}
		var err error
		if out, err = r.s.storeWrite(r.s.conversations[run.SessionID], *run, w); err == nil {
			r.s.writes[w.RunID] = lastWrite{w.ID, w.Attempt, out}
		}
		return err
	})
	return out, err
}

// storeWrite is Write for a write of the run's current attempt.
func (s *Store) storeWrite(c *Conversation, run core.Run, w core.RunWrite) (core.Written, error) {
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
	change, err := conversation.Change{Run: run}, conversation.CheckWrite(w)
	switch {
	case err == nil && w.Wait != nil:
		change, err = conversation.Wait(conversation.State{Run: run, Approvals: s.approvals[run.ID], Now: time.Now()}, *w.Wait)
	case err == nil && w.End != nil:
		change.Run = conversation.End(run, *w.End)
		change.Events = []core.Event{conversation.EndEvent(change.Run)}
	}
	if err != nil {
		return core.Written{}, err
	}
	c.Writes = append(c.Writes, w)
	known := w.Known == any(c.Session.LastEventSeq)
	c.Calls = append(c.Calls, w.ModelCalls...)
	stored := c.appendMessages(w.Messages, run.ID)
	c.finishTools(run.ID, stored)
	for _, e := range w.Events {
		e.RunID = cmp.Or(e.RunID, run.ID)
		c.emit(e)
	}
	s.apply(c, change)
	out := core.Written{Messages: stored, Events: c.fresh, Run: change.Run, MoreQueued: c.queueSeq > run.QueueSeq}
	if known {
		out.Known = c.Session.LastEventSeq
	}
	return out, nil
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
		r.s.apply(c, conversation.Cancel(r.s.stateOf(run)))
		out, events = *run, c.fresh
		return nil
	})
	return out, events, err
}
