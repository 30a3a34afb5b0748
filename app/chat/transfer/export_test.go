package transfer_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

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
		compare.True(t, strings.Join(got, ", ") == tt.want && strings.Contains(out.String(), "standing_instructions") == (tt.want != ""), "%s: got %v, want %q in %s", tt.name, got, tt.want, out.String())
	}
}

// unstored are the fields that storage gives.
func unstored() cmp.Option {
	return cmp.Options{
		cmpopts.IgnoreFields(core.Message{}, "ID", "SessionID", "Seq", "OnPath", "Status", "TokenCount", "Source"), cmpopts.EquateEmpty(),
	}
}

// before is what a tool's message needs before it.
const before = `{"role":"user","content":"q"}` + "\n" + `{"role":"assistant","tool_calls":[{"id":"c1","name":"calc","arguments":"{}"}]}` + "\n"

// Each line is read in the shape that it has itself.
func TestShapes(t *testing.T) {
	t.Parallel()
	user := func(text string) core.Message { return core.Message{Role: core.RoleUser, Content: text} }
	assistant := func(text string, calls ...core.ToolCall) core.Message {
		return core.Message{Role: core.RoleAssistant, Content: text, ToolCalls: calls}
	}
	spaced := core.ToolCall{ID: "c1", Name: "calc", Arguments: `{ "x":1.50, "ü": "\u00fc" }`}
	quoted := func(s string) string {
		raw := must.Get(json.Marshal(s))(t)
		return string(raw)
	}
	at := time.Date(2024, 5, 6, 7, 8, 9, 123456000, time.UTC)
	tests := []struct {
		name, line string
		want       core.Message
	}{
		{"bobbin", `{"id":"x","session_id":"y","seq":9,"on_path":true,"role":"assistant","content":"hi","status":"partial","model":"m","finish_reason":"stop","pinned":true,"source":"slack","author":"Ann","client_message_id":"c","metadata":{"a": 1.0},"created_at":"2024-05-06T09:08:09.123456789+02:00","token_count":99,"run_id":"z"}`,
			core.Message{Role: core.RoleAssistant, Content: "hi", Model: "m", FinishReason: "stop", Pinned: true, Author: "Ann", ClientMessageID: "c", Metadata: json.RawMessage(`{"a": 1.0}`), CreatedAt: at}},
		{"bobbin call", `{"role":"assistant","content":"","tool_calls":[{"id":"c1","name":"calc","arguments":` + quoted(spaced.Arguments) + `,"signature":"s"}]}`,
			assistant("", core.ToolCall{ID: "c1", Name: "calc", Arguments: spaced.Arguments, Signature: "s"})},
		{"bobbin parts", `{"role":"assistant","content":"x","parts":[{"type":"reasoning","text":"hm","signature":"s"},{"type":"image","blob_id":"b","name":"cat.png"}]}`,
			core.Message{Role: core.RoleAssistant, Content: "x\n[image cat.png: not imported]", Parts: []core.Part{{Type: "reasoning", Text: "hm", Signature: "s"}}}},
		{"openai", `{"role":"user","content":"hi","name":"Bo"}`, core.Message{Role: core.RoleUser, Content: "hi", Author: "Bo"}},
		{"openai parts", `{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:…"}},{"type":"text","text":"b"}]}`, user("a\n[image_url: not imported]\nb")},
		{"openai call", `{"role":"assistant","content":null,"refusal":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"calc","arguments":` + quoted(spaced.Arguments) + `}}]}`, assistant("", spaced)},
		{"ollama call", `{"role":"assistant","content":"","tool_calls":[{"id":"c1","function":{"name":"calc","arguments":` + spaced.Arguments + `}}]}`, assistant("", spaced)},
		{"broken arguments", `{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"calc","arguments":"{\"x\": "}}]}`, assistant("", core.ToolCall{ID: "c1", Name: "calc", Arguments: `{"x": `})},
		{"no arguments", `{"role":"assistant","tool_calls":[{"id":"c1","name":"calc","arguments":""}]}`, assistant("", core.ToolCall{ID: "c1", Name: "calc"})},
		{"openai tool", before + `{"role":"tool","tool_call_id":"c1","content":"391"}`, core.Message{Role: core.RoleTool, ToolCallID: "c1", ToolName: "calc", Content: "391"}},
		{"openai tool parts", before + `{"role":"tool","tool_call_id":"c1","name":"sum","content":[{"type":"text","text":"391"}]}`, core.Message{Role: core.RoleTool, ToolCallID: "c1", ToolName: "sum", Content: "391"}},
		{"openai developer", `{"role":"developer","content":"be brief"}`, core.Message{Role: core.RoleSystem, Content: "be brief"}},
		{"refusal", `{"role":"assistant","content":[{"type":"refusal","refusal":"no"}]}`, assistant("no")},
		{"anthropic blocks", `{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"a"},{"type":"tool_use","id":"c1","name":"calc","input":{ "x":1 }}]}`,
			core.Message{Role: core.RoleAssistant, Content: "a", Parts: []core.Part{{Type: "reasoning", Text: "hm", Signature: "s"}}, ToolCalls: []core.ToolCall{{ID: "c1", Name: "calc", Arguments: `{ "x":1 }`}}}},
		{"anthropic result", before + `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"391","is_error":true}],"created_at":"2024-05-06T07:08:09.123456Z"}`,
			core.Message{Role: core.RoleTool, ToolCallID: "c1", ToolName: "calc", Content: "391", CreatedAt: at}},
		{"anthropic result blocks", before + `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"a"},{"type":"image","source":{}},{"type":"tool_result"}]}]}`,
			core.Message{Role: core.RoleTool, ToolCallID: "c1", ToolName: "calc", Content: "a\n[image: not imported]\n[tool_result: not imported]"}},
		{"langchain result", before + `{"type":"human","data":{"content":[{"type":"tool_result","tool_use_id":"c1"}]}}`, core.Message{Role: core.RoleTool, ToolCallID: "c1", ToolName: "calc"}},
		{"langchain dict", `{"type":"human","data":{"content":"hi","additional_kwargs":{},"response_metadata":{},"type":"human","name":null,"id":null,"example":false}}`, user("hi")},
		{"langchain ai", `{"type":"ai","data":{"content":"","additional_kwargs":{"tool_calls":[{"id":"c1","type":"function","function":{"name":"calc","arguments":` + quoted(spaced.Arguments) + `}}]},"response_metadata":{"model_name":"gpt-4o","finish_reason":"tool_calls"},"tool_calls":[],"invalid_tool_calls":[],"usage_metadata":null}}`,
			core.Message{Role: core.RoleAssistant, ToolCalls: []core.ToolCall{spaced}, Model: "gpt-4o", FinishReason: core.FinishToolCalls}},
		{"langchain anthropic", `{"type":"AIMessageChunk","content":["a",{"type":"tool_use","id":"c1","name":"calc","input":{}}],"tool_calls":[{"name":"calc","args":{"x": 1},"id":"c1"}],"response_metadata":{"model":"claude","stop_reason":"end_turn"}}`,
			core.Message{Role: core.RoleAssistant, Content: "a", ToolCalls: []core.ToolCall{{ID: "c1", Name: "calc", Arguments: `{"x": 1}`}}, Model: "claude", FinishReason: core.FinishStop}},
		{"langchain invalid call", `{"type":"ai","data":{"content":"","tool_calls":[],"invalid_tool_calls":[{"name":"calc","args":"{\"x\":","id":"c1","error":"bad"}]}}`, assistant("", core.ToolCall{ID: "c1", Name: "calc", Arguments: `{"x":`})},
		{"langchain tool", before + `{"type":"tool","data":{"content":"391","tool_call_id":"c1","name":"calc","status":"error"}}`, core.Message{Role: core.RoleTool, ToolCallID: "c1", ToolName: "calc", Content: "391"}},
		{"langchain constructor", `{"lc":1,"type":"constructor","id":["langchain","schema","messages","HumanMessage"],"kwargs":{"content":"hi","type":"human"}}`, user("hi")},
		{"langchain js chunk", `{"lc":1,"type":"constructor","id":["langchain_core","messages","AIMessageChunk"],"kwargs":{"content":"hi","tool_calls":[],"additional_kwargs":{}}}`, assistant("hi")},
		{"langchain system", `{"lc":1,"type":"constructor","id":["SystemMessage"],"kwargs":{"content":"be brief"}}`, core.Message{Role: core.RoleSystem, Content: "be brief"}},
		{"langchain chat", `{"type":"chat","data":{"content":"hi","role":"assistant"}}`, assistant("hi")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			must.Get(w.take(t, core.ImportLines, tt.line))(t)
			got := w.log[len(w.log)-1]
			if tt.want.CreatedAt.IsZero() {
				got.CreatedAt = time.Time{}
			}
			compare.Equal(t, "message", tt.want, got, unstored())
		})
	}
}

// What is wrong is named by its line, and nothing comes in.
func TestFaults(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, line, says string }{
		{"no JSON", `{"role":`, "line 1 is not a JSON object"},
		{"a list", `[]`, "is not a JSON object"},
		{"null", `null`, "is not a JSON object"},
		{"not UTF-8", "{\"role\":\"user\",\"content\":\"\xff\"}", "is not UTF-8"},
		{"no role", `{"content":"x"}`, "has no role"},
		{"an export of ChatGPT", `{"title":"x","mapping":{}}`, "bobbin import"},
		{"a role that there is not", `{"role":"robot","content":"x"}`, `role "robot" must be user, assistant, tool or system`},
		{"content of a wrong type", `{"role":"user","content":7}`, "content must be a text"},
		{"a piece of a wrong type", `{"role":"user","content":[7]}`, "content[0] is neither"},
		{"a piece without a type", `{"role":"user","content":[{}]}`, "content[0] has no type"},
		{"calls of a wrong type", `{"role":"assistant","tool_calls":{}}`, "tool_calls must be a list"},
		{"a call without an id", `{"role":"assistant","tool_calls":[{"name":"x"}]}`, "tool_calls[0].id is missing"},
		{"a call without a name", `{"role":"assistant","tool_calls":[{"id":"x"}]}`, "tool_calls[0].name is missing"},
		{"calls of a user", `{"role":"user","content":"x","tool_calls":[{"id":"a","name":"b"}]}`, "tool_calls are of assistant messages only"},
		{"a result without a call", `{"role":"tool","content":"x"}`, "tool_call_id is missing"},
		{"an orphan", `{"role":"tool","content":"x","tool_call_id":"c9"}`, "tool_call_id c9: the assistant's message before has no such call"},
		{"an orphan of Anthropic's", `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c9"}]}`, "tool_call_id c9: the assistant's message before has no such call"},
		{"a result of a wrong type", before + `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":7,"is_error":"no"}]}`, "content[0] content must be a text; is_error must be true or false"},
		{"a second result", before + strings.Repeat(`{"role":"tool","content":"x","tool_call_id":"c1"}`+"\n", 2), "line 4 tool_call_id c1"},
		{"a late result", before + `{"role":"user","content":"x"}` + "\n" + `{"role":"tool","content":"x","tool_call_id":"c1"}`, "line 4 tool_call_id c1"},
		{"an id twice", strings.Repeat(`{"role":"user","content":"x","client_message_id":"a"}`+"\n", 2), "line 2 client_message_id a is there twice"},
		{"in the future", `{"role":"user","content":"x","created_at":"2999-01-01T00:00:00Z"}`, "created_at 2999-01-01T00:00:00Z is in the future"},
		{"no time", `{"role":"user","content":"x","created_at":"yesterday"}`, "created_at must be a time"},
		{"before time", `{"role":"user","content":"x","created_at":"1066-01-01T00:00:00Z"}`, "is before 1970"},
		{"a status", `{"role":"user","content":"x","status":"done"}`, `status "done" must be`},
		{"a source", `{"role":"user","content":"x","source":"fax"}`, `source "fax" must be`},
		{"metadata", `{"role":"user","content":"x","metadata":[1]}`, "metadata must be a JSON object"},
		{"deep metadata", `{"role":"user","content":"x","metadata":{"a":` + strings.Repeat("[", 32) + strings.Repeat("]", 32) + `}}`, "metadata is nested more than 32 levels deep"},
		{"a deep line", `{"role":"user","content":"x","other":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`, "line 1 is nested more than 64 levels deep"},
		{"a pinned note of the system", `{"role":"system","content":"x","pinned":true}`, "pinned is not of system messages"},
		{"long", `{"role":"user","content":"` + strings.Repeat("x", 1<<20+1) + `"}`, "content has 1048577 bytes, at most 1048576"},
		{"a very long line", `{"role":"user","content":"` + strings.Repeat("x", 8<<20) + `"}`, "is longer than 8388608 bytes"},
		{"a long name", `{"role":"user","content":"x","author":"` + strings.Repeat("x", 201) + `"}`, "author has 201 bytes"},
		{"many calls", `{"role":"assistant","tool_calls":[` + strings.Repeat(`{"id":"a","name":"b"},`, 128) + `{"id":"a","name":"b"}]}`, "tool_calls are 129, at most 128"},
		{"very many values", `{"role":"user","content":["` + strings.Repeat(`a","`, 100_000) + `"]}`, "has more than 100000 values"},
		{"many faults", `{"role":"user","content":[` + strings.Repeat(`7,`, 90_000) + `7]}`, "content[2] is neither a text nor an object with a type"},
		{"the old form", `{"role":"assistant","content":null,"function_call":{"name":"x","arguments":"{}"}}`, "function_call is too old"},
		{"langchain of another kind", `{"type":"remove","data":{"id":"x"}}`, `type "remove" is not a message`},
		{"langchain without a class", `{"lc":1,"type":"constructor","id":[],"kwargs":{}}`, `type "constructor" is not a message`},
		{"langchain of a wrong type", `{"type":"ai","data":{"content":"x","tool_calls":7}}`, "tool_calls must be a list"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			_, err := w.take(t, core.ImportLines, tt.line)
			wantFault(t, w, err, tt.says)
		})
	}
}

// wantFault checks that nothing was imported and what is told.
func wantFault(t *testing.T, w *world, err error, says string) {
	t.Helper()
	var shown *core.Error
	switch {
	case err == nil:
		t.Fatalf("got no error, want %q", says)
	case !strings.Contains(err.Error(), says):
		t.Errorf("got error %.300q, want %q in it", err, says)
	case len(w.log) > 0 || len(w.told) > 0:
		t.Errorf("got %d messages and %d events, want nothing", len(w.log), len(w.told))
	}
	compare.True(t, asError(err, &shown) && errors.Is(err, core.ErrInvalid), "got %#v, want ErrInvalid", err)
}

// away is a store that cannot be read.
type away struct {
	core.SessionStore
	err error
}

func (a away) List(context.Context, core.Tenant, core.SessionQuery) (core.Page[core.Session], error) {
	return core.Page[core.Session]{}, a.err
}

// An export that broke off cannot be taken for a whole one.
func TestExportUserBreaksOff(t *testing.T) {
	t.Parallel()
	want := errors.New("the database is away")
	s := transfer.New(transfer.Options{Users: transfer.UserStores{Sessions: away{err: want}}})
	var out bytes.Buffer
	err := s.ExportUser(t.Context(), ann(), core.UserExport{Owner: "ann", User: "kim"}, &out)
	if _, unreadable := zip.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len())); !errors.Is(err, want) || err.Error() != "export: the database is away" || unreadable == nil {
		t.Errorf("got %v, and an archive that can be read: %v", err, unreadable == nil)
	}
}
