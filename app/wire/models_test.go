package wire_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
	"bobbin/app/wire"
	"bobbin/tests/compare"
	"bobbin/tests/must"
	"bobbin/tests/provider"
)

// A provider of langchaingo in the settings answers.
func TestLangChainProvider(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"message":{"role":"assistant","content":"Hello"},"done":true,"prompt_eval_count":7,"eval_count":1}` + "\n"))
	}))
	defer server.Close()
	counter := tokens.NewCounter()
	models, err := wire.OpenModels(t.Context(), config.Config{DefaultLLM: "local", Models: []config.Model{
		{Name: "local", Provider: "langchain/ollama", Model: "llama3.2", BaseURL: server.URL},
	}}, wire.ModelOptions{Counter: counter, Logger: slog.New(slog.DiscardHandler)})
	must.Do(t, err)
	m := must.Get(models.Get(""))(t)
	res := must.Get(llm.Collect(m.Stream(t.Context(), llm.Request{Messages: []llm.Message{{Role: core.RoleUser, Content: "Hi"}}}), nil))(t)
	compare.Equal(t, "text, provider", []any{"Hello", "langchain/ollama"}, []any{res.Text, m.Info().Provider})
}

// A model of OpenAI is called over the API that the settings say.
func TestAPIOfOpenAI(t *testing.T) {
	for api, want := range map[string]string{"": "/chat/completions", "chat": "/chat/completions", "responses": "/responses"} {
		var path string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			path = r.URL.Path
			w.WriteHeader(http.StatusBadRequest)
		}))
		defer server.Close()
		models, err := wire.OpenModels(t.Context(), config.Config{DefaultLLM: "local", Models: []config.Model{
			{Name: "local", Provider: "openai", BaseURL: server.URL, API: api, ContextWindow: 8192},
		}}, wire.ModelOptions{Counter: tokens.NewCounter(), Logger: slog.New(slog.DiscardHandler)})
		must.Do(t, err)
		m, err := models.Get("")
		must.Do(t, err)
		_, err = llm.Collect(m.Stream(t.Context(), llm.Request{Messages: []llm.Message{{Role: core.RoleUser, Content: "Hi"}}}), nil)
		compare.Equal(t, fmt.Sprintf("%q: refused, path", api), []any{true, want}, []any{llm.IsKind(err, llm.KindInvalid), path})
	}
}

// W9: a model that nobody knows has a window of 8,192 and is warned of once; at Ollama
// it has that with which Ollama runs models. A configured window is no news.
func TestUnknownModels(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		model    config.Model
		window   int
		warnings int
	}{
		{config.Model{Name: "mystery", Provider: "openai", BaseURL: "http://127.0.0.1:1/v1"}, 8192, 1},
		{config.Model{Name: "mystery", Provider: "ollama", BaseURL: "http://127.0.0.1:1/v1"}, 4096, 1},
		{config.Model{Name: "mystery", Provider: "openai", BaseURL: "http://127.0.0.1:1/v1", ContextWindow: 50_000}, 50_000, 0},
		{config.Model{Name: "mystery", Model: "gpt-4o", Provider: "openai", BaseURL: "http://127.0.0.1:1/v1"}, 128_000, 0},
	} {
		cfg := config.Default()
		cfg.DefaultLLM, cfg.Models = "demo", []config.Model{tt.model}
		var log bytes.Buffer
		m := must.Get(wire.OpenModels(t.Context(), cfg, wire.ModelOptions{Counter: tokens.NewCounter(), Logger: slog.New(slog.NewTextHandler(&log, nil))}))(t)
		mystery := must.Get(m.Get("mystery"))(t)
		warning := fmt.Sprintf(`assuming a small context window; set context_window under models" model=mystery window=%d`, tt.window)
		if got := strings.Count(log.String(), warning); mystery.Info().Window != tt.window || got != tt.warnings || strings.Count(log.String(), "level=WARN") != got {
			t.Errorf("%+v: got a window of %d and %d warnings, want %d and %d:\n%s", tt.model, mystery.Info().Window, got, tt.window, tt.warnings, &log)
		}
	}
}

// Models of the clouds in the settings answer, with what their environment has: a key, credentials,
// or a token.
func TestCloudProviders(t *testing.T) {
	for name, tt := range map[string]struct {
		model config.Model
		cloud provider.Cloud
		path  string // of the base URL
		env   map[string]string
	}{
		"bedrock, key": {config.Model{Provider: "bedrock", Region: "us-east-1"}, provider.Bedrock{Key: "key"}, "/anthropic",
			map[string]string{"AWS_BEARER_TOKEN_BEDROCK": "key"}},
		"bedrock, signed": {config.Model{Provider: "bedrock"}, provider.Bedrock{Region: "eu-central-1", AccessKeyID: "id", SecretKey: "secret"}, "/anthropic",
			map[string]string{"AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret"}},
		"vertex": {config.Model{Provider: "vertex", Project: "house", Region: "eu", APIKeyEnv: "TOKEN"}, provider.Vertex{Project: "house", Location: "eu", Token: "token"}, "",
			map[string]string{"TOKEN": "token"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("AWS_BEARER_TOKEN_BEDROCK", "")
			for name, value := range tt.env {
				t.Setenv(name, value)
			}
			server := must.Get(provider.New(provider.Options{Cloud: tt.cloud}))(t)
			defer server.Close()
			tt.model.Name, tt.model.Model, tt.model.BaseURL = "cloud", "claude-opus-5-5", server.URL+tt.path
			models := must.Get(wire.OpenModels(t.Context(), config.Config{DefaultLLM: "cloud", Models: []config.Model{tt.model}}, wire.ModelOptions{Counter: tokens.NewCounter(), Logger: slog.New(slog.DiscardHandler)}))(t)
			m := must.Get(models.Get(""))(t)
			res := must.Get(llm.Collect(m.Stream(t.Context(), llm.Request{Messages: []llm.Message{{Role: core.RoleUser, Content: "hi"}}}), nil))(t)
			compare.Equal(t, "text, provider", []any{"answer to: hi", tt.model.Provider}, []any{res.Text, m.Info().Provider})
		})
	}
}
