package transfer_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

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
