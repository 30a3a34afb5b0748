package chat_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"bobbin/app/core"
	"bobbin/app/runs"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

func TestSendErrors(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 201)
	for _, c := range []struct {
		name  string
		m     core.SendMessage
		kind  error
		words string
	}{
		{"empty", core.SendMessage{}, core.ErrInvalid, "content is empty"},
		{"blank", core.SendMessage{Content: " \n\t"}, core.ErrInvalid, "content is empty"},
		{"too large", core.SendMessage{Content: strings.Repeat("x", 1<<20+1)}, core.ErrTooLarge, "at most 1048576"},
		{"too large once it can be stored", core.SendMessage{Content: strings.Repeat("\x00", 1<<19)}, core.ErrTooLarge, "at most 1048576"},
		{"metadata", core.SendMessage{Content: "x", Metadata: json.RawMessage(`"x"`)}, core.ErrInvalid, "object"},
		{"long ids", core.SendMessage{Content: "x", ClientMessageID: long, User: long, Author: long}, core.ErrInvalid, "client_message_id has 201 bytes"},
		{"id with NUL", core.SendMessage{Content: "x", ClientMessageID: "a\x00"}, core.ErrInvalid, "U+0000"},
		{"multitask", core.SendMessage{Content: "x", Multitask: "rollback"}, core.ErrInvalid, "multitask"},
		{"model", core.SendMessage{Content: "x", Model: "gpt-9"}, core.ErrInvalid, "gpt-9"},
		{"session", core.SendMessage{Content: "x", SessionID: "other"}, core.ErrNotFound, "does not exist"},
	} {
		t.Run(c.name, func(t *testing.T) {
			simulate(t, func(t *testing.T) {
				h := newHouse(t, 0, answer)
				if c.m.SessionID == "" {
					c.m.SessionID = h.session.ID
				}
				_, err := h.Send(t.Context(), ann, c.m)
				wantKind(t, err, c.kind)
				compare.True(t, err == nil || strings.Contains(err.Error(), c.words), "got %q, want %q in it", err, c.words)
				h.wantTexts(t)
			})
		})
	}
}

func TestSendToASessionWhoseAgentCannotWork(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, agent, model, words string
	}{
		{"agent is gone", "retired", "", "assistant, broken"},
		{"agent's model is gone", "broken", "", `"gone" is not known`},
		{"session's model is gone", "assistant", "old", `"old" is not known`},
	} {
		t.Run(c.name, func(t *testing.T) {
			simulate(t, func(t *testing.T) {
				h := newHouse(t, 0, answer)
				patch := core.SessionPatch{Agent: &c.agent, Model: &c.model}
				must.Get2(h.db.Sessions.Update(t.Context(), ann, h.session.ID, patch))(t)
				_, err := h.Send(t.Context(), ann, core.SendMessage{SessionID: h.session.ID, Content: "x"})
				wantKind(t, err, core.ErrUnprocessable)
				compare.True(t, err == nil || strings.Contains(err.Error(), c.words), "got %q, want %q in it", err, c.words)
				if c.agent == "broken" { // a model for this message is enough
					h.sendAs(t, core.SendMessage{Content: "x", Model: "demo"})
				}
			})
		})
	}
}

// Who answers in a session is remembered, and looked up again when another process has changed it.
func TestSendAfterTheSessionHasChanged(t *testing.T) {
	simulate(t, func(t *testing.T) {
		h := newHouse(t, 0, answer)
		set := func(model string) {
			t.Helper()
			must.Get2(h.db.Sessions.Update(t.Context(), ann, h.session.ID, core.SessionPatch{Model: &model}))(t)
		}
		h.send(t, "one")
		set("gone")
		wantKind(t, compare.ErrorOf(h.Send(t.Context(), ann, core.SendMessage{SessionID: h.session.ID, Content: "x"})), core.ErrUnprocessable)
		set("demo")
		h.send(t, "two")
		wantKind(t, compare.ErrorOf(h.Send(t.Context(), core.Tenant{Owner: "eve"}, core.SendMessage{SessionID: h.session.ID, Content: "x"})), core.ErrNotFound)
	})
}

// Invalid UTF-8 and NUL become U+FFFD, noted in the metadata.
func TestSendCleansTheContent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, content, metadata string
		want, wantMetadata      string
	}{
		{"clean", "Grüß \uFFFD", ``, "Grüß \uFFFD", ``},
		{"NUL", "a\x00b\x00", ``, "a\uFFFDb\uFFFD", `{"replaced_characters":2}`},
		{"UTF-8", "a\xff\xfeb\uFFFD", `{"k":"v"}`, "a\uFFFDb\uFFFD", `{"k":"v","replaced_characters":1}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			simulate(t, func(t *testing.T) {
				h := newHouse(t, 0, answer)
				a := h.sendAs(t, core.SendMessage{Content: c.content, Metadata: json.RawMessage(c.metadata)})
				got := a.Message
				compare.Equal(t, "content, metadata", []any{c.want, c.wantMetadata}, []any{got.Content, string(got.Metadata)})
			})
		})
	}
}

// API: a repeated client_message_id answers with the same run, and interrupts none; with another body it is refused.
func TestSendRepeated(t *testing.T) {
	simulate(t, func(t *testing.T) {
		h := newHouse(t, 0, talkUntilCanceled)
		m := core.SendMessage{Content: "long", ClientMessageID: "c1", RequestHash: "1", Multitask: core.MultitaskInterrupt}
		first := h.sendAs(t, m)
		synctest.Wait()
		second := h.sendAs(t, m)
		synctest.Wait()
		compare.Equal(t, "repeated: want the run of the first time", []any{true, first.Run.ID}, []any{second.Repeated, second.Run.ID})
		m.SessionID, m.RequestHash = h.session.ID, "2"
		_, err := h.Send(t.Context(), ann, m)
		compare.Error(t, "another body", core.ErrInvalid, err)
		waiting := core.SendMessage{Content: "next", ClientMessageID: "c2"}
		h.sendAs(t, waiting)
		waiting.Multitask = core.MultitaskInterrupt
		h.sendAs(t, waiting)
		got := h.db.Run(first.Run.ID)
		compare.Equal(t, "run: want the repeat not to interrupt it", []any{core.RunRunning, false}, []any{got.Status, got.CancelRequested})
		h.cancel(t, first.Run.ID)
	})
}

// A message during a run is queued, refused, or interrupts the run.
func TestSendWhileARunIsActive(t *testing.T) {
	simulate(t, func(t *testing.T) {
		var executed []string // by one goroutine at a time
		h := newHouse(t, 0, func(ctx context.Context, j *runs.Recorder, run core.Run) error {
			executed = append(executed, run.Input.Content)
			return talkUntilCanceled(ctx, j, run)
		})
		long := h.send(t, "long")
		synctest.Wait()
		queued := h.send(t, "queued")
		synctest.Wait()
		compare.Equal(t, "run: want it queued and not in the log", []any{core.RunQueued, int64(0)}, []any{queued.Run.Status, queued.Message.Seq})
		wantKind(t, compare.ErrorOf(h.Send(t.Context(), ann, core.SendMessage{SessionID: h.session.ID, Content: "no", Multitask: core.MultitaskReject})), core.ErrConflict)
		urgent := h.sendAs(t, core.SendMessage{Content: "urgent", Multitask: core.MultitaskInterrupt})
		compare.Equal(t, "run.Status: want it succeeded", core.RunSucceeded, must.Get(h.Wait(t.Context(), ann, urgent.Run))(t).Run.Status)
		compare.Equal(t, "the interrupted run: want it canceled", core.RunCanceled, h.db.Run(long.Run.ID).Status)
		h.wantTexts(t, "long", "half a sentence", "queued", "re: queued", "urgent", "re: urgent")
		synctest.Wait()
		want := []string{"long", "queued", "urgent"}
		compare.True(t, slices.Equal(executed, want), "got executed %q, want %q", executed, want)
	})
}

// An interrupt that fails loses nothing: the message waits.
func TestInterruptFails(t *testing.T) {
	simulate(t, func(t *testing.T) {
		h := newHouse(t, 0, talkUntilCanceled)
		long := h.send(t, "long")
		synctest.Wait()
		h.db.Before(func(call string) error {
			if call == "Active" {
				return errors.New("connection refused")
			}
			return nil
		})
		a := h.sendAs(t, core.SendMessage{Content: "urgent", Multitask: core.MultitaskInterrupt})
		compare.Equal(t, "run: want it queued", core.RunQueued, a.Run.Status)
		must.Get(h.Cancel(t.Context(), ann, long.Run.ID))(t)
		synctest.Wait()
		h.wantTexts(t, "long", "half a sentence", "urgent", "re: urgent")
	})
}

// The request only listens. One that goes away in the middle does not leave a run that nobody executes.
func TestSendWhoseCallerWentAway(t *testing.T) {
	simulate(t, func(t *testing.T) {
		h := newHouse(t, 0, answer)
		ctx, cancel := context.WithCancel(t.Context())
		h.db.Before(func(call string) error {
			if call == "Accept" {
				cancel()
			}
			return nil
		})
		a := must.Get(h.Send(ctx, ann, core.SendMessage{SessionID: h.session.ID, Content: "hello"}))(t)
		synctest.Wait()
		compare.Equal(t, "run: want it succeeded", core.RunSucceeded, h.db.Run(a.Run.ID).Status)
	})
}

// cancel cancels a run of ann's and returns it when it has ended.
func (h *house) cancel(t *testing.T, id core.RunID) core.Run {
	t.Helper()
	return must.Get(h.Wait(t.Context(), ann, must.Get(h.Cancel(t.Context(), ann, id))(t)))(t).Run
}

func TestCancel(t *testing.T) {
	simulate(t, func(t *testing.T) {
		h := newHouse(t, 0, talkUntilCanceled)
		long, queued := h.send(t, "long"), h.send(t, "queued")
		synctest.Wait()
		compare.Equal(t, "the queued run", core.RunCanceled, must.Get(h.Cancel(t.Context(), ann, queued.Run.ID))(t).Status)
		wantKind(t, compare.ErrorOf(h.Cancel(t.Context(), core.Tenant{Owner: "bob"}, long.Run.ID)), core.ErrNotFound)
		for range 2 {
			compare.Equal(t, "the active run", core.RunCanceled, h.cancel(t, long.Run.ID).Status)
		}
		h.wantTexts(t, "long", "half a sentence")
		var types []core.EventType
		for _, e := range h.db.History(h.session.ID) {
			types = append(types, e.Type)
		}
		want := []core.EventType{
			core.EventRunStarted, core.EventMessageCreated, core.EventRunQueued, core.EventRunCanceled,
			core.EventMessageCreated, core.EventRunCanceled,
		}
		compare.Equal(t, "events", want, types)
	})
}
