package browser_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/seed"
)

// The first load is small, and what has a hash in its name is asked for once.
func testSize(t *testing.T, b *bobbin) {
	t.Helper()
	var got struct {
		Totals map[string]int
		Colors int // bytes of what colors code, after it is shown
		Files  []struct {
			Name        string
			Sent, Bytes int
		}
		Cold, Warm float64 // milliseconds
	}
	b.play(t, "measure", "size", nil, &got)
	compare.Equal(t, "openings", apptest.ChooseSize(2, 16), len(got.Totals))
	table := apptest.NewTable("bytes until an opening is shown, compressed")
	for _, name := range slices.Sorted(maps.Keys(got.Totals)) {
		total := got.Totals[name]
		if total > 100_000 || total == 0 {
			t.Errorf("opening: %s takes %d bytes, want less than 100,000", name, total)
		}
		table.AddRow(name, total)
	}
	table.AddRow("colors of code, after it is shown", got.Colors)
	table.Log(t)
	table = apptest.NewTable("the first load of the empty page, compressed")
	table.AddRow("file", "sent", "bytes")
	for _, f := range got.Files {
		table.AddRow(f.Name, f.Sent, f.Bytes)
	}
	table.AddRow("usable, cold", fmt.Sprintf("%.0f ms", got.Cold))
	table.AddRow("usable, warm", fmt.Sprintf("%.0f ms", got.Warm))
	table.Log(t)
	if limit, _ := strconv.ParseFloat(os.Getenv("BOBBIN_PAGE_USABLE"), 64); limit > 0 && got.Cold > limit {
		t.Errorf("the page is usable after %.0f ms, want at most %.0f on a machine that does nothing else", got.Cold, limit)
	}
}

// pieces are those of each answer of the stream: a minute at 100 a second.
const pieces = 6000

// A log of 5,000 messages and an answer of 100 tokens a second: the page stays quick and does not grow; nor by
// the 360,000 tokens of an hour, which come in 60 answers faster than by the clock.
func TestShowStream(t *testing.T) {
	t.Parallel()
	if !apptest.IsLong() {
		t.Skip("at night")
	}
	answer := strings.Repeat("A paragraph of the answer with `code` and **bold** words in it.\n\n", pieces/14)
	testStream(t, newBobbin(t, setup{
		database: dbtest.MigratedSQLiteURL(t), window: 2_000_000, pieces: pieces, pace: 10 * time.Millisecond,
		say: func(string) string { return answer }, brisk: "as fast as it goes",
	}))
}

func testStream(t *testing.T, b *bobbin) {
	t.Helper()
	const messages = 5000
	var got struct {
		Asked, Articles, Long, Frames, Dropped      int
		Seconds, CPU, Clock, Longest, Before, After float64   // of the answer of a minute
		Tenths                                      []float64 // of the hour: the heap
	}
	b.play(t, "measure", "stream", map[string]any{"messages": messages, "hour": 60}, &got)
	for _, heap := range append(got.Tenths, got.After) {
		if heap-got.Before > 20<<20 {
			t.Errorf("the page has grown by %.1f MB, want at most 20", (heap-got.Before)/(1<<20))
		}
	}
	rate := pieces / got.Seconds
	if rate < 95 {
		t.Errorf("the answer came with %.0f tokens a second, want 100: what it costs is not known", rate)
	}
	if got.Longest > 50 {
		t.Errorf("the longest task took %.0f ms of the processor, want at most 50", got.Longest)
	}
	table := apptest.NewTable("a log of %d messages, then an answer", messages)
	table.AddRow("pages asked for at the start", got.Asked)
	table.AddRow("messages in the document", got.Articles)
	table.AddRow("tokens a second", fmt.Sprintf("%.0f", rate))
	table.AddRow("seconds", fmt.Sprintf("%.1f, %.1f of the processor", got.Seconds, got.CPU))
	table.AddRow("longest task", fmt.Sprintf("%.0f ms of the processor, %d over 50 ms; %.0f ms by the clock", got.Longest, got.Long, got.Clock))
	table.AddRow("frames", fmt.Sprintf("%d, %d dropped", got.Frames, got.Dropped))
	table.AddRow("heap", fmt.Sprintf("%.1f MB before, %.1f MB after", got.Before/(1<<20), got.After/(1<<20)))
	for i, heap := range got.Tenths {
		table.AddRow(fmt.Sprintf("heap after %d tokens more", (i+1)*36_000), fmt.Sprintf("%.1f MB", heap/(1<<20)))
	}
	table.Log(t)
}

// Whatever breaks between the page and Bobbin: its text is the stored one, nothing is there twice, and two
// tabs have the same.
func testCuts(t *testing.T, b *bobbin) {
	t.Helper()
	cases{always: []string{"offline"}, night: []string{"tabs", "fixed", "rooms"}}.play(t, b, "cuts")
}

// TestShowCuts has BOBBIN_PAGE_CUTS random cuts, delays and restarts, half of them on SQLite, half on PostgreSQL
// with two replicas, between which the page is led to and fro.
func TestShowCuts(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("BOBBIN_PAGE_CUTS"))
	if n == 0 {
		t.Skip("BOBBIN_PAGE_CUTS says how many: make show-page-cuts")
	}
	table := apptest.NewTable("turns that something broke, and after which both tabs showed what was stored, once")
	t.Cleanup(func() { table.Log(t) }) // the databases run beside each other
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		s, faults := setup{database: url}, []string{"cut", "cut", "away", "late", "restart", "kill"}
		if strings.HasPrefix(url, "postgres") {
			s.replicas, faults = 2, append(faults, "switch", "switch", "takeover")
		}
		b := newBobbin(t, s)
		random := seed.Rand(t, 1)
		for from := 0; from < n/2; from += 25 {
			var steps []map[string]any
			for range min(25, n/2-from) {
				steps = append(steps, map[string]any{"fault": faults[random.IntN(len(faults))], "piece": random.IntN(8)})
			}
			t.Run(fmt.Sprint(from), func(t *testing.T) {
				var got struct{ Turns int }
				b.play(t, "cuts", "drawn", map[string]any{"steps": steps}, &got)
				table.AddRow(t.Name(), got.Turns)
			})
		}
	})
}
