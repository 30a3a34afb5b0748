package browser_test

import (
	"testing"

	"bobbin/tests/apptest"
)

// Hostile text in any place of the page runs nothing and asks no other origin.
func testHostileText(t *testing.T, b *bobbin) {
	t.Helper()
	table := apptest.NewTable("hostile texts in each place, of which none ran or asked another origin for anything")
	for _, name := range []string{"watch", "thread", "names", "summary", "shapes", "long"} {
		t.Run(name, func(t *testing.T) {
			var got struct{ Payloads int }
			b.play(t, "xss", name, map[string]any{"payloads": apptest.ChooseSize(40, 300)}, &got)
			table.AddRow(name, got.Payloads)
		})
	}
	if !t.Failed() {
		table.Log(t)
	}
}
