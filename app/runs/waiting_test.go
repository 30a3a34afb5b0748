package runs_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
	"bobbin/app/runs"
	"bobbin/tests/compare"
	"bobbin/tests/coretest"
	"bobbin/tests/must"
)

// waiter is an engine whose run calls two tools, the first of which needs an approval
// within the time; once that is decided it answers.
func waiter(expiry time.Duration) execute {
	return func(ctx context.Context, j *runs.Recorder, run core.Run) error {
		w := core.RunWrite{RunID: run.ID, SessionID: run.SessionID, Attempt: run.Attempt}
		if run.Attempt == 1 {
			calls := []core.ToolCall{{ID: "c1", Name: "pay"}, {ID: "c2", Name: "mail"}}
			w.Messages = []core.Message{{ID: core.NewID[core.MessageID](), Role: core.RoleAssistant, ToolCalls: calls, RunID: run.ID}}
			w.Wait = &core.RunWait{Expiry: expiry, Approvals: []core.Approval{{ToolCallID: "c1", Tool: "pay", Mode: core.ApprovalAlways}}}
			_, err := j.Append(ctx, w)
			return err
		}
		for _, id := range []string{"c1", "c2"} {
			w.Messages = append(w.Messages, core.Message{ID: core.NewID[core.MessageID](), Role: core.RoleTool, ToolCallID: id, Content: id, RunID: run.ID})
		}
		w.End = &core.RunEnd{Status: core.RunSucceeded}
		_, err := j.Append(ctx, w)
		return err
	}
}

// A waiting run is executed nowhere. If its approval expires, a sweep continues it, and then
// the session's next one.
func TestWaitingRunExpires(t *testing.T) {
	simulate(t, func(t *testing.T) {
		p := newProcess(t, coretest.New(), "w", runs.Limits{}, waiter(time.Minute)).run(t)
		run := p.accept(t, "pay")
		synctest.Wait()
		p.wantStatus(t, run, core.RunWaiting)
		compare.Equal(t, "runs are at work", 0, p.service.Active())
		<-time.After(59 * time.Second)
		p.wantStatus(t, run, core.RunWaiting)
		<-time.After(7 * time.Second)
		p.wantStatus(t, run, core.RunSucceeded)
		compare.Equal(t, "asked[0].Status: want it expired", core.ApprovalExpired, must.Get(p.db.Runs.Approvals(t.Context(), run.ID))(t)[0].Status)
	})
}

// A waiting run that is canceled gets results for its open calls; a call that was not approved
// never began.
func TestWaitingRunIsCanceled(t *testing.T) {
	simulate(t, func(t *testing.T) {
		p := newProcess(t, coretest.New(), "w", runs.Limits{}, waiter(0)).run(t)
		run := p.accept(t, "pay")
		synctest.Wait()
		got, _, err := p.db.Runs.RequestCancel(t.Context(), ann, run.ID)
		if err != nil || !got.Suspended() {
			t.Fatalf("got %+v, %v", got, err)
		}
		<-time.After(6 * time.Second) // the sweep finds it
		p.wantStatus(t, run, core.RunCanceled)
		p.wantTexts(t, "pay", "", "not approved: the run was canceled", "error: the call was interrupted; whether it took effect is not known")
	})
}

// A run that was canceled in another process, unknown to this one so far, does not wait.
func TestCanceledRunDoesNotWait(t *testing.T) {
	simulate(t, func(t *testing.T) {
		db := coretest.New()
		p := newProcess(t, db, "w", runs.Limits{}, func(ctx context.Context, j *runs.Recorder, run core.Run) error {
			if _, _, err := db.Runs.RequestCancel(ctx, ann, run.ID); err != nil {
				return err
			}
			return waiter(0)(ctx, j, run)
		}).run(t)
		run := p.accept(t, "pay")
		synctest.Wait()
		p.wantStatus(t, run, core.RunCanceled)
	})
}

// Approvals that cannot be read delay the end of a run, and are not lost.
func TestEndWaitsForApprovals(t *testing.T) {
	simulate(t, func(t *testing.T) {
		db := coretest.New()
		p := newProcess(t, db, "w", runs.Limits{}, toolRun(func(context.Context, *runs.Recorder, core.Run) error {
			return errors.New("disk on fire")
		})).run(t)
		failed := 0
		db.Before(func(call string) error {
			if call != "Approvals" || failed == 2 {
				return nil
			}
			failed++
			return errors.New("away")
		})
		run := p.accept(t, "hello")
		<-time.After(time.Second)
		p.wantStatus(t, run, core.RunFailed)
		compare.Equal(t, "reads in vain", 2, failed)
	})
}
