package e2e_test

import (
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
)

// Until a compaction a conversation with a provider that binds thoughts to their prefix loses none of
// those that go back.
func TestThoughtsStayValid(t *testing.T) {
	t.Parallel()
	p := apptest.NewProvider(t, provider.Options{Strict: &provider.Strict{Account: "account", Secret: "secret"}})
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), func(c *config.Config) {
		c.Models = append(c.Models, config.Model{
			Name: "house", Provider: "anthropic", Model: "claude-opus-5-5", BaseURL: p.URL, ThinkingBudget: 2_048,
			ContextWindow: 200_000, MaxOutputTokens: 8_192, Slots: apptest.ManySlots,
		})
		c.DefaultLLM = "house"
	})
	id := apptest.NewSession(t, h.Client, core.Session{Timezone: "Europe/Vienna", Instructions: "Be brief."})
	w := apptest.NewWriter(5)
	for n := range 20 {
		apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: w.Question(n + 1)})
	}
	if got := p.Thoughts(); got.Verified == 0 || got.Dropped > 0 || got.Refused > 0 {
		t.Errorf("got %+v, want all thoughts that go back verified", got)
	}
}
