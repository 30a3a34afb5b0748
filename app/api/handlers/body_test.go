package handlers_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"bobbin/app/api/handlers"
	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// target has a field of every type that bodies have.
type target struct {
	Text   string          `json:"text"`
	Number int             `json:"number"`
	Share  float64         `json:"share"`
	Flag   bool            `json:"flag"`
	List   []string        `json:"list"`
	Maybe  *string         `json:"maybe"`
	Raw    json.RawMessage `json:"raw"`
}

// What a body may hold is counted before it is decoded: decoding costs a few times the
// length of the body, and what holds more than that is refused.
func TestDecodeMemory(t *testing.T) { // not parallel: it measures what the process allocates
	size := 2 << 20
	if os.Getenv("BOBBIN_TEST_LONG") != "" {
		size = 8 << 20
	}
	fill := func(begin, unit, end string, most int) string {
		n := min((size-len(begin)-len(end))/(len(unit)+1), most)
		return begin + strings.Repeat(unit+",", n-1) + unit + end
	}
	var names strings.Builder
	for i := range 9_900 {
		fmt.Fprintf(&names, `,"%x":0`, i)
	}
	for name, tt := range map[string]struct {
		body    string
		refused bool
		most    uint64 // bytes
	}{
		"a list of objects":             {fill(`{"calls":[`, `{}`, `]}`, size), true, 1 << 20},
		"a list of lists":               {fill(`{"raw":[`, `[]`, `]}`, size), true, 1 << 20},
		"numbers":                       {fill(`{"raw":[`, `0`, `]}`, size), true, 1 << 20},
		"deep":                          {`{"raw":` + strings.Repeat("[", size/2) + strings.Repeat("]", size/2) + "}", true, 1 << 20},
		"as many objects as may be":     {fill(`{"calls":[`, `{}`, `]}`, 4_900), false, 3 << 20},
		"as many names as may be":       {`{"text":""` + names.String() + `}`, true, 3 << 20},
		"a long name":                   {`{"` + strings.Repeat("x", size/2) + `":1}`, true, uint64(size) + 1<<20},
		"one text":                      {`{"text":"` + strings.Repeat("a", size-12) + `"}`, false, uint64(size) + 1<<20},
		"one text of escaped bytes":     {`{"text":"` + strings.Repeat(`\u0001`, size/6-2) + `"}`, false, uint64(size) + 2<<20},
		"one text where none is wanted": {`{"number":"` + strings.Repeat("a", size-14) + `"}`, true, uint64(size) + 1<<20},
	} {
		data := []byte(tt.body)
		var got struct {
			Text   string          `json:"text"`
			Number int             `json:"number"`
			Raw    json.RawMessage `json:"raw"`
			Calls  []core.ToolCall `json:"calls"`
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		err := handlers.Decode(data, &got)
		runtime.ReadMemStats(&after)
		refused := errors.Is(err, core.ErrInvalid)
		compare.True(t, refused == tt.refused && (!refused || len(err.Error()) <= 4096), "%s: got %.100v, want a refusal in few words: %v", name, err, tt.refused)
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > tt.most {
			t.Errorf("%s: got %d bytes allocated for a body of %d, want at most %d", name, allocated, len(data), tt.most)
		} else {
			t.Logf("%s: %d bytes allocated for a body of %d", name, allocated, len(data))
		}
	}
}

// FuzzDecode: whatever comes in, Decode does not panic, refuses by an error that
// may be shown, and takes over nothing that encoding/json would not.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `null`, `[]`, `{"text":"x"}`, `{"text":null,"x":1}`, `{"text":"\ud800"}`, "{\"text\":\"\xff\"}", `{"text":"a","text":"b"}`,
		`{"number":1e400}`, `{"raw":{"a":[{}]}}`, `{"":1}`, "{\n\"a\"", `{"list":["a",1]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got target
		err := handlers.Decode(data, &got)
		if err != nil {
			var shown *core.Error
			if !errors.As(err, &shown) || !errors.Is(err, core.ErrInvalid) || !utf8.ValidString(shown.Message) {
				t.Fatalf("got error %v, want a core.Error of kind invalid in valid UTF-8", err)
			}
			return
		}
		var want target
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatalf("took over %q, which encoding/json refuses: %v", data, err)
		}
		if got.Text != want.Text || got.Number != want.Number || got.Share != want.Share || got.Flag != want.Flag {
			t.Fatalf("got %+v from %q, want %+v", got, data, want)
		}
	})
}

// A type of answers that does not say what end users see of it is refused.
func TestUserView(t *testing.T) {
	t.Parallel()
	hook := &core.Webhook{URL: "https://hush.example"}
	for _, body := range []any{
		struct{ Secret string }{"s"}, []core.Session{{Webhook: hook}}, &core.Session{Webhook: hook}, map[string]any{"webhook": hook},
		core.Page[core.Session]{}, core.Accepted{}, core.APIKey{}, json.RawMessage("{}"), nil,
		map[string]string{"secret": "s"}, "s", new(string), 1, int64(1), true,
	} {
		if got, err := handlers.UserView(body); err == nil || got != nil {
			t.Errorf("%T: got %v, %v, want an error", body, got, err)
		}
	}
	for _, body := range []any{
		core.Session{Webhook: hook}, core.SessionDetail{Session: core.Session{Webhook: hook}}, core.Run{Webhook: hook},
		core.AgentDetail{Agent: core.Agent{SystemPrompt: "hush"}}, core.PromptView{System: []string{"hush"}}, core.ModelCall{Provider: "hush"}, core.Delivery{Target: "hush"}, core.Webhook{URL: "https://hush.example"},
	} {
		got, err := handlers.UserView(body)
		if text, _ := json.Marshal(got); err != nil || strings.Contains(string(text), "hush") {
			t.Errorf("%T: got %s, %v, want it without what is the owner's", body, text, err)
		}
	}
	compare.Equal(t, "got.(core.Message).Content: want all of it", "x", must.Get(handlers.UserView(core.Message{Content: "x"}))(t).(core.Message).Content)
}

// Every type of events says what end users see of it, and one that does not is refused.
func TestUserEvent(t *testing.T) {
	t.Parallel()
	file := must.Get(parser.ParseFile(token.NewFileSet(), "../../core/event.go", nil, 0))(t)
	var types []core.EventType
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		name, isType := spec.Type.(*ast.Ident)
		value, isText := spec.Values[0].(*ast.BasicLit)
		if isType && isText && name.Name == "EventType" {
			if text, err := strconv.Unquote(value.Value); err == nil {
				types = append(types, core.EventType(text))
			}
		}
		return true
	})
	if len(types) < 20 {
		t.Fatalf("got event types %v, want all of app/core/event.go", types)
	}
	hook := &core.Webhook{URL: "hush"}
	session, run := core.SessionData{Session: core.Session{Webhook: hook}}, core.RunData{Run: core.Run{Webhook: hook}}
	hidden := map[core.EventType]any{
		core.EventSessionUpdated: session, core.EventRunStarted: run, core.EventRunWaiting: run, core.EventRunSucceeded: run, core.EventRunFailed: run, core.EventRunCanceled: run,
	}
	for _, kind := range types {
		_, _, err := handlers.UserEvent(core.Event{Type: kind, Data: hidden[kind]})
		compare.Error(t, fmt.Sprintf("%s: want what end users see of it", kind), nil, err)
		if _, undecoded := core.DecodeEventData(kind, json.RawMessage(`{}`)).(json.RawMessage); undecoded {
			t.Errorf("%s: its data are not decoded", kind)
		}
	}
	for kind, data := range hidden {
		e, shown, err := handlers.UserEvent(core.Event{Type: kind, Data: data, Frame: &core.Frame{}})
		if text, _ := json.Marshal(e.Data); err != nil || !shown || strings.Contains(string(text), "hush") || e.Frame != nil {
			t.Errorf("%s: got %s, %t, %v, want it without its webhook, and not the frame of those who see it", kind, text, shown, err)
		}
		if _, shown, err := handlers.UserEvent(core.Event{Type: kind, Data: json.RawMessage(`{"webhook":{"url":"hush"}}`)}); shown || err == nil {
			t.Errorf("%s: got %t, %v for data of another version, want an error", kind, shown, err)
		}
	}
	if _, shown, err := handlers.UserEvent(core.Event{Type: core.EventDeliveryUpdated, Data: core.DeliveryData{}}); shown || err != nil {
		t.Errorf("got %t, %v for a delivery, want that it is not shown", shown, err)
	}
	if _, shown, err := handlers.UserEvent(core.Event{Type: "secret.made", Data: json.RawMessage(`{}`)}); shown || err == nil {
		t.Errorf("got %t, %v for a new type, want an error", shown, err)
	}
}
