package slack_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/must"
	"bobbin/tests/slackfake/fakeslack"
)

// awaitThread waits until the thread's messages begin with these words.
func (w *workspace) awaitThread(t *testing.T, root string, want ...string) []fakeslack.Message {
	t.Helper()
	var got []fakeslack.Message
	err := w.Wait(t.Context(), func() bool {
		got = w.ws.Thread(w.channel, root)
		return slices.EqualFunc(got, want, func(m fakeslack.Message, text string) bool {
			return strings.HasPrefix(m.Markdown(), text) && (m.Stream == nil || !m.Stream.Open)
		})
	})
	if err != nil {
		t.Fatalf("got the thread %+v (%v), want %q", got, err, want)
	}
	return got
}

// A post whose answer is lost is known by the event that Slack sends of it: before the thread is
// read, and also when that is refused and the post was unknown. It is there once.
func TestSlackLostAnswerIsFoundByItsEvent(t *testing.T) {
	t.Parallel()
	inWorkspace(t, func(t *testing.T, w *workspace) {
		root := w.ask(t, "", 1)
		session, _ := w.conversation(t, 2)
		say := func(text string, n int) {
			t.Helper()
			w.Inject(fakeslack.Fault{Method: "chat.postMessage", Times: 1, LoseAnswer: true})
			must.Get(apptest.SendAsync(t.Context(), w.house, core.SendMessage{SessionID: session.ID, Content: text, Source: core.SourceWeb}))(t)
			w.awaitAnswers(t, root, n)
		}
		w.Inject(fakeslack.Fault{Method: "conversations.replies", Error: "missing_scope"})
		say("the first", 3)
		if calls := w.Calls("conversations.replies"); len(calls) > 0 || len(w.faults(t, session.ID)) > 0 {
			t.Errorf("the thread was read (%+v), or there are faults: %+v", calls, w.faults(t, session.ID))
		}
		w.DisturbEvents(fakeslack.EventFaults{Held: true})
		say("the second", 5)
		if f := w.faults(t, session.ID); len(f) != 1 || f[0].State != core.SlackPostUnknown {
			t.Errorf("without events: got the faults %+v, want an unknown post", f)
		}
		w.DisturbEvents(fakeslack.EventFaults{})
		for limit := time.Now().Add(time.Minute); len(w.faults(t, session.ID)) > 0; apptest.PauseBriefly(t) {
			if time.Now().After(limit) {
				t.Fatalf("after the events: got the faults %+v, want none", w.faults(t, session.ID))
			}
		}
		w.wantPosts(t, root, 5)
	})
}

// faults returns what is wrong with the posts of the session.
func (w *workspace) faults(t *testing.T, session core.SessionID) []core.SlackFault {
	t.Helper()
	return must.Get(client.Call(t.Context(), w.house, ops.GetSlackThread, ops.InSession{SessionID: session}))(t).Faults
}

// barriers hold answers to questions with certain words.
type barriers struct {
	ended <-chan struct{} // the test is over: nothing is held any more
	mu    sync.Mutex
	held  map[string]barrier // guarded by mu
}

// barrier is closed until the test opens it.
type barrier struct{ asked, open chan struct{} }

// hold waits for the barrier of the question, if it has one.
func (g *barriers) hold(question string) {
	g.mu.Lock()
	var found barrier
	for mark, one := range g.held {
		if strings.Contains(question, mark) {
			found = one
			delete(g.held, mark)
		}
	}
	g.mu.Unlock()
	if found.asked != nil {
		close(found.asked)
		select {
		case <-found.open:
		case <-g.ended:
		}
	}
}

func (g *barriers) add(mark string) barrier {
	g.mu.Lock()
	defer g.mu.Unlock()
	one := barrier{make(chan struct{}), make(chan struct{})}
	g.held[mark] = one
	return one
}

// await waits until a question is held.
func (b barrier) await(t *testing.T) {
	t.Helper()
	select {
	case <-b.asked:
	case <-time.After(apptest.Patience):
		t.Fatal("no question came to the barrier")
	}
}
