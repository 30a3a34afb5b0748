package conversation_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/conversation"
)

// What a message is refused for comes in a fixed order, in words that say what to do.
func TestAdmit(t *testing.T) {
	t.Parallel()
	now := time.Now()
	busy := conversation.Counts{Active: 1, Queued: 1, Owned: 2, OfUser: 1}
	for name, tt := range map[string]struct {
		state conversation.State
		in    core.AcceptRun
		want  error
		says  string
	}{
		"idle":             {},
		"busy":             {state: conversation.State{Counts: busy}},
		"archived":         {conversation.State{Session: core.Session{ArchivedAt: &now}, Counts: busy}, core.AcceptRun{MaxQueued: 1}, core.ErrConflict, "archived"},
		"taken":            {conversation.State{Counts: conversation.Counts{Taken: 1}}, core.AcceptRun{ClientMessageID: "c"}, core.ErrConflict, "c belongs to another message"},
		"branch":           {conversation.State{Counts: busy}, core.AcceptRun{Answers: "m"}, core.ErrConflict, "cancel its runs"},
		"branch, idle":     {in: core.AcceptRun{After: "m"}},
		"branch, instead":  {state: conversation.State{Counts: conversation.Counts{Active: 1}}, in: core.AcceptRun{After: "m", Multitask: core.MultitaskInterrupt}},
		"branch in queue":  {conversation.State{Counts: busy}, core.AcceptRun{After: "m", Multitask: core.MultitaskInterrupt}, core.ErrConflict, "cancel its runs"},
		"reject":           {conversation.State{Counts: busy}, core.AcceptRun{Multitask: core.MultitaskReject}, core.ErrConflict, "another message"},
		"full queue":       {conversation.State{Counts: busy}, core.AcceptRun{MaxQueued: 1}, core.ErrRateLimited, "1 queued messages"},
		"room in queue":    {state: conversation.State{Counts: busy}, in: core.AcceptRun{MaxQueued: 2}},
		"too many of user": {conversation.State{Counts: busy}, core.AcceptRun{MaxOfUser: 1}, core.ErrRateLimited, "limits.runs_per_user"},
		"too many":         {conversation.State{Counts: busy}, core.AcceptRun{MaxOwned: 2}, core.ErrRateLimited, "limits.runs_per_owner"},
		"other model":      {conversation.State{}, core.AcceptRun{SessionAgent: &core.SessionAgent{Model: "m"}}, core.ErrStale, "another agent or model"},
	} {
		if err := conversation.Admit(tt.state, tt.in); !errors.Is(err, tt.want) || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: got %v, want %v with %q", name, err, tt.want, tt.says)
		}
	}
}

// A cancel ends a run that has not started, and marks every other that has not ended.
func TestCancel(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status  core.RunStatus
		attempt int
		want    core.RunStatus
		marked  bool
		events  int
	}{
		{core.RunQueued, 0, core.RunCanceled, false, 1},
		{core.RunQueued, 1, core.RunQueued, true, 0},
		{core.RunRunning, 1, core.RunRunning, true, 0},
		{core.RunWaiting, 1, core.RunQueued, true, 1},
		{core.RunFailed, 1, core.RunFailed, false, 0},
	} {
		s := conversation.State{Run: core.Run{ID: "r", Status: tt.status, Attempt: tt.attempt}}
		if tt.status == core.RunWaiting {
			s.Approvals = []core.Approval{{RunID: "r", Status: core.ApprovalOpen}}
		}
		got := conversation.Cancel(s)
		if got.Run.Status != tt.want || got.Run.CancelRequested != tt.marked || len(got.Events) != tt.events {
			t.Errorf("%s, attempt %d: got %s, marked %t, %d events, want %+v", tt.status, tt.attempt, got.Run.Status, got.Run.CancelRequested, len(got.Events), tt)
		}
	}
}

// A call that a model names twice is asked for once.
func TestWaitAsksOnce(t *testing.T) {
	t.Parallel()
	old := core.Approval{ID: "old", RunID: "r", ToolCallID: "c", Definition: "pay-1", Status: core.ApprovalApproved}
	call := core.Approval{ToolCallID: "c", Definition: "pay-2"}
	s := conversation.State{Run: core.Run{ID: "r", Status: core.RunRunning}, Approvals: []core.Approval{old}}
	got, err := conversation.Wait(s, core.RunWait{Approvals: []core.Approval{call, call}})
	if err != nil || len(got.Changed) != 2 || got.Changed[0].Status != core.ApprovalClosed || got.Changed[1].Status != core.ApprovalOpen {
		t.Errorf("got %+v, %v, want the old question closed and one new", got.Changed, err)
	}
	if s.Approvals[0] != old || got.Run.Status != core.RunWaiting {
		t.Errorf("got the state %+v and a run that is %s, want the state unchanged and the run waiting", s.Approvals, got.Run.Status)
	}
}

// The first decision counts; another one learns who decided what.
func TestDecideAgain(t *testing.T) {
	t.Parallel()
	open := core.Approval{ID: "a", RunID: "r", Status: core.ApprovalOpen}
	s := conversation.State{Run: core.Run{ID: "r", Status: core.RunWaiting}, Approvals: []core.Approval{open}}
	first, err := conversation.Decide(s, "a", core.ApprovalDecision{Comment: "too much", By: "ann"})
	if err != nil || first.Approval.Status != core.ApprovalDenied || first.Run.Status != core.RunQueued || len(first.Events) != 1 {
		t.Fatalf("got %+v, %v, want it denied and the run queued", first, err)
	}
	s.Approvals = first.Approvals
	same, err := conversation.Decide(s, "a", core.ApprovalDecision{By: "bob"})
	if err != nil || same.Approval != first.Approval || len(same.Events)+len(same.Changed) != 0 {
		t.Errorf("the same again: got %+v, %v, want no change", same, err)
	}
	_, err = conversation.Decide(s, "a", core.ApprovalDecision{Approve: true})
	if !errors.Is(err, core.ErrConflict) || !strings.Contains(err.Error(), "denied by ann at 20") || !strings.Contains(err.Error(), ": too much") {
		t.Errorf("the other decision: got %v, want a conflict that says who decided what", err)
	}
}

// A message that comes with the results of a client's calls lets the run that waits for them end, or
// continue if the message is to be queued.
func TestAcceptWithResults(t *testing.T) {
	t.Parallel()
	for multitask, instead := range map[core.Multitask]bool{"": true, core.MultitaskEnqueue: false} {
		s := conversation.State{Run: core.Run{ID: "r", Status: core.RunWaiting, Attempt: 1}, Counts: conversation.Counts{Active: 1}}
		s.Approvals = []core.Approval{{ID: "a", RunID: "r", ToolCallID: "c", Kind: core.KindClientTool, Status: core.ApprovalOpen}}
		in := core.AcceptRun{Worker: "w", Multitask: multitask, Results: core.AnswerCalls{Results: []core.CallResult{{ToolCallID: "c", Result: "seen"}}}}
		got, err := conversation.Accept(s, in)
		if err != nil || got.Instead != instead || got.Run.CancelRequested != instead || got.Run.Status != core.RunQueued || got.Accepted.Status != core.RunQueued {
			t.Errorf("multitask %q: got %+v, %v, want both runs queued, the first to end: %t", multitask, got, err, instead)
		}
		if len(got.Changed) != 1 || got.Changed[0].Result != "seen" || got.Accepted.FirstEvent != 2 {
			t.Errorf("multitask %q: got %+v, first event %d, want the result stored and told first", multitask, got.Changed, got.Accepted.FirstEvent)
		}
	}
}
