package responses_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/responses"
	"bobbin/tests/compare"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

func TestParameters(t *testing.T) {
	t.Parallel()
	schema := json.RawMessage(`{"type":"object","properties":{"b":{},"a":{}}}`)
	full := llm.Request{
		MaxOutputTokens: 5, Temperature: new(0.5), ReasoningEffort: "low", Stop: []string{"x"}, Seed: new(1),
		ResponseFormat: &core.ResponseFormat{Type: core.FormatJSONSchema, Schema: schema, Strict: new(true)},
	}
	for name, c := range map[string]struct {
		model string
		req   llm.Request
		want  string
	}{
		"none":              {"gpt-6", llm.Request{}, `{"include":["reasoning.encrypted_content"],"model":"gpt-6","reasoning":{"summary":"auto"},"store":false,"stream":true}`},
		"in the background": {"gpt-6", llm.Request{Background: true}, `{"include":["reasoning.encrypted_content"],"model":"gpt-6","store":false,"stream":true}`},
		"another's model":   {"qwen3-32b", llm.Request{}, `{"include":["reasoning.encrypted_content"],"model":"qwen3-32b","store":false,"stream":true}`},
		"without thought":   {"gpt-4o", llm.Request{TopP: new(0.1)}, `{"model":"gpt-4o","store":false,"stream":true,"top_p":0.1}`},
		"all": {"o4-mini", full, `{"include":["reasoning.encrypted_content"],"max_output_tokens":16,"model":"o4-mini","reasoning":{"effort":"low","summary":"auto"},"store":false,"stream":true,` +
			`"text":{"format":{"name":"answer","schema":{"properties":{"a":{},"b":{}},"type":"object"},"strict":true,"type":"json_schema"}}}`},
		"JSON": {"gpt-4o", llm.Request{ResponseFormat: &core.ResponseFormat{Type: core.FormatJSONObject}, Temperature: new(0.0)},
			`{"model":"gpt-4o","store":false,"stream":true,"temperature":0,"text":{"format":{"type":"json_object"}}}`},
		"choices need tools": {"gpt-4o", llm.Request{ToolChoice: core.ToolChoiceRequired, ParallelToolCalls: new(false)}, `{"model":"gpt-4o","store":false,"stream":true}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.req.Messages = ask("hi").Messages
			got := sent(t, responses.Options{Model: c.model}, c.req)
			compare.True(t, name != "all" || strings.Contains(string(got.Body), string(schema)), "got %s, want the schema's keys in their order", got.Body)
			body := got.JSON()
			delete(body, "input")
			compare.Equal(t, "", c.want, toJSON(t, body))
		})
	}
}

func TestLackedParameters(t *testing.T) {
	t.Parallel()
	for model, want := range map[string][]llm.Parameter{
		"gpt-4o":  {llm.ReasoningEffort, llm.Stop, llm.Seed},
		"gpt-5.4": {llm.Temperature, llm.TopP, llm.Stop, llm.Seed},
		"local":   {llm.Stop, llm.Seed},
	} {
		compare.Equal(t, model, want, must.Get(responses.New(responses.Options{Model: model}))(t).Info().Lacks)
	}
}

// Images and PDFs go with the user's message as data.
func TestMedia(t *testing.T) {
	t.Parallel()
	req := llm.Request{Messages: []llm.Message{{Role: core.RoleUser, Content: "Look.", Media: []llm.Media{
		{Part: core.Part{Type: core.PartImage, MediaType: "image/png"}, Data: []byte("image")},
		{Part: core.Part{Type: core.PartFile, Name: "a.pdf"}, Data: []byte("pages")},
	}}}}
	want := `[{"content":[{"text":"Look.","type":"input_text"},{"detail":"auto","image_url":"data:image/png;base64,aW1hZ2U=","type":"input_image"},` +
		`{"file_data":"data:application/pdf;base64,cGFnZXM=","filename":"a.pdf","type":"input_file"}],"role":"user"}]`
	compare.Equal(t, `toJSON(t, sent(t, responses.Options{}, req).JSON()["input"])`, want, toJSON(t, sent(t, responses.Options{}, req).JSON()["input"]))
}

// Ids that are too long are replaced, the same in a call and its result.
func TestLongCallIDs(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 65)
	got := sent(t, responses.Options{}, llm.Request{Messages: []llm.Message{
		{Role: core.RoleAssistant, ToolCalls: []core.ToolCall{{ID: long, Name: "f"}, {ID: long[1:], Name: "f"}}},
		{Role: core.RoleTool, ToolCallID: long, Content: "1"}, {Role: core.RoleTool, ToolCallID: long[1:], Content: "2"},
	}})
	raw := string(got.Body)
	id := llm.HashID(long, 40)
	compare.True(t, strings.Count(raw, id) == 2 && strings.Count(raw, `"`+long[1:]+`"`) == 2 && !strings.Contains(raw, long), "got %s", raw)
}

func TestUnknownRole(t *testing.T) {
	t.Parallel()
	s := serve(t, fine)
	_, err := collect(t, open(t, s, responses.Options{}), llm.Request{Messages: []llm.Message{{Role: "robot"}}})
	compare.Equal(t, "refused, requests", []any{true, 0}, []any{llm.IsKind(err, llm.KindInvalid), len(s.Received())})
}

func TestInfo(t *testing.T) {
	t.Parallel()
	options := responses.Options{Provider: "openai", Model: "m", APIKey: key, BaseURL: "http://u:" + key + "@provider.test/v1/"}
	m := must.Get(responses.New(options))(t)
	got := m.Info()
	compare.Equal(t, "info", []any{"m", "openai"}, []any{got.Name, got.Provider})
	compare.Equal(t, "options printed", "{openai model m at http://provider.test/v1/}", fmt.Sprintf("%+v", options))
}

// A system message among the others goes to models that bind thoughts, as a developer's.
func TestSystemMessages(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]string{
		"gpt-6.2": `[{"content":[{"text":"hi","type":"input_text"}],"role":"user"},{"content":"Be brief.","role":"developer"}]`,
		"gpt-6":   `[{"content":[{"text":"hi","type":"input_text"}],"role":"user"}]`,
	} {
		req := ask("hi")
		req.Messages = append(req.Messages, llm.Message{Role: core.RoleSystem, Content: "Be brief."})
		compare.Equal(t, model, want, toJSON(t, sent(t, responses.Options{Model: model}, req).JSON()["input"]))
	}
}

// key stands for an API key. No error and no log may hold it.
const key = "the-key-of-the-tests"

// serve answers the requests in order; the last answer is repeated.
func serve(t *testing.T, answers ...http.HandlerFunc) *llmtest.Server {
	t.Helper()
	return llmtest.Serve(t, answers...)
}

// stream answers with the events.
func stream(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		llmtest.SendEvents(w, events...)
	}
}

// refuse answers with a status and a body.
func refuse(status int, body string) http.HandlerFunc {
	return llmtest.Reply(status, body)
}

// done is the event of a complete item.
func done(index int, item string) string {
	return fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, index, item)
}

const completed = `{"type":"response.completed","response":{"object":"response","status":"completed","model":"gpt-6-2026-09-01","output":[]}}`

var fine = stream(`{"type":"response.output_text.delta","output_index":0,"delta":"ok"}`, completed)

func open(t *testing.T, s *llmtest.Server, options responses.Options) *responses.Model {
	t.Helper()
	if options.Model == "" {
		options.Model = "gpt-6"
	}
	options.BaseURL = s.URL + "/v1"
	return must.Get(responses.New(options))(t)
}

var (
	ask     = llmtest.Ask
	collect = llmtest.Collect
)

// sent returns what a model sends for the request.
func sent(t *testing.T, options responses.Options, req llm.Request) llmtest.Received {
	t.Helper()
	s := serve(t, fine)
	if res, err := collect(t, open(t, s, options), req); err != nil || res.Text != "ok" {
		t.Fatalf("got %q, %v", res.Text, err)
	}
	return s.Last()
}

// toJSON returns the value as JSON.
func toJSON(t *testing.T, v any) string {
	t.Helper()
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	must.Do(t, encoder.Encode(v))
	return strings.TrimSpace(b.String())
}
