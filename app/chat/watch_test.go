package chat_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
	"bobbin/app/runs"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

var wholeRun = []core.EventType{core.EventRunStarted, core.EventMessageCreated, core.EventMessageCreated, core.EventRunSucceeded}

func TestWatchRunErrors(t *testing.T) {
	simulate(t, func(t *testing.T) {
		h := newHouse(t, 0, talkUntilCanceled)
		wantKind(t, compare.ErrorOf(collect(h.Feed.Watch(t.Context(), ann, "other", core.Cursor{}))), core.ErrNotFound)
		a := h.send(t, "long")
		synctest.Wait()
		fault := errors.New("disk on fire")
		failing := func(call string) {
			h.db.Before(func(c string) error {
				if c == call {
					return fault
				}
				return nil
			})
		}
		for _, call := range []string{"Page", "Last"} {
			failing(call)
			wantKind(t, compare.ErrorOf(collect(h.Feed.Watch(t.Context(), ann, a.Run.SessionID, core.Cursor{}))), fault)
		}
		// The events of a run that is active here are not read from the store.
		for _, call := range []string{"Page", "Last"} {
			failing(call)
			for e, err := range h.WatchRun(t.Context(), ann, a.Run, core.Cursor{}) {
				compare.True(t, err == nil && e.Type == core.EventRunStarted && e.Seq == a.Run.FirstEvent, "got %s and error %v, want run.started", e.Type, err)
				break
			}
		}
		h.db.Before(nil)
		for e, err := range h.WatchRun(t.Context(), ann, a.Run, core.Cursor{}) {
			compare.True(t, err == nil && e.Type == core.EventRunStarted, "got %s and error %v, want run.started", e.Type, err)
			break // leaving the loop is allowed anywhere
		}
	})
}

// A run whose first events are not kept any more: its watcher is told, and is not given
// the rest as if it were everything. That those of other runs are gone is no matter.
func TestWatchRunWhoseBeginningIsGone(t *testing.T) {
	simulate(t, func(t *testing.T) {
		h := newHouse(t, 0, answer)
		h.send(t, "before")
		synctest.Wait()
		a := h.acceptElsewhere(t)
		synctest.Wait()
		began := a.Events[0].Seq
		for _, c := range []struct {
			gone int64
			want []core.EventType
		}{{began - 1, wholeRun}, {began + 1, []core.EventType{core.EventResync}}} {
			h.db.Events.Forget(h.session.ID, c.gone)
			compare.Equal(t, fmt.Sprintf("without the events up to %d", c.gone), c.want, must.Get(collect(h.WatchRun(t.Context(), ann, a.Run, core.Cursor{})))(t))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			compare.Equal(t, "the run that was waited for", core.RunSucceeded, must.Get(h.Wait(ctx, ann, a.Run))(t).Run.Status)
			cancel()
		}
	})
}

// Who waits gets the run, with its message, and its answer from the run's events.
func TestWaitReadsNoRow(t *testing.T) {
	simulate(t, func(t *testing.T) {
		h := newHouse(t, 0, answer)
		a := h.send(t, "hello")
		h.db.Before(func(call string) error {
			if call == "Runs.Get" || call == "Messages.Get" {
				return errors.New("disk on fire")
			}
			return nil
		})
		out := must.Get(h.Wait(t.Context(), ann, a.Run))(t)
		compare.True(t, out.Run.Status == core.RunSucceeded && out.Run.Input.Content == "hello" && out.Answer != nil && out.Answer.ID == out.Run.AnswerID, "got %+v, want the whole run and its answer", out)
	})
}

// A waiter that is dropped as too slow looks at the row and goes on.
func TestWaitSurvivesABusThatDropsIt(t *testing.T) {
	simulate(t, func(t *testing.T) {
		h := newHouse(t, 1, func(ctx context.Context, j *runs.Recorder, run core.Run) error {
			for range 5 {
				<-time.After(time.Second)
				for i := range 100 {
					say(ctx, j, run, core.MessageID(fmt.Sprint(run.ID, i)), 0, "x")
				}
			}
			return answer(ctx, j, run)
		})
		a := h.send(t, "hello")
		compare.Equal(t, "the run's status", core.RunSucceeded, must.Get(h.Wait(t.Context(), ann, a.Run))(t).Run.Status)
	})
}

// Who waits does so while the database is away, too: the run goes on when that is back.
func TestWaitSurvivesTheDatabase(t *testing.T) {
	simulate(t, func(t *testing.T) {
		h := newHouse(t, 0, func(ctx context.Context, j *runs.Recorder, run core.Run) error {
			<-time.After(time.Minute)
			return answer(ctx, j, run)
		})
		a := h.send(t, "hello")
		h.db.Before(func(string) error { return &core.Error{Kind: core.ErrUnavailable, Err: core.ErrNoDatabase} })
		go func() {
			<-time.After(90 * time.Second)
			h.db.Before(nil)
		}()
		compare.Equal(t, "the run's status", core.RunSucceeded, must.Get(h.Wait(t.Context(), ann, a.Run))(t).Run.Status)
	})
}

func TestWaitOnAClosedBusEndsWithItsContext(t *testing.T) {
	simulate(t, func(t *testing.T) {
		h := newHouse(t, 0, talkUntilCanceled)
		a := h.send(t, "long")
		h.bus.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantKind(t, compare.ErrorOf(h.Wait(ctx, ann, a.Run)), context.DeadlineExceeded)
	})
}
