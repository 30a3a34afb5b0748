package transfer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"bobbin/app/chat/transfer"
	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// told is a world with a conversation that has a bit of everything.
func told(t *testing.T) *world {
	t.Helper()
	w := newWorld()
	w.session.Title = "A *title* <b>\nof two lines"
	w.session.CreatedAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	say := func(m core.Message) {
		m.CreatedAt = w.session.CreatedAt.Add(time.Duration(len(w.log)) * time.Minute).Truncate(time.Hour)
		m.Source, m.Status = core.SourceAPI, core.MessageComplete
		must.Get((messages{world: w}).Append(t.Context(), ann(), core.AppendMessages{Messages: []core.Message{m}}))(t)
	}
	say(core.Message{Role: core.RoleSystem, Content: "A note."})
	say(core.Message{Role: core.RoleUser, Author: "Ann <b> Lee", Content: "Show me:\n```go\nfunc f[T any](a <-chan T) {}\n"})
	say(core.Message{Role: core.RoleAssistant, Parts: []core.Part{{Type: "reasoning", Text: "hm", Signature: "s"}},
		ToolCalls: []core.ToolCall{{ID: "c1", Name: "calc", Arguments: `{"x": 1.50, "y":"` + "```" + `"}`}, {ID: "c2", Name: "calc", Arguments: `{"x": `}}})
	say(core.Message{Role: core.RoleTool, ToolCallID: "c2", ToolName: "calc", Content: "</details> ````\nline\n"})
	say(core.Message{Role: core.RoleTool, ToolCallID: "c1", Content: "391"})
	say(core.Message{Role: core.RoleAssistant, Content: "It is `Vec<T>`, <b>not</b> `</details>`, nor ` <script>.\n~~~\r<!-- here it stays\r~~~~\n<!-- gone? -->\n    <pre>"})
	say(core.Message{Role: core.RoleUser, Content: "a picture", Parts: []core.Part{{Type: "image", Name: "cat_1.png"}}})
	say(core.Message{Role: core.RoleAssistant, Content: "never mind"})
	w.log[5].Feedback = &core.Feedback{Rating: core.RatingUp, Comment: "exactly", At: w.session.CreatedAt}
	w.log[1].RevisedAt = &w.log[1].CreatedAt
	w.log[1].Revisions = []core.Revision{{Content: "Shw me", TokenCount: 2, ReplacedAt: w.log[1].CreatedAt}}
	w.log[7].OnPath = false
	w.log[7].Status = core.MessagePartial
	w.session.MessageCount = len(w.log)
	w.versions = []core.Summary{{Version: 2, Content: "second"}, {Version: 1, Content: "first"}}
	return w
}

// Export → import gives the same conversation, tool calls byte for byte.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	w := told(t)
	for export, as := range map[core.ExportFormat]core.ImportFormat{core.ExportJSON: core.ImportJSON, core.ExportLines: core.ImportLines} {
		copied := newWorld()
		got, err := copied.take(t, as, w.export(t, export))
		if err != nil || got.Imported != 7 || got.Skipped != 1 || got.LeftOut != 1 {
			t.Fatalf("%s: got %+v, %v, want the 7 messages of the path, but the picture", export, got, err)
		}
		want := append([]core.Message(nil), w.log[:7]...)
		want[4].ToolName = "calc" // of its call
		want[6].Content, want[6].Parts = "a picture\n[image cat_1.png: not imported]", nil
		compare.Equal(t, fmt.Sprintf("%s: copy", export), want, copied.log, unstored())
	}
}

// A session is read page by page, and what comes in meanwhile is not of it.
func TestExportPages(t *testing.T) {
	t.Parallel()
	w := newWorld()
	for i := range 1000 {
		must.Get((messages{world: w}).Append(t.Context(), ann(), core.AppendMessages{Messages: []core.Message{{Role: core.RoleUser, Content: fmt.Sprint(i)}}}))(t)
	}
	w.session.LastSeq = 950
	compare.Equal(t, "messages from pages: want 950 from 5", []int{950, 5}, []int{strings.Count(w.export(t, core.ExportLines), "\n"), w.pages})
	w.pages, w.fail = 0, errors.New("disk on fire")
	var out strings.Builder
	for _, format := range []core.ExportFormat{core.ExportJSON, core.ExportLines, core.ExportMarkdown} {
		w.pages = 0
		if err := w.service(transfer.Limits{}).Export(t.Context(), ann(), w.session, format, &out); !errors.Is(err, w.fail) || !strings.HasPrefix(err.Error(), "export: ") {
			t.Errorf("%s: got %v, want what storage says", format, err)
		}
	}
	w.fail = nil
	for _, format := range []core.ExportFormat{core.ExportJSON, core.ExportLines, core.ExportMarkdown} {
		compare.Error(t, string(format)+": what the writer says", errFull, w.service(transfer.Limits{}).Export(t.Context(), ann(), w.session, format, full{}))
	}
}

// full is a writer that takes nothing.
type full struct{}

var errFull = errors.New("the disk is full")

func (full) Write([]byte) (int, error) { return 0, errFull }

// instructions are those of a session.
type instructions []core.StandingInstruction

// OnPath returns them all.
func (i instructions) OnPath(context.Context, core.Tenant, core.SessionID, int64, int) ([]core.StandingInstruction, error) {
	return i, nil
}

// An export has the standing instructions with their states, if there are any.
func TestExportHasStandingInstructions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		given instructions
		want  string
	}{
		{"none", nil, ""},
		{"none that stood", instructions{{ID: "1", Text: "Forget the budget.", Topic: "budget", Withdraws: true}}, ""},
		{"two", instructions{{ID: "1", MessageID: "a", Seq: 1, Text: "My budget is 400 €.", Topic: "budget"}, {ID: "2", MessageID: "b", Seq: 3, Text: "My budget is 500 €.", Topic: "budget"}}, "1 replaced, 2 standing"},
	} {
		w := newWorld()
		s := transfer.New(transfer.Options{Sessions: sessions{world: w}, Messages: messages{world: w}, Summaries: summaries{world: w}, Instructions: tt.given, Feed: feed{world: w}, Counter: words{}})
		var out strings.Builder
		must.Do(t, s.Export(t.Context(), ann(), w.session, core.ExportJSON, &out))
		var export struct {
			StandingInstructions []core.StandingInstruction `json:"standing_instructions"`
		}
		if err := json.Unmarshal([]byte(out.String()), &export); err != nil {
			t.Fatalf("%s: %v in %s", tt.name, err, out.String())
		}
		var got []string
		for _, i := range export.StandingInstructions {
			got = append(got, string(i.ID)+" "+string(i.State))
		}
		if strings.Join(got, ", ") != tt.want || strings.Contains(out.String(), "standing_instructions") != (tt.want != "") {
			t.Errorf("%s: got %v, want %q in %s", tt.name, got, tt.want, out.String())
		}
	}
}
