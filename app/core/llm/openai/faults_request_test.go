package openai_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/openai"
)

// sent asks the model and returns the request that the provider got.
func sent(t *testing.T, options openai.Options, req llm.Request) map[string]any {
	t.Helper()
	s := serve(t, stream(text("ok"), finishStop, done))
	if _, err := collect(t, s.model(t, options), req); err != nil {
		t.Fatal(err)
	}
	return s.Last().JSON()
}

func TestO15Images(t *testing.T) {
	t.Parallel()
	url := func(data string) map[string]any {
		return map[string]any{"type": "image_url", "image_url": map[string]any{"url": "data:image/png;base64," + data}}
	}
	image := func(data string) llm.Media {
		return llm.Media{Part: core.Part{Type: "image", MediaType: "image/png"}, Data: []byte(data)}
	}
	got := sent(t, openai.Options{}, llm.Request{Messages: []llm.Message{
		{Role: core.RoleUser, Content: "look", Media: []llm.Media{image("one"), image("two")}, Parts: []core.Part{
			{Type: "file", MediaType: "application/pdf"},
			{Type: "text", Text: "and tell me"},
			{Type: "reasoning", Text: "never sent"},
		}},
		{Role: core.RoleAssistant, Content: "one and two"},
		{Role: core.RoleUser, Media: []llm.Media{image("three")}},
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

// PDFs are file parts with their name and their bytes; other messages keep their bytes.
func TestO15Files(t *testing.T) {
	t.Parallel()
	pdf := llm.Media{Part: core.Part{Type: core.PartFile, MediaType: "application/pdf", Name: "plan <1>.pdf"}, Data: []byte("%PDF-1.7 scan")}
	image := llm.Media{Part: core.Part{Type: core.PartImage, MediaType: "image/png"}, Data: []byte("one")}
	got := sent(t, openai.Options{}, llm.Request{Messages: []llm.Message{
		{Role: core.RoleUser, Content: "look", Media: []llm.Media{image, pdf}},
		{Role: core.RoleAssistant, Content: "a plan"},
		{Role: core.RoleUser, Content: `{"type":"binary"}`},
		{Role: core.RoleAssistant, Content: "and JSON"},
		{Role: core.RoleUser, Media: []llm.Media{pdf}},
	}})
	file := map[string]any{"type": "file", "file": map[string]any{
		"filename": "plan <1>.pdf", "file_data": "data:application/pdf;base64,JVBERi0xLjcgc2Nhbg==",
	}}
	want := []any{
		map[string]any{"role": "user", "content": []any{
			map[string]any{"type": "text", "text": "look"},
			map[string]any{"type": "image_url", "image_url": map[string]any{"url": "data:image/png;base64,b25l"}}, file,
		}},
		map[string]any{"role": "assistant", "content": "a plan"},
		map[string]any{"role": "user", "content": `{"type":"binary"}`},
		map[string]any{"role": "assistant", "content": "and JSON"},
		map[string]any{"role": "user", "content": []any{file}},
	}
	if diff := cmp.Diff(want, got["messages"]); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func TestO17OneChoice(t *testing.T) {
	t.Parallel()
	if got, ok := sent(t, openai.Options{}, ask("hi"))["n"]; ok {
		t.Errorf("got n %v, want none", got)
	}
	s := serve(t, stream(
		`{"choices":[{"index":0,"delta":{"content":"one"}},{"index":1,"delta":{"content":"two"}}]}`,
		`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"},{"index":1,"delta":{},"finish_reason":"length"}]}`, done))
	got, err := collect(t, s.model(t, openai.Options{}), ask("hi"))
	if err != nil || got.Text != "one" || got.Finish != core.FinishStop {
		t.Errorf("got %q, %q, %v, want the first choice only", got.Text, got.Finish, err)
	}
}

func TestO19ReasoningFields(t *testing.T) {
	t.Parallel()
	const event = `{"choices":[{"delta":{"reasoning":"hm"}}]}`
	for name, event := range map[string]string{
		"OpenRouter": event,
		"DeepSeek":   `{"choices":[{"delta":{"reasoning_content":"hm","content":null}}]}`,
		"both":       `{"choices":[{"delta":{"reasoning_content":"hm","reasoning":"hm"}}]}`,
		"Mistral":    `{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, stream(event, text("ok"), finishStop, done))
			got, err := collect(t, s.model(t, openai.Options{}), ask("hi"))
			if err != nil || got.Reasoning != "hm" || got.Text != "ok" {
				t.Errorf("got %q, %q, %v, want hm and ok", got.Reasoning, got.Text, err)
			}
		})
	}
}
