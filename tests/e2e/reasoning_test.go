package e2e_test

import (
	"math"
	"slices"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
)

// Over the Responses API, with a model that binds its reasoning to the prompt, every answer's reasoning goes back, in order. The provider does not
// count it in its usage, and the calibration does not take that for a difference in counting.
func TestReasoningGoesBackUncounted(t *testing.T) {
	t.Parallel()
	ours, err := provider.Cl100k()
	if err != nil {
		t.Fatal(err)
	}
	p := apptest.NewProvider(t, provider.Options{
		Count: func(r provider.Received) int { return provider.ByTheBook(r, ours) }, Record: true, Reasoning: 3_000,
	})
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 64_000, 2048, p), apptest.WithResponses(), func(c *config.Config) { c.Models[0].PrefixContract = "drops" })
	id := apptest.NewSession(t, h.Client, core.Session{})
	var last core.CalibrationView
	for range 8 {
		turn := apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "Work it out with a tool."})
		last = reported(t, h.Client, turn.Run.ID).Calibration
	}
	got := p.Received()
	if n := len(got); n != 16 || len(got[n-1].Reasoning) != n-1 || slices.Contains(got[n-1].Reasoning, "") {
		t.Errorf("got %d calls, the last with %d items of reasoning, want 16 and 15", n, len(got[n-1].Reasoning))
	}
	if !last.Measured || math.Abs(last.Factor-1) > 0.05 {
		t.Errorf("got %+v, want a factor of 1", last)
	}
}
