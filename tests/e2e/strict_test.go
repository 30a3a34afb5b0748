package e2e_test

import (
	"testing"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
)

// A model whose name tells nothing refuses thoughts after a summary changed the prompt: once. From
// then on its contract is known, in all sessions and after a restart.
func TestThoughtsAreRefusedOnce(t *testing.T) {
	t.Parallel()
	p := apptest.NewProvider(t, provider.Options{Calls: callsInLoops, Strict: &provider.Strict{Account: "account", Secret: "secret", AlwaysThinks: true}})
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), func(c *config.Config) {
		c.Models = append(c.Models, config.Model{
			Name: "house", Provider: "anthropic", Model: "claude-latest", BaseURL: p.URL, ThinkingBudget: 2_048,
			ContextWindow: 8_192, MaxOutputTokens: 4_096,
		})
		c.DefaultLLM = "house"
	})
	talk := func() core.SessionID {
		id := apptest.NewSession(t, h.Client, ops.NewSession{Timezone: "Europe/Vienna"})
		w := apptest.NewWriter(5)
		for n := 0; n < 20 || session(t, h.Client, id).SummaryCount == 0; n++ {
			apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: w.Question(2 * n)})
		}
		return id
	}
	id := talk()
	if got := p.Thoughts(); got.Refused != 1 || got.Dropped > 0 {
		t.Errorf("got %+v in the first session, want one refusal", got)
	}
	if report, err := client.Call(t.Context(), h, ops.GetContext, ops.InSession{SessionID: id}); err != nil || report.Thoughts == nil || report.Thoughts.Contract != "refuses" {
		t.Errorf("got the thoughts %+v in /context, %v", report.Thoughts, err)
	}
	h.Restart()
	before := p.Thoughts().Verified
	talk()
	if got := p.Thoughts(); got.Refused != 1 || got.Dropped > 0 || got.Verified == before {
		t.Errorf("got %+v after a restart and another session, want no other refusal", got)
	}
}
