package compaction

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
)

// workers is how many sessions this process summarizes in the background concurrently.
const workers = 4

// Enqueue queues the session for background work, whatever the policy's timing: a summary due after
// a run or an import, or one to prepare.
// It returns immediately. It does nothing while Run does not run, or when the queue is full:
// the session's next plan asks again. A nil Compactor does nothing.
func (k *Compactor) Enqueue(tenant core.Tenant, id core.SessionID) {
	if k == nil {
		return
	}
	k.jobs.addJob(job{core.Tenant{Owner: tenant.Owner}, id})
}

// IsDone reports whether a run that has ended with the turn leaves no background work, as most do.
// It loads nothing but pinned messages that the summary covers.
func (k *Compactor) IsDone(ctx context.Context, t Turn) bool {
	if k == nil || t.Profile.Policy.Timing == contextwindow.TimingInline {
		return true
	}
	t.History, t.Run, t.RunID, t.Recalled, t.Cap = slices.Concat(t.History, t.Run), nil, "", nil, 0
	_, quiet, err := k.firstPlan(ctx, t, contextwindow.AfterRun)
	return quiet && err == nil
}

// Run does the background work until ctx ends. Then it starts nothing new, gives the work in
// progress the grace period, and cancels the rest; an unfinished summary leaves nothing
// behind. It returns nil when all workers have stopped. Call it once.
func (k *Compactor) Run(ctx context.Context) error {
	k.releaseOwnLeases(ctx)
	work, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	var wait sync.WaitGroup
	k.jobs.acceptJobs(true)
	for range workers {
		wait.Go(func() { k.runWorker(ctx, work) })
	}
	<-ctx.Done()
	k.jobs.acceptJobs(false)
	left := make(chan struct{})
	go func() {
		wait.Wait()
		k.jobs.calls.Wait()
		close(left)
	}()
	grace := time.NewTimer(k.Grace)
	defer grace.Stop()
	select {
	case <-left:
	case <-grace.C:
		stop(core.ErrStopping)
		k.jobs.cancelCalls(core.ErrStopping)
		<-left
	}
	return nil
}

// releaseOwnLeases releases the leases that an earlier process of this replica held when it
// died.
func (k *Compactor) releaseOwnLeases(ctx context.Context) {
	if k.Worker == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if err := k.Stores.Sessions.FreeSummaries(ctx, core.WorkersOf(k.Worker)); err != nil && ctx.Err() == nil {
		k.Logger.WarnContext(ctx, "leases of an earlier process not released, they expire by themselves", "err", err)
	}
}

// runWorker runs jobs until ctx ends, each of at most one summary: what is left to do is queued again
// behind the jobs of other sessions. Work is the context of the jobs.
func (k *Compactor) runWorker(ctx, work context.Context) {
	for {
		select {
		case id := <-k.jobs.queue:
			n, ok := k.jobs.beginJob(id)
			if !ok {
				continue
			}
			more, err := k.advanceSession(work, n)
			switch {
			case err == nil, errors.Is(err, core.ErrNotFound), errors.Is(err, core.ErrContextFloor): // the session was deleted; its next run reports the floor
			case errors.Is(err, core.ErrStopping), errors.Is(err, core.ErrStale):
				k.Logger.InfoContext(work, "background summary interrupted", "session_id", id, "err", err)
			default:
				k.Logger.WarnContext(work, "background summary failed", "session_id", id, "err", err)
			}
			k.jobs.finishJob(id, more)
		case <-ctx.Done():
			return
		}
	}
}

// SummarizeDue makes the summaries that the session's policy wants outside of runs: after a run,
// prepared ahead, or a prepared one activated. It does nothing where none is due, with the timing
// inline, where another process makes one, and where an optional one failed. Errors: those of the session
// and of storage; the cause of ctx when it is done.
func (k *Compactor) SummarizeDue(ctx context.Context, tenant core.Tenant, id core.SessionID) error {
	t, err := k.loadProfile(ctx, tenant, id, "")
	for more := t.Profile.Policy.Timing != contextwindow.TimingInline; more && err == nil; {
		more, err = k.advanceSession(ctx, job{tenant, id})
	}
	return err
}

// advanceSession makes at most one summary, in one call, and reports whether there may be
// more to do.
func (k *Compactor) advanceSession(ctx context.Context, n job) (more bool, err error) {
	t, err := k.loadProfile(ctx, n.scope, n.id, "")
	if err != nil {
		return false, err
	}
	if t.Profile.Policy.Timing == contextwindow.TimingInline {
		t.Profile.Policy.Timing = contextwindow.TimingAfterRun
	}
	if t, err = k.loadTurnMessages(ctx, n.scope, t); err != nil {
		return false, err
	}
	if _, quiet, err := k.firstPlan(ctx, t, contextwindow.AfterRun); err != nil || quiet {
		return false, err
	}
	lease, err := k.acquireLease(ctx, n.scope, n.id)
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
// a trigger asks for, or shows that it has been done.
func (k *Compactor) firstPlan(ctx context.Context, t Turn, phase contextwindow.Phase) (p plan, done bool, err error) {
	in, err := k.planInput(ctx, t)
	if err != nil {
		return plan{}, false, err
	}
	in.Phase, in.NoSummary, in.NoLoop = phase, t.Trial, t.Trial
	p = newPlan(in)
	return p, t.Trial || p.isDone() && !contextwindow.MayUseOlder(in), nil
}
