package chat

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"bobbin/app/core"
)

// Watch yields what happens in a session, as events.Feed.Watch promises: durable
// events after from.After without gap or repetition, the text so far of a message
// on its way, then everything as it happens. It ends only with an error, its last
// element: core.ErrNotFound, core.ErrUnavailable for a reader that is too slow
// (come back with the last number), the cause of ctx's end.
func (s *Service) Watch(ctx context.Context, scope core.Scope, id core.SessionID, from core.From) iter.Seq2[core.Event, error] {
	return s.feed.Watch(ctx, scope, id, from)
}

// WatchRun is Watch for one run: only its events, and it ends without an error
// after the one that ends the run. With from.After 0 it begins with the run's
// first event. It ends at once when the run has ended and nothing of it comes
// after from. A resync event is passed on; if the run has ended then, it is the
// last one.
func (s *Service) WatchRun(ctx context.Context, scope core.Scope, id core.RunID, from core.From) iter.Seq2[core.Event, error] {
	return func(yield func(core.Event, error) bool) {
		w := &runWatcher{service: s, scope: scope, id: id, yield: yield}
		if err := w.watch(ctx, from); err != nil {
			yield(core.Event{}, err)
		}
	}
}

// runWatcher is the state of one WatchRun.
type runWatcher struct {
	service *Service
	scope   core.Scope
	id      core.RunID
	yield   func(core.Event, error) bool
	until   int64 // the run has ended by this event; 0 = it had not when we began
}

// watch returns nil when everything is said or the reader left.
func (w *runWatcher) watch(ctx context.Context, from core.From) error {
	s := w.service
	run, err := s.runs.Get(ctx, w.scope, w.id)
	if err != nil {
		return err
	}
	if !from.Live && from.After <= 0 {
		if from.After, err = s.beforeRun(ctx, run); err != nil {
			return err
		}
	}
	if run.Status.Ended() {
		if w.until, err = s.events.Last(ctx, w.scope, run.SessionID); err != nil {
			return fmt.Errorf("last event of session %s: %w", run.SessionID, err)
		}
		if from.Live || from.After >= w.until {
			return nil
		}
	}
	for e, err := range s.feed.Watch(ctx, w.scope, run.SessionID, from) {
		if err != nil {
			return err
		}
		more, err := w.event(ctx, e)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// event passes an event on and reports whether there may be more.
func (w *runWatcher) event(ctx context.Context, e core.Event) (bool, error) {
	if e.Type == core.EventResync {
		if !w.yield(e, nil) {
			return false, nil
		}
		run, err := w.service.runs.Get(ctx, w.scope, w.id)
		return !run.Status.Ended(), err
	}
	if e.RunID == w.id && (!w.yield(e, nil) || endsRun(e.Type)) {
		return false, nil
	}
	return w.until == 0 || e.Seq < w.until, nil
}

func endsRun(t core.EventType) bool {
	return t == core.EventRunSucceeded || t == core.EventRunFailed || t == core.EventRunCanceled
}

// beforeRun returns the number of the event before the run's first one.
func (s *Service) beforeRun(ctx context.Context, run core.Run) (int64, error) {
	first, ok := s.firsts.get(run.ID)
	if !ok {
		var err error
		if first, err = s.events.FirstOfRun(ctx, run.SessionID, run.ID); err != nil {
			return 0, fmt.Errorf("first event of run %s: %w", run.ID, err)
		}
	}
	if first <= 1 {
		return 0, nil
	}
	if !ok {
		begins, err := s.beginsWith(ctx, run.SessionID, first)
		if err != nil || !begins {
			return 0, err // from there on something is missing: the reader is told
		}
	}
	return first - 1, nil
}

// beginsWith reports whether a run can begin with the event, or lacks what came before,
// as it is not kept any more.
func (s *Service) beginsWith(ctx context.Context, session core.SessionID, first int64) (bool, error) {
	page, err := s.events.After(ctx, session, first-1, 1)
	if err != nil {
		return false, fmt.Errorf("event %d of session %s: %w", first, session, err)
	}
	return len(page) == 1 && (page[0].Type == core.EventRunQueued || page[0].Type == core.EventRunStarted), nil
}

// rewatch is the pause before a watch that was dropped begins again.
const rewatch = 100 * time.Millisecond

// Wait returns the run when it has ended, in whatever way, or waits for a person's
// decision. It returns earlier only with an error: the cause of ctx's end, ErrNotFound, or a fault of storage.
func (s *Service) Wait(ctx context.Context, scope core.Scope, id core.RunID) (core.Run, error) {
	for {
		watch := s.untilEnd(ctx, scope, id)
		if ctx.Err() != nil {
			return core.Run{}, context.Cause(ctx)
		}
		if watch != nil && !errors.Is(watch, core.ErrUnavailable) {
			return core.Run{}, watch
		}
		// The events only say when to look: the row is the truth.
		run, err := s.runs.Get(ctx, scope, id)
		if errors.Is(err, core.ErrNoDatabase) && ctx.Err() == nil {
			run, err = core.Run{}, nil // it goes on when the database is there again
		}
		if err != nil || run.Status.Ended() || run.Status == core.RunWaiting {
			return run, err
		}
		select {
		case <-time.After(rewatch):
		case <-ctx.Done():
		}
	}
}

// untilEnd returns nil when the run has ended or waits for a decision, or why it
// could not see that.
func (s *Service) untilEnd(ctx context.Context, scope core.Scope, id core.RunID) error {
	for e, err := range s.WatchRun(ctx, scope, id, core.From{}) {
		if err != nil {
			return err
		}
		if e.Type != core.EventRunWaiting {
			continue
		}
		// It may have gone on long since.
		if run, err := s.runs.Get(ctx, scope, id); err != nil || run.Status == core.RunWaiting {
			return err
		}
	}
	return nil
}
