package langchain_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/openai"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/langchain"
)

// sent asks the model and returns the request that the provider got.
func sent(t *testing.T, options langchain.Options, req llm.Request) map[string]any {
	t.Helper()
	s := serve(t, stream(text("ok"), finishStop, done))
	if _, err := collect(t, s.model(t, options), req); err != nil {
		t.Fatal(err)
	}
	return s.last(t)
}

// plainSent returns the request that plain langchaingo makes of the messages.
func plainSent(t *testing.T, model string, messages []llms.MessageContent, options ...llms.CallOption) map[string]any {
	t.Helper()
	s := serve(t, stream(text("ok"), finishStop, done))
	client, err := openai.New(openai.WithBaseURL(baseURL), openai.WithToken("k"), openai.WithModel(model),
		openai.WithHTTPClient(transportDoer{s}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.GenerateContent(t.Context(), messages, options...); err == nil {
		t.Fatal("plain: want an error, as it was not asked to stream")
	}
	return s.last(t)
}

func human(text string) []llms.MessageContent {
	return []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, text)}
}

func TestO13TemperatureOnlyWhenAsked(t *testing.T) {
	t.Parallel()
	if got := plainSent(t, "o1", human("hi"))["temperature"]; got != 0.0 {
		t.Errorf("plain: got temperature %v, want the fault: 0 although nobody asked", got)
	}
	warm, zero := 0.7, 0.0
	for name, c := range map[string]struct {
		model       string
		temperature *float64
		want        any
	}{
		"not asked":           {"gpt-4o", nil, nil},
		"asked":               {"gpt-4o", &warm, 0.7},
		"asked for zero":      {"gpt-4o", &zero, 0.0},
		"o1":                  {"o1", &warm, nil},
		"o3 mini":             {"openai/o3-mini", &warm, nil},
		"gpt-5":               {"gpt-5.4-nano", &warm, nil},
		"gpt-5 chat":          {"gpt-5-chat-latest", &warm, 0.7},
		"not OpenAI's series": {"olmo-2", &warm, 0.7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := ask("hi")
			req.Temperature = c.temperature
			if got := sent(t, langchain.Options{Model: c.model}, req)["temperature"]; got != c.want {
				t.Errorf("got temperature %v, want %v", got, c.want)
			}
		})
	}
}

func TestO14ExtraMembers(t *testing.T) {
	t.Parallel()
	if got, ok := plainSent(t, "gpt-4o", human("hi"), llms.WithTopP(0.5))["top_p"]; ok {
		t.Errorf("plain: got top_p %v, want the fault: it is not sent", got)
	}
	got := sent(t, langchain.Options{Extra: map[string]any{
		"top_p": 0.5, "parallel_tool_calls": false, "reasoning_effort": "low", "service_tier": "flex",
	}}, ask("hi"))
	for key, want := range map[string]any{"top_p": 0.5, "parallel_tool_calls": false, "reasoning_effort": "low", "service_tier": "flex"} {
		if got[key] != want {
			t.Errorf("%s: got %v, want %v", key, got[key], want)
		}
	}
}

func TestO15Images(t *testing.T) {
	t.Parallel()
	broken := []llms.MessageContent{{Role: llms.ChatMessageTypeHuman, Parts: []llms.ContentPart{
		llms.TextPart("look"), llms.BinaryPart("image/png", []byte("png")),
	}}}
	if got, _ := json.Marshal(plainSent(t, "gpt-4o", broken)["messages"]); !bytes.Contains(got, []byte(`"type":"binary"`)) {
		t.Errorf("plain: got %s, want the fault: the type binary, which OpenAI refuses", got)
	}
	url := func(data string) map[string]any {
		return map[string]any{"type": "image_url", "image_url": map[string]any{"url": "data:image/png;base64," + data}}
	}
	image := func(data string) llm.Image {
		return llm.Image{Part: core.Part{Type: "image", MediaType: "image/png"}, Data: []byte(data)}
	}
	got := sent(t, langchain.Options{}, llm.Request{Messages: []llm.Message{
		{Role: core.RoleUser, Content: "look", Images: []llm.Image{image("one"), image("two")}, Parts: []core.Part{
			{Type: "file", MediaType: "application/pdf"},
			{Type: "text", Text: "and tell me"},
			{Type: "reasoning", Text: "never sent"},
		}},
		{Role: core.RoleAssistant, Content: "one and two"},
		{Role: core.RoleUser, Images: []llm.Image{image("three")}},
	}})
	want := []any{
		map[string]any{"role": "user", "content": []any{
			map[string]any{"type": "text", "text": "look\n[file, application/pdf]\nand tell me"}, url("b25l"), url("dHdv"),
		}},
		map[string]any{"role": "assistant", "content": "one and two"},
		map[string]any{"role": "user", "content": []any{url("dGhyZWU=")}},
	}
	if diff := cmp.Diff(want, got["messages"]); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func TestO16NoCachedParts(t *testing.T) {
	t.Parallel()
	cached := []llms.MessageContent{{Role: llms.ChatMessageTypeHuman, Parts: []llms.ContentPart{
		llms.CachedContent{ContentPart: llms.TextPart("important")},
	}}}
	if got, _ := json.Marshal(plainSent(t, "gpt-4o", cached)["messages"]); bytes.Contains(got, []byte("important")) {
		t.Errorf("plain: got %s, want the fault: the text is lost", got)
	}
	// No kind of message of ours becomes a cached part: all of its text arrives.
	got, err := json.Marshal(sent(t, langchain.Options{}, conversation())["messages"])
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"You are kind.", "Be brief.", "What is 1+1", "I will calculate.", "calculator", `{\"x\": 1}`, "two", "It is 2."} {
		if !bytes.Contains(got, []byte(want)) {
			t.Errorf("got %s, want %q in it", got, want)
		}
	}
}

func TestO17OneChoice(t *testing.T) {
	t.Parallel()
	if got, ok := sent(t, langchain.Options{}, ask("hi"))["n"]; ok {
		t.Errorf("got n %v, want none", got)
	}
	if _, err := langchain.New(langchain.Options{Model: "m", Extra: map[string]any{"n": 2}}); err == nil || !strings.Contains(err.Error(), `"n"`) {
		t.Errorf("got %v, want a refusal that names n", err)
	}
	s := serve(t, stream(
		`{"choices":[{"index":0,"delta":{"content":"one"}},{"index":1,"delta":{"content":"two"}}]}`,
		`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"},{"index":1,"delta":{},"finish_reason":"length"}]}`, done))
	got, err := collect(t, s.model(t, langchain.Options{}), ask("hi"))
	if err != nil || got.Text != "one" || got.Finish != core.FinishStop {
		t.Errorf("got %q, %q, %v, want the first choice only", got.Text, got.Finish, err)
	}
}

func TestO19ReasoningFields(t *testing.T) {
	t.Parallel()
	const event = `{"choices":[{"delta":{"reasoning":"hm"}}]}`
	s := serve(t, stream(event, text("ok"), finishStop, done))
	if c, err := plain(t.Context(), t, s); err != nil || c.ReasoningContent != "" {
		t.Errorf("plain: got %+v, %v, want the fault: no reasoning", c, err)
	}
	for name, event := range map[string]string{
		"OpenRouter": event,
		"DeepSeek":   `{"choices":[{"delta":{"reasoning_content":"hm","content":null}}]}`,
		"both":       `{"choices":[{"delta":{"reasoning_content":"hm","reasoning":"hm"}}]}`,
		"Mistral":    `{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, stream(event, text("ok"), finishStop, done))
			got, err := collect(t, s.model(t, langchain.Options{}), ask("hi"))
			if err != nil || got.Reasoning != "hm" || got.Text != "ok" {
				t.Errorf("got %q, %q, %v, want hm and ok", got.Reasoning, got.Text, err)
			}
		})
	}
}

func TestO20SystemStaysSystem(t *testing.T) {
	t.Parallel()
	messages := append([]llms.MessageContent{llms.TextParts(llms.ChatMessageTypeSystem, "Be kind.")}, human("hi")...)
	if got, _ := json.Marshal(plainSent(t, "o1", messages)["messages"]); bytes.Contains(got, []byte(`"system"`)) {
		t.Errorf("plain: got %s, want the fault: no system message", got)
	}
	req := ask("hi")
	req.System = []string{"Be kind."}
	for _, model := range []string{"o1", "o3", "o3-mini"} {
		got := sent(t, langchain.Options{Model: model}, req)
		want := []any{map[string]any{"role": "system", "content": "Be kind."}, map[string]any{"role": "user", "content": "hi"}}
		if diff := cmp.Diff(want, got["messages"]); diff != "" {
			t.Errorf("%s: messages (-want +got):\n%s", model, diff)
		}
		if got["model"] != model {
			t.Errorf("got model %v, want %s", got["model"], model)
		}
	}
}
