package chat_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
	"bobbin/app/runs"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// waiting is an engine whose run waits for an approval, and answers after it.
func waiting(ctx context.Context, j *runs.Recorder, run core.Run) error {
	w := core.RunWrite{RunID: run.ID, SessionID: run.SessionID, Attempt: run.Attempt}
	message := core.Message{ID: core.NewID[core.MessageID](), RunID: run.ID}
	if run.Attempt == 1 {
		message.Role, message.ToolCalls = core.RoleAssistant, []core.ToolCall{{ID: "c", Name: "pay"}}
		w.Wait = &core.RunWait{Approvals: []core.Approval{{ToolCallID: "c", Tool: "pay", Mode: core.ApprovalAlways}}}
	} else {
		message.Role, message.ToolCallID, message.Content = core.RoleTool, "c", "paid"
		w.End = &core.RunEnd{Status: core.RunSucceeded}
	}
	w.Messages = []core.Message{message}
	_, err := j.Append(ctx, w)
	return err
}

// asked sends a message whose run waits, and returns its question.
func (h *house) asked(t *testing.T) core.Approval {
	t.Helper()
	a := h.sendAs(t, core.SendMessage{Content: "pay"})
	out, err := h.Wait(t.Context(), ann, a.Run)
	run := out.Run
	must.True(t, err == nil && run.Status == core.RunWaiting, "got %s, %v, want the run to wait", run.Status, err)
	all, err := h.db.Runs.Approvals(t.Context(), run.ID)
	must.True(t, err == nil && len(all) == 1, "got %+v, %v", all, err)
	return all[0]
}

// The results of a client's tools are given by the ids of the calls, and the run goes on.
func TestAnswerCalls(t *testing.T) {
	simulate(t, func(t *testing.T) {
		h := newHouse(t, 0, func(ctx context.Context, j *runs.Recorder, run core.Run) error {
			if run.Attempt > 1 {
				return waiting(ctx, j, run)
			}
			_, err := j.Append(ctx, core.RunWrite{
				RunID: run.ID, SessionID: run.SessionID, Attempt: run.Attempt,
				Messages: []core.Message{{ID: core.NewID[core.MessageID](), RunID: run.ID, Role: core.RoleAssistant, ToolCalls: []core.ToolCall{{ID: "c", Name: "pay"}}}},
				Wait:     &core.RunWait{Approvals: []core.Approval{{Kind: core.KindClientTool, ToolCallID: "c", Tool: "pay", Mode: core.ApprovalAlways}}},
			})
			return err
		})
		a := h.asked(t)
		for what, c := range map[string]struct {
			results []core.CallResult
			want    error
		}{
			"none":      {nil, core.ErrInvalid},
			"twice":     {[]core.CallResult{{ToolCallID: "c"}, {ToolCallID: "c"}}, core.ErrInvalid},
			"too large": {[]core.CallResult{{ToolCallID: "c", Result: strings.Repeat("x", 4<<20+1)}}, core.ErrTooLarge},
			"unknown":   {[]core.CallResult{{ToolCallID: "d"}}, core.ErrNotFound},
		} {
			compare.Error(t, what, c.want, compare.ErrorOf(h.AnswerCalls(t.Context(), ann, core.AnswerCalls{SessionID: h.session.ID, Results: c.results}, core.SessionAgent{})))
		}
		out, err := h.AnswerCalls(t.Context(), ann, core.AnswerCalls{SessionID: h.session.ID, Results: []core.CallResult{{ToolCallID: "c", Result: "paid"}}}, core.SessionAgent{})
		must.True(t, err == nil && out.Run.ID == a.RunID, "got the run %s, %v, want %s", out.Run.ID, err, a.RunID)
		compare.Equal(t, "run.Status: want it to have gone on", core.RunSucceeded, must.Get(h.Wait(t.Context(), ann, core.Run{ID: a.RunID, SessionID: h.session.ID}))(t).Run.Status)
	})
}

// A decision is committed though the run cannot be claimed; a sweep does it.
func TestDecideWithoutAClaim(t *testing.T) {
	simulate(t, func(t *testing.T) {
		h := newHouse(t, 0, waiting)
		a := h.asked(t)
		h.db.Before(func(call string) error {
			if call == "Claim" {
				return errors.New("away")
			}
			return nil
		})
		must.Get(h.Decide(t.Context(), ann, a.RunID, a.ID, core.ApprovalDecision{Approve: true}))(t)
		synctest.Wait()
		compare.Equal(t, "h.db.Run(a.RunID).Status: want it queued", core.RunQueued, h.db.Run(a.RunID).Status)
		h.db.Before(nil)
		compare.Equal(t, "run.Status: want it to have gone on", core.RunSucceeded, must.Get(h.Wait(t.Context(), ann, core.Run{ID: a.RunID, SessionID: h.session.ID}))(t).Run.Status)
	})
}

// A new message ends the waiting, unless it says that it waits; so does a cancel.
func TestMessageInstead(t *testing.T) {
	simulate(t, func(t *testing.T) {
		h := newHouse(t, 0, waiting)
		a := h.asked(t)
		h.sendAs(t, core.SendMessage{Content: "later", Multitask: core.MultitaskEnqueue})
		synctest.Wait()
		compare.Equal(t, "enqueue: want it to wait still", core.RunWaiting, h.db.Run(a.RunID).Status)
		h.sendAs(t, core.SendMessage{Content: "stop that"})
		synctest.Wait()
		compare.Equal(t, "a new message: want it to have ended", core.RunCanceled, h.db.Run(a.RunID).Status)
		compare.Equal(t, "the model reads", "not approved: the user wrote instead", h.db.Log(h.session.ID)[2].Content)
		next := h.db.RunsOf(h.session.ID)[1]
		must.True(t, next.Status == core.RunWaiting, "the next run has %s, want it to wait in turn", next.Status)
		compare.Equal(t, "cancel: run.Status", core.RunCanceled, h.cancel(t, next.ID).Status)
		h.cancel(t, h.db.RunsOf(h.session.ID)[2].ID) // for the check of open calls
	})
}

// Stop ends the run at work and nothing else: the next message of the queue is answered. A
// session without a run is left as it is.
func TestStop(t *testing.T) {
	simulate(t, func(t *testing.T) {
		h := newHouse(t, 0, talkUntilCanceled)
		compare.Error(t, "no run", nil, h.Stop(t.Context(), ann, h.session.ID))
		long := h.send(t, "long")
		synctest.Wait()
		queued := h.send(t, "queued")
		wantKind(t, h.Stop(t.Context(), core.Tenant{Owner: "eve"}, h.session.ID), core.ErrNotFound)
		must.Do(t, h.Stop(t.Context(), ann, h.session.ID))
		compare.Equal(t, "run.Status: want it canceled", core.RunCanceled, must.Get(h.Wait(t.Context(), ann, long.Run))(t).Run.Status)
		synctest.Wait()
		compare.Equal(t, "run.Status: want it to have succeeded", core.RunSucceeded, must.Get(h.Wait(t.Context(), ann, queued.Run))(t).Run.Status)
	})
}

// A surface says who decides; else it is the caller.
func TestDecideBy(t *testing.T) {
	for by, want := range map[string]string{"slack:T1/U1": "slack:T1/U1", "": ann.Owner} {
		t.Run(by, func(t *testing.T) {
			simulate(t, func(t *testing.T) {
				h := newHouse(t, 0, waiting)
				a := h.asked(t)
				a, err := h.Decide(t.Context(), ann, a.RunID, a.ID, core.ApprovalDecision{Approve: true, By: by})
				compare.True(t, err == nil && a.DecidedBy == want, "got %q and error %v, want %q", a.DecidedBy, err, want)
				must.Get(h.Wait(t.Context(), ann, core.Run{ID: a.RunID, SessionID: h.session.ID}))(t)
			})
		})
	}
}

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
