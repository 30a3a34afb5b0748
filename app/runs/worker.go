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

// callTime bounds a single call to the store that nobody waits for.
const callTime = 5 * time.Second

// live takes one execution from its start to its end. Work is the context of the
// engine; whole lives on after a cancel, so that the end can be written.
func (s *Service) live(whole, work context.Context, x *execution) {
	began := time.Now()
	if x.before != nil { // an older attempt of the run in this process
		select {
		case <-x.before:
		case <-whole.Done():
			return
		}
	}
	s.journal.begin(x.run)
	defer s.journal.finish(x.run.ID)
	work, observed := s.observer.Run(work, x.run)
	var v verdict
	if err := s.admit(work, x); err != nil {
		v = verdict{err: err, cause: err}
	} else {
		v = s.execute(work, x)
		<-s.slots
	}
	c := s.conclude(whole, x, v, began)
	observed(c.status, c.code)
	if c.ended {
		if s.ended != nil {
			s.ended(x.run)
		}
		s.next(whole, x.run.SessionID)
	}
}

// admit waits until the run may begin: the runs of the process before are taken
// over, and a slot is free. It returns the cause of ctx's end if that comes first.
func (s *Service) admit(ctx context.Context, x *execution) error {
	select {
	case <-s.ready:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := context.Cause(ctx); err != nil {
		<-s.slots
		return err
	}
	x.atWork = true
	return nil
}

// verdict is what came of an execution.
type verdict struct {
	err   error // of the engine; nil = it says that the run has ended
	cause error // why the work was broken off; nil = it was not
}

// execute lets the engine work, within the time limit.
func (s *Service) execute(ctx context.Context, x *execution) verdict {
	ctx, stop := context.WithTimeoutCause(ctx, s.limits.RunTime, errRunTime)
	defer stop()
	run := x.run
	ctx = core.WithIdentity(ctx, core.Identity{Owner: run.Owner, User: run.User})
	s.log.InfoContext(ctx, "run started", "run_id", run.ID, "session_id", run.SessionID,
		"agent", run.Agent, "attempt", run.Attempt)
	s.discardLost(ctx, run)
	err := s.protect(ctx, run)
	return verdict{err: err, cause: context.Cause(ctx)}
}

// discardLost takes back the texts that attempts before this one left behind: a
// new attempt writes a new message.
func (s *Service) discardLost(ctx context.Context, run core.Run) {
	d := s.journal.draft(run.ID)
	s.journal.clear(run.ID)
	if (run.Attempt == 1 || run.Resumed) && d.MessageID == "" {
		return
	}
	own, err := s.history(ctx, run)
	w := core.RunWrite{RunID: run.ID, SessionID: run.SessionID, Attempt: run.Attempt}
	for _, id := range lostTexts(run, d.MessageID, own) {
		w.Events = append(w.Events, discarded(run, id, interrupted))
	}
	if err == nil && len(w.Events) > 0 {
		_, err = s.journal.Append(ctx, w)
	}
	if err == nil && d.MessageID != "" {
		err = s.journal.store.SavePartial(ctx, run.ID, run.Attempt, "")
	}
	if err != nil {
		s.log.WarnContext(ctx, "lost text not taken back", "run_id", run.ID, "err", err)
	}
}

// protect calls the engine and turns a panic into an error.
func (s *Service) protect(ctx context.Context, run core.Run) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.ErrorContext(ctx, "run panicked", "run_id", run.ID, "panic", p, "stack", string(debug.Stack()))
			err = errPanic
		}
	}()
	return s.engine.Execute(ctx, run)
}

// conclusion is what became of an execution.
type conclusion struct {
	status string // of the run, or one of the words below
	code   string // of the error of a failed run
	ended  bool   // the run has ended: it is the turn of the session's next one
}

// What becomes of executions whose runs have not ended, besides a run's own status.
const (
	statusHandedBack = "handed_back" // another execution goes on
	statusLost       = "lost"        // another execution has taken over
)

// conclude does what an execution leaves to be done: it writes the run's end if
// the engine did not.
func (s *Service) conclude(ctx context.Context, x *execution, v verdict, began time.Time) conclusion {
	log := s.log.With("run_id", x.run.ID, "session_id", x.run.SessionID, "agent", x.run.Agent, "dur", time.Since(began))
	switch {
	case s.journal.ended(x.run.ID):
		log.InfoContext(ctx, "run finished")
		if s.answered != nil {
			s.answered(x.run)
		}
		return conclusion{status: string(core.RunSucceeded), ended: true}
	case s.journal.waits(x.run.ID):
		log.InfoContext(ctx, "run waits for a decision")
		return conclusion{status: string(core.RunWaiting)}
	case errors.Is(v.cause, errHandedBack):
		log.InfoContext(ctx, "run handed back")
		s.keepDraft(ctx, x.run)
		return conclusion{status: statusHandedBack}
	case errors.Is(v.cause, errLost), errors.Is(v.err, core.ErrStale):
		if errors.Is(v.err, core.ErrStale) {
			s.observer.Refused(core.WorkRun)
		}
		log.WarnContext(ctx, "run lost to another attempt")
		return conclusion{status: statusLost}
	case errors.Is(v.cause, core.ErrCanceled), errors.Is(v.err, core.ErrCanceled):
		return s.end(ctx, log, x.run, core.RunEnd{Status: core.RunCanceled})
	case errors.Is(v.err, core.ErrNoDatabase) && v.cause == nil && x.run.Attempt < mostAttempts:
		return s.yield(ctx, log, x, v.err)
	default:
		return s.end(ctx, log, x.run, failure(ctx, log, v))
	}
}

// mostAttempts is how many attempts a run may have for the database's sake: one that
// cannot be read may look like one that is away.
const mostAttempts = 20

// yield gives a run back that could not go on because the database was away: when that
// is there again, whoever is the first goes on with it.
func (s *Service) yield(ctx context.Context, log *slog.Logger, x *execution, cause error) conclusion {
	log.WarnContext(ctx, "database not reached, run is given back", "err", explain(cause))
	s.mu.Lock()
	x.gone = true // from now on nobody renews its lease
	s.mu.Unlock()
	err := s.journal.persist(ctx, "give run back", func(ctx context.Context) error {
		s.journal.saveDraft(ctx, x.run.ID) // its next attempt takes that back
		return s.store.Yield(ctx, x.run.ID, x.run.Attempt)
	})
	switch {
	case errors.Is(err, core.ErrStale):
		return conclusion{status: statusLost}
	case err != nil: // the process stops: its leases end with it
		log.WarnContext(ctx, "run not given back", "err", explain(err))
	}
	s.wake(ctx, core.Signal{Free: true})
	return conclusion{status: statusHandedBack}
}

// explain returns the error's words with the cause that core.Error keeps back.
func explain(err error) string {
	var shown *core.Error
	if errors.As(err, &shown) && shown.Err != nil {
		return fmt.Sprintf("%v: %v", err, shown.Err)
	}
	return err.Error()
}

// keepDraft saves what a run that is handed back said so far, so that its next
// attempt can take it back.
func (s *Service) keepDraft(ctx context.Context, run core.Run) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
	defer cancel()
	s.journal.saveDraft(ctx, run.ID)
}

// failure returns how a run ends that the engine could not finish.
func failure(ctx context.Context, log *slog.Logger, v verdict) core.RunEnd {
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
	var panicked interface{ StackTrace() []byte } // an engine may recover panics by itself
	if errors.As(err, &panicked) {
		log = log.With("stack", string(panicked.StackTrace()))
	}
	var kept *core.Error // keeps its cause out of its message
	if errors.As(err, &kept) && kept.Err != nil {
		log = log.With("cause", kept.Err)
	}
	log.Log(ctx, level, "run failed", "code", e.Code, "err", err)
	return core.RunEnd{Status: core.RunFailed, Error: &e}
}

// end writes the run's end, unless that is not ours to do or cannot be done before
// the process has to stop.
func (s *Service) end(ctx context.Context, log *slog.Logger, run core.Run, end core.RunEnd) conclusion {
	own, err := s.history(ctx, run)
	var asked []core.Approval
	if err == nil {
		asked, err = s.asked(ctx, run, own)
	}
	if err == nil {
		_, err = s.journal.Append(ctx, s.ending(run, own, asked, end))
	}
	switch {
	case err == nil:
		log.InfoContext(ctx, "run finished", "status", end.Status)
		c := conclusion{status: string(end.Status), ended: true}
		if end.Error != nil {
			c.code = end.Error.Code
		}
		return c
	case errors.Is(err, core.ErrStale):
		s.observer.Refused(core.WorkRun)
		log.WarnContext(ctx, "run lost to another attempt")
		return conclusion{status: statusLost}
	default:
		log.ErrorContext(ctx, "end of run not written", "status", end.Status, "err", err)
		s.keepDraft(ctx, run)
		return conclusion{status: statusHandedBack}
	}
}

// next claims the session's oldest queued run, if there is one, and starts it, and
// reports whether it did. What goes wrong here the sweep makes good.
func (s *Service) next(ctx context.Context, session core.SessionID) bool {
	if s.isStopping() {
		s.wake(ctx, core.Signal{Free: true}) // others may
		return false
	}
	call, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	c, err := s.store.Claim(call, session, s.worker)
	switch {
	case errors.Is(err, core.ErrNotFound), errors.Is(err, core.ErrConflict):
	case err != nil:
		s.log.WarnContext(ctx, "next run not claimed", "session_id", session, "err", err)
	default:
		s.journal.feed.Publish(ctx, c.Events)
		s.Start(c.Run) //nolint:contextcheck // a run is detached from whoever starts it
	}
	return err == nil
}
