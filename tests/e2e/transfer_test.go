package e2e_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
)

// history returns JSON lines of n messages: question and answer in turn, with
// facts here and there.
func history(n int) string {
	var b strings.Builder
	for i := range n {
		if i%2 == 0 {
			fmt.Fprintf(&b, `{"role":"user","content":"Question %d: what do we know about item %d of the inventory in hall %d?"}`+"\n", i, i*7, i%13)
			continue
		}
		fmt.Fprintf(&b, `{"role":"assistant","content":"Answer %d: item %d weighs %d kg and was checked on day %d; nothing else is known about it."}`+"\n", i, i*7, i%400, i)
	}
	return b.String()
}

func bringIn(t testing.TB, c *client.Client, id core.SessionID, format core.ImportFormat, text string) core.Imported {
	t.Helper()
	done, err := c.ImportMessages(t.Context(), core.ImportMessages{SessionID: id, Body: strings.NewReader(text), Format: format})
	if err != nil {
		t.Fatalf("import: %v", err)
	}
	return done
}

// wholeLog returns all messages of a session.
func wholeLog(t testing.TB, c *client.Client, id core.SessionID) []core.Message {
	t.Helper()
	var all []core.Message
	q := core.MessageQuery{PageQuery: core.PageQuery{Limit: core.MaxPageLimit}}
	for {
		page, err := c.Messages(t.Context(), id, q)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page.Items...)
		if page.NextCursor == nil {
			return all
		}
		q.Cursor = *page.NextCursor
	}
}

// Messages that nobody answers are in the log and in the next prompt; watchers see
// them at once.
func TestAppendWithoutRunning(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURLNightly(t, func(t *testing.T, url string) {
		h := apptest.New(t, url)
		id := apptest.NewSession(t, h.Client, core.Session{})
		at := time.Date(2024, 2, 3, 4, 5, 6, 0, time.UTC)
		seed := []core.Message{
			{Role: core.RoleUser, Content: "My name is Ada.", Author: "Ada", Source: core.SourceSlack, CreatedAt: at, ClientMessageID: "s-1"},
			{Role: core.RoleAssistant, ToolCalls: []core.ToolCall{{ID: "c1", Name: "calculator", Arguments: `{ "expression":"1+1" }`}}},
			{Role: core.RoleTool, Content: "2", ToolCallID: "c1", ToolName: "calculator"},
			{Role: core.RoleAssistant, Content: "Hello Ada."},
		}
		for i, m := range seed {
			got, err := h.AppendMessage(t.Context(), id, m)
			if err != nil || got.Seq != int64(i+1) || got.TokenCount == 0 {
				t.Fatalf("append %d: got %+v, %v", i, got, err)
			}
		}
		again, err := h.AppendMessage(t.Context(), id, seed[0])
		if err != nil || again.Seq != 1 || !again.CreatedAt.Equal(at) || again.Source != core.SourceSlack {
			t.Errorf("got %+v, %v, want the message of the first time", again, err)
		}
		if _, err := h.AppendMessage(t.Context(), id, core.Message{Role: core.RoleTool, Content: "3", ToolCallID: "c1"}); !errors.Is(err, core.ErrUnprocessable) {
			t.Errorf("got %v for a result without its call, want ErrUnprocessable", err)
		}
		a, err := h.SendAndWait(t.Context(), core.SendMessage{SessionID: id, Content: "What is my name?"})
		if err != nil || a.Message == nil || !strings.Contains(a.Message.Content, "Ada") {
			t.Errorf("got %+v, %v, want an answer that knows the name", a.Message, err)
		}
		var kinds []core.EventType
		for e, err := range h.WatchSession(t.Context(), id, core.Cursor{}) {
			if err != nil {
				t.Fatal(err)
			}
			if kinds = append(kinds, e.Type); len(kinds) == 4 {
				break
			}
		}
		if want := []core.EventType{core.EventMessageCreated, core.EventMessageCreated, core.EventMessageCreated, core.EventMessageCreated}; !cmp.Equal(kinds, want) {
			t.Errorf("got events %v, want %v", kinds, want)
		}
	})
}
