package e2e_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
)

// withKnownModel adds a model whose window its name tells: 128,000 tokens.
func withKnownModel(p *provider.Server, dialect string, window int) apptest.Setting {
	names := map[string]string{"openai": "gpt-4o", "anthropic": "claude-3-5-sonnet"}
	return func(c *config.Config) {
		c.Models = append(c.Models, config.Model{
			Name: "house", Model: names[dialect], Provider: dialect, BaseURL: p.URL, MaxOutputTokens: 2048, ContextWindow: window,
		})
		c.DefaultLLM = "house"
	}
}

// A prompt that the provider refuses as too long is no failure. It is told
// in the run and by an event, and the window that the provider named holds for the
// model: in other sessions, and after a restart.
func TestRefusedAsTooLong(t *testing.T) {
	t.Parallel()
	for _, dialect := range []string{"openai", "anthropic"} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			p := apptest.NewProvider(t, provider.Options{Window: 8192})
			h := apptest.New(t, dbtest.MigratedSQLiteURL(t), withKnownModel(p, dialect, 0))
			id := apptest.NewSession(t, h.Client, core.Session{})
			if r := contextOf(t, h.Client, id); r.Window < 100_000 || r.WindowFrom != "model" {
				t.Fatalf("got a window of %d by %q, want that of the name", r.Window, r.WindowFrom)
			}
			bringIn(t, h.Client, id, core.ImportLines, history(400))
			got := apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "go on"})
			r := reported(t, h.Client, got.Run.ID)
			if r.Overflows != 1 || r.Window != 8192 || r.WindowFrom != "provider" || r.Used > r.Usable || p.Rejected() != 1 {
				t.Errorf("got %d overflows, window %d by %q, used %d of %d, %d refused: want one, and the provider's window",
					r.Overflows, r.Window, r.WindowFrom, r.Used, r.Usable, p.Rejected())
			}
			if reasons := strings.Join(r.Reasons, "\n"); !strings.Contains(reasons, "house refused a prompt of ") || !strings.Contains(reasons, "its limit is 8192") {
				t.Errorf("got the reasons %q, want the refusal among them", reasons)
			}
			if !slices.Contains(r.Rungs, "summarize") {
				t.Errorf("got the rungs %q, want the summary among them", r.Rungs)
			}
			warned := 0
			for _, e := range got.Events {
				if d, ok := e.Data.(core.ContextData); ok && e.Type == core.EventContextWarning && d.Trigger == "overflow" {
					warned++
					if d.TokensBefore < 8192 || !strings.Contains(d.Reason, "It is made smaller and sent again.") {
						t.Errorf("got the warning %+v, want what happened", d)
					}
				}
			}
			if warned != 1 {
				t.Errorf("got %d warnings, want 1", warned)
			}

			h.Restart() // waits until it is saved
			other := apptest.NewSession(t, h.Client, core.Session{})
			bringIn(t, h.Client, other, core.ImportLines, history(400))
			r = reported(t, h.Client, apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: other, Content: "go on"}).Run.ID)
			if r.Overflows != 0 || p.Rejected() != 1 || r.WindowFrom != "provider" {
				t.Errorf("another session: got %d overflows and %d refused, want the window known", r.Overflows, p.Rejected())
			}
		})
	}
}

// A window that the operator configured holds against what the provider says, except in the session whose
// prompt was refused: not every message there pays a refused prompt.
func TestConfiguredWindowHolds(t *testing.T) {
	t.Parallel()
	p := apptest.NewProvider(t, provider.Options{Window: 8192})
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), withKnownModel(p, "openai", 32_000))
	for n := range 2 {
		id := apptest.NewSession(t, h.Client, core.Session{})
		bringIn(t, h.Client, id, core.ImportLines, history(400))
		r := reported(t, h.Client, apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "go on"}).Run.ID)
		if r.Overflows != 1 || r.WindowFrom != "provider" {
			t.Errorf("run %d: got %d overflows, window %d by %q", n, r.Overflows, r.Window, r.WindowFrom)
		}
		if report, err := h.Client.Context(t.Context(), id); err != nil || report.Window != 8192 || report.WindowFrom != "provider" {
			t.Errorf("after run %d: got a window of %d by %q, %v, want the one that was stated", n, report.Window, report.WindowFrom, err)
		}
		if r := reported(t, h.Client, apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "and on"}).Run.ID); r.Overflows != 0 {
			t.Errorf("run %d: the next message was refused %d times, want none", n, r.Overflows)
		}
	}
}

// A provider that refuses whatever it gets: two smaller prompts are tried, then the run
// fails, and says how often it was refused.
func TestRefusedAgainAndAgain(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	p := apptest.NewProvider(t, provider.Options{Fault: func(w http.ResponseWriter, a provider.Asked) bool {
		if !strings.Contains(a.Question, "refuse") {
			return false
		}
		asked.Add(1)
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":{"message":"Your input exceeds the context window of this model.","code":"context_length_exceeded"}}`)
		return true
	}})
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 32_000, 2048, p),
		apptest.WithAgent("off", "name: off\nsystem_prompt: You never forget.\ncontext: {policy: \"off\"}\n"))
	id := apptest.NewSession(t, h.Client, core.Session{Agent: "off"})
	bringIn(t, h.Client, id, core.ImportLines, history(400))
	got := apptest.ReadTurn(t, h.Send(t.Context(), core.SendMessage{SessionID: id, Content: "refuse me"}))
	if got.Run.Status != core.RunFailed || got.Run.Error == nil || got.Run.Error.Code != "model_context_length" {
		t.Errorf("got the run %s with %+v, want it failed for its length", got.Run.Status, got.Run.Error)
	}
	r := reported(t, h.Client, got.Run.ID)
	if r.Overflows != 3 || asked.Load() != 3 || len(r.Reasons) < 3 {
		t.Errorf("got %d overflows of %d requests, reasons %q, want 3", r.Overflows, asked.Load(), r.Reasons)
	}
	apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: apptest.NewSession(t, h.Client, core.Session{}), Content: "and now?"})
}
