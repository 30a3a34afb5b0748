package compaction

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/summarize"
)

// workers is how many sessions are summarized in the background at once, in this
// process.
const workers = 4

// errStopping is the cause of work in the background that the process does not wait
// for any longer.
var errStopping = errors.New("the process stops")

// Soon has the session looked at in the background, whether a summary is to be made
// after a run or prepared. It returns at once. While Run does not run nothing happens,
// and if too much waits already neither: the session's next plan finds it again.
func (k *Keeper) Soon(scope core.Scope, id core.SessionID) {
	k.jobs.add(job{core.Scope{Owner: scope.Owner}, id})
}

// Run does the work in the background until ctx ends. Then nothing new begins, what is
// at work has the grace period and is broken off after it; a summary that is not
// finished leaves nothing behind. It returns nil when all workers have left. Call it
// once.
func (k *Keeper) Run(ctx context.Context) error {
	k.freeOwn(ctx)
	work, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	var wait sync.WaitGroup
	k.jobs.begin()
	for range workers {
		wait.Go(func() { k.work(ctx, work) })
	}
	<-ctx.Done()
	k.jobs.end()
	left := make(chan struct{})
	go func() {
		wait.Wait()
		close(left)
	}()
	grace := time.NewTimer(k.Grace)
	defer grace.Stop()
	select {
	case <-left:
	case <-grace.C:
		stop(errStopping)
		<-left
	}
	return nil
}

// freeOwn gives the leases back that an earlier process of this replica had when it died.
func (k *Keeper) freeOwn(ctx context.Context) {
	if k.Worker == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	if err := k.Stores.Sessions.FreeSummaries(ctx, core.WorkersOf(k.Worker)); err != nil && ctx.Err() == nil {
		k.Logger.WarnContext(ctx, "leases of an earlier process not given back, they end by themselves", "err", err)
	}
}

// work does jobs until ctx ends; work is the context of a job.
func (k *Keeper) work(ctx, work context.Context) {
	for {
		select {
		case <-k.jobs.more:
		case <-ctx.Done():
			return
		}
		for ctx.Err() == nil {
			n, ok := k.jobs.take()
			if !ok {
				break
			}
			k.do(work, n)
		}
	}
}

// do does one job.
func (k *Keeper) do(ctx context.Context, n job) {
	defer k.jobs.done(n)
	err := k.Advance(ctx, n.scope, n.id)
	switch {
	case err == nil, errors.Is(err, core.ErrNotFound), errors.Is(err, core.ErrContextFloor): // the session has gone; its next run says what is wrong
	case errors.Is(err, errStopping), errors.Is(err, core.ErrStale):
		k.Logger.InfoContext(ctx, "summary in the background broken off", "session_id", n.id, "err", err)
	default:
		k.Logger.WarnContext(ctx, "summary in the background failed", "session_id", n.id, "err", err)
	}
}

// Advance makes the summary of the session that its policy wants beside runs: at once
// after a run, or prepared, or a prepared one put to use. It does nothing where none is
// wanted, where somebody else makes one, and where one failed that can be done without.
// Errors: those of the session and of storage; the cause of ctx when it is done.
func (k *Keeper) Advance(ctx context.Context, scope core.Scope, id core.SessionID) error {
	t, err := k.profiled(ctx, scope, id, "")
	if err != nil || t.Profile.Policy.Timing == contextwindow.TimingInline {
		return err
	}
	if t, err = k.loaded(ctx, scope, t); err != nil {
		return err
	}
	e := &effort{background: true}
	defer func() { e.pass.leave(ctx) }()
	for {
		more, err := k.advance(ctx, &t, e)
		switch {
		case errors.Is(err, core.ErrStale) && e.lost < maxReloads:
			e.lost++
		case err != nil || !more:
			return err
		}
	}
}

// advance does the next thing of Advance, and reports whether there may be more.
func (k *Keeper) advance(ctx context.Context, t *Turn, e *effort) (more bool, err error) {
	var p plan
	if *t, p, err = k.view(ctx, *t, e); err == nil {
		*t, p, err = k.carry(ctx, *t, p, e)
	}
	outside := errors.Is(err, errOutside) || err == nil && p.d.Prepare != nil && e.pass == nil
	switch {
	case outside:
		e.pass, err = k.enter(ctx, scopeOf(*t), t.Session.ID, 0)
		return e.pass != nil, err
	case err != nil || p.d.Prepare == nil || e.failed || e.noGain || e.rounds >= maxRounds:
		return false, err
	}
	*t, err = k.prepare(ctx, *t, p, e)
	return true, err
}

// prepare makes the summary that the plan orders ahead and stores it; it changes no
// prompt.
func (k *Keeper) prepare(ctx context.Context, t Turn, p plan, e *effort) (Turn, error) {
	if err := e.pass.renew(ctx); err != nil {
		return t, err
	}
	how := k.manner(t, e)
	how.ahead = true
	m, err := k.make(ctx, t, *p.d.Prepare, how)
	switch {
	case errors.Is(err, summarize.ErrNoGain):
		e.noGain = true
		return t, nil
	case errors.Is(err, summarize.ErrFailed):
		t, _, err = k.without(ctx, t, p, m, e)
		return t, err
	case err != nil:
		return t, fmt.Errorf("prepare a summary: %w", err)
	}
	e.rounds++
	m.summary.State = core.SummaryPrepared
	m.into = func(_ Turn, p plan) (plan, core.ContextChange, error) {
		return p, core.ContextChange{Summary: &m.summary, ModelCalls: m.calls}, nil
	}
	t, _, err = k.store(ctx, t, p, m, e)
	return t, err
}
