package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/provider"
)

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
		ten := find(core.RoleAssistant, "ten, on the first branch")
		must.Get(client.Call(ctx, c, ops.RegenerateMessage, core.Regenerate{SessionID: id, MessageID: ten}))(t)
		newest := must.Get(client.Call(ctx, c, ops.ListMessages, ops.MessageList{InSession: ops.InSession{SessionID: id}, MessageQuery: core.MessageQuery{Descending: true}}))(t)
		compare.Equal(t, "the new answer's branch", &core.Branch{Index: 2, Count: 2, Previous: ten}, newest.Items[0].Branch)
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
		paths := 0
		for e, err := range c.WatchSession(ctx, id, core.Cursor{}) { // everything once more
			must.Do(t, err)
			if d, ok := e.Data.(core.SessionData); ok && d.Path != nil {
				paths++
			}
			if strings.Contains(dataText(t, e), `"answer to: one"`) {
				t.Errorf("event %d has what was deleted: %+v", e.Seq, e.Data)
			}
			if e.Seq == page.LastEventID {
				break
			}
		}
		compare.Equal(t, "changes of the path: an edit, a selection, a new answer", 3, paths)
	})
}
