package coretest

import (
	"context"
	"slices"
	"time"

	"bobbin/app/core"
)

// Approvals returns the approvals of a run, or those of the calls.
func (r Runs) Approvals(ctx context.Context, id core.RunID, calls ...string) (out []core.Approval, err error) {
	err = r.s.transact(ctx, "Approvals", func() error {
		out = slices.DeleteFunc(slices.Clone(r.s.approvals[id]), func(a core.Approval) bool { return len(calls) > 0 && !slices.Contains(calls, a.ToolCallID) })
		return nil
	})
	return out, err
}

// Allowed returns the definitions of the tools that were approved for the rest of the session.
func (r Runs) Allowed(ctx context.Context, session core.SessionID, tools []string) (map[string]bool, error) {
	allowed := map[string]bool{}
	err := r.s.transact(ctx, "Allowed", func() error {
		for _, all := range r.s.approvals {
			for _, a := range all {
				if a.SessionID == session && slices.Contains(tools, a.Tool) && a.Mode == core.ApprovalFirst && a.Status == core.ApprovalApproved {
					allowed[a.Definition] = true
				}
			}
		}
		return nil
	})
	return allowed, err
}

// Decide decides an open approval.
func (r Runs) Decide(ctx context.Context, tenant core.Tenant, run core.RunID, id core.ApprovalID, d core.ApprovalDecision) (out core.Decided, err error) {
	err = r.s.inRun(ctx, "Decide", tenant, run, func(c *Conversation, run *core.Run) error {
		all := r.s.approvals[run.ID]
		i := slices.IndexFunc(all, func(a core.Approval) bool { return a.ID == id })
		if i < 0 {
			return core.Errorf(core.ErrNotFound, "approval %s does not exist", id)
		}
		if err := c.decide(&all[i], d); err != nil {
			return err
		}
		r.s.requeue(run)
		out = core.Decided{Approval: all[i], Run: *run, Events: c.fresh}
		return nil
	})
	return out, err
}

// decide decides an approval, unless it was decided so before.
func (c *Conversation) decide(a *core.Approval, d core.ApprovalDecision) error {
	switch {
	case a.Status != core.ApprovalOpen && a.Repeats(d):
		return nil
	case a.Status != core.ApprovalOpen:
		return &core.Error{Kind: core.ErrConflict, Message: "approval " + string(a.ID) + " is no longer open"}
	}
	decided, err := a.Decide(d)
	if err == nil {
		*a = decided
		c.settle(a, a.Status, a.Comment, a.DecidedBy)
	}
	return err
}

// AnswerCalls gives calls of a client's tools their results, all of them or none.
func (r Runs) AnswerCalls(ctx context.Context, tenant core.Tenant, in core.AnswerCalls) (out core.Decided, err error) {
	err = r.s.inSession(ctx, "AnswerCalls", tenant, in.SessionID, func(c *Conversation) error {
		id, err := r.s.answerCalls(c, in)
		if err != nil {
			return err
		}
		run := r.s.runs[id]
		r.s.requeue(run)
		out = core.Decided{Run: *run, Events: c.fresh}
		return nil
	})
	return out, err
}

// answerCalls gives the calls their results, and returns their run.
func (s *Store) answerCalls(c *Conversation, in core.AnswerCalls) (run core.RunID, err error) {
	var asked []*core.Approval
	for _, result := range in.Results {
		a := s.clientCall(in.SessionID, result.ToolCallID)
		if a == nil {
			return "", &core.Error{Kind: core.ErrNotFound, Code: core.CodeNoToolCall, Message: "there is no such call"}
		}
		if a.Status != core.ApprovalOpen && !a.Repeats(decisionOf(result, in.By)) {
			return "", &core.Error{Kind: core.ErrConflict, Code: core.CodeCallDecided, Message: "the call is decided"}
		}
		asked = append(asked, a)
	}
	for i, result := range in.Results {
		run = asked[i].RunID
		if err := c.decide(asked[i], decisionOf(result, in.By)); err != nil {
			return run, err
		}
	}
	return run, nil
}

func decisionOf(r core.CallResult, by string) core.ApprovalDecision {
	return core.ApprovalDecision{Result: &r.Result, IsError: r.IsError, By: by}
}

// clientCall returns the newest question for the result of a call; nil if there is none.
func (s *Store) clientCall(session core.SessionID, call string) *core.Approval {
	for _, run := range slices.Backward(s.runsOf(session)) {
		for i, a := range s.approvals[run.ID] {
			if a.ToolCallID == call && a.Kind == core.KindClientTool {
				return &s.approvals[run.ID][i]
			}
		}
	}
	return nil
}

// ExpireApprovals closes the expired approvals of at most limit runs.
func (r Runs) ExpireApprovals(ctx context.Context, limit int) (out []core.Event, err error) {
	err = r.s.transact(ctx, "ExpireApprovals", func() error {
		runs := 0
		for id, all := range r.s.approvals {
			run := r.s.runs[id]
			c, from := r.s.conversations[run.SessionID], len(r.s.conversations[run.SessionID].fresh)
			for i, a := range all {
				if runs < limit && a.Status == core.ApprovalOpen && a.ExpiresAt != nil && !a.ExpiresAt.After(time.Now()) {
					c.settle(&all[i], core.ApprovalExpired, core.ApprovalTooLate, "")
				}
			}
			if len(c.fresh) > from {
				runs++
				r.s.requeue(run)
				out = append(out, c.fresh[from:]...)
			}
		}
		return nil
	})
	return out, err
}

// setWaiting lets the run wait for its approvals. A call that was asked for already is not asked
// for again.
func (s *Store) setWaiting(c *Conversation, run *core.Run, w core.RunWait) {
	run.Status, run.LeaseOwner, run.LeaseUntil, run.Deaths = core.RunWaiting, "", nil, 0
	for _, a := range w.Approvals {
		if before, found := core.ApprovalOf(s.approvals[run.ID], nil, core.ToolCall{ID: a.ToolCallID}); found {
			if before.Definition == a.Definition {
				continue
			}
			i := slices.IndexFunc(s.approvals[run.ID], func(old core.Approval) bool { return old.ID == before.ID })
			c.settle(&s.approvals[run.ID][i], core.ApprovalClosed, core.ApprovalChanged, before.DecidedBy)
		}
		a.ID, a.RunID, a.SessionID = core.NewID[core.ApprovalID](), run.ID, run.SessionID
		a.Status, a.RequestedAt = core.ApprovalOpen, core.Now()
		if w.Expiry > 0 {
			at := time.Now().Add(w.Expiry)
			a.ExpiresAt = &at
		}
		s.approvals[run.ID] = append(s.approvals[run.ID], a)
		c.emit(core.NewEvent(run.SessionID, run.ID, core.EventApprovalRequested, core.ApprovalData{Approval: a}))
	}
	c.emitRun(core.EventRunWaiting, run)
	s.requeue(run) // it continues if all are already decided
}

// settle sets the status of an open approval.
func (c *Conversation) settle(a *core.Approval, status core.ApprovalStatus, comment, by string) {
	now := core.Now()
	a.Status, a.Comment, a.DecidedBy, a.DecidedAt = status, comment, by, &now
	c.emit(core.NewEvent(a.SessionID, a.RunID, core.EventApprovalDecided, core.ApprovalData{Approval: *a}))
}

// requeue queues a waiting run without open approvals.
func (s *Store) requeue(run *core.Run) {
	open := slices.ContainsFunc(s.approvals[run.ID], func(a core.Approval) bool { return a.Status == core.ApprovalOpen })
	if run.Status == core.RunWaiting && !open {
		run.Status = core.RunQueued
	}
}

// closeApprovals ends the wait of a run that is to be canceled.
func (s *Store) closeApprovals(c *Conversation, run *core.Run, why string) {
	for i, a := range s.approvals[run.ID] {
		if a.Status == core.ApprovalOpen {
			c.settle(&s.approvals[run.ID][i], core.ApprovalClosed, why, "")
		}
	}
	run.CancelRequested = true
	s.requeue(run)
}
