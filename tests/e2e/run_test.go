package e2e_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
)

// What was said is kept, and the conversation goes on with it.
func TestCancelKeepsWhatWasSaid(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		p, _ := newHolding(t)
		h := apptest.New(t, url, apptest.WithModel("house", 8192, 2048, p))
		id := apptest.NewSession(t, h.Client, core.Session{})
		question := "hold this answer, please: " + strings.Repeat("word ", 20)

		var got apptest.Turn
		heard := make(chan core.Event, 1)
		done := make(chan struct{})
		go func() {
			defer close(done)
			got = apptest.ReadTurn(t, tee(h.Send(t.Context(), core.SendMessage{SessionID: id, Content: question}), core.EventMessageDelta, heard))
		}()
		first := <-heard
		run, err := h.CancelRun(t.Context(), first.RunID, true)
		if err != nil || run.Status != core.RunCanceled {
			t.Fatalf("got the run %s and %v, want it canceled", run.Status, err)
		}
		<-done
		if got.Run.Status != core.RunCanceled || got.Answer.Status != core.MessagePartial ||
			got.Answer.Content == "" || !strings.HasPrefix("answer to: "+question, got.Answer.Content) {
			t.Errorf("got the run %s and the message %q (%s), want the beginning of the answer", got.Run.Status, got.Answer.Content, got.Answer.Status)
		}
		again, err := h.CancelRun(t.Context(), first.RunID, true)
		if err != nil || again.Status != core.RunCanceled {
			t.Errorf("a second time: got %s and %v, want the same", again.Status, err)
		}

		apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "and now?"})
		if n := len(apptest.ListMessages(t, h.Client, id)); n != 4 {
			t.Errorf("got %d messages, want 4", n)
		}
		view, err := h.Prompt(t.Context(), id)
		if err != nil || len(view.Messages) < 4 || !strings.Contains(view.Messages[len(view.Messages)-3].Content, got.Answer.Content) {
			t.Errorf("got the prompt %+v and %v, want what was said in it", view.Messages, err)
		}
		contextOf(t, h.Client, id)
	})
}

// Who comes later, leaves and comes back hears everything once.
func TestWatchersHearTheSame(t *testing.T) {
	t.Parallel()
	p, g := newHolding(t)
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 8192, 2048, p))
	id := apptest.NewSession(t, h.Client, core.Session{})
	apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "before"})
	run, err := h.SendAsync(t.Context(), core.SendMessage{SessionID: id, Content: "hold on for the others"})
	if err != nil {
		t.Fatal(err)
	}
	<-g.arrived
	// The answer is half said. One joins now, and leaves after the first delta.
	seen := int64(0)
	for e, err := range h.WatchRun(t.Context(), run.ID, core.Cursor{}) {
		if err != nil {
			t.Fatal(err)
		}
		seen = max(seen, e.Seq)
		if e.Type == core.EventMessageDelta {
			break
		}
	}
	g.open()
	whole := apptest.ReadTurn(t, h.WatchRun(t.Context(), run.ID, core.Cursor{}))
	rest := apptest.ReadTurn(t, h.WatchRun(t.Context(), run.ID, core.Cursor{After: seen}))
	var want, got []int64
	for _, e := range whole.Events {
		if e.Seq > seen {
			want = append(want, e.Seq)
		}
	}
	for _, e := range rest.Events {
		if e.Seq > 0 {
			got = append(got, e.Seq)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("after coming back (-want +got):\n%s", diff)
	}
	if whole.Answer.Content != "answer to: hold on for the others" || rest.Answer.ID != whole.Answer.ID {
		t.Errorf("got %q and %q, want the answer twice", whole.Answer.Content, rest.Answer.Content)
	}
	if diff := cmp.Diff(replay(t, h.Client, id), replay(t, h.Client, id)); diff != "" {
		t.Errorf("the session's events, read twice:\n%s", diff)
	}
}

// An answer that is not ready in time is handed back, and
// given after the restart; those that wait come after it.
func TestStopWhileAnswering(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		p, g := newHolding(t)
		h := apptest.New(t, url, apptest.WithModel("house", 8192, 2048, p), apptest.WithGrace(time.Millisecond))
		id := apptest.NewSession(t, h.Client, core.Session{})
		var runs []core.Run
		for _, content := range []string{"hold the first", "second", "third"} {
			run, err := h.SendAsync(t.Context(), core.SendMessage{SessionID: id, Content: content})
			if err != nil {
				t.Fatal(err)
			}
			runs = append(runs, run)
		}
		<-g.arrived
		h.Stop()
		g.open()
		h.Start()
		for i, want := range []string{"hold the first", "second", "third"} {
			got := apptest.ReadTurn(t, h.WatchRun(t.Context(), runs[i].ID, core.Cursor{}))
			if got.Run.Status != core.RunSucceeded || got.Answer.Content != "answer to: "+want {
				t.Errorf("run %d: got %s with %q, want the answer to %q", i, got.Run.Status, got.Answer.Content, want)
			}
		}
		if diff := cmp.Diff([]string{"hold the first", "second", "third"}, log(apptest.ListMessages(t, h.Client, id), core.RoleUser)); diff != "" {
			t.Errorf("questions in the log (-want +got):\n%s", diff)
		}
		if n := len(apptest.ListMessages(t, h.Client, id)); n != 6 {
			t.Errorf("got %d messages, want 6", n)
		}
	})
}

// What a provider refuses is told in words that help and give nothing away, the
// message stays, and the next one is answered.
func TestProviderRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		status int
		body   string
		code   string
	}{
		{"wrong key", 401, `{"error":{"message":"Incorrect API key provided: sk-secret","code":"invalid_api_key"}}`, "model_auth"},
		{"bad request", 400, `{"error":{"message":"no such parameter","type":"invalid_request_error"}}`, "model_invalid"},
		{"not found", 404, `{"error":{"message":"no such model","code":"model_not_found"}}`, "model_not_found"},
		{"web page", 403, `<html>blocked by secret-proxy.internal</html>`, "model_auth"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := apptest.NewProvider(t, provider.Options{Window: 8192, Fault: func(w http.ResponseWriter, a provider.Asked) bool {
				if !strings.HasSuffix(a.Question, "refuse me") {
					return false
				}
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
				return true
			}})
			h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 8192, 2048, p))
			id := apptest.NewSession(t, h.Client, core.Session{})
			got := apptest.ReadTurn(t, h.Send(t.Context(), core.SendMessage{SessionID: id, Content: "refuse me"}))
			e := got.Run.Error
			if got.Run.Status != core.RunFailed || e == nil || e.Code != c.code || strings.Contains(e.Message, "secret") {
				t.Errorf("got the run %s with %+v, want %s without a secret", got.Run.Status, e, c.code)
			}
			apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "again"})
			if diff := cmp.Diff([]string{"refuse me", "again"}, log(apptest.ListMessages(t, h.Client, id), core.RoleUser)); diff != "" {
				t.Errorf("questions in the log (-want +got):\n%s", diff)
			}
		})
	}
}

// tee passes a stream on and sends the first event of the type to first.
func tee(stream func(func(core.Event, error) bool), of core.EventType, first chan<- core.Event) func(func(core.Event, error) bool) {
	return func(yield func(core.Event, error) bool) {
		told := false
		for e, err := range stream {
			if !told && err == nil && e.Type == of {
				told = true
				first <- e
			}
			if !yield(e, err) {
				return
			}
		}
	}
}
