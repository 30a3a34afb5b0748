package runstest

import (
	"context"
	"slices"
	"time"

	"bobbin/app/core"
)

// Approvals returns the questions of a run.
func (s Runs) Approvals(ctx context.Context, id core.RunID) ([]core.Approval, error) {
	var out []core.Approval
	err := s.db.do(ctx, "Approvals", func() error {
		out = slices.Clone(s.db.approvals[id])
		return nil
	})
	return out, err
}

// Allowed returns which of the tools were approved in the session, asked for once.
func (s Runs) Allowed(ctx context.Context, session core.SessionID, tools []string) (map[string]bool, error) {
	allowed := map[string]bool{}
	err := s.db.do(ctx, "Allowed", func() error {
		for _, all := range s.db.approvals {
			for _, a := range all {
				if a.SessionID == session && slices.Contains(tools, a.Tool) && a.Mode == core.ApprovalFirst && a.Status == core.ApprovalApproved {
					allowed[a.Tool] = true
				}
			}
		}
		return nil
	})
	return allowed, err
}

// Decide answers a question that is open.
func (s Runs) Decide(ctx context.Context, scope core.Scope, run core.RunID, id core.ApprovalID, d core.ApprovalDecision) (core.Decided, error) {
	var out core.Decided
	err := s.db.do(ctx, "Decide", func() error {
		r, err := s.find(scope, run)
		if err != nil {
			return err
		}
		l := s.db.sessions[r.SessionID]
		at := slices.IndexFunc(s.db.approvals[run], func(a core.Approval) bool { return a.ID == id })
		switch {
		case at < 0:
			return core.Errorf(core.ErrNotFound, "approval %s does not exist", id)
		case s.db.approvals[run][at].Status == core.ApprovalOpen:
			s.settle(l, r, d.Status(), d.Comment, func(a core.Approval) bool { return a.ID == id })
		case s.db.approvals[run][at].Status != d.Status():
			return core.Errorf(core.ErrConflict, "approval %s is not open any more", id)
		}
		out = core.Decided{Approval: s.db.approvals[run][at], Run: *r, Events: l.fresh}
		return nil
	})
	return out, err
}

// ExpireApprovals closes questions that are too old.
func (s Runs) ExpireApprovals(ctx context.Context, _ int) ([]core.Event, error) {
	var out []core.Event
	err := s.db.do(ctx, "ExpireApprovals", func() error {
		for id := range s.db.approvals {
			r := s.db.runs[id]
			l := s.db.sessions[r.SessionID]
			s.settle(l, r, core.ApprovalExpired, core.ApprovalTooLate, func(a core.Approval) bool {
				return a.ExpiresAt != nil && !a.ExpiresAt.After(time.Now())
			})
			out = append(out, l.fresh...)
			l.fresh = nil
		}
		return nil
	})
	return out, err
}

// wait lets the run wait.
func (s Runs) wait(l *log, r *core.Run, w core.RunWait) {
	r.Status, r.LeaseOwner, r.LeaseUntil = core.RunWaiting, "", nil
	for _, a := range w.Approvals {
		a.ID, a.RunID, a.SessionID = core.NewID[core.ApprovalID](), r.ID, r.SessionID
		a.Status, a.RequestedAt = core.ApprovalOpen, core.Now()
		if w.Expiry > 0 {
			at := time.Now().Add(w.Expiry)
			a.ExpiresAt = &at
		}
		s.db.approvals[r.ID] = append(s.db.approvals[r.ID], a)
		l.emit(core.NewEvent(r.SessionID, r.ID, core.EventApprovalRequested, core.ApprovalData{Approval: a}))
	}
	l.emit(core.NewEvent(r.SessionID, r.ID, core.EventRunWaiting, core.RunData{Run: *r}))
}

// settle gives those open questions of the run that match another status, and queues
// the run if none is left.
func (s Runs) settle(l *log, r *core.Run, status core.ApprovalStatus, comment string, match func(core.Approval) bool) {
	left := 0
	for i, a := range s.db.approvals[r.ID] {
		switch {
		case a.Status != core.ApprovalOpen:
		case match(a):
			a.Status, a.Comment = status, comment
			s.db.approvals[r.ID][i] = a
			l.emit(core.NewEvent(r.SessionID, r.ID, core.EventApprovalDecided, core.ApprovalData{Approval: a}))
		default:
			left++
		}
	}
	if left == 0 && r.Status == core.RunWaiting {
		r.Status = core.RunQueued
	}
}

// closeOpen ends the waiting of a run that is to be canceled.
func (s Runs) closeOpen(l *log, r *core.Run, why string) {
	s.settle(l, r, core.ApprovalClosed, why, func(core.Approval) bool { return true })
	r.CancelRequested = true
}
