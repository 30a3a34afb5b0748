package openai_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/openai"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// parameters are all parameters of an agent, in the form that the tests compare.
func parameters() core.ModelParameters {
	return core.ModelParameters{
		Temperature: new(0.0), TopP: new(0.5), Stop: []string{"END", "\n\n"}, Seed: new(0), ReasoningEffort: "low",
		ResponseFormat: &core.ResponseFormat{Type: core.FormatJSONSchema, Schema: json.RawMessage(`{"type":"object","properties":{"z":{},"a":{}}}`), Strict: new(true)},
	}
}

// The parameters of an agent are members of the request, under the names that the provider
// has for them; what an agent does not set is not sent.
func TestParametersAreSent(t *testing.T) {
	t.Parallel()
	all := map[string]any{
		"temperature": 0.0, "top_p": 0.5, "stop": []any{"END", "\n\n"}, "seed": 0.0, "reasoning_effort": "low",
		"response_format": map[string]any{"type": "json_schema", "json_schema": map[string]any{
			"name": "answer", "strict": true, "schema": map[string]any{"type": "object", "properties": map[string]any{"z": map[string]any{}, "a": map[string]any{}}},
		}},
	}
	without := func(keys ...string) map[string]any {
		out := map[string]any{}
		for key, value := range all {
			out[key] = value
		}
		for _, key := range keys {
			delete(out, key)
		}
		return out
	}
	mistral := without("seed", "reasoning_effort")
	mistral["random_seed"] = 0.0
	for name, tt := range map[string]struct {
		provider, model string
		want            map[string]any
	}{
		"OpenAI":                    {"openai", "gpt-4o", without("reasoning_effort")},
		"OpenAI, an older model":    {"openai", "gpt-4-turbo", without("reasoning_effort", "response_format")},
		"OpenAI, a reasoning model": {"openai", "gpt-5-mini", without("temperature", "top_p", "stop")},
		"OpenAI, o1":                {"openai", "o1", without("temperature", "top_p")},
		"OpenAI, a chat model":      {"openai", "gpt-5-chat-latest", without("reasoning_effort")},
		"Gemini":                    {"gemini", "gemini-2.5-flash", all},
		"Gemini, an older model":    {"gemini", "gemini-2.0-flash", without("reasoning_effort")},
		"Ollama":                    {"ollama", "gpt-oss:20b", all},
		"Mistral":                   {"mistral", "mistral-large-latest", mistral},
		"OpenRouter":                {"openrouter", "openai/o3", without("temperature", "top_p", "stop")},
		"a server of one's own":     {"house", "qwen2.5-14b", all},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, stream(`{"choices":[{"delta":{"content":"ok"},"finish_reason":"stop"}]}`, "[DONE]"))
			m := s.model(t, openai.Options{Provider: tt.provider, Model: tt.model})
			must.Get(collect(t, m, ask("hi").WithParameters(parameters(), m.Info())))(t)
			got := s.Last().JSON()
			for _, key := range []string{"model", "messages", "stream", "stream_options"} {
				delete(got, key)
			}
			compare.Equal(t, "members of the request", tt.want, got)
		})
	}
}

// Formats besides a schema, and the name that a schema has.
func TestResponseFormats(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		format core.ResponseFormat
		want   string
	}{
		"text":   {core.ResponseFormat{Type: core.FormatText}, `{"type":"text"}`},
		"object": {core.ResponseFormat{Type: core.FormatJSONObject}, `{"type":"json_object"}`},
		"schema": {core.ResponseFormat{Type: core.FormatJSONSchema, Name: "bill", Schema: json.RawMessage(`{"b":1,"a":2}`)}, `{"type":"json_schema","json_schema":{"name":"bill","schema":{"b":1,"a":2}}}`},
	} {
		s := serve(t, stream(`{"choices":[{"delta":{"content":"ok"},"finish_reason":"stop"}]}`, "[DONE]"))
		req := ask("hi")
		req.ResponseFormat = &tt.format
		must.Get(collect(t, s.model(t, openai.Options{}), req))(t)
		var body struct {
			Format json.RawMessage `json:"response_format"`
		}
		must.Do(t, json.Unmarshal(s.Received()[0].Body, &body))
		compare.Equal(t, name+": want keys in the schema's order", tt.want, string(body.Format))
	}
}

// Which models reason follows from the form of their names, so that later ones are known.
func TestReasoningModels(t *testing.T) {
	t.Parallel()
	for _, model := range []string{
		"o1", "o1-mini", "o3", "o3-pro-2025-06-10", "o4-mini", "o5", "o10-mini", "gpt-5", "gpt-5-mini", "gpt-5.4", "gpt-5-codex", "gpt-6", "gpt-6-sol",
		"gpt-6.1-terra", "gpt-6.2", "GPT-7", "gpt-10", "gpt-12.5-pro", "openai/gpt-6-luna", "ft:gpt-6-2026-09-01:house",
	} {
		compare.True(t, openai.HasFixedSampling(model), "%s: got a model that takes a temperature", model)
		lacks := openai.LackedParameters(llm.ProviderOpenAI, model)
		compare.Equal(t, model+" lacks stop", !strings.HasPrefix(model, "o1-") && model != "o1", slices.Contains(lacks, llm.Stop))
	}
	for _, model := range []string{
		"gpt-3.5-turbo", "gpt-35-turbo", "gpt-4", "gpt-4o", "gpt-4.1", "gpt-45", "gpt-5-chat", "gpt-5-chat-latest", "gpt-5.3-chat-latest", "gpt-6-chat-latest",
		"gpt-oss-120b", "gpt-500b", "gpt-image-2", "chatgpt-4o-latest", "omni", "opus", "", "my-gpt-6",
	} {
		compare.True(t, !openai.HasFixedSampling(model), "%s: got a model that refuses a temperature", model)
	}
	for _, model := range []string{"gpt-5-chat-latest", "gpt-6-chat-latest"} {
		compare.Equal(t, model+" lacks", []llm.Parameter{llm.ReasoningEffort}, openai.LackedParameters(llm.ProviderOpenAI, model))
	}
}
