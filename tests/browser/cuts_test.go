package browser_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/seed"
)

// Whatever breaks between the page and Bobbin: its text is the stored one, nothing is there twice, and two
// tabs have the same.
func testCuts(t *testing.T, b *bobbin) {
	t.Helper()
	for _, name := range []string{"tabs", "offline", "fixed"} {
		t.Run(name, func(t *testing.T) { b.play(t, "cuts", name, nil, nil) })
	}
}

// TestShowCuts has BOBBIN_PAGE_CUTS random cuts, delays and restarts on each database.
func TestShowCuts(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("BOBBIN_PAGE_CUTS"))
	if n == 0 {
		t.Skip("BOBBIN_PAGE_CUTS says how many: make show-page-cuts")
	}
	table := apptest.NewTable("turns that something broke, and after which both tabs showed what was stored, once")
	t.Cleanup(func() { table.Log(t) }) // the databases run beside each other
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		b := newBobbin(t, setup{database: url})
		random := seed.Rand(t, 1)
		for from := 0; from < n/2; from += 25 {
			var steps []map[string]any
			for range min(25, n/2-from) {
				kind := []string{"cut", "cut", "away", "late", "restart", "kill"}[random.IntN(6)]
				steps = append(steps, map[string]any{"fault": kind, "piece": random.IntN(8)})
			}
			t.Run(fmt.Sprint(from), func(t *testing.T) {
				var got struct{ Turns int }
				b.play(t, "cuts", "drawn", map[string]any{"steps": steps}, &got)
				table.AddRow(t.Name(), got.Turns)
			})
		}
	})
}
