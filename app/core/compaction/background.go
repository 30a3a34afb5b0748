package compaction

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

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

// advanceSession makes at most one summary, in one call, and reports whether there may be more to do.
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

// awaitSummary makes one summary of the session, or waits for the one in progress: for one
// model call, and no longer than e.deadline. It then marks the turn as having waited. What
// is unfinished then is finished in the background.
func (k *Compactor) awaitSummary(ctx context.Context, t Turn, e *progress) (Turn, error) {
	lease, err := k.acquireLease(ctx, scopeOf(t), t.Session.ID)
	if err != nil {
		return t, err
	}
	limited, cancel := context.WithDeadlineCause(ctx, e.deadline, errWaitTooLong)
	defer cancel()
	if lease == nil {
		t.Waited, err = k.awaitOther(limited, t)
		return t, err
	}
	if !e.asksModel(t) {
		limited = ctx
	}
	var left atomic.Bool
	own, next := *e, t
	own.lease = lease
	err = k.jobs.beginCall(ctx, func(ctx context.Context) (err error) {
		defer func() {
			lease.releaseLease(ctx)
			if left.Load() {
				k.Enqueue(scopeOf(t), t.Session.ID)
			}
		}()
		next, err = k.makeNext(ctx, t, &own)
		return err
	}).wait(limited)
	if errors.Is(err, errWaitTooLong) {
		left.Store(true)
		late := t // the job continues with t and next
		late.Waited = true
		return late, nil
	}
	e.failed, e.noGain, e.noLoop = own.failed, own.noGain, own.noLoop
	next.Waited = true
	return next, err
}

// asksModel reports whether a model makes the turn's next summary.
func (e *progress) asksModel(t Turn) bool {
	return isNative(t) || e.writer.model != nil && t.Work.Breaker.Until == nil
}

// errWaitTooLong is the cause of a wait that exceeded its limit.
var errWaitTooLong = errors.New("the summary takes too long")

// awaitOther waits for a summary of the session that another run or process makes. It
// reports whether the turn has waited long enough: false if that work ended without a
// result.
func (k *Compactor) awaitOther(ctx context.Context, t Turn) (bool, error) {
	for {
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			if cause := context.Cause(ctx); !errors.Is(cause, errWaitTooLong) {
				return false, cause
			}
			return true, nil
		}
		work, err := k.Stores.Sessions.SummaryWork(ctx, scopeOf(t), t.Session.ID)
		switch {
		case err != nil && ctx.Err() != nil:
		case err != nil:
			return false, err
		case work.Revision != t.Work.Revision || work.Prepared.ID != t.Work.Prepared.ID:
			return true, nil
		case !work.Busy:
			return false, nil
		}
	}
}

// notAwaited is why a prompt has no summary that is due.
const notAwaited = "the oldest messages are being summarized; this prompt does not wait for the summary"

// withoutSummary returns the plan of a prompt that does not wait for the summary that the plan
// orders: sent as it is or, where it does not fit, without its oldest messages. That holds for this
// prompt only, and for the reason given; of its state, only the cut is stored.
func (p plan) withoutSummary(why string) plan {
	in := p.nextInput()
	in.Once = why
	return newPlan(in)
}

// storeCut stores which message of the history is the newest that the prompt leaves out: the next prompt that
// does not wait is cut there, too. Where it cannot be stored, the next one is cut anew.
func (k *Compactor) storeCut(ctx context.Context, t Turn, p plan) Turn {
	state, err := contextwindow.DecodeState(t.Session.PromptState)
	cut := &contextwindow.Landing{Tokens: p.d.Total, Window: p.d.Budget.Window}
	for _, s := range p.d.History {
		if s.Place == core.PlaceLeftOut {
			cut.Seq = s.Seq
		}
	}
	if c := state.Cut; err != nil || cut.Seq == 0 || c != nil && c.Seq == cut.Seq && c.Window == cut.Window {
		return t
	}
	state.Cut = cut
	if err := k.applyChange(ctx, &t, core.ContextChange{PromptState: state.Encode()}); err != nil {
		k.Logger.DebugContext(ctx, "cut of the prompt not stored", "session_id", t.Session.ID, "err", err)
	}
	return t
}

// Bounds of background work in this process. Further sessions are dropped: their next plan asks again.
const (
	maxJobs = 1024 // sessions that wait or are summarized
	workers = 4    // sessions that are summarized concurrently
)

// jobs is the work beside prompts.
type jobs struct {
	workers *semaphore.Weighted // in order of arrival
	calls   sync.WaitGroup      // work that began while jobs were accepted: Run waits for it

	onStop  func(cancel func()) (done func() bool) // has work canceled that outlives the grace period
	stopAll func()                                 // cancels it

	mu        sync.Mutex
	start     func(core.Tenant, core.SessionID) // of Run; nil = jobs are not accepted; guarded by mu, as all below
	bySession map[core.SessionID]bool           // sessions that wait or are summarized; true = once more
}

// accept accepts jobs and starts each; nil = no more.
func (j *jobs) accept(start func(core.Tenant, core.SessionID)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.start = start
}

// call is work that may outlive the prompt that started it.
type call struct {
	done   chan struct{}
	err    error // of the work, when done is closed
	cancel context.CancelCauseFunc
}

// beginCall runs work with a context of its own, which ends when the process stops.
func (j *jobs) beginCall(ctx context.Context, work func(ctx context.Context) error) *call {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	c := &call{done: make(chan struct{}), cancel: cancel}
	done := j.onStop(func() { cancel(core.ErrStopping) })
	do := func() {
		defer close(c.done)
		defer cancel(nil)
		defer done()
		c.err = work(ctx)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.start != nil {
		j.calls.Go(do)
	} else {
		go do()
	}
	return c
}

// wait waits for the work and returns its error. If ctx ends first, it returns the cause:
// with errWaitTooLong the work continues, any other cause cancels it.
func (c *call) wait(ctx context.Context) error {
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
	}
	cause := context.Cause(ctx)
	if errors.Is(cause, errWaitTooLong) {
		return cause
	}
	c.cancel(cause)
	<-c.done
	return cause
}
