package llm_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// Callers choose among what is configured: a name that only looks like a provider's
// model is none, and an error says nothing of what the server has in its environment.
func TestOffer(t *testing.T) {
	t.Parallel()
	r := newRegistry(t, []llm.Entry{
		{Name: "house", Provider: "vllm", BaseURL: "http://box/v1"}, {Name: "locked", Provider: "openai", APIKeyEnv: "SECRET_KEY"},
	}, llm.Defaults{Model: "ollama/llama3.2"})
	offer := r.Offer(func() []string { return []string{"ollama/agents", ""} })
	for _, name := range []string{"", "house", "ollama/llama3.2", "ollama/agents"} {
		if m, err := offer.Get(name); err != nil || m == nil {
			t.Errorf("%q: got %v, %v, want the model", name, m, err)
		}
	}
	listed := map[string]bool{}
	for _, m := range offer.List("") {
		listed[m.Name] = m.Default
	}
	if diff := cmp.Diff(map[string]bool{"house": false, "ollama/llama3.2": true, "ollama/agents": false}, listed); diff != "" {
		t.Errorf("models that can be used, and whether they are the default (-want +got):\n%s", diff)
	}
	if own := offer.List("house"); !own[0].Default || own[0].Provider != "vllm" || own[0].Window == 0 {
		t.Errorf("got %+v first, want the model of that name as the default", own)
	}
	for name, kind := range map[string]error{
		"demo": core.ErrNotFound, "ollama/other": core.ErrNotFound, "gpt-4o": core.ErrNotFound, "openai/o1-pro": core.ErrNotFound,
		"openai/../../../x?y": core.ErrNotFound, "locked": core.ErrInvalid, strings.Repeat("x", 9000): core.ErrNotFound,
	} {
		_, err := offer.Get(name)
		var shown *core.Error
		if !errors.Is(err, kind) || !errors.As(err, &shown) {
			t.Errorf("%.20s: got %v, want a *core.Error of %v", name, err, kind)
			continue
		}
		if strings.Contains(shown.Message, "_KEY") || strings.Contains(shown.Message, "bobbin.yaml") || len(shown.Message) > 400 {
			t.Errorf("%.20s: got %q, want nothing of the server's settings", name, shown.Message)
		}
	}
	if _, err := offer.Get("gpt-4o"); err == nil || !strings.Contains(err.Error(), "house, locked, ollama/agents, ollama/llama3.2") {
		t.Errorf("got %v, want it to name the models", err)
	}
}

// The cause stays for the log.
func TestHideCauseKeepsTheCause(t *testing.T) {
	t.Parallel()
	inner := errors.New("no such host")
	if got := llm.HideCause("m", inner); !errors.Is(got, inner) {
		t.Errorf("got %v, want %v itself", got, inner)
	}
	cause := core.Errorf(core.ErrInvalid, "set OPENAI_API_KEY")
	err := llm.HideCause("", cause)
	if !errors.Is(err, cause) || !errors.Is(err, core.ErrInvalid) || strings.Contains(err.Error(), "OPENAI") || !strings.HasPrefix(err.Error(), "the default model") {
		t.Errorf("got %v, want the default model, and the cause %v inside", err, cause)
	}
}
