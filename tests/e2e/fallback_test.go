package e2e_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
)

// claude is a provider of Anthropic's dialect that thinks, calls the calculator
// and then answers. It keeps the bodies of its requests.
type claude struct {
	url string
	mu  sync.Mutex
	got []string // guarded by mu
}

func newClaude(t *testing.T) *claude {
	t.Helper()
	c := &claude{}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.URL.Path != "/v1/messages" {
			t.Errorf("claude: got %s, %v", r.URL.Path, err)
		}
		c.mu.Lock()
		c.got = append(c.got, string(body))
		c.mu.Unlock()
		content := `{"type":"text","text":"It is 42."}`
		stop := "end_turn"
		if !strings.Contains(string(body), "tool_result") {
			content = `{"type":"thinking","thinking":"I should calculate.","signature":"c2lnbmVk"},` +
				`{"type":"tool_use","id":"toolu_1","name":"calculator","input":{"expression": "6 * 7"}}`
			stop = "tool_use"
		}
		fmt.Fprintf(w, `{"type":"message","content":[%s],"stop_reason":%q,"usage":{"input_tokens":100,"cache_read_input_tokens":50,"output_tokens":10}}`, content, stop)
	}))
	t.Cleanup(web.Close)
	c.url = web.URL
	return c
}

func (c *claude) requests() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.got...)
}

// withFallback gives the default agent a fallback model.
func withFallback(t *testing.T, models string) apptest.Setting {
	return func(c *config.Config) {
		if err := os.MkdirAll(c.AgentsDir, 0o755); err != nil {
			t.Fatal(err)
		}
		file := "name: assistant\nsystem_prompt: Be kind.\ntools: [calculator]\nfallback_models: " + models + "\n"
		if err := os.WriteFile(filepath.Join(c.AgentsDir, "assistant.yaml"), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// An agent's fallback answers while its own model is limited, over another
// provider's dialect: the tool loop goes on, thoughts go back with their
// signature, the messages say who wrote them, the watchers are told, all calls are
// in the books. When the model is back it answers again.
func TestFallbackModel(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURLNightly(t, func(t *testing.T, url string) {
		var mu sync.Mutex
		limited := true
		own := apptest.NewProvider(t, provider.Options{Fault: func(w http.ResponseWriter, _ provider.Asked) bool {
			mu.Lock()
			defer mu.Unlock()
			if limited {
				w.Header().Set("Retry-After", "7200") // longer than anybody waits
				http.Error(w, `{"error":{"message":"slow down","code":"rate_limit_exceeded"}}`, http.StatusTooManyRequests)
			}
			return limited
		}})
		other := newClaude(t)
		h := apptest.New(t, url, apptest.WithModel("own", 32_768, 2048, own), func(c *config.Config) {
			c.Models = append(c.Models, config.Model{Name: "spare", Provider: "anthropic", Model: "claude-sonnet-4-5", BaseURL: other.url, ThinkingBudget: 2048})
		}, withFallback(t, "[spare]"))
		id := apptest.NewSession(t, h.Client, core.Session{})
		var warnings []string
		got := apptest.ReadTurn(t, func(yield func(core.Event, error) bool) {
			for e, err := range h.Send(t.Context(), core.SendMessage{SessionID: id, Content: "What is 6 * 7?"}) {
				if err == nil && e.Type == core.EventContextWarning {
					warnings = append(warnings, apptest.EventData[core.ContextData](t, e).Reason)
				}
				if !yield(e, err) {
					return
				}
			}
		})
		if got.Run.Status != core.RunSucceeded || got.Answer.Content != "It is 42." || got.Answer.Model != "spare" {
			t.Fatalf("got %q of %s, run %s %+v", got.Answer.Content, got.Answer.Model, got.Run.Status, got.Run.Error)
		}
		const told = "The model own cannot answer (rate_limit); spare takes its place for this answer."
		if diff := cmp.Diff([]string{told, told}, warnings); diff != "" {
			t.Errorf("warnings (-want +got):\n%s", diff)
		}
		if requests := other.requests(); len(requests) != 2 ||
			!strings.Contains(requests[1], `{"signature":"c2lnbmVk","thinking":"I should calculate.","type":"thinking"},{"id":"toolu_1","input":{"expression": "6 * 7"}`) {
			t.Errorf("got the requests %s, want the thoughts sent back with the call", requests)
		}
		run, err := h.Run(t.Context(), got.Run.ID)
		if err != nil {
			t.Fatal(err)
		}
		if want := (core.Usage{InputTokens: 300, OutputTokens: 20, CacheReadTokens: 100}); run.Usage != want {
			t.Errorf("got usage %+v, want %+v", run.Usage, want)
		}
		mu.Lock()
		limited = false
		mu.Unlock()
		if got := apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "Thanks."}); got.Answer.Model != "own" {
			t.Errorf("got the answer of %s, want that of the model that is back", got.Answer.Model)
		}
	})
}
