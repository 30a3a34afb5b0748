package compaction

import (
	"context"
	"errors"
	"slices"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
)

// Enqueue queues the session for background work, whatever the policy's timing: a summary due after
// a run or an import, or one to prepare.
// It returns immediately. It does nothing while Run does not run, or when too many wait:
// the session's next plan asks again. A nil Compactor does nothing.
func (k *Compactor) Enqueue(tenant core.Tenant, id core.SessionID) {
	if k == nil {
		return
	}
	j := k.jobs
	j.mu.Lock()
	defer j.mu.Unlock()
	switch q := j.bySession[id]; {
	case j.start == nil, q == nil && len(j.bySession) >= maxJobs:
	case q != nil:
		q.requeue = q.running
	default:
		q = &job{}
		j.bySession[id] = q
		j.start(core.Tenant{Owner: tenant.Owner}, id, q)
	}
}

// IsDone reports whether a run that has ended with the turn leaves no background work, as most do.
// It loads nothing but pinned messages that the summary covers, and what has been prepared.
func (k *Compactor) IsDone(ctx context.Context, t Turn) bool {
	if k == nil || t.Profile.Policy.Timing == contextwindow.TimingInline {
		return true
	}
	estimate, added := k.Calibrator.Estimate(k.modelOf(t).Name, t.Session.ID), 0
	for _, it := range k.planItems(t, t.Run, k.modelOf(t)) {
		added += it.Tokens + it.Unsaid
	}
	if len(t.Run) <= t.room.Messages && estimate.Apply(added) < t.room.Tokens {
		return true
	}
	t.RunID, t.Recalled, t.Cap = "", nil, 0
	p, quiet, err := k.firstPlan(t, contextwindow.AfterRun)
	if err != nil || quiet || p.d.Summarize != nil || p.d.Activate != nil || p.d.Compacted || contextwindow.MayUseOlder(p.in) {
		return quiet && err == nil
	}
	// A summary is to be prepared, which may have been done.
	work, err := k.Stores.Sessions.SummaryWork(ctx, scopeOf(t), t.Session.ID)
	if err != nil || work.Revision != t.Session.PromptRevision {
		return false
	}
	t.History, t.Run, t.Work = slices.Concat(t.History, t.Run), nil, work
	p, err = k.planTurn(ctx, t, &progress{background: true})
	return err == nil && p.nextOrder() == nil && p.d.Activate == nil && !p.d.Compacted
}

// Run does the background work until ctx ends. Then it starts nothing new, gives the work in
// progress the grace period, and cancels the rest; an unfinished summary leaves nothing
// behind. It returns nil when all work has stopped. Call it once.
func (k *Compactor) Run(ctx context.Context) error {
	if k.Worker != "" { // an earlier process of this replica may have held leases when it died
		freeing, cancel := context.WithTimeout(ctx, storeTimeout)
		if err := k.Stores.Sessions.FreeSummaries(freeing, core.WorkersOf(k.Worker)); err != nil && freeing.Err() == nil {
			k.Logger.WarnContext(ctx, "leases of an earlier process not released, they expire by themselves", "err", err)
		}
		cancel()
	}
	k.jobs.accept(func(tenant core.Tenant, id core.SessionID, q *job) {
		k.jobs.calls.Go(func() { k.runJob(ctx, tenant, id, q) })
	})
	<-ctx.Done()
	k.jobs.accept(nil)
	left := make(chan struct{})
	go func() {
		k.jobs.calls.Wait()
		close(left)
	}()
	grace := time.NewTimer(k.Grace)
	defer grace.Stop()
	select {
	case <-left:
	case <-grace.C:
		k.jobs.stopAll()
		<-left
	}
	return nil
}

// runJob does what is due in a session, a summary at a time: the jobs of other sessions come in between. It
// is dropped when ctx ends while it waits.
func (k *Compactor) runJob(ctx context.Context, tenant core.Tenant, id core.SessionID, q *job) {
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	defer k.jobs.onStop(func() { cancel(core.ErrStopping) })()
	for more := true; more; {
		dropped := k.jobs.workers.Acquire(ctx, 1)
		k.jobs.mu.Lock()
		q.running, q.requeue = true, false
		k.jobs.mu.Unlock()
		if dropped == nil {
			var err error
			more, err = k.advanceSession(work, tenant, id)
			k.jobs.workers.Release(1)
			switch {
			case err == nil, errors.Is(err, core.ErrNotFound), errors.Is(err, core.ErrContextFloor): // the session was deleted; its next run reports the floor
			case errors.Is(err, core.ErrStopping), errors.Is(err, core.ErrStale):
				k.Logger.InfoContext(work, "background summary interrupted", "session_id", id, "err", err)
			default:
				k.Logger.WarnContext(work, "background summary failed", "session_id", id, "err", err)
			}
		}
		k.jobs.mu.Lock()
		q.running, more = false, dropped == nil && (more || q.requeue) && k.jobs.start != nil
		if !more {
			delete(k.jobs.bySession, id)
		}
		k.jobs.mu.Unlock()
	}
}

// SummarizeDue makes the summaries that the session's policy wants outside of runs: after a run,
// prepared ahead, or a prepared one activated. It does nothing where none is due, with the timing
// inline, where another process makes one, and where an optional one failed. Errors: those of the session
// and of storage; the cause of ctx when it is done.
func (k *Compactor) SummarizeDue(ctx context.Context, tenant core.Tenant, id core.SessionID) error {
	t, err := k.loadProfile(ctx, tenant, id, "")
	for more := t.Profile.Policy.Timing != contextwindow.TimingInline; more && err == nil; {
		more, err = k.advanceSession(ctx, tenant, id)
	}
	return err
}

// advanceSession makes at most one summary, in one call, and reports whether there may be
// more to do.
func (k *Compactor) advanceSession(ctx context.Context, tenant core.Tenant, id core.SessionID) (more bool, err error) {
	t, err := k.loadProfile(ctx, tenant, id, "")
	if err != nil {
		return false, err
	}
	if t.Profile.Policy.Timing == contextwindow.TimingInline {
		t.Profile.Policy.Timing = contextwindow.TimingAfterRun
	}
	if t, err = k.loadTurnMessages(ctx, tenant, t); err != nil {
		return false, err
	}
	if _, quiet, err := k.firstPlan(t, contextwindow.AfterRun); err != nil || quiet {
		return false, err
	}
	lease, err := k.acquireLease(ctx, tenant, id)
	if err != nil || lease == nil {
		return false, err
	}
	defer lease.releaseLease(ctx)
	for e := (&progress{background: true, lease: lease}); ; e.conflicts++ {
		_, err = k.makeNext(ctx, t, e)
		if !errors.Is(err, core.ErrStale) || e.conflicts >= maxReloads {
			return err == nil && e.committed.ID != "", err
		}
	}
}

// firstPlan plans the turn, and reports whether that leaves nothing to carry out: so it is for most
// prompts and after most runs. The work on summaries, which need not be loaded then, only defers what
// a trigger asks for, or shows that it has been done, as it does where it was loaded before.
func (k *Compactor) firstPlan(t Turn, phase contextwindow.Phase) (p plan, done bool, err error) {
	in, err := k.planInput(t)
	if err != nil {
		return plan{}, false, err
	}
	if phase == contextwindow.AfterRun && t.RunID == "" { // the run has ended
		in.History, in.Run = append(in.History, in.Run...), nil
	}
	in.Phase, in.NoSummary, in.NoLoop = phase, t.Trial, t.Trial
	if w := t.Work; w.Revision == t.Session.PromptRevision {
		if w.Prepared.Version > 0 {
			in.Versions = []core.SummaryVersion{w.Prepared}
		}
		in.Resting = w.Breaker.Until != nil && time.Now().Before(*w.Breaker.Until)
	}
	p = newPlan(in)
	return p, t.Trial || p.nextOrder() == nil && p.d.Activate == nil && !p.d.Compacted && !contextwindow.MayUseOlder(in), nil
}
