package wire_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/langchain"
	"bobbin/app/core/tokens"
	"bobbin/app/wire"
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
	}}, wire.ModelOptions{Counter: counter})
	if err != nil {
		t.Fatal(err)
	}
	m, err := models.Get("")
	if err != nil {
		t.Fatal(err)
	}
	res, err := llm.Collect(m.Stream(t.Context(), llm.Request{Messages: []llm.Message{{Role: core.RoleUser, Content: "Hi"}}}), nil)
	if err != nil || res.Text != "Hello" || m.Info().Provider != "langchain/ollama" {
		t.Errorf("got %q of %s, %v", res.Text, m.Info().Provider, err)
	}
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
		}}, wire.ModelOptions{Counter: tokens.NewCounter()})
		if err != nil {
			t.Fatal(err)
		}
		m, err := models.Get("")
		if err != nil {
			t.Fatal(err)
		}
		_, err = llm.Collect(m.Stream(t.Context(), llm.Request{Messages: []llm.Message{{Role: core.RoleUser, Content: "Hi"}}}), nil)
		if !llm.IsKind(err, llm.KindInvalid) || path != want {
			t.Errorf("%q: got %v from %s, want the refusal of %s", api, err, path, want)
		}
	}
}

// The settings know the same providers of langchaingo as the package that opens them.
func TestLangChainProviders(t *testing.T) {
	named := slices.DeleteFunc(config.Providers(), func(p string) bool { return !strings.HasPrefix(p, langchain.Prefix) })
	if got := langchain.Providers(); !slices.Equal(got, named) {
		t.Errorf("got %q, the settings have %q", got, named)
	}
}
