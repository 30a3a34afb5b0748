package e2e_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
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

// R4: 5,000 messages come into a session whose model has a window of 8K. The next
// message is answered after one call of the summary model at most; the others follow
// behind the answer, by every policy, and nothing is lost.
func TestImportIsFoldedBeforeTheNextAnswer(t *testing.T) {
	t.Parallel()
	n := apptest.ChooseSize(1200, 5000)
	lines := history(n)
	policies := map[string]string{"window": "", "sliding": "\n  window_messages: 20"}
	if apptest.IsLong() {
		policies["budget"], policies["ratio"] = "", ""
	}
	dbtest.EachMigratedURLNightly(t, func(t *testing.T, url string) {
		p := apptest.NewProvider(t, provider.Options{Window: 8192})
		settings := []apptest.Setting{apptest.WithModel("small", 8192, 1024, p)}
		for policy, more := range policies {
			settings = append(settings, apptest.WithAgent(policy, fmt.Sprintf("name: %s\nsystem_prompt: Be brief.\ncontext:\n  policy: %s%s\n", policy, policy, more)))
		}
		h := apptest.New(t, url, settings...)
		for policy := range policies {
			id := apptest.NewSession(t, h.Client, core.Session{Agent: policy})
			began := time.Now()
			done := bringIn(t, h.Client, id, core.ImportLines, lines)
			took := time.Since(began)
			if done.Imported != n || done.FirstSeq != 1 || done.LastSeq != int64(n) || done.Tokens < 8192*4 {
				t.Fatalf("got %+v, want %d messages", done, n)
			}
			began = time.Now()
			answer, err := h.SendAndWait(t.Context(), core.SendMessage{SessionID: id, Content: "And item 7?"})
			if err != nil || answer.Run.Status != core.RunSucceeded || answer.Message == nil || answer.Message.Content == "" {
				t.Fatalf("%s: got run %+v, %v, want an answer", policy, answer.Run, err)
			}
			t.Logf("%s: %d messages, %d tokens imported in %s, answered in %s", policy, n, done.Tokens, took.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
			report, err := h.Context(t.Context(), id)
			for limit := time.Now().Add(time.Minute); err == nil && report.Used > report.Usable && time.Now().Before(limit); {
				apptest.PauseBriefly(t)
				report, err = h.Context(t.Context(), id) // call by call, behind the answer
			}
			if err != nil {
				t.Fatal(err)
			}
			if c := report.Coverage; c.Lost != 0 || c.Summarized == 0 || c.Messages != n+2 || report.Used > report.Usable {
				t.Errorf("%s: got %+v, %d of %d tokens, want all in one place and a summary", policy, c, report.Used, report.Usable)
			}
			log := wholeLog(t, h.Client, id)
			if len(log) != n+2 {
				t.Fatalf("%s: got %d messages in the log, want all and the new turn", policy, len(log))
			}
			var again strings.Builder
			for i, m := range log[:n] {
				if m.Seq != int64(i+1) {
					t.Fatalf("message %d has seq %d", i, m.Seq)
				}
				fmt.Fprintf(&again, "{\"role\":%q,\"content\":%q}\n", m.Role, m.Content)
			}
			if again.String() != lines {
				t.Errorf("%s: the log is not what was imported", policy)
			}
			if answer, err = h.SendAndWait(t.Context(), core.SendMessage{SessionID: id, Content: "And item 14?"}); err != nil || answer.Run.Status != core.RunSucceeded {
				t.Errorf("%s: got run %+v, %v, want the conversation to go on", policy, answer.Run, err)
			}
		}
	})
}

// stored are the fields that differ between a conversation and its copy.
func stored() cmp.Option {
	return cmp.Options{cmpopts.IgnoreFields(core.Message{}, "ID", "SessionID", "ParentID", "RunID"), cmpopts.EquateEmpty()}
}

// Export → import gives the same conversation, tool calls and results byte for
// byte, and the copy goes on.
func TestExportAndImport(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURLNightly(t, func(t *testing.T, url string) {
		h := apptest.New(t, url)
		id := apptest.NewSession(t, h.Client, core.Session{Title: "Sums & <more>"})
		for _, text := range []string{"My name is Ada. What is 17 * 23?", "What time is it?", "ümlaut 漢字 \u2028 </script>"} {
			if a, err := h.SendAndWait(t.Context(), core.SendMessage{SessionID: id, Content: text, ClientMessageID: text, Author: "Ada"}); err != nil || a.Run.Status != core.RunSucceeded {
				t.Fatalf("got %+v, %v", a.Run, err)
			}
		}
		if _, err := h.Summarize(t.Context(), id, ""); err != nil && !errors.Is(err, core.ErrUnprocessable) {
			t.Fatal(err)
		}
		for export, as := range map[core.ExportFormat]core.ImportFormat{core.ExportJSON: core.ImportJSON, core.ExportLines: core.ImportLines} {
			var file bytes.Buffer
			if err := h.ExportSession(t.Context(), id, export, &file); err != nil {
				t.Fatal(err)
			}
			to := apptest.NewSession(t, h.Client, core.Session{})
			bringIn(t, h.Client, to, as, file.String())
			if diff := cmp.Diff(wholeLog(t, h.Client, id), wholeLog(t, h.Client, to), stored()); diff != "" {
				t.Errorf("%s: copy (-first +copy):\n%s", export, diff)
			}
			a, err := h.SendAndWait(t.Context(), core.SendMessage{SessionID: to, Content: "What is my name?"})
			if err != nil || a.Message == nil || !strings.Contains(a.Message.Content, "Ada") {
				t.Errorf("%s: got %+v, %v, want the copy to know it", export, a.Message, err)
			}
			_, err = h.ImportMessages(t.Context(), core.ImportMessages{SessionID: to, Body: bytes.NewReader(file.Bytes()), Format: as})
			if !errors.Is(err, core.ErrConflict) {
				t.Errorf("got %v for the same history again, want ErrConflict: its ids are known", err)
			}
		}
		var md strings.Builder
		if err := h.ExportSession(t.Context(), id, core.ExportMarkdown, &md); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"# Sums &amp; &#60;more\\>", "## User (Ada) · ", "**Calls calculator**", "391"} {
			if !strings.Contains(md.String(), want) {
				t.Errorf("got %s, want %q in it", md.String(), want)
			}
		}
	})
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
