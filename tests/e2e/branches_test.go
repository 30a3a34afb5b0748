package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/db/dbtest"
	"bobbin/tests/provider"
)

// path returns the current path, "role content" of each message, and its messages.
func path(t testing.TB, c *client.Client, id core.SessionID) ([]string, []core.Message) {
	t.Helper()
	page, err := c.Messages(t.Context(), id, core.MessageQuery{})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, m := range page.Items {
		texts = append(texts, string(m.Role)+" "+m.Content)
	}
	return texts, page.Items
}

func wantPath(t testing.TB, c *client.Client, id core.SessionID, want ...string) []core.Message {
	t.Helper()
	got, all := path(t, c, id)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("path (-want +got):\n%s", diff)
	}
	return all
}

// turns is what the provider's answers make of questions.
func turns(questions ...string) []string {
	var texts []string
	for _, q := range questions {
		texts = append(texts, "user "+q, "assistant answer to: "+q)
	}
	return texts
}

// follow collects what happens in a session until enough is known of it.
func follow(ctx context.Context, t testing.TB, c *client.Client, id core.SessionID) <-chan core.Event {
	t.Helper()
	feed := make(chan core.Event, 1000)
	go func() {
		defer close(feed)
		for e, err := range c.WatchSession(ctx, id, core.From{After: 0}) {
			if err != nil {
				return
			}
			if e.Seq > 0 {
				feed <- e
			}
		}
	}()
	return feed
}

// until reads the feed up to an event that fits, which it returns.
func until(t testing.TB, feed <-chan core.Event, what string, fits func(core.Event) bool) core.Event {
	t.Helper()
	for {
		select {
		case e, ok := <-feed:
			if !ok {
				t.Fatalf("the feed ended before %s", what)
			}
			if fits(e) {
				return e
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("no %s within 30 seconds", what)
		}
	}
}

// ENGINE, branches; API: edit, regenerate, select, pin and delete over HTTP, and
// what another client sees of it.
func TestBranches(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		p := newProvider(t, provider.Options{Window: 8192, Record: true})
		h := newHouse(t, url, withModel("house", 8192, 2048, p))
		id := newSession(t, h.Client, core.Session{Title: "a talk"})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		feed := follow(ctx, t, h.Client, id)
		for _, q := range []string{"one", "two", "three"} {
			say(t, h.Client, core.SendMessage{SessionID: id, Content: q})
		}
		log := wantPath(t, h.Client, id, turns("one", "two", "three")...)

		edited := say(t, h.Client, core.SendMessage{SessionID: id, Edits: log[2].ID, Content: "two!"})
		if edited.asked.ParentID != log[1].ID || edited.run.Input.Edits != log[2].ID {
			t.Errorf("got the edited message after %s, want after %s", edited.asked.ParentID, log[1].ID)
		}
		wantPath(t, h.Client, id, turns("one", "two!")...)
		e := until(t, feed, "change of the path", func(e core.Event) bool { return e.Type == core.EventSessionUpdated })
		if diff := cmp.Diff(&core.PathChange{AfterID: log[1].ID, LeafID: log[1].ID}, data[core.SessionData](t, e).Path); diff != "" {
			t.Errorf("change of the path (-want +got):\n%s", diff)
		}
		until(t, feed, "edited message", func(e core.Event) bool {
			return e.Type == core.EventMessageCreated && data[core.MessageData](t, e).Message.ID == edited.asked.ID
		})

		again := listen(t, h.Regenerate(t.Context(), core.Regenerate{SessionID: id, MessageID: edited.answer.ID, ClientMessageID: "again"}))
		repeated := listen(t, h.Regenerate(t.Context(), core.Regenerate{SessionID: id, MessageID: edited.answer.ID, ClientMessageID: "again"}))
		if again.run.UserMessageID != edited.asked.ID || again.answer.ParentID != edited.asked.ID || repeated.run.ID != again.run.ID {
			t.Errorf("got an answer after %s by run %s, then run %s, want after %s, once", again.answer.ParentID, again.run.ID, repeated.run.ID, edited.asked.ID)
		}
		all := wantPath(t, h.Client, id, turns("one", "two!")...)
		if b := all[3].Branch; b == nil || *b != (core.Branch{Index: 2, Count: 2, Previous: edited.answer.ID}) {
			t.Errorf("got branch %+v, want the second of two", b)
		}
		branched(t, h.Client, id, log, feed)
		prompts := p.Prompts()
		if got := prompts[len(prompts)-1]; cmp.Diff([]string{"one", "two", "three\n\nfour"}, got) != "" {
			t.Errorf("got the prompt %q, want what is on the path", got)
		}
	})
}

// branched goes back to the first branch, and pins and deletes there.
func branched(t *testing.T, c *client.Client, id core.SessionID, log []core.Message, feed <-chan core.Event) {
	t.Helper()
	if _, err := c.SelectMessage(t.Context(), id, log[3].ID); err != nil {
		t.Fatal(err)
	}
	wantPath(t, c, id, turns("one", "two", "three")...)
	until(t, feed, "the branch selected", func(e core.Event) bool {
		return e.Type == core.EventSessionUpdated && data[core.SessionData](t, e).Path.LeafID == log[5].ID
	})
	if r := contextOf(t, c, id); r.Coverage.Excluded != 3 || r.Coverage.Messages != 9 {
		t.Errorf("got %+v, want 3 messages on other branches", r.Coverage)
	}
	m, err := c.PinMessage(t.Context(), id, log[0].ID, true)
	if err != nil || !m.Pinned {
		t.Errorf("pin: got %v and %v, want it pinned", m.Pinned, err)
	}
	if err := c.DeleteMessage(t.Context(), id, log[5].ID); err != nil {
		t.Fatal(err)
	}
	e := until(t, feed, "tombstone", func(e core.Event) bool {
		return e.Type == core.EventMessageUpdated && data[core.MessageData](t, e).Message.ID == log[5].ID
	})
	if m := data[core.MessageData](t, e).Message; m.DeletedAt == nil || m.Content != "" {
		t.Errorf("got %+v, want a tombstone", m)
	}
	for e, err := range c.WatchSession(t.Context(), id, core.From{}) { // everything once more
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == core.EventMessageCreated && data[core.MessageData](t, e).Message.ID == log[5].ID {
			if strings.Contains(string(e.Data), "answer to: three") {
				t.Errorf("got %s, want nothing of what was deleted", e.Data)
			}
			break
		}
	}
	if err := c.DeleteMessage(t.Context(), id, log[5].ID); err != nil {
		t.Errorf("again: %v", err)
	}
	say(t, c, core.SendMessage{SessionID: id, Content: "four"})
	// The server of the model wants roles to alternate: both questions are one there.
	wantPath(t, c, id, append(turns("one", "two"), "user three", "user four", "assistant answer to: three\n\nfour")...)
	if r := contextOf(t, c, id); r.Coverage.Excluded != 4 {
		t.Errorf("got %+v, want 4 messages excluded", r.Coverage)
	}
}

// API: what branches refuse, and how they say it.
func TestBranchesRefuse(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		p, g := newHolding(t)
		h := newHouse(t, url, withModel("house", 8192, 2048, p))
		id := newSession(t, h.Client, core.Session{})
		say(t, h.Client, core.SendMessage{SessionID: id, Content: "one"})
		_, log := path(t, h.Client, id)
		ctx := t.Context()
		edit := func(m core.MessageID, how core.Multitask) error {
			_, err := h.SendAndWait(ctx, core.SendMessage{SessionID: id, Edits: m, Content: "new", Multitask: how})
			return err
		}
		wantProblem(t, edit(log[1].ID, ""), core.ErrUnprocessable, 422, "only a user's message can be edited")
		wantProblem(t, edit(core.NewID[core.MessageID](), ""), core.ErrNotFound, 404, "does not exist")
		wantProblem(t, edit(log[0].ID, core.MultitaskEnqueue), core.ErrInvalid, 422, "reject or interrupt")
		large := say(t, h.Client, core.SendMessage{SessionID: id, Content: strings.Repeat("many words are said here ", 800)})
		_, err := h.PinMessage(ctx, id, large.asked.ID, true)
		wantProblem(t, err, core.ErrContextFloor, 422, "unpin another message")

		run, err := h.SendAsync(ctx, core.SendMessage{SessionID: id, Content: "hold this"})
		if err != nil {
			t.Fatal(err)
		}
		<-g.arrived
		wantProblem(t, edit(log[0].ID, ""), core.ErrConflict, 409, "cancel its runs or wait")
		_, err = h.RegenerateAndWait(ctx, core.Regenerate{SessionID: id, MessageID: log[1].ID})
		wantProblem(t, err, core.ErrConflict, 409, "cancel its runs or wait")
		wantProblem(t, h.DeleteMessage(ctx, id, log[0].ID), core.ErrConflict, 409, "cancel its runs or wait")
		// An interrupt cancels the run, and the branch begins then.
		if err := edit(log[0].ID, core.MultitaskInterrupt); err != nil {
			t.Fatal(err)
		}
		canceled, err := h.Run(ctx, run.ID)
		if err != nil || canceled.Status != core.RunCanceled {
			t.Errorf("got the run %s and %v, want it canceled", canceled.Status, err)
		}
		wantPath(t, h.Client, id, turns("new")...)
		_, err = h.SelectMessage(ctx, id, log[1].ID)
		if err != nil {
			t.Errorf("select afterwards: %v", err)
		}
	})
}

// API, fork: a copy that goes its own way.
func TestFork(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		p := newProvider(t, provider.Options{Window: 8192})
		h := newHouse(t, url, withModel("house", 8192, 2048, p))
		id := newSession(t, h.Client, core.Session{Title: "a talk"})
		for i := range 12 {
			say(t, h.Client, core.SendMessage{SessionID: id, Content: fmt.Sprintf("%d: use a tool", i)})
		}
		if _, err := h.Summarize(t.Context(), id, ""); err != nil {
			t.Fatal(err)
		}
		original := session(t, h.Client, id)
		texts, log := path(t, h.Client, id)
		fork, err := h.ForkSession(t.Context(), id, "")
		if err != nil || fork.Title != "a talk (fork)" || fork.SummarizedCount != original.SummarizedCount || fork.SummaryVersion != 1 {
			t.Fatalf("got %+v and %v, want a copy with the summary", fork, err)
		}
		wantPath(t, h.Client, fork.ID, texts...)
		contextOf(t, h.Client, fork.ID)
		early, err := h.ForkSession(t.Context(), id, log[1].ID) // a tool call goes with its result
		if err != nil || early.MessageCount != 3 || early.SummaryVersion != 0 {
			t.Fatalf("got %d messages, version %d and %v, want the first three without a summary", early.MessageCount, early.SummaryVersion, err)
		}
		say(t, h.Client, core.SendMessage{SessionID: fork.ID, Content: "and on"})
		say(t, h.Client, core.SendMessage{SessionID: early.ID, Content: "and on"})
		wantPath(t, h.Client, id, texts...)
		messages(t, h.Client, fork.ID)
		contextOf(t, h.Client, fork.ID)
		contextOf(t, h.Client, early.ID)
	})
}

// ENGINE, the log is the checkpoint: a regenerated answer whose process stops is
// given after the restart, on its own branch, and once.
func TestStopWhileRegenerating(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		p, g := newHolding(t)
		h := newHouse(t, url, withModel("house", 8192, 2048, p), withGrace(time.Millisecond))
		id := newSession(t, h.Client, core.Session{})
		first, err := h.SendAsync(t.Context(), core.SendMessage{SessionID: id, Content: "hold it"})
		if err != nil {
			t.Fatal(err)
		}
		<-g.arrived
		if _, err := h.CancelRun(t.Context(), first.ID, true); err != nil {
			t.Fatal(err)
		}
		_, before := path(t, h.Client, id)
		begun := make(chan core.RunID, 1)
		go func() {
			for e, err := range h.Regenerate(t.Context(), core.Regenerate{SessionID: id, MessageID: first.UserMessageID, ClientMessageID: "r"}) {
				if err != nil {
					break
				}
				if e.Type == core.EventRunStarted {
					begun <- e.RunID
					break
				}
			}
			close(begun)
		}()
		run := <-begun
		<-g.arrived
		h.stop()
		g.open()
		h.start()
		got := listen(t, h.WatchRun(t.Context(), run, core.From{}))
		if got.run.Status != core.RunSucceeded || got.run.Attempt != 2 || got.answer.ParentID != first.UserMessageID {
			t.Errorf("got %s, attempt %d, an answer after %s, want the answer to the question", got.run.Status, got.run.Attempt, got.answer.ParentID)
		}
		wantPath(t, h.Client, id, turns("hold it")...)
		page, err := h.Messages(t.Context(), id, core.MessageQuery{AllBranches: true})
		if want := len(before) + 1; err != nil || len(page.Items) != want {
			t.Errorf("got %d messages on all branches and %v, want %d", len(page.Items), err, want)
		}
	})
}
