package coretest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/conversation"
)

// leaseRun leases the run's next attempt to the worker.
func (s *Store) leaseRun(run *core.Run, worker string) {
	until := time.Now().Add(core.RunLease)
	run.Attempt++
	run.LeaseOwner, run.LeaseUntil = worker, &until
}

// endLease leaves a run without a worker.
func endLease(run *core.Run) {
	now := time.Now()
	run.LeaseOwner, run.LeaseUntil = "", &now
}

// Claim starts the session's oldest queued run, if none is active.
func (r Runs) Claim(ctx context.Context, session core.SessionID, worker string) (out core.Claimed, err error) {
	err = r.s.transact(ctx, "Claim", func() error {
		state := conversation.State{Session: core.Session{ID: session}, Now: time.Now()}
		for _, run := range r.s.runsOf(session) {
			if isActive(run) || run.Status == core.RunQueued && state.Run.ID == "" {
				state.Run = *run
			}
		}
		change, err := conversation.Claim(state, worker)
		if err != nil {
			return err
		}
		c := r.s.conversations[session]
		r.s.apply(c, change)
		message := c.appendMessages([]core.Message{change.Run.UserMessage()}, change.Run.ID)[0]
		out = core.Claimed{Run: change.Run, Session: r.s.withRuns(c), Message: message, Events: c.fresh, Known: c.Session.LastEventSeq}
		out.Run.Resumed = change.Run.Attempt > 1
		return nil
	})
	return out, err
}

// TakeOver leases runs without an owner to the worker, the oldest first.
func (r Runs) TakeOver(ctx context.Context, t core.TakeOver) (out []core.Run, err error) {
	err = r.s.transact(ctx, "TakeOver", func() error {
		for _, run := range r.s.orphans(t.Worker, t.Lapsed) {
			deaths := deathsAfter(run, t.Worker)
			if deaths != t.Deaths || len(out) == t.Limit {
				continue
			}
			if run.Deaths = deaths; t.Later {
				run.Deaths--
			}
			r.s.leaseRun(run, t.Worker)
			out = append(out, *run)
		}
		return nil
	})
	return out, err
}

// Due counts the runs that TakeOver would lease, by their deaths.
func (r Runs) Due(ctx context.Context, worker string, lapsed bool) (map[int]int, error) {
	out := map[int]int{}
	err := r.s.transact(ctx, "Due", func() error {
		for _, run := range r.s.orphans(worker, lapsed) {
			out[deathsAfter(run, worker)]++
		}
		return nil
	})
	return out, err
}

// orphans returns the running runs without a live worker, the oldest first.
func (s *Store) orphans(worker string, lapsed bool) (out []*core.Run) {
	for _, run := range s.runs {
		past := run.LeaseUntil == nil || !run.LeaseUntil.After(time.Now())
		former := run.LeaseOwner != worker && strings.HasPrefix(run.LeaseOwner+"/", core.WorkersOf(worker))
		if run.Status == core.RunRunning && (run.LeaseOwner == "" || former || lapsed && past) {
			out = append(out, run)
		}
	}
	slices.SortFunc(out, func(a, b *core.Run) int { return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID)) })
	return out
}

// deathsAfter returns the deaths of an orphan after the worker has taken it over.
func deathsAfter(run *core.Run, worker string) int {
	if run.LeaseOwner == "" || run.LeaseOwner == worker {
		return run.Deaths
	}
	return run.Deaths + 1
}

// CountDeath stores the deaths of a run that was taken over.
func (r Runs) CountDeath(ctx context.Context, run core.RunID, attempt, deaths int) error {
	return r.s.inAttempt(ctx, "CountDeath", run, attempt, func(_ *Conversation, run *core.Run) error {
		run.Deaths = deaths
		return nil
	})
}

// Waiting returns sessions that have queued runs and no active one, the longest waiting first.
func (r Runs) Waiting(ctx context.Context, limit int) (out []core.SessionID, err error) {
	err = r.s.transact(ctx, "Waiting", func() error {
		since, active := map[core.SessionID]time.Time{}, map[core.SessionID]bool{}
		for _, run := range r.s.runs {
			if at, ok := since[run.SessionID]; run.Status == core.RunQueued && (!ok || run.CreatedAt.Before(at)) {
				since[run.SessionID] = run.CreatedAt
			}
			active[run.SessionID] = active[run.SessionID] || isActive(run)
		}
		maps.DeleteFunc(since, func(id core.SessionID, _ time.Time) bool { return active[id] })
		out = slices.SortedFunc(maps.Keys(since), func(a, b core.SessionID) int {
			return cmp.Or(since[a].Compare(since[b]), cmp.Compare(a, b))
		})
		out = out[:min(limit, len(out))]
		return nil
	})
	return out, err
}

// Renew renews leases and returns the runs that the worker no longer owns.
func (r Runs) Renew(ctx context.Context, worker string, runs []core.RunID) (lost []core.RunID, err error) {
	err = r.s.transact(ctx, "Renew", func() error {
		until := time.Now().Add(core.RunLease)
		for _, id := range runs {
			if run := r.s.runs[id]; run != nil && run.Status == core.RunRunning && run.LeaseOwner == worker {
				run.LeaseUntil = &until
			} else {
				lost = append(lost, id)
			}
		}
		return nil
	})
	return lost, err
}

// Yield gives back a run.
func (r Runs) Yield(ctx context.Context, run core.RunID, attempt int) error {
	return r.s.inAttempt(ctx, "Yield", run, attempt, func(_ *Conversation, run *core.Run) error {
		endLease(run)
		run.GiveBacks++
		return nil
	})
}

// Release ends the worker's leases of the runs, or all if none is named.
func (r Runs) Release(ctx context.Context, worker string, runs ...core.RunID) error {
	return r.s.transact(ctx, "Release", func() error {
		for _, run := range r.s.leased(worker) {
			if len(runs) == 0 || slices.Contains(runs, run.ID) {
				endLease(run)
			}
		}
		return nil
	})
}

// CancelRequested returns the worker's runs that are to be canceled.
func (r Runs) CancelRequested(ctx context.Context, worker string) (out []core.RunID, err error) {
	err = r.s.transact(ctx, "CancelRequested", func() error {
		for _, run := range r.s.leased(worker) {
			if run.CancelRequested {
				out = append(out, run.ID)
			}
		}
		slices.Sort(out)
		return nil
	})
	return out, err
}

// leased returns the running runs of the worker.
func (s *Store) leased(worker string) (out []*core.Run) {
	for _, run := range s.runs {
		if run.Status == core.RunRunning && run.LeaseOwner == worker {
			out = append(out, run)
		}
	}
	return out
}

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
	out.Session = s.conversations[session].Session
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
