package browser_test

import (
	"testing"

	"bobbin/tests/apptest"
)

// The page can be used by everybody: axe finds nothing in any state, and every flow goes by keyboard alone.
func testAccess(t *testing.T, b *bobbin) {
	t.Helper()
	for _, name := range []string{"keyboard", "ime"} {
		t.Run(name, func(t *testing.T) { b.play(t, "a11y", name, nil, nil) })
	}
	table := apptest.NewTable("states that axe finds nothing in, by theme and width")
	t.Run("audit", func(t *testing.T) {
		for _, look := range [][2]string{{"light", "wide"}, {"dark", "wide"}, {"light", "phone"}, {"dark", "phone"}} {
			if (look[0] == "dark" || look[1] == "phone") && !apptest.IsLong() {
				continue // at night
			}
			t.Run(look[0]+"-"+look[1], func(t *testing.T) {
				var got struct{ States int }
				b.play(t, "a11y", "audit", map[string]any{"theme": look[0], "width": look[1]}, &got)
				table.AddRow(look[0], look[1], got.States)
			})
		}
	})
	if !t.Failed() {
		table.Log(t)
	}
}
