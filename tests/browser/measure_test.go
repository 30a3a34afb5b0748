package browser_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
)

// The first load is small, and what has a hash in its name is asked for once.
func testSize(t *testing.T, b *bobbin) {
	t.Helper()
	var got struct {
		Files []struct {
			Name        string
			Sent, Bytes int
		}
		Total      int
		Cold, Warm float64 // milliseconds
	}
	b.play(t, "measure", "size", nil, &got)
	if got.Total > 100_000 || got.Total == 0 {
		t.Errorf("the first load has %d bytes, want less than 100,000", got.Total)
	}
	table := apptest.NewTable("the first load, compressed")
	table.AddRow("file", "sent", "bytes")
	for _, f := range got.Files {
		table.AddRow(f.Name, f.Sent, f.Bytes)
	}
	table.AddRow("together", got.Total)
	table.AddRow("usable, cold", fmt.Sprintf("%.0f ms", got.Cold))
	table.AddRow("usable, warm", fmt.Sprintf("%.0f ms", got.Warm))
	table.Log(t)
}

// A log of 5,000 messages and an answer of 100 tokens a second: the page stays quick and does not grow; nor by
// the 360,000 tokens of an hour, which come in 60 answers faster than by the clock.
func TestShowStream(t *testing.T) {
	t.Parallel()
	if !apptest.IsLong() {
		t.Skip("at night; the short form is in TestPage")
	}
	const pieces = 6000
	answer := strings.Repeat("A paragraph of the answer with `code` and **bold** words in it.\n\n", pieces/14)
	testStream(t, newBobbin(t, setup{
		database: dbtest.MigratedSQLiteURL(t), window: 2_000_000, pieces: pieces, pace: 9800 * time.Microsecond,
		say: func(string) string { return answer }, brisk: "as fast as it goes",
	}))
}

func testStream(t *testing.T, b *bobbin) {
	t.Helper()
	messages := apptest.ChooseSize(300, 5000)
	var got struct {
		Asked, Articles, Long, Frames, Dropped      int
		Seconds, CPU, Clock, Longest, Before, After float64
		Tenths                                      []float64 // of the hour: the heap
	}
	b.play(t, "measure", "stream", map[string]any{"messages": messages, "hour": apptest.ChooseSize(0, 60)}, &got)
	for _, heap := range append(got.Tenths, got.After) {
		if heap-got.Before > 20<<20 {
			t.Errorf("the page has grown by %.1f MB, want at most 20", (heap-got.Before)/(1<<20))
		}
	}
	if apptest.IsLong() && got.Longest > 50 { // CI shares its processors and asserts no time
		t.Errorf("the longest task took %.0f ms of the processor, want at most 50", got.Longest)
	}
	table := apptest.NewTable("a log of %d messages, then an answer", messages)
	table.AddRow("pages asked for at the start", got.Asked)
	table.AddRow("messages in the document", got.Articles)
	table.AddRow("seconds", fmt.Sprintf("%.1f, %.1f of the processor", got.Seconds, got.CPU))
	table.AddRow("longest task", fmt.Sprintf("%.0f ms of the processor, %d over 50 ms; %.0f ms by the clock", got.Longest, got.Long, got.Clock))
	table.AddRow("frames", fmt.Sprintf("%d, %d dropped", got.Frames, got.Dropped))
	table.AddRow("heap", fmt.Sprintf("%.1f MB before, %.1f MB after", got.Before/(1<<20), got.After/(1<<20)))
	for i, heap := range got.Tenths {
		table.AddRow(fmt.Sprintf("heap after %d tokens more", (i+1)*36_000), fmt.Sprintf("%.1f MB", heap/(1<<20)))
	}
	table.Log(t)
}
