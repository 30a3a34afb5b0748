package fencing_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"bobbin/app/core"
	"bobbin/tests/compare"
)

// late are the writes of an execution that lost its run, each of a kind of its own.
func late(w *world, p *process, run core.Run) map[string]func(ctx context.Context) error {
	write := func(change func(*core.RunWrite)) func(context.Context) error {
		return func(ctx context.Context) error {
			rw := core.RunWrite{RunID: run.ID, SessionID: run.SessionID, Attempt: run.Attempt}
			change(&rw)
			_, err := p.journal.Append(ctx, rw)
			return err
		}
	}
	draft := core.Draft{Attempt: run.Attempt, MessageID: core.NewID[core.MessageID](), Text: "half"}
	call := core.ToolExecution{CallID: "call_late", Tool: "calculator"}
	return map[string]func(ctx context.Context) error{
		"a message": write(func(rw *core.RunWrite) {
			rw.Messages = []core.Message{message(run, core.RoleAssistant, "late")}
		}),
		"an event": write(func(rw *core.RunWrite) {
			rw.Events = []core.Event{core.NewEvent(run.SessionID, run.ID, core.EventNodeStarted, core.RunData{Run: run})}
		}),
		"a tool's result": write(func(rw *core.RunWrite) {
			m := message(run, core.RoleTool, "late")
			m.ToolCallID, m.ToolName = "call_late", "calculator"
			rw.Messages = []core.Message{m}
		}),
		"books": write(func(rw *core.RunWrite) {
			rw.ModelCalls = []core.ModelCall{{Purpose: core.PurposeAnswer, Model: "m"}}
			rw.Usage, rw.State = core.Usage{InputTokens: 7}, []byte(`{"late": true}`)
		}),
		"a question": write(func(rw *core.RunWrite) {
			rw.Wait = &core.RunWait{Approvals: []core.Approval{{ID: core.NewID[core.ApprovalID](), ToolCallID: "call_late", Tool: "calculator", Arguments: "{}", Mode: core.ApprovalAlways}}}
		}),
		"the end": write(func(rw *core.RunWrite) {
			rw.End = &core.RunEnd{Status: core.RunFailed, Error: &core.RunError{Code: "late", Message: "late"}}
		}),
		"a tool's start": func(ctx context.Context) error {
			return w.runs.StartTools(ctx, run.ID, run.Attempt, []core.ToolExecution{call})
		},
		"half an answer": func(ctx context.Context) error {
			text, err := draft.Encode()
			if err != nil {
				return err
			}
			return w.runs.SavePartial(ctx, run.ID, run.Attempt, text)
		},
	}
}

// A process that hangs longer than its lease, with its heart-beat, and then goes on:
// whatever it wants to write is refused, while another process works on the run and
// after it has ended it, and nothing of it is to be seen.
func TestLateWritesAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	session := w.session()
	type hung struct {
		ctx context.Context
		run core.Run
	}
	begun, wake := make(chan hung), make(chan error)
	slow := w.process("slow/1", func(ctx context.Context, _ *process, run core.Run) error {
		begun <- hung{ctx, run}
		return <-wake
	})
	slow.store.held.Store(true)
	w.accept(session.ID, "hello", slow)
	h := <-begun
	w.lapse()
	working, finish := make(chan core.Run), make(chan struct{})
	quick := w.process("quick/1", func(ctx context.Context, p *process, run core.Run) error {
		working <- run
		<-finish
		return answer(ctx, p, run)
	})
	if run := <-working; run.ID != h.run.ID || run.Attempt != 2 {
		t.Fatalf("got run %s in attempt %d, want the same in the second", run.ID, run.Attempt)
	}
	refuse := func(when string) {
		t.Helper()
		for what, write := range late(w, slow, h.run) {
			compare.Error(t, fmt.Sprintf("%s of the slow process, %s: want it refused", what, when), core.ErrStale, write(h.ctx))
		}
	}
	refuse("while another one works")
	close(finish)
	compare.Equal(t, "the quick process", "succeeded", <-quick.watch.ended)
	refuse("after the end")
	wake <- errors.New("the model failed") // and it wants to write that the run failed
	if got := <-slow.watch.ended; got != "lost" || slow.watch.refused.Load() != 1 {
		t.Errorf("the slow process: got %s and %d refused, want it lost by a refused end", got, slow.watch.refused.Load())
	}
	want := []core.EventType{core.EventRunStarted, core.EventMessageCreated, core.EventMessageDiscarded, core.EventMessageCreated, core.EventRunSucceeded}
	got := slices.DeleteFunc(w.types(session.ID), func(e core.EventType) bool { return e == core.EventRunQueued || e == core.EventSessionUpdated })
	compare.Equal(t, "events", want, got)
	run := w.get(h.run.ID)
	if run.Status != core.RunSucceeded || run.Attempt != 2 || run.Usage.InputTokens != 0 || string(run.State) == `{"late": true}` || run.Partial != "" {
		t.Errorf("got run %+v, want the quick process's alone", run)
	}
	for what, n := range map[string]int{"messages": 2, "tool_executions": 0, "model_calls": 0, "approvals": 0} {
		compare.Equal(t, what+": rows", n, w.count("SELECT count(*) FROM "+what+" WHERE run_id = ?", run.ID))
	}
}
