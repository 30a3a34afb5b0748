package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
)

// summarizer is a provider whose summaries a test writes, and that keeps what it was
// asked for them.
type summarizer struct {
	*provider.Server
	mu    sync.Mutex
	asked []string // guarded by mu
}

// newSummarizer starts a provider that answers requests for a summary with what write
// makes of them.
func newSummarizer(t testing.TB, o provider.Options, write func(material string) string) *summarizer {
	t.Helper()
	s := &summarizer{}
	o.Fault = func(w http.ResponseWriter, a provider.Asked) bool {
		if !a.Summary {
			return false
		}
		s.mu.Lock()
		s.asked = append(s.asked, a.Question)
		s.mu.Unlock()
		text, err := json.Marshal(write(a.Question))
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%s},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", text)
		return true
	}
	s.Server = apptest.NewProvider(t, o)
	return s
}

// materials returns what the summaries were asked of, in order.
func (s *summarizer) materials() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.asked...)
}

// line is a message as JSON, as an import takes it.
func line(t testing.TB, m map[string]any) string {
	t.Helper()
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw) + "\n"
}

// talked is a conversation in which a user says something, a tool is called with a
// command and its result is something; then it goes on for a while.
func talked(t testing.TB, said, command, result string) string {
	t.Helper()
	args, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		t.Fatal(err)
	}
	text := line(t, map[string]any{"role": "user", "content": said}) +
		line(t, map[string]any{"role": "assistant", "content": "I look.", "tool_calls": []any{map[string]any{
			"id": "c1", "type": "function", "function": map[string]any{"name": "shell", "arguments": string(args)}}}}) +
		line(t, map[string]any{"role": "tool", "tool_call_id": "c1", "name": "shell", "content": result}) +
		line(t, map[string]any{"role": "assistant", "content": "It is done."})
	return text + history(12)
}

// secretKey is a key that is none, assembled so that no scanner of repositories stumbles.
const secretKey = "sk" + "-proj-Zk3xQ9vT2mB7nL4pR8sW1yC6dF5gH0jK"

// A key that a user says and a password that a tool prints reach
// neither the summarizer nor the stored summary, by no strategy, even if the summarizer
// writes one itself; in the log they stand word for word (W10).
func TestRow23SecretsStayInTheLog(t *testing.T) {
	t.Parallel()
	const password = "Tr0ub4dor-horse"
	said := "Deploy with the key " + secretKey + ", please."
	result := "DATABASE_URL=postgres://app:" + password + "@db:5432/shop\nDB_PASSWORD=" + password + "\nError: E4711 refused\nexit code 1"
	dbtest.EachMigratedURLNightly(t, func(t *testing.T, url string) {
		p := newSummarizer(t, provider.Options{Window: 8192}, func(string) string {
			return "## Goal\nDeploy the shop; the tool refused with E4711.\n\n## Facts\n- password: " + password + "\n- the key is " + secretKey + ".\n" +
				"- The inventory came after it: item 14 in hall 2, item 28 in hall 4, item 42 in hall 6 and item 56 in hall 8 were checked, and nothing else is known about them."
		})
		settings := []apptest.Setting{apptest.WithModel("house", 8192, 1024, p.Server)}
		for _, strategy := range []string{"llm", "hybrid", "extractive"} {
			settings = append(settings, apptest.WithAgent(strategy, fmt.Sprintf("name: %s\nsystem_prompt: Be brief.\ncontext:\n  strategy: %s\n", strategy, strategy)))
		}
		h := apptest.New(t, url, settings...)
		for _, strategy := range []string{"llm", "hybrid", "extractive"} {
			id := apptest.NewSession(t, h.Client, core.Session{Agent: strategy})
			bringIn(t, h.Client, id, core.ImportLines, talked(t, said, "deploy --token "+secretKey, result))
			made, err := h.Summarize(t.Context(), id, "the key "+secretKey)
			if err != nil || made.Strategy != strategy {
				t.Fatalf("%s: got a summary by %q (%s), %v", strategy, made.Strategy, made.Note, err)
			}
			stored, err := h.Summary(t.Context(), id, made.Version)
			if err != nil {
				t.Fatal(err)
			}
			for what, text := range map[string]string{"the summary": made.Content, "the stored one": stored.Content, "its focus": stored.Focus,
				"the summarizer's requests": strings.Join(p.materials(), "\n")} {
				if strings.Contains(text, secretKey) || strings.Contains(text, password) {
					t.Errorf("%s: got a secret in %s:\n%s", strategy, what, text)
				}
			}
			if !strings.Contains(stored.Content, "[redacted: ") {
				t.Errorf("%s: got %q, want a word of what was taken out", strategy, stored.Content)
			}
			log := wholeLog(t, h.Client, id)
			if log[0].Content != said || log[2].Content != result || !strings.Contains(log[1].ToolCalls[0].Arguments, secretKey) {
				t.Errorf("%s: got %q, %+v, %q in the log, want every word", strategy, log[0].Content, log[1].ToolCalls, log[2].Content)
			}
		}
		if n := len(p.materials()); n != 2 {
			t.Errorf("got %d requests for summaries, want 2", n)
		}
	})
}
