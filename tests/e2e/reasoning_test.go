package e2e_test

import (
	"slices"
	"testing"

	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
)

// Over the Responses API the reasoning of every answer goes back.
func TestReasoningGoesBack(t *testing.T) {
	t.Parallel()
	p := apptest.NewProvider(t, provider.Options{Record: true, Reasoning: 3_000})
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 64_000, 2048, p), apptest.WithResponses())
	id := apptest.NewSession(t, h.Client, core.Session{})
	for range 8 {
		apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "Work it out with a tool."})
	}
	got := p.Received()
	if n := len(got); n != 16 || len(got[n-1].Reasoning) != n-1 || slices.Contains(got[n-1].Reasoning, "") {
		t.Errorf("got %d calls, the last with %d items of reasoning, want 16 and 15", n, len(got[n-1].Reasoning))
	}
}
