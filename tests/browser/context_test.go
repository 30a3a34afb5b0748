package browser_test

import (
	"testing"

	"bobbin/tests/apptest"
)

// What the meter, the panel, the line and the chart say is what the API says, after every turn.
func testContext(t *testing.T, b *bobbin) {
	t.Helper()
	b.play(t, "context", "summary", nil, nil)
	var got struct{ Turns, Summaries int }
	b.play(t, "context", "turns", map[string]any{"turns": apptest.ChooseSize(6, 60)}, &got)
	if apptest.IsLong() && got.Summaries < 3 {
		t.Errorf("got %d summaries, want at least 3", got.Summaries)
	}
	if !t.Failed() {
		table := apptest.NewTable("the page against the API")
		table.AddRow("turns", got.Turns)
		table.AddRow("summaries", got.Summaries)
		table.AddRow("differences", 0)
		table.Log(t)
	}
}
