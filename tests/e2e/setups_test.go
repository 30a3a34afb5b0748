package e2e_test

import (
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
)

// An agent's file changes between turns, and so do a session's own instructions: no thought is
// refused or left out, over a restart too, and each prompt says what is new. A summary ends it.
func TestThoughtsStayValidBehindSystemPrompts(t *testing.T) {
	t.Parallel()
	for name, start := range strictProviders {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t, &provider.Strict{Account: "account", Secret: "secret", AlwaysThinks: true})
			c.model.Name, c.model.ContextWindow, c.model.MaxOutputTokens = "house", 200_000, 8_192
			url := dbtest.MigratedSQLiteURL(t)
			writer := apptest.NewProvider(t, provider.Options{})
			h := apptest.New(t, url, apptest.WithModel("writer", 64_000, 4_096, writer), func(cfg *config.Config) {
				cfg.Models = append(cfg.Models, c.model)
				cfg.DefaultLLM, cfg.ContextSummaryModel = "house", "writer"
				writeAgent(t, *cfg, "helper", "You are the first helper.")
			})
			id := apptest.NewSession(t, h.Client, core.Session{Agent: "helper"})
			w := apptest.NewWriter(5)
			say := func() {
				apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: strings.ReplaceAll(w.Question(1), "tool", "thing")})
			}
			change := func(agent string) {
				writeAgent(t, h.Config, "helper", agent)
				if code, out, errs := reload(t, h.Config); code != 0 {
					t.Fatalf("reload: %d, %s%s", code, out, errs)
				}
			}
			disk := apptest.NewDisk(t, h, url)
			stored := func() (n int) {
				disk.ReadRow(&n, "SELECT COUNT(*) FROM prompt_setups")
				return n
			}
			say()
			say()
			change("You are the second helper.")
			say()
			h.Restart()
			say()
			wishes := "Be brief."
			if _, err := h.UpdateSession(t.Context(), id, core.SessionPatch{Instructions: &wishes}); err != nil {
				t.Fatal(err)
			}
			say()
			say()
			answers := len(apptest.ListMessages(t, h.Client, id)) / 2 // each follows a question or the result of a tool
			if got := c.thoughts(); got.Dropped > 0 || got.Refused > 0 || got.Verified != answers*(answers-1)/2 {
				t.Errorf("got %+v, want all thoughts of all prompts verified", got)
			}
			report := contextOf(t, h.Client, id)
			if k := report.Thoughts; k == nil || k.Kept != answers {
				t.Errorf("got the thoughts %+v, want all kept after a change of the agent", k)
			}
			first, appended := promptTexts(t, h, id)
			if !strings.Contains(first, "the first helper") || strings.Contains(first, "second") || len(appended) != 2 ||
				!strings.Contains(appended[0], "the second helper") || strings.Contains(appended[0], "Be brief.") || !strings.Contains(appended[1], "Be brief.") {
				t.Errorf("got %q and then %q, want the first one and both changes", first, appended)
			}
			if n := stored(); n != 3 {
				t.Errorf("%d system prompts are stored, want 3", n)
			}

			if _, err := h.Summarize(t.Context(), id, ""); err != nil {
				t.Fatal(err)
			}
			say()
			if first, appended := promptTexts(t, h, id); strings.Contains(first, "first helper") || !strings.Contains(first, "Be brief.") || len(appended) > 0 {
				t.Errorf("after a summary: got %q and then %q, want the current one", first, appended)
			}
			if got := c.thoughts(); got.Dropped > 0 || got.Refused > 0 {
				t.Errorf("after a summary: got %+v, want none refused or dropped", got)
			}
		})
	}
}

// promptTexts returns the system prompt of the session's next prompt, and those that are appended.
func promptTexts(t *testing.T, h *apptest.Bobbin, id core.SessionID) (first string, appended []string) {
	t.Helper()
	prompt, err := h.Prompt(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range prompt.Messages {
		if m.Placement == core.PlaceSystem {
			appended = append(appended, m.Content)
		}
	}
	return strings.Join(prompt.System, "\n"), appended
}
