package compaction

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
)

// poll is how often a prompt looks for a summary that another run or process makes.
const poll = 100 * time.Millisecond

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
		case <-time.After(poll):
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
