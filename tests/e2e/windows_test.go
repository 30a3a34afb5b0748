package e2e_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
)

// refusals are how servers other than those that tests/provider plays say that a prompt
// is too long, by the name of a model.
func refusals() map[string]struct {
	status int
	body   string
	limit  int // that the words tell; 0 = none
} {
	type refusal = struct {
		status int
		body   string
		limit  int
	}
	return map[string]refusal{
		"ollama":    {http.StatusBadRequest, `{"error":"prompt too long; exceeded max context length by 4217 tokens"}`, 0},
		"llama-cpp": {http.StatusBadRequest, `{"error":{"code":400,"message":"request (9000 tokens) exceeds the available context size (4096 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":4096}}`, 4096},
		"llama-old": {http.StatusInternalServerError, `{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}`, 0},
		"vllm":      {http.StatusBadRequest, `{"object":"error","message":"This model's maximum context length is 4096 tokens. However, your request has 9000 input tokens. Please reduce the length of the input messages.","type":"BadRequestError","param":null,"code":400}`, 4096},
		"sglang":    {http.StatusBadRequest, `{"object":"error","message":"The input (9000 tokens) is longer than the model's context length (4096 tokens).","type":"BadRequestError","code":400}`, 4096},
		"lm-studio": {http.StatusBadRequest, `{"error":"The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length"}`, 0},
	}
}

// Whatever the words in which a server refuses a prompt, it is made smaller
// and sent again, and where the words tell a limit the prompt fits that.
func TestRefusedInOtherWords(t *testing.T) {
	t.Parallel()
	var once sync.Map
	p := apptest.NewProvider(t, provider.Options{Record: true, Fault: func(w http.ResponseWriter, a provider.Asked) bool {
		name, asked := strings.CutPrefix(a.Question, "go on with ")
		r, known := refusals()[name]
		if !asked || !known {
			return false
		}
		if _, before := once.LoadOrStore(name, true); before {
			return false
		}
		w.WriteHeader(r.status)
		fmt.Fprint(w, r.body)
		return true
	}})
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 32_000, 1024, p), func(c *config.Config) {
		for name := range refusals() {
			c.Models = append(c.Models, config.Model{Name: name, Model: "gpt-4o", Provider: "openai", BaseURL: p.URL, MaxOutputTokens: 1024})
		}
	})
	for name, want := range refusals() {
		id := apptest.NewSession(t, h.Client, core.Session{})
		bringIn(t, h.Client, id, core.ImportLines, history(250))
		got := apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Model: name, Content: "go on with " + name})
		r := reported(t, h.Client, got.Run.ID)
		wrong := r.Window != want.limit
		if want.limit == 0 { // the window is supposed to be half of what was refused
			wrong = r.Window < 4000 || r.Window > 6000
		}
		if r.Overflows != 1 || r.WindowFrom != "provider" || wrong || r.Used > r.Usable {
			t.Errorf("%s: got %d overflows, window %d by %q, used %d of %d: want one, and %d by the provider",
				name, r.Overflows, r.Window, r.WindowFrom, r.Used, r.Usable, want.limit)
		}
		i := slices.IndexFunc(got.Events, func(e core.Event) bool { return e.Type == core.EventContextWarning })
		if i < 0 {
			t.Fatalf("%s: no event tells of the refusal", name)
		}
		if d := apptest.EventData[core.ContextData](t, got.Events[i]); d.Trigger != "overflow" || d.TokensBefore <= r.Used {
			t.Errorf("%s: got the warning %+v, then a prompt of %d tokens: want it smaller", name, d, r.Used)
		}
	}
}

// W9: the window of a model that nobody knows is taken to be small,
// which a warning says, with what to set; a conversation stays in it. At Ollama, which
// cuts what is longer without a word, it is smaller still.
func TestUnknownWindow(t *testing.T) {
	t.Parallel()
	for kind, window := range map[string]int{"openai": 8192, "ollama": 4096} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p := apptest.NewProvider(t, provider.Options{Window: window, Overcount: 1.15})
			h := apptest.New(t, dbtest.MigratedSQLiteURL(t), func(c *config.Config) {
				c.Models = []config.Model{{Name: "mine", Model: "acme-7b-instruct", Provider: kind, BaseURL: p.URL}}
				c.DefaultLLM = "mine"
			})
			id := apptest.NewSession(t, h.Client, core.Session{})
			bringIn(t, h.Client, id, core.ImportLines, history(300))
			w := apptest.NewWriter(3)
			for n := range 12 {
				r := reported(t, h.Client, apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: w.Question(n + 1)}).Run.ID)
				if r.Window != window || r.WindowFrom != "default" || r.Overflows != 0 {
					t.Fatalf("turn %d: got a window of %d by %q and %d overflows, want %d by default", n+1, r.Window, r.WindowFrom, r.Overflows, window)
				}
			}
			if p.Rejected() != 0 || session(t, h.Client, id).SummaryCount == 0 {
				t.Errorf("got %d prompts refused, session %+v, want none, and summaries", p.Rejected(), session(t, h.Client, id))
			}
			warning := fmt.Sprintf(`set context_window under models" model=acme-7b-instruct window=%d`, window)
			if got := strings.Count(h.Log.String(), warning); got != 1 {
				t.Errorf("got the warning %d times, want it once: %s", got, h.Log)
			}
		})
	}
}
