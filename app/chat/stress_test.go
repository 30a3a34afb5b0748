package chat_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"bobbin/app/core"
	"bobbin/app/runs"
	"bobbin/tests/compare"
)

// 16 concurrent requests on one session: the log is in the order of
// acceptance, and every answer refers to its own question. S1: several clients on
// one session see the same.
func TestSixteenRequestsOnOneSession(t *testing.T) {
	t.Parallel()
	for round := range 10 {
		t.Run(fmt.Sprint("round ", round), func(t *testing.T) {
			simulate(t, sixteen)
		})
	}
}

func sixteen(t *testing.T) {
	h := newHouse(t, 0, func(ctx context.Context, j *runs.Recorder, run core.Run) error {
		if run.QueueSeq%5 == 0 {
			panic("now and then")
		}
		return answer(ctx, j, run)
	})
	var clients, watchers sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	seen := make([][]core.Event, 3)
	for i := range seen {
		watchers.Go(func() {
			for e, err := range h.Watch(ctx, ann, h.session.ID, core.Cursor{}) {
				if err == nil && e.Seq > 0 {
					seen[i] = append(seen[i], e)
				}
			}
		})
	}
	for i := range 16 {
		clients.Go(func() { client(t, h, i) })
	}
	clients.Wait()
	stop()
	watchers.Wait()
	all := h.db.History(h.session.ID)
	for i, got := range seen {
		for n, e := range got {
			if e.Seq != int64(n+1) || e.Type != all[n].Type {
				t.Fatalf("watcher %d: got event %d %s at %d, want %s", i, e.Seq, e.Type, n, all[n].Type)
			}
		}
	}
	wantOrder(t, h)
}

// client sends, and waits or watches or cancels.
func client(t *testing.T, h *house, i int) {
	question := fmt.Sprint("question ", i)
	multitask := []core.Multitask{core.MultitaskEnqueue, core.MultitaskInterrupt}[i/12]
	a, err := h.Send(t.Context(), ann, core.SendMessage{
		SessionID: h.session.ID, Content: question, ClientMessageID: fmt.Sprint("c", i), Multitask: multitask,
	})
	if err != nil {
		t.Errorf("send: %v", err)
		return
	}
	var run core.Run
	switch i % 4 {
	case 0:
		run, err = h.Cancel(t.Context(), ann, a.Run.ID, true)
	case 1:
		types, watch := collect(h.WatchRun(t.Context(), ann, a.Run.ID, core.Cursor{}))
		if watch != nil || len(types) == 0 || !core.RunStatus(types[len(types)-1][len("run."):]).Ended() {
			t.Errorf("got events %v and error %v, want them to end with the run", types, watch)
		}
		run, err = h.Wait(t.Context(), ann, a.Run.ID)
	default:
		run, err = h.Wait(t.Context(), ann, a.Run.ID)
	}
	if err != nil || !run.Status.Ended() {
		t.Errorf("got run %s and error %v, want it ended", run.Status, err)
	}
}

// wantOrder checks that the log is a sequence of questions in the order of
// acceptance, each followed by its own answer.
func wantOrder(t *testing.T, h *house) {
	t.Helper()
	var last int64
	var question core.Message
	for _, m := range h.db.Log(h.session.ID) {
		switch {
		case m.Role == core.RoleUser:
			seq := h.db.Run(m.RunID).QueueSeq
			if seq <= last {
				t.Errorf("got question %d after %d, want the order of acceptance", seq, last)
			}
			last, question = seq, m
		case m.RunID != question.RunID:
			t.Errorf("got an answer of run %s after the question of %s", m.RunID, question.RunID)
		case m.Status == core.MessageComplete && m.Content != "re: "+question.Content:
			t.Errorf("got answer %q to %q", m.Content, question.Content)
		}
	}
	for _, e := range h.db.History(h.session.ID) {
		if e.Type != core.EventRunFailed {
			continue
		}
		compare.Equal(t, "e.Data.(core.RunData).Run.Error.Code: want code internal", "internal", e.Data.(core.RunData).Run.Error.Code)
	}
}
