package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
)

// Runs with instructions, with others and without alternate: no thought is refused or left out, and
// each prompt has the instructions of its run.
func TestThoughtsStayValidBehindInstructions(t *testing.T) {
	t.Parallel()
	for name, start := range strictProviders {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t, &provider.Strict{Account: "account", Secret: "secret", AlwaysThinks: true})
			c.model.Name, c.model.ContextWindow, c.model.MaxOutputTokens = "house", 200_000, 8_192
			h := apptest.New(t, dbtest.MigratedSQLiteURL(t), func(cfg *config.Config) {
				cfg.Models = append(cfg.Models, c.model)
				cfg.DefaultLLM = "house"
			})
			id := apptest.NewSession(t, h.Client, core.Session{Timezone: "Europe/Vienna"})
			const turns = 12
			w := apptest.NewWriter(5)
			for n := range turns {
				m := core.SendMessage{SessionID: id, Content: strings.ReplaceAll(w.Question(n+1), "tool", "thing")}
				if n%3 > 0 {
					m.Options = &core.RunOptions{Instructions: fmt.Sprintf("Answer in %d words.", n%3*10)}
				}
				apptest.SendMessage(t, h.Client, m)
			}
			got := c.thoughts()
			if got.Dropped > 0 || got.Refused > 0 || got.Verified != turns*(turns-1)/2 {
				t.Errorf("got %+v, want all thoughts of all prompts verified", got)
			}
			prompt, err := h.Prompt(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			appended := 0
			for _, m := range prompt.Messages {
				if m.Placement == core.PlaceInstructions {
					appended++
				}
			}
			if appended != turns-1 {
				t.Errorf("got %d messages with instructions, want one for each change", appended)
			}
		})
	}
}
