package coretest

import (
	"context"
	"maps"
	"slices"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/conversation"
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
		change, err := conversation.Decide(r.s.stateOf(run), id, d)
		if err == nil {
			r.s.apply(c, change)
			out = core.Decided{Approval: change.Approval, Run: change.Run, Events: c.fresh}
		}
		return err
	})
	return out, err
}

// AnswerCalls gives calls of a client's tools their results, all of them or none.
func (r Runs) AnswerCalls(ctx context.Context, tenant core.Tenant, in core.AnswerCalls) (out core.Decided, err error) {
	err = r.s.inSession(ctx, "AnswerCalls", tenant, in.SessionID, func(c *Conversation) error {
		change, err := conversation.AnswerCalls(r.s.stateOfCalls(in.SessionID, in.Results, false), in)
		if err == nil {
			r.s.apply(c, change)
			out = core.Decided{Run: change.Run, Events: c.fresh}
		}
		return err
	})
	return out, err
}

// ExpireApprovals closes the expired approvals of at most limit runs.
func (r Runs) ExpireApprovals(ctx context.Context, limit int) (out []core.Event, err error) {
	err = r.s.transact(ctx, "ExpireApprovals", func() error {
		for id := range r.s.approvals {
			run := r.s.runs[id]
			if change := conversation.Expire(r.s.stateOf(run)); len(change.Events) > 0 && limit > 0 {
				limit--
				c := r.s.conversations[run.SessionID]
				from := len(c.fresh)
				r.s.apply(c, change)
				out = append(out, c.fresh[from:]...)
			}
		}
		return nil
	})
	return out, err
}

// stateOf returns a run and its approvals, for a decision about them.
func (s *Store) stateOf(run *core.Run) conversation.State {
	return conversation.State{Run: *run, Approvals: s.approvals[run.ID], Now: time.Now()}
}

// stateOfCalls returns the approvals of the runs that have the calls, with those of a waiting run,
// and the newest of these runs.
func (s *Store) stateOfCalls(session core.SessionID, results []core.CallResult, waiting bool) (out conversation.State) {
	for _, run := range s.runsOf(session) {
		asked := slices.ContainsFunc(s.approvals[run.ID], func(a core.Approval) bool {
			return a.Kind == core.KindClientTool && slices.ContainsFunc(results, func(r core.CallResult) bool { return r.ToolCallID == a.ToolCallID })
		})
		if asked || waiting && run.Status == core.RunWaiting {
			out.Run, out.Approvals = *run, append(out.Approvals, s.approvals[run.ID]...)
		}
	}
	return out
}

// apply stores what was decided.
func (s *Store) apply(c *Conversation, change conversation.Change) {
	if run := s.runs[change.Run.ID]; run != nil {
		*run = change.Run
	}
	all := map[core.RunID][]core.Approval{}
	for _, a := range change.Approvals {
		all[a.RunID] = append(all[a.RunID], a)
	}
	maps.Copy(s.approvals, all)
	c.emit(change.Events...)
}
