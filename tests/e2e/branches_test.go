package e2e_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/provider"
)

// path returns the current path, "role content" of each message, and its messages.
func path(t testing.TB, c *client.Client, id core.SessionID) ([]string, []core.Message) {
	t.Helper()
	page := apptest.Must(client.Call(t.Context(), c, ops.ListMessages, ops.MessageList{InSession: ops.InSession{SessionID: id}}))(t)
	var texts []string
	for _, m := range page.Items {
		texts = append(texts, string(m.Role)+" "+m.Content)
	}
	return texts, page.Items
}

func wantPath(t testing.TB, c *client.Client, id core.SessionID, want ...string) []core.Message {
	t.Helper()
	got, all := path(t, c, id)
	compare.Equal(t, "path", want, got)
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
		for e, err := range c.WatchSession(ctx, id, core.Cursor{After: 0}) {
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
		case <-time.After(apptest.Patience):
			t.Fatalf("no %s within %s", what, apptest.Patience)
		}
	}
}

// Edit, regenerate, select, pin and delete over HTTP, and
// what another client sees of it.
func TestBranches(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		p := apptest.NewProvider(t, provider.Options{Window: 8192, Record: true})
		h := apptest.New(t, url, apptest.WithModel("house", 8192, 2048, p))
		id := apptest.NewSession(t, h.Client, ops.NewSession{Title: "a talk"})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		feed := follow(ctx, t, h.Client, id)
		for _, q := range []string{"one", "two", "three"} {
			apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: q})
		}
		log := wantPath(t, h.Client, id, turns("one", "two", "three")...)

		edited := apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Edits: log[2].ID, Content: "two!"})
		if edited.Question.ParentID != log[1].ID || edited.Run.Input.Edits != log[2].ID {
			t.Errorf("got the edited message after %s, want after %s", edited.Question.ParentID, log[1].ID)
		}
		wantPath(t, h.Client, id, turns("one", "two!")...)
		e := until(t, feed, "change of the path", func(e core.Event) bool { return e.Type == core.EventSessionUpdated })
		compare.Equal(t, "change of the path", &core.PathChange{AfterID: log[1].ID, AfterSeq: log[1].Seq, LeafID: log[1].ID}, apptest.EventData[core.SessionData](t, e).Path)
		until(t, feed, "edited message", func(e core.Event) bool {
			return e.Type == core.EventMessageCreated && apptest.EventData[core.MessageData](t, e).Message.ID == edited.Question.ID
		})

		again := apptest.ReadTurn(t, h.Regenerate(t.Context(), ops.Regenerate{InMessage: apptest.InMessage(id, edited.Answer.ID), ClientMessageID: "again"}))
		repeated := apptest.ReadTurn(t, h.Regenerate(t.Context(), ops.Regenerate{InMessage: apptest.InMessage(id, edited.Answer.ID), ClientMessageID: "again"}))
		if again.Run.UserMessageID != edited.Question.ID || again.Answer.ParentID != edited.Question.ID || repeated.Run.ID != again.Run.ID {
			t.Errorf("got an answer after %s by run %s, then run %s, want after %s, once", again.Answer.ParentID, again.Run.ID, repeated.Run.ID, edited.Question.ID)
		}
		all := wantPath(t, h.Client, id, turns("one", "two!")...)
		if b := all[3].Branch; b == nil || *b != (core.Branch{Index: 2, Count: 2, Previous: edited.Answer.ID}) {
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
	must.Get(client.Call(t.Context(), c, ops.SelectMessage, apptest.InMessage(id, log[3].ID)))(t)
	wantPath(t, c, id, turns("one", "two", "three")...)
	until(t, feed, "the branch selected", func(e core.Event) bool {
		return e.Type == core.EventSessionUpdated && apptest.EventData[core.SessionData](t, e).Path.LeafID == log[5].ID
	})
	if r := contextOf(t, c, id); r.Coverage.Excluded != 3 || r.Coverage.Messages != 9 {
		t.Errorf("got %+v, want 3 messages on other branches", r.Coverage)
	}
	m, err := client.Call(t.Context(), c, ops.PinMessage, ops.Pinned{InMessage: apptest.InMessage(id, log[0].ID), Pinned: new(true)})
	if err != nil || !m.Pinned {
		t.Errorf("pin: got %v and %v, want it pinned", m.Pinned, err)
	}
	must.Get(client.Call(t.Context(), c, ops.DeleteMessage, apptest.InMessage(id, log[5].ID)))(t)
	e := until(t, feed, "tombstone", func(e core.Event) bool {
		return e.Type == core.EventMessageUpdated && apptest.EventData[core.MessageData](t, e).Message.ID == log[5].ID
	})
	if m := apptest.EventData[core.MessageData](t, e).Message; m.DeletedAt == nil || m.Content != "" {
		t.Errorf("got %+v, want a tombstone", m)
	}
	for e, err := range c.WatchSession(t.Context(), id, core.Cursor{}) { // everything once more
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == core.EventMessageCreated && apptest.EventData[core.MessageData](t, e).Message.ID == log[5].ID {
			if strings.Contains(dataText(t, e), "answer to: three") {
				t.Errorf("got %+v, want nothing of what was deleted", e.Data)
			}
			break
		}
	}
	if _, err := client.Call(t.Context(), c, ops.DeleteMessage, apptest.InMessage(id, log[5].ID)); err != nil {
		t.Errorf("again: %v", err)
	}
	apptest.SendMessage(t, c, core.SendMessage{SessionID: id, Content: "four"})
	// The server of the model wants roles to alternate: both questions are one there.
	wantPath(t, c, id, append(turns("one", "two"), "user three", "user four", "assistant answer to: three\n\nfour")...)
	if r := contextOf(t, c, id); r.Coverage.Excluded != 4 {
		t.Errorf("got %+v, want 4 messages excluded", r.Coverage)
	}
}
