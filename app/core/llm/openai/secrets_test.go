package openai_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"bobbin/app/core/llm/openai"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// key stands for an API key. No error and no log may hold it.
const key = "sk-test-0123456789"

func TestKeyIsNotPrinted(t *testing.T) {
	t.Parallel()
	options := openai.Options{Model: "m", Provider: "openai", APIKey: key, BaseURL: "http://u:" + key + "@provider.test/v1"}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "options", options)
	m := must.Get(openai.New(options))(t)
	for name, got := range map[string]string{
		"%v": fmt.Sprintf("%v", options), "%+v": fmt.Sprintf("%+v", options), "%#v": fmt.Sprintf("%#v", options),
		"a pointer": fmt.Sprintf("%+v", &options), "slog": log.String(), "info": fmt.Sprintf("%+v", m.Info()),
	} {
		if strings.Contains(got, key) || got == "" {
			t.Errorf("%s: got %s, want it without the key", name, got)
		}
	}
	compare.Equal(t, "fmt.Sprint(options)", "{openai model m at http://provider.test/v1}", fmt.Sprint(options))
}

func TestNoKeyNoHeader(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", key)
	t.Setenv("OPENAI_ORGANIZATION", "org-of-another-provider")
	t.Setenv("OPENAI_MODEL", "another-model")
	t.Setenv("OPENAI_BASE_URL", "http://elsewhere.test")
	s := serve(t, stream(text("a"), finishStop, done))
	must.Get(collect(t, s.model(t, openai.Options{Provider: "ollama", Model: "llama"}), ask("hi")))(t)
	r := s.Received()[0]
	compare.Equal(t, "request: want nothing that the environment says", []any{"", "", "/v1/chat/completions"}, []any{r.Header.Get("Authorization"), r.Header.Get("OpenAI-Organization"), r.Path})
	if got := s.Last().JSON()["model"]; got != "llama" {
		t.Errorf("got model %v, want llama", got)
	}
}

// The variables of a proxy are read once in a process, so this needs one of its own.
func TestProxyOfTheEnvironment(t *testing.T) {
	t.Parallel()
	if os.Getenv("TEST_PROXIED") != "" {
		m := must.Get(openai.New(openai.Options{Model: "m", BaseURL: "http://provider.invalid/v1"}))(t)
		compare.Equal(t, "got.Text: want an answer through the proxy", "through the proxy", must.Get(collect(t, m, ask("hi")))(t).Text)
		return
	}
	var asked string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.String()
		say(w, text("through the proxy"), finishStop, done)
	}))
	defer proxy.Close()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestProxyOfTheEnvironment$", "-test.count=1")
	child.Env = append(os.Environ(), "TEST_PROXIED=1", "HTTP_PROXY="+proxy.URL, "NO_PROXY=")
	if out, err := child.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	compare.Equal(t, "the proxy was asked for", "http://provider.invalid/v1/chat/completions", asked)
}

func TestOptionsThatCannotWork(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options openai.Options
		says    string
	}{
		"no model":   {openai.Options{Provider: "openai"}, "no model name"},
		"no address": {openai.Options{Provider: "vllm", Model: "m"}, "needs a base_url"},
		"no scheme":  {openai.Options{Model: "m", BaseURL: "localhost:8000/v1"}, "not an http or https address"},
		"no web":     {openai.Options{Model: "m", BaseURL: "ftp://provider.test/v1"}, "not an http or https address"},
		"no host":    {openai.Options{Model: "m", BaseURL: "http:///v1"}, "not an http or https address"},
		"broken":     {openai.Options{Model: "m", BaseURL: "http://%zz"}, "not an http or https address"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := openai.New(c.options)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
}
