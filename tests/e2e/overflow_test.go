package e2e_test

import (
	"slices"
	"strings"
	"testing"

	"bobbin/app/api/ops"
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
			id := apptest.NewSession(t, h.Client, ops.NewSession{})
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
			other := apptest.NewSession(t, h.Client, ops.NewSession{})
			bringIn(t, h.Client, other, core.ImportLines, history(400))
			r = reported(t, h.Client, apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: other, Content: "go on"}).Run.ID)
			if r.Overflows != 0 || p.Rejected() != 1 || r.WindowFrom != "provider" {
				t.Errorf("another session: got %d overflows and %d refused, want the window known", r.Overflows, p.Rejected())
			}
		})
	}
}
