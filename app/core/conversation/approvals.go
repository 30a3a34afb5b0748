package conversation

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"bobbin/app/core"
)

// Decide decides an approval of the run. The first decision counts: repeating it changes
// nothing, and a different one is ErrConflict, which says who decided what. After the last open
// approval the run is queued again.
func Decide(s State, id core.ApprovalID, d core.ApprovalDecision) (Change, error) {
	c := changeOf(s)
	i := slices.IndexFunc(c.Approvals, func(a core.Approval) bool { return a.ID == id })
	if i < 0 {
		return c, core.Errorf(core.ErrNotFound, "approval %s does not exist", id)
	}
	err := c.decide(&c.Approvals[i], d)
	c.Approval = c.Approvals[i]
	c.requeue()
	return c, err
}

// AnswerCalls gives calls of a client's tools their results, as Decide does; another one than the
// first is ErrConflict with core.CodeCallDecided.
func AnswerCalls(s State, in core.AnswerCalls) (Change, error) {
	c := changeOf(s)
	err := c.answer(in)
	if in.Options != nil && len(c.Changed) > 0 {
		c.Run.Options = c.Run.Options.Then(*in.Options, in.Results[0].ToolCallID, s.Session.LastEventSeq)
	}
	c.requeue()
	return c, err
}

// answer gives the calls their results.
func (c *Change) answer(in core.AnswerCalls) error {
	var run core.RunID
	for _, r := range in.Results {
		i := len(c.Approvals) - 1 // two runs may have calls of one id: the newest counts
		for i >= 0 && (c.Approvals[i].ToolCallID != r.ToolCallID || c.Approvals[i].Kind != core.KindClientTool) {
			i--
		}
		switch {
		case i < 0:
			return &core.Error{Kind: core.ErrNotFound, Code: core.CodeNoToolCall,
				Message: fmt.Sprintf("the session has no call %q of a client's tool", core.Clip(r.ToolCallID, 64))}
		case run != "" && c.Approvals[i].RunID != run:
			return core.Errorf(core.ErrInvalid, "the results are of calls of several runs: send those of one run")
		}
		run = c.Approvals[i].RunID
		err := c.decide(&c.Approvals[i], core.ApprovalDecision{Result: &r.Result, IsError: r.IsError, By: in.By})
		if e, ok := errors.AsType[*core.Error](err); ok && errors.Is(err, core.ErrConflict) {
			e.Code = core.CodeCallDecided
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Wait lets the run wait for approvals. A call is requested once, and again if its tool has
// changed; the question before ends then. The run continues if all are already decided.
// ErrCanceled for a run that is to be canceled.
func Wait(s State, w core.RunWait) (Change, error) {
	c := changeOf(s)
	if s.Run.CancelRequested {
		return c, core.Errorf(core.ErrCanceled, "run %s is to be canceled", s.Run.ID)
	}
	c.Run.Status, c.Run.LeaseOwner, c.Run.LeaseUntil = core.RunWaiting, "", nil
	c.Run.Deaths = 0 // a run that gets this far does not crash its process
	for _, a := range w.Approvals {
		if before, found := core.ApprovalOf(c.Approvals, nil, core.ToolCall{ID: a.ToolCallID}); found {
			if before.Definition == a.Definition {
				continue
			}
			i := slices.IndexFunc(c.Approvals, func(a core.Approval) bool { return a.ID == before.ID })
			c.Approvals[i].Status, c.Approvals[i].Comment = core.ApprovalClosed, core.ApprovalChanged
			c.settle(&c.Approvals[i])
		}
		a.ID, a.RunID, a.SessionID = core.NewID[core.ApprovalID](), s.Run.ID, s.Run.SessionID
		a.Status, a.RequestedAt = core.ApprovalOpen, core.Now()
		if w.Expiry > 0 {
			a.ExpiresAt = new(s.Now.Add(w.Expiry))
		}
		c.Changed, c.Approvals = append(c.Changed, a), append(c.Approvals, a)
		c.Events = append(c.Events, core.NewEvent(a.SessionID, a.RunID, core.EventApprovalRequested, core.ApprovalData{Approval: a}))
	}
	c.Events = append(c.Events, runEvent(core.EventRunWaiting, c.Run))
	c.requeue()
	return c, nil
}

// Expire closes the approvals of the run whose time has passed.
func Expire(s State) Change {
	c := changeOf(s)
	c.close(core.ApprovalExpired, core.ApprovalTooLate, func(a core.Approval) bool { return a.ExpiresAt != nil && !a.ExpiresAt.After(s.Now) })
	return c
}

// decide decides one of c.Approvals.
func (c *Change) decide(a *core.Approval, d core.ApprovalDecision) error {
	if a.Status == core.ApprovalOpen {
		decided, err := a.Decide(d)
		if err == nil {
			*a = decided
			c.settle(a)
		}
		return err
	}
	if again, err := a.Decide(d); err == nil && again.Status == a.Status && again.Edited == a.Edited && again.Result == a.Result && again.Failed == a.Failed {
		return nil // it repeats the decision that was made
	}
	words := string(a.Status)
	if a.DecidedBy != "" {
		words += " by " + a.DecidedBy
	}
	if a.DecidedAt != nil {
		words += " at " + a.DecidedAt.Format(time.RFC3339)
	}
	if a.Comment != "" {
		words += ": " + a.Comment
	}
	e := core.Errorf(core.ErrConflict, "approval %s is no longer open: it was %s", a.ID, words)
	if a.Status == core.ApprovalApproved || a.Status == core.ApprovalDenied || a.Status == core.ApprovalAnswered {
		e.Code = core.CodeCallDecided
	}
	return e
}

// close settles the open approvals of the run that match.
func (c *Change) close(status core.ApprovalStatus, comment string, match func(core.Approval) bool) {
	for i := range c.Approvals {
		if a := &c.Approvals[i]; a.RunID == c.Run.ID && a.Status == core.ApprovalOpen && match(*a) {
			a.Status, a.Comment = status, comment
			c.settle(a)
		}
	}
	c.requeue()
}

// settle records what one of c.Approvals has become.
func (c *Change) settle(a *core.Approval) {
	a.DecidedAt = new(core.Now())
	c.Changed = append(c.Changed, *a)
	c.Events = append(c.Events, core.NewEvent(a.SessionID, a.RunID, core.EventApprovalDecided, core.ApprovalData{Approval: *a}))
}

// requeue queues the run again if it waits without an open approval.
func (c *Change) requeue() {
	open := func(a core.Approval) bool { return a.RunID == c.Run.ID && a.Status == core.ApprovalOpen }
	if c.Run.Status == core.RunWaiting && !slices.ContainsFunc(c.Approvals, open) {
		c.Run.Status = core.RunQueued
	}
}
