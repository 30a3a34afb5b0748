package llm_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core/llm"
	"bobbin/tests/compare"
)

func TestDetect(t *testing.T) {
	t.Parallel()
	const secret = "sk-secret"
	silent := errors.New("connection refused")
	for name, c := range map[string]struct {
		configured string
		env        []string
		models     []string
		err        error
		want       string // the start-up line
	}{
		"configured wins":  {"fast", []string{"OPENAI_API_KEY=" + secret}, []string{"x"}, nil, "model fast: default_llm is configured"},
		"OpenAI":           {"", []string{"OPENAI_API_KEY=" + secret, "GEMINI_API_KEY=" + secret}, []string{"x"}, nil, "model gpt-4o-mini: OPENAI_API_KEY is set"},
		"OpenAI elsewhere": {"", []string{"OPENAI_API_KEY=" + secret, "OPENAI_BASE_URL=https://u:" + secret + "@proxy.test/v1?key=" + secret}, nil, silent, "model gpt-4o-mini: OPENAI_API_KEY is set, at https://proxy.test/v1"},
		"OpenAI nowhere":   {"", []string{"OPENAI_API_KEY=" + secret, "OPENAI_BASE_URL=" + secret}, nil, silent, "model gpt-4o-mini: OPENAI_API_KEY is set, at an address that cannot be read"},
		"Anthropic":        {"", []string{"ANTHROPIC_API_KEY=" + secret, "GEMINI_API_KEY=" + secret}, []string{"x"}, nil, "model claude-haiku-5-5: ANTHROPIC_API_KEY is set"},
		"OpenAI first":     {"", []string{"ANTHROPIC_API_KEY=" + secret, "OPENAI_API_KEY=" + secret}, nil, silent, "model gpt-4o-mini: OPENAI_API_KEY is set"},
		"Anthropic proxy":  {"", []string{"ANTHROPIC_API_KEY=" + secret, "ANTHROPIC_BASE_URL=https://u:" + secret + "@proxy.test"}, nil, silent, "model claude-haiku-5-5: ANTHROPIC_API_KEY is set, at https://proxy.test"},
		"Gemini":           {"", []string{"GEMINI_API_KEY=" + secret}, []string{"x"}, nil, "model gemini-flash-latest: GEMINI_API_KEY is set"},
		"Ollama":           {"", nil, []string{"nomic-embed-text:latest", "llama3.2:latest", "qwen3"}, nil, "model ollama/llama3.2:latest: Ollama runs at http://127.0.0.1:11434"},
		"Ollama elsewhere": {"", []string{"OLLAMA_HOST=gpu:1234"}, []string{"qwen3"}, nil, "model ollama/qwen3: Ollama runs at http://gpu:1234"},
		"only embeddings":  {"", nil, []string{"nomic-embed-text", "all-minilm", "bge-m3", ""}, nil, "model demo: none of OPENAI_API_KEY, ANTHROPIC_API_KEY and GEMINI_API_KEY is set, and the Ollama at http://127.0.0.1:11434 has no chat model"},
		"no models":        {"", nil, nil, nil, "model demo: none of OPENAI_API_KEY, ANTHROPIC_API_KEY and GEMINI_API_KEY is set, and the Ollama at http://127.0.0.1:11434 has no chat model"},
		"nothing":          {"", nil, nil, silent, "model demo: none of OPENAI_API_KEY, ANTHROPIC_API_KEY and GEMINI_API_KEY is set, and no Ollama answers at http://127.0.0.1:11434"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := llm.Detect(t.Context(), c.configured, variables(c.env...), func(context.Context, string) ([]string, error) {
				return c.models, c.err
			})
			compare.Equal(t, "got", c.want, got.String())
			compare.True(t, !strings.Contains(got.String(), secret), "got %q, want it without the key", got)
		})
	}
}

func TestDetectWaitsNoLongerThan300Milliseconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		got := llm.Detect(t.Context(), "", variables(), func(ctx context.Context, _ string) ([]string, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		took := time.Since(start)
		compare.Equal(t, "time, model", []any{300 * time.Millisecond, "demo"}, []any{took, got.Model})
	})
}

func TestDetectReadsOllamaHost(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"":                       "http://127.0.0.1:11434",
		"gpu":                    "http://gpu:11434",
		"gpu:1":                  "http://gpu:1",
		":1":                     "http://127.0.0.1:1",
		"0.0.0.0":                "http://127.0.0.1:11434",
		"0.0.0.0:1":              "http://127.0.0.1:1",
		"[::]:1":                 "http://127.0.0.1:1",
		"::1":                    "http://[::1]:11434",
		"[::1]":                  "http://[::1]:11434",
		"http://gpu:1/":          "http://gpu:1",
		"http://gpu":             "http://gpu:11434",
		"https://ollama.test":    "https://ollama.test:443",
		"https://ollama.test/ol": "https://ollama.test:443",
	} {
		var asked string
		llm.Detect(t.Context(), "", variables("OLLAMA_HOST="+value), func(_ context.Context, url string) ([]string, error) {
			asked = url
			return nil, nil
		})
		compare.Equal(t, "OLLAMA_HOST="+value+": asked", want, asked)
	}
}

func TestCheapModel(t *testing.T) {
	t.Parallel()
	for provider, want := range map[string]string{
		"openai": llm.DefaultOpenAIModel, "anthropic": llm.DefaultAnthropicModel, "gemini": llm.DefaultGeminiModel, "ollama": "", "demo": "",
	} {
		compare.Equal(t, provider, want, llm.CheapModel(provider))
	}
}
