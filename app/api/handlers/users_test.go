package handlers_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"bobbin/app/api/handlers"
	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

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
