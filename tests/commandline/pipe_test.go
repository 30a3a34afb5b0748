package commandline_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"bobbin/tests/compare"
)

// hostile is an answer with everything that a terminal obeys or that turns it round.
const hostile = "hi \x1b]52;c;ZXZpbA==\x07\x1b[2J \u009b31mC1 \u202egnp.exe\u202c \u2066x\u2069 done"

// newHostileModel returns the address of a model that answers with it after each of before.
func newHostileModel(t *testing.T, before ...func()) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for _, do := range before {
			do()
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, choice := range []map[string]any{
			{"index": 0, "delta": map[string]string{"role": "assistant", "content": hostile}},
			{"index": 0, "delta": map[string]string{}, "finish_reason": "stop"},
		} {
			raw, _ := json.Marshal(map[string]any{"id": "1", "object": "chat.completion.chunk", "model": "m", "choices": []any{choice}}) // plain data
			fmt.Fprintf(w, "data: %s\n\n", raw)
		}
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// newHostileShell returns a shell whose model answers with what terminals obey.
func newHostileShell(t *testing.T, before ...func()) shell {
	t.Helper()
	s := newShell(t, "TERM=xterm", "BOBBIN_CONFIG=bobbin.yaml")
	s.write(t, "bobbin.yaml", fmt.Sprintf("default_llm: m\ntitles: false\nmodels: [{name: m, provider: openai, base_url: %q}]\n", newHostileModel(t, before...)+"/v1"))
	return s
}

// steering returns the characters in the text that a terminal obeys.
func steering(text string) []rune {
	var found []rune
	for _, r := range text {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
			found = append(found, r)
		}
	}
	return found
}

// Nothing of a model or of a user steers the terminal at the end of a pipe, whatever
// command prints it.
func TestPipesAreCleaned(t *testing.T) {
	t.Parallel()
	s := newHostileShell(t)
	s.serve(t, "--addr", "127.0.0.1:0") // without it each command starts one
	said := s.run(t, "say "+hostile+"\n", "chat")
	compare.True(t, said.code == 0 && strings.Contains(said.out, "gnp.exe") && len(steering(said.out)) == 0, "chat: got %d, %q, %s", said.code, said.out, said.errs)
	id := regexp.MustCompile(`(?m)^[0-9a-f-]{36}`).FindString(s.run(t, "", "sessions", "list").out)
	if shown := s.run(t, "", "sessions", "show", id); shown.code != 0 || id == "" {
		t.Fatalf("sessions show %s: %+v", id, shown)
	}
	s.run(t, "", "api", "createMemory", "content="+hostile, "user_id=evil\nuser"+hostile)
	for _, args := range [][]string{
		{"sessions", "list"}, {"sessions", "list", "--json"}, {"sessions", "show", id}, {"sessions", "show", id, "--json"},
		{"sessions", "export", id, "--format", "markdown"}, {"search", "done"}, {"search", "done", "--json"}, {"context", id}, {"api", "getPrompt", "id=" + id},
		{"api", hostile}, {"api", "getPrompt", hostile}, {"runs", "list", id}, {"api", "searchMemories", "query=done"}, {"api", "listMemories"},
		{"usage", "--by", "user"}, {"audit"}, {"sessions", "show", hostile}, {hostile}, {"chat", "--" + hostile},
	} {
		got := s.run(t, "", args...)
		if found := steering(got.out + got.errs); len(found) > 0 {
			t.Errorf("%q: %U in %q", args, found, got.out+got.errs)
		}
	}
}

// What the command line says to the server of this machine goes to no proxy, whatever
// address the server listens on, and the server announces an address of this machine.
func TestCommandLineUsesNoProxy(t *testing.T) {
	t.Parallel()
	hosts := map[string]string{"0.0.0.0:0": "http://127.0.0.1:", ":0": "http://127.0.0.1:", "127.0.0.1:0": "http://127.0.0.1:"}
	if l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "[::1]:0"); err == nil { // not every machine has IPv6
		_ = l.Close()
		hosts["[::]:0"] = "http://[::1]:"
	}
	for addr, host := range hosts {
		t.Run(addr, func(t *testing.T) {
			t.Parallel()
			proxy := newStranger(t)
			s := newShell(t, "BOBBIN_DEFAULT_LLM=demo", "BOBBIN_AUTH_KEYS=web:sha256:"+strings.Repeat("0a", 32),
				"http_proxy="+proxy.URL, "HTTP_PROXY="+proxy.URL, "https_proxy="+proxy.URL, "NO_PROXY=")
			if said := s.serve(t, "--addr", addr); !strings.HasPrefix(said.URL, host) {
				t.Errorf("the server announces %s, want %s", said.URL, host)
			}
			compare.Equal(t, "sessions list", 0, s.run(t, "", "sessions", "list").code)
			compare.Contains(t, "the start", "api       "+host, s.read(t, "serve.log"))
			compare.Equal(t, "connections to the proxy", 0, proxy.requests.Load())
		})
	}
}
