package runs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"bobbin/app/core"
)

// callTime bounds a single call to the store that no caller waits for.
const callTime = 5 * time.Second

// executeRun executes one attempt from start to end. Work is the context of the engine; whole
// survives a cancel, so that the end can be written. Then it claims the session's next run.
func (s *Runner) executeRun(whole, work context.Context, x *activeRun) {
	began := time.Now()
	if x.previousDone != nil { // an older attempt of the run in this process
		select {
		case <-x.previousDone:
		case <-whole.Done():
			return
		}
	}
	s.Journal.trackRun(x.claimed)
	defer s.Journal.untrackRun(x.run)
	work, observed := s.Observer.Run(work, x.run)
	v := outcome{err: s.acquireSlot(work, x)}
	if v.err == nil {
		v = s.runEngine(work, x)
	} else {
		v.cause = context.Cause(work)
	}
	c := s.finishRun(whole, x, v, began)
	observed(c.status, c.code)
	s.freeSlot(x)
	if c.ended && c.status != string(core.RunSucceeded) { // else the engine has done it
		s.Compactor.Enqueue(x.run.Tenant(), x.run.SessionID)
	}
	if !c.ended || !s.Journal.stateOf(x.run.ID).moreQueued {
		return
	}
	s.mu.Lock()
	stopping, backlog := s.stopping, s.backlog
	s.mu.Unlock()
	switch {
	case stopping:
		s.notifyPeers(whole, core.Wakeup{Free: true}) // others may execute it
	case backlog: // other sessions wait for the slot: the sweep chooses
	case s.reserveSlots(0, 1) == 1:
		s.claimSession(whole, x.run.SessionID)
	default:
		s.setBacklog(true)
		core.Signal(s.sweepRequested) // the sweep may hold the slot
	}
}

// quietTime is how long a process executes nothing before a run that executes alone begins. If
// the process dies in this time, the run did not kill it.
const quietTime = 5 * time.Second

// acquireSlot waits until the run may begin. If ctx ends first, it returns the cause. A run that
// executes alone waits until nothing else executes, then the death is counted with which it was
// taken over: if this process dies from now on, the run killed it.
func (s *Runner) acquireSlot(ctx context.Context, x *activeRun) error {
	if x.alone != nil {
		s.Logger.WarnContext(ctx, "run waits until it executes alone: processes died while executing it", "run_id", x.run.ID, "session_id", x.run.SessionID)
		select {
		case <-x.alone:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := core.Sleep(ctx, quietTime); err != nil {
			return err
		}
		if err := s.Journal.callWithRetry(ctx, "count death", func(ctx context.Context) error {
			return s.Store.CountDeath(ctx, x.run.ID, x.run.Attempt, loneDeaths)
		}); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	x.started = true
	return nil
}

// outcome is how an execution ended.
type outcome struct {
	err   error // of the engine; nil = it reports that the run has ended
	cause error // why the work was stopped; nil = it was not
}

// runEngine runs the engine within the time limit. A panic of it is an error.
func (s *Runner) runEngine(ctx context.Context, x *activeRun) (v outcome) {
	ctx, stop := context.WithTimeoutCause(ctx, s.Limits.RunTime, errRunTime)
	defer stop()
	run := x.run
	if run.Deaths > loneDeaths {
		return outcome{err: errGaveUp}
	}
	ctx = core.WithIdentity(ctx, core.Identity{Owner: run.Owner, User: run.User})
	s.Logger.InfoContext(ctx, "run started", "run_id", run.ID, "session_id", run.SessionID,
		"agent", run.Agent, "attempt", run.Attempt)
	s.retractLostDrafts(ctx, x)
	defer func() {
		if p := recover(); p != nil {
			s.Logger.ErrorContext(ctx, "run panicked", "run_id", run.ID, "panic", p, "stack", string(debug.Stack()))
			v.err = errPanic
		}
		v.cause = context.Cause(ctx)
	}()
	return outcome{err: s.Execute(ctx, x.claimed)}
}

// retractLostDrafts retracts the texts that earlier attempts left behind: a new attempt writes
// a new message.
func (s *Runner) retractLostDrafts(ctx context.Context, x *activeRun) {
	run, d := x.run, core.DecodeDraft(x.run.Partial)
	x.retracted = true
	if (run.Attempt == 1 || run.Resumed) && d.MessageID == "" {
		return
	}
	own, err := s.readOwnMessages(ctx, run)
	w := core.RunWrite{RunID: run.ID, SessionID: run.SessionID, Attempt: run.Attempt}
	for _, id := range lostDrafts(run, d.MessageID, own) {
		w.Events = append(w.Events, discardedEvent(run, id, reasonInterrupted))
	}
	if err == nil && len(w.Events) > 0 {
		_, err = s.Journal.Append(ctx, w)
	}
	if err == nil && d.MessageID != "" {
		err = s.Journal.store.SavePartial(ctx, run.ID, run.Attempt, "")
	}
	if err != nil {
		s.Logger.WarnContext(ctx, "drafts of lost attempts not retracted", "run_id", run.ID, "err", err)
	}
}

// result is what became of an execution.
type result struct {
	status string // of the run, or one of the words below
	code   string // of the error of a failed run
	ended  bool   // the run has ended: the session's next one may begin
}

// Results of executions whose runs have not ended, besides a run's own status.
const (
	statusHandedBack = "handed_back" // another execution continues
	statusLost       = "lost"        // another execution has taken over
)

// finishRun completes an execution. It writes the run's end if the engine did not.
func (s *Runner) finishRun(ctx context.Context, x *activeRun, v outcome, began time.Time) result {
	log := s.Logger.With("run_id", x.run.ID, "session_id", x.run.SessionID, "agent", x.run.Agent, "dur", time.Since(began))
	switch state := s.Journal.stateOf(x.run.ID); {
	case state.ended:
		log.InfoContext(ctx, "run finished")
		return result{status: string(core.RunSucceeded), ended: true}
	case state.waiting:
		log.InfoContext(ctx, "run waits for a decision")
		return result{status: string(core.RunWaiting)}
	case errors.Is(v.cause, errHandedBack), errors.Is(v.err, core.ErrStopping):
		log.InfoContext(ctx, "run handed back")
		s.Journal.saveDraft(ctx, x.run.ID)
		return result{status: statusHandedBack}
	case errors.Is(v.cause, errLost), errors.Is(v.err, core.ErrStale):
		if errors.Is(v.err, core.ErrStale) {
			s.Observer.Count(core.CountFenced, 1, core.WorkRun)
		}
		log.WarnContext(ctx, "run lost to another attempt")
		return result{status: statusLost}
	case errors.Is(v.cause, core.ErrCanceled), errors.Is(v.err, core.ErrCanceled):
		return s.writeEnd(ctx, log, x, core.RunEnd{Status: core.RunCanceled})
	case (errors.Is(v.err, core.ErrNoDatabase) || core.IsSessionBusy(v.err)) && v.cause == nil && x.run.GiveBacks < maxGiveBacks:
		// Another attempt may succeed: the database could not be reached, or others have been writing to the session for too long.
		return s.requeueRun(ctx, log, x, v.err)
	default:
		return s.writeEnd(ctx, log, x, failedRunEnd(ctx, log, v))
	}
}

// maxGiveBacks is how often a run is requeued because of the database. A run that cannot be read
// may look the same.
const maxGiveBacks = 20

// requeueRun releases a run that cannot continue because of the database. The first process that
// reaches the database again continues it.
func (s *Runner) requeueRun(ctx context.Context, log *slog.Logger, x *activeRun, cause error) result {
	log.WarnContext(ctx, "database unavailable or session busy, requeueing run", "err", errorText(cause))
	s.mu.Lock()
	x.released = true // stops the renewal of its lease
	s.mu.Unlock()
	err := s.Journal.callWithRetry(ctx, "requeue run", func(ctx context.Context) error {
		s.Journal.saveDraft(ctx, x.run.ID) // its next attempt retracts it
		return s.Store.Yield(ctx, x.run.ID, x.run.Attempt)
	})
	switch {
	case errors.Is(err, core.ErrStale):
		return result{status: statusLost}
	case err != nil: // the process stops: its leases end with it
		log.WarnContext(ctx, "run not requeued", "err", errorText(err))
	}
	s.notifyPeers(ctx, core.Wakeup{Free: true})
	return result{status: statusHandedBack}
}

// errorText returns the error's text with the cause that core.Error hides.
func errorText(err error) string {
	var shown *core.Error
	if errors.As(err, &shown) && shown.Err != nil {
		return fmt.Sprintf("%v: %v", err, shown.Err)
	}
	return err.Error()
}

// failedRunEnd logs why a run failed and returns its end.
func failedRunEnd(ctx context.Context, log *slog.Logger, v outcome) core.RunEnd {
	err := v.err
	switch {
	case errors.Is(v.cause, errRunTime):
		err = errRunTime
	case err == nil:
		err = errNoEnd
	}
	e := runError(err)
	level := slog.LevelWarn
	if e.Code == "internal" {
		level = slog.LevelError
	}
	var kept *core.Error // keeps its cause out of its message
	if errors.As(err, &kept) && kept.Err != nil {
		log = log.With("cause", kept.Err)
	}
	log.Log(ctx, level, "run failed", "code", e.Code, "err", err)
	return core.RunEnd{Status: core.RunFailed, Error: &e}
}

// writeEnd writes the run's end, unless another attempt owns the run or the process stops
// first.
func (s *Runner) writeEnd(ctx context.Context, log *slog.Logger, x *activeRun, end core.RunEnd) result {
	own, err := s.readOwnMessages(ctx, x.run)
	var asked []core.Approval
	if open := openCalls(own); err == nil && len(open) > 0 {
		var calls []string
		for _, c := range open {
			calls = append(calls, c.ID)
		}
		err = s.Journal.callWithRetry(ctx, "read approvals", func(ctx context.Context) (err error) {
			asked, err = s.Store.Approvals(ctx, x.run.ID, calls...)
			return err
		})
	}
	if err == nil {
		_, err = s.Journal.Append(ctx, s.buildEndWrite(x, own, asked, end))
	}
	switch {
	case err == nil:
		if end.Status != core.RunFailed { // failures are logged already
			log.InfoContext(ctx, "run finished", "status", end.Status)
		}
		c := result{status: string(end.Status), ended: true}
		if end.Error != nil {
			c.code = end.Error.Code
		}
		return c
	case errors.Is(err, core.ErrStale):
		s.Observer.Count(core.CountFenced, 1, core.WorkRun)
		log.WarnContext(ctx, "run lost to another attempt")
		return result{status: statusLost}
	default:
		log.ErrorContext(ctx, "end of run not written", "status", end.Status, "err", err)
		s.Journal.saveDraft(ctx, x.run.ID)
		return result{status: statusHandedBack}
	}
}
