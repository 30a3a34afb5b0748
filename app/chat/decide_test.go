package chat_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"bobbin/app/core"
	"bobbin/app/runs"
)

// waiting is an engine whose run waits for an approval, and answers after it.
func waiting(ctx context.Context, j *runs.Journal, run core.Run) error {
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
	run, err := h.Wait(t.Context(), ann, a.Run.ID)
	if err != nil || run.Status != core.RunWaiting {
		t.Fatalf("got %s, %v, want the run to wait", run.Status, err)
	}
	all, err := h.db.RunStore().Approvals(t.Context(), run.ID)
	if err != nil || len(all) != 1 {
		t.Fatalf("got %+v, %v", all, err)
	}
	return all[0]
}

// Issue 5, 3: the process that gets the decision goes on with the run at once; who waits
// for the run hears of its end.
func TestDecide(t *testing.T) {
	simulate(t, func(t *testing.T) {
		h := newHouse(t, 0, waiting)
		a := h.asked(t)
		_, err := h.Decide(t.Context(), ann, a.RunID, a.ID, core.ApprovalDecision{Comment: strings.Repeat("x", 2001)})
		if !errors.Is(err, core.ErrInvalid) {
			t.Errorf("a long comment: got %v, want it refused", err)
		}
		if a, err = h.Decide(t.Context(), ann, a.RunID, a.ID, core.ApprovalDecision{Approve: true}); err != nil || a.Status != core.ApprovalApproved {
			t.Fatalf("got %+v, %v", a, err)
		}
		if run, err := h.Wait(t.Context(), ann, a.RunID); err != nil || run.Status != core.RunSucceeded || run.Attempt != 2 {
			t.Errorf("got %s at attempt %d, %v, want it to have gone on", run.Status, run.Attempt, err)
		}
		h.wantTexts(t, "pay", "", "paid")
	})
}

// Issue 5, 3: a decision is committed though the run cannot be claimed; a sweep does it.
func TestDecideWithoutAClaim(t *testing.T) {
	simulate(t, func(t *testing.T) {
		h := newHouse(t, 0, waiting)
		a, failed := h.asked(t), false
		h.db.Fail(func(call string) error {
			if call != "Claim" || failed {
				return nil
			}
			failed = true
			return errors.New("away")
		})
		if _, err := h.Decide(t.Context(), ann, a.RunID, a.ID, core.ApprovalDecision{Approve: true}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if run := h.db.Run(a.RunID); run.Status != core.RunQueued || !failed {
			t.Errorf("got %s, want it queued", run.Status)
		}
		if run, err := h.Wait(t.Context(), ann, a.RunID); err != nil || run.Status != core.RunSucceeded {
			t.Errorf("got %s, %v, want it to have gone on", run.Status, err)
		}
	})
}

// Issue 5, 3: a new message ends the waiting, unless it says that it waits; so does a cancel.
func TestMessageInstead(t *testing.T) {
	simulate(t, func(t *testing.T) {
		h := newHouse(t, 0, waiting)
		a := h.asked(t)
		h.sendAs(t, core.SendMessage{Content: "later", Multitask: core.MultitaskEnqueue})
		synctest.Wait()
		if run := h.db.Run(a.RunID); run.Status != core.RunWaiting {
			t.Errorf("enqueue: got %s, want it to wait still", run.Status)
		}
		h.sendAs(t, core.SendMessage{Content: "stop that"})
		synctest.Wait()
		if run := h.db.Run(a.RunID); run.Status != core.RunCanceled {
			t.Errorf("a new message: got %s, want it to have ended", run.Status)
		}
		if got := h.db.Log(h.session.ID)[2].Content; got != "not approved: the user wrote instead" {
			t.Errorf("the model reads %q", got)
		}
		next := h.db.Runs(h.session.ID)[1]
		if next.Status != core.RunWaiting {
			t.Fatalf("the next run has %s, want it to wait in turn", next.Status)
		}
		if run, err := h.Cancel(t.Context(), ann, next.ID, true); err != nil || run.Status != core.RunCanceled {
			t.Errorf("cancel: got %s, %v", run.Status, err)
		}
		last := h.db.Runs(h.session.ID)[2]
		if _, err := h.Cancel(t.Context(), ann, last.ID, true); err != nil { // for the check of open calls
			t.Error(err)
		}
	})
}
