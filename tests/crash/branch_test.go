package crash_test

import (
	"sync"
	"testing"

	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/provider"
	"bobbin/tests/records"
)

// TestKilledOnABranch: the process is killed while a new answer, or the answer to
// an edited message, is half said. The restart gives it on the same branch, and the
// old one is as it was.
func TestKilledOnABranch(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(t *testing.T, c *client.Client, question core.Message) core.RunID{
		"regenerate": func(t *testing.T, c *client.Client, question core.Message) core.RunID {
			return firstRun(t, c, core.Regenerate{SessionID: question.SessionID, MessageID: question.ID, ClientMessageID: "again"})
		},
		"edit": func(t *testing.T, c *client.Client, question core.Message) core.RunID {
			run, err := c.SendAsync(t.Context(), core.SendMessage{SessionID: question.SessionID, Edits: question.ID, Content: "Are you really there?", ClientMessageID: "edited"})
			if err != nil {
				t.Fatal(err)
			}
			return run.ID
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachPlace(t, func(t *testing.T, p place) { branchAndKill(t, p, begin) })
		})
	}
}

// firstRun begins a new answer and returns its run.
func firstRun(t *testing.T, c *client.Client, r core.Regenerate) core.RunID {
	t.Helper()
	for e, err := range c.Regenerate(t.Context(), r) {
		if err != nil {
			t.Fatal(err)
		}
		if e.RunID != "" {
			return e.RunID
		}
	}
	t.Fatal("got no event of the new answer's run")
	return ""
}

func branchAndKill(t *testing.T, p place, begin func(*testing.T, *client.Client, core.Message) core.RunID) {
	held, release := make(chan struct{}), make(chan struct{})
	hold := sync.OnceFunc(func() { close(held) })
	open := sync.OnceFunc(func() { close(release) })
	model, err := provider.New(provider.Options{Window: modelWindow, Overcount: 1.15, Hold: func(string) {
		select {
		case <-held:
			<-release
		default: // the first answer
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(model.Close)
	t.Cleanup(open)
	b := newBobbin(t, p, model.URL)
	b.start(t)
	c := b.client(t)
	session, err := c.CreateSession(t.Context(), core.Session{})
	if err != nil {
		t.Fatal(err)
	}
	first, err := c.SendAndWait(t.Context(), core.SendMessage{SessionID: session.ID, Content: "Are you there?"})
	if err != nil || first.Message == nil {
		t.Fatalf("first answer: got %+v and %v", first, err)
	}
	hold()
	w := watchRaw(t, b, session.ID)
	run := begin(t, c, core.Message{ID: first.Run.UserMessageID, SessionID: session.ID})
	w.await(t, "half of the answer", func(f frame) bool { return f.event == core.EventMessageStarted && f.head.RunID == run })
	b.kill()
	open()
	b.start(t)
	w.await(t, "the end of the run", func(f frame) bool { return f.event == core.EventRunSucceeded && f.head.RunID == run })
	ended, err := c.Run(t.Context(), run)
	if err != nil || ended.Attempt != 2 {
		t.Errorf("got the run in attempt %d and %v, want it taken over", ended.Attempt, err)
	}
	checkBranch(t, c, session.ID, ended, *first.Message)
	b.stop(t)
}

// checkBranch wants one question and the run's answer on the path, and the first
// answer beside them.
func checkBranch(t *testing.T, c *client.Client, id core.SessionID, run core.Run, first core.Message) {
	t.Helper()
	path, err := records.Pages(func(q core.PageQuery) (core.Page[core.Message], error) {
		page, err := c.Messages(t.Context(), id, core.MessageQuery{PageQuery: q})
		return page.Page, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(path) != 2 || path[0].ID != run.UserMessageID || path[1].ID != run.AnswerID || path[1].ParentID != path[0].ID {
		t.Errorf("got a path of %d messages, want the question and the run's answer: %+v", len(path), path)
	}
	all, err := records.Pages(func(q core.PageQuery) (core.Page[core.Message], error) {
		page, err := c.Messages(t.Context(), id, core.MessageQuery{PageQuery: q, AllBranches: true})
		return page.Page, err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := 3 // a new answer has no question of its own
	if run.Input.Edits != "" {
		want = 4
	}
	if len(all) != want || all[1].ID != first.ID || all[1].Content != first.Content || all[1].OnPath {
		t.Errorf("got %d messages on all branches, want %d with the first answer beside the path", len(all), want)
	}
	report, err := c.Context(t.Context(), id)
	if err != nil || report.Coverage.Lost != 0 || report.Coverage.Excluded != want-2 {
		t.Errorf("got %+v and %v, want %d messages excluded", report.Coverage, err, want-2)
	}
}
