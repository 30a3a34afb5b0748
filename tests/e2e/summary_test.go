package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"bobbin/tests/apptest"
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

// line is a message as JSON, as an import takes it.
func line(t testing.TB, m map[string]any) string {
	t.Helper()
	raw := apptest.Must(json.Marshal(m))(t)
	return string(raw) + "\n"
}

// talked is a conversation in which a user says something, a tool is called with a
// command and its result is something; then it goes on for a while.
func talked(t testing.TB, said, command, result string) string {
	t.Helper()
	args := apptest.Must(json.Marshal(map[string]string{"command": command}))(t)
	text := line(t, map[string]any{"role": "user", "content": said}) +
		line(t, map[string]any{"role": "assistant", "content": "I look.", "tool_calls": []any{map[string]any{
			"id": "c1", "type": "function", "function": map[string]any{"name": "shell", "arguments": string(args)}}}}) +
		line(t, map[string]any{"role": "tool", "tool_call_id": "c1", "name": "shell", "content": result}) +
		line(t, map[string]any{"role": "assistant", "content": "It is done."})
	return text + history(12)
}
