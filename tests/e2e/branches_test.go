package e2e_test

import (
	"context"
	"fmt"
	"slices"
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
	page := must.Get(client.Call(t.Context(), c, ops.ListMessages, ops.MessageList{InSession: ops.InSession{SessionID: id}}))(t)
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

// Edit, regenerate, select, pin and delete over HTTP, and what another client sees of it.
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
		must.Do(t, err)
		if e.Type == core.EventMessageCreated && apptest.EventData[core.MessageData](t, e).Message.ID == log[5].ID {
			if strings.Contains(dataText(t, e), "answer to: three") {
				t.Errorf("got %+v, want nothing of what was deleted", e.Data)
			}
			break
		}
	}
	compare.Error(t, "again", nil, compare.ErrorOf(client.Call(t.Context(), c, ops.DeleteMessage, apptest.InMessage(id, log[5].ID))))
	apptest.SendMessage(t, c, core.SendMessage{SessionID: id, Content: "four"})
	// The server of the model wants roles to alternate: both questions are one there.
	wantPath(t, c, id, append(turns("one", "two"), "user three", "user four", "assistant answer to: three\n\nfour")...)
	compare.Equal(t, "contextOf(t, c, id).Coverage.Excluded: want messages excluded", 4, contextOf(t, c, id).Coverage.Excluded)
}

// The messages that a process keeps in memory are those of the log, whatever happens between two
// turns: the prompt is what /prompt, which reads the log, shows before.
func TestPromptsFollowTheLog(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		p := apptest.NewProvider(t, provider.Options{Record: true})
		h := apptest.New(t, url, apptest.WithModel("house", 32_000, 1000, p))
		c, ctx := h.Client, t.Context()
		id := apptest.NewSession(t, c, ops.NewSession{})
		turn := func(content string) {
			t.Helper()
			view := must.Get(client.Call(ctx, c, ops.GetPrompt, ops.InSession{SessionID: id}))(t)
			asked := len(p.Received())
			apptest.SendMessage(t, c, core.SendMessage{SessionID: id, Content: content})
			var want, got []string
			for _, m := range append(view.Messages, core.PromptMessage{Role: core.RoleUser, Content: content}) {
				if n := len(want); n > 0 && m.Role == core.RoleUser && strings.HasPrefix(want[n-1], "user: ") {
					want[n-1] += "\n\n" + m.Content // providers want turns
					continue
				}
				want = append(want, fmt.Sprintf("%s: %s", m.Role, m.Content))
			}
			for _, m := range p.Received()[asked].Messages {
				got = append(got, fmt.Sprintf("%s: %s", m.Role, m.Text))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: got the prompt\n%s\nwant\n%s", content, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
		find := func(role core.Role, content string) core.MessageID {
			t.Helper()
			page := must.Get(client.Call(ctx, c, ops.ListMessages, ops.MessageList{InSession: ops.InSession{SessionID: id}, MessageQuery: core.MessageQuery{AllBranches: true, PageQuery: core.PageQuery{Limit: core.MaxPageLimit}}}))(t)
			messages := page.Items
			i := slices.IndexFunc(messages, func(m core.Message) bool { return m.Role == role && strings.HasSuffix(m.Content, content) })
			if i < 0 {
				t.Fatalf("there is no message %q", content)
			}
			return messages[i].ID
		}
		turn("one")
		turn("two")
		turn("three")
		turn("tool four")
		turn("five")
		must.Get(client.Call(ctx, c, ops.DeleteMessage, apptest.InMessage(id, find(core.RoleAssistant, "one"))))(t)
		turn("six, after a message was deleted")
		must.Get(client.Call(ctx, c, ops.EditMessage, ops.EditedMessage{NewMessage: ops.NewMessage{InSession: ops.InSession{SessionID: id}, Content: "two, in other words", Run: new(false)}, MessageID: find(core.RoleUser, "two")}))(t)
		turn("seven, after a message was revised")
		must.Get(client.Call(ctx, c, ops.SendMessage, ops.NewMessage{InSession: ops.InSession{SessionID: id}, Run: new(false), Role: core.RoleUser, Content: "in passing"}))(t)
		turn("eight, after a message without a run")
		old := find(core.RoleAssistant, "eight, after a message without a run")
		apptest.SendMessage(t, c, core.SendMessage{SessionID: id, Content: "five, otherwise", Edits: find(core.RoleUser, "five")})
		turn("nine, on another branch")
		must.Get(client.Call(ctx, c, ops.SelectMessage, apptest.InMessage(id, old)))(t)
		turn("ten, on the first branch")
		must.Get(client.Call(ctx, c, ops.RegenerateMessage, ops.Regenerate{InMessage: apptest.InMessage(id, find(core.RoleAssistant, "ten, on the first branch"))}))(t)
		turn("eleven, after a new answer")
		must.Get(client.Call(ctx, c, ops.PinMessage, ops.Pinned{InMessage: apptest.InMessage(id, find(core.RoleUser, "three")), Pinned: new(true)}))(t)
		turn("twelve, after a pin")
		must.Get(client.Call(ctx, c, ops.SummarizeSession, ops.Summarize{InSession: ops.InSession{SessionID: id}}))(t)
		turn("thirteen, after a summary")
		turn("fourteen")

		page := must.Get(client.Call(ctx, c, ops.ListMessages, ops.MessageList{InSession: ops.InSession{SessionID: id}, MessageQuery: core.MessageQuery{PageQuery: core.PageQuery{Limit: core.MaxPageLimit}}}))(t)
		for i, m := range page.Items[1:] {
			if before := page.Items[i]; m.ParentID != before.ID && before.Seq == m.Seq-1 {
				t.Errorf("message %d: got the parent %s, want %s", m.Seq, m.ParentID, before.ID)
			}
		}
	})
}
