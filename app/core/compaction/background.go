package compaction

import (
	"context"
	"errors"
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
	switch _, found := j.bySession[id]; {
	case found:
		j.bySession[id] = true
	case j.start != nil && len(j.bySession) < maxJobs:
		j.bySession[id] = false
		j.start(core.Tenant{Owner: tenant.Owner}, id)
	}
}

// IsDone reports whether a run that has ended with the turn leaves no background work, as most do: what
// it added to its last prompt has room before every trigger. It loads nothing.
func (k *Compactor) IsDone(t Turn) bool {
	if k == nil || t.Profile.Policy.Timing == contextwindow.TimingInline {
		return true
	}
	estimate, added := k.Calibrator.Estimate(k.modelOf(t).Name, t.Session.ID), 0
	for _, it := range k.planItems(t, t.Run, k.modelOf(t)) {
		added += it.Tokens + it.Unsaid
	}
	return len(t.Run) <= t.room.Messages && estimate.Apply(added) < t.room.Tokens
}

// Run does the background work until ctx ends. Then it starts nothing new, gives the work in
// progress the grace period, and cancels the rest; an unfinished summary leaves nothing
// behind. It returns nil when all work has stopped. Call it once.
func (k *Compactor) Run(ctx context.Context) error {
	k.jobs.accept(func(tenant core.Tenant, id core.SessionID) {
		k.jobs.calls.Go(func() { k.runJob(ctx, tenant, id) })
	})
	<-ctx.Done()
	k.jobs.accept(nil)
	defer time.AfterFunc(k.Grace, k.jobs.stopAll).Stop()
	k.jobs.calls.Wait()
	return nil
}

// runJob does what is due in a session, a summary at a time: the jobs of other sessions come in between. It
// is dropped when ctx ends while it waits.
func (k *Compactor) runJob(ctx context.Context, tenant core.Tenant, id core.SessionID) {
	j := k.jobs
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	defer j.onStop(func() { cancel(core.ErrStopping) })()
	for more := true; more; {
		dropped := j.workers.Acquire(ctx, 1)
		j.mu.Lock()
		j.bySession[id] = false
		j.mu.Unlock()
		if dropped == nil {
			var err error
			more, err = k.advanceSession(work, tenant, id)
			j.workers.Release(1)
			switch {
			case err == nil, errors.Is(err, core.ErrNotFound), errors.Is(err, core.ErrContextFloor): // the session was deleted; its next run reports the floor
			case errors.Is(err, core.ErrStopping), errors.Is(err, core.ErrStale):
				k.Logger.InfoContext(work, "background summary interrupted", "session_id", id, "err", err)
			default:
				k.Logger.WarnContext(work, "background summary failed", "session_id", id, "err", err)
			}
		}
		j.mu.Lock()
		if more = dropped == nil && (more || j.bySession[id]) && j.start != nil; !more {
			delete(j.bySession, id)
		}
		j.mu.Unlock()
	}
}

// SummarizeDue makes the summaries that the session's policy wants outside of runs: after a run,
// prepared ahead, or a prepared one activated. It does nothing where none is due, with the timing
// inline, where another process makes one, and where an optional one failed. Errors: those of the session
// and of storage; the cause of ctx when it is done.
func (k *Compactor) SummarizeDue(ctx context.Context, tenant core.Tenant, id core.SessionID) error {
	t, err := k.loadProfile(ctx, tenant, id, core.PlanPreview{})
	for more := t.Profile.Policy.Timing != contextwindow.TimingInline; more && err == nil; {
		more, err = k.advanceSession(ctx, tenant, id)
	}
	return err
}

// advanceSession makes at most one summary, in one call, and reports whether there may be
// more to do.
func (k *Compactor) advanceSession(ctx context.Context, tenant core.Tenant, id core.SessionID) (more bool, err error) {
	t, err := k.loadProfile(ctx, tenant, id, core.PlanPreview{})
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
	if in.Phase = phase; t.Trial {
		in.Once = "the provider refused a longer prompt"
	}
	if w := t.Work; w.Revision == t.Session.PromptRevision {
		if w.Prepared.Version > 0 {
			in.Versions = []core.SummaryVersion{w.Prepared}
		}
		in.Resting = w.Breaker.Until != nil && time.Now().Before(*w.Breaker.Until)
	}
	p = newPlan(in)
	return p, t.Trial || p.nextOrder() == nil && p.d.Activate == nil && !p.d.Compacted && !contextwindow.MayUseOlder(in), nil
}
