package browser_test

import (
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/seed"
)

// mockShots are the pictures of the design, where this machine has them.
const mockShots = "../../../shared/design/page/shots"

// TestShowPage plays every flow in each theme and width, and writes a report of what each state looks like beside
// the design's picture of it: make show-page.
func TestShowPage(t *testing.T) {
	if reportFolder() == "" {
		t.Skip("BOBBIN_PAGE_REPORT says where the report goes: make show-page")
	}
	table := apptest.NewTable("flows, by theme and width, and the states in which axe found nothing")
	for _, look := range [][2]string{{"light", "wide"}, {"dark", "wide"}, {"light", "phone"}, {"dark", "phone"}} {
		var row []any
		states := 0
		play := func(b *bobbin, flow, name string, more map[string]any) {
			args := map[string]any{"theme": look[0], "width": look[1]}
			maps.Copy(args, more)
			var got struct{ States int }
			if t.Run(strings.Join([]string{look[0], look[1], name}, "-"), func(t *testing.T) { b.play(t, flow, name, args, &got) }) {
				states += got.States
				row = append(row, name)
			} else {
				row = append(row, "NOT "+name)
			}
		}
		b := newBobbin(t, setup{database: dbtest.MigratedSQLiteURL(t), settings: "webhooks: {allow_private: true}\n"})
		for _, f := range []struct {
			flow  string
			names []string
		}{
			{"chat", chatCases().all()}, {"written", writtenCases().all()}, {"thread", threadCases().all()}, {"runs", runCases().all()},
			{"operation", operationCases().all()}, {"a11y", []string{"audit"}}, {"cuts", []string{"offline"}}, {"context", []string{"summary", "chart"}},
			{"parts", []string{"rows"}}, {"language", []string{"german", "choice"}},
		} {
			for _, name := range f.names {
				play(b, f.flow, name, nil)
			}
		}
		inSlack, link := newBobbinInSlack(t)
		play(inSlack, "slack", "slack", map[string]any{"link": link})
		site, more := newWidget(t)
		for _, name := range widgetCases() {
			play(site, "widget", name, more)
		}
		keyed := newBobbin(t, setup{database: dbtest.MigratedSQLiteURL(t), keys: true})
		play(keyed, "chat", "signin", map[string]any{"key": aliceKey})
		play(keyed, "written", "keyed", map[string]any{"key": aliceKey, "other": robinKey})
		table.AddRow(append([]any{look[0], look[1], states}, row...)...)
	}
	table.Log(t)
	writeReport(t, reportFolder())
}

var reportPage = template.Must(template.New("report").Parse(`<!doctype html><meta charset="utf-8"><title>The page, state by state</title>
<style>body{font:14px system-ui;margin:24px}table{border-collapse:collapse}td{vertical-align:top;padding:8px}img{width:680px;border:1px solid #ccc}.phone img{width:300px}</style>
<h1>The page, state by state</h1><p>Left: the page. Right: the design's picture, if there is one.</p>
<table>{{range .}}<tr class="{{.Width}}"><td>{{.Name}}<br><img loading="lazy" src="shots/{{.Name}}"></td><td>{{if .Mock}}design<br><img loading="lazy" src="mock/{{.Name}}">{{end}}</td></tr>
{{end}}</table>
`))

// writeReport writes index.html beside the pictures, and copies the design's.
func writeReport(t *testing.T, dir string) {
	t.Helper()
	type row struct {
		Name, Width string
		Mock        bool
	}
	var rows []row
	must.Do(t, os.MkdirAll(filepath.Join(dir, "mock"), 0o700))
	for _, shot := range must.Get(filepath.Glob(filepath.Join(dir, "shots", "*")))(t) { // none, if nothing that was played has any
		one := row{Name: filepath.Base(shot), Width: "wide"}
		if strings.Contains(one.Name, "phone") {
			one.Width = "phone"
		}
		if data, err := os.ReadFile(filepath.Join(mockShots, one.Name)); err == nil {
			one.Mock = os.WriteFile(filepath.Join(dir, "mock", one.Name), data, 0o600) == nil
		}
		rows = append(rows, one)
	}
	file := must.Get(os.Create(filepath.Join(dir, "index.html")))(t)
	must.Do(t, reportPage.Execute(file, rows))
	must.Do(t, file.Close())
	t.Logf("%d pictures: %s", len(rows), file.Name())
}

const (
	sampleConversation = "../../app/eval/data/chat.jsonl"
	largestPicture     = 150_000 // bytes
)

// TestShowPictures takes the README's pictures of the page, of a sample conversation: make page-pictures.
func TestShowPictures(t *testing.T) {
	dir := os.Getenv("BOBBIN_PAGE_PICTURES")
	if dir == "" {
		t.Skip("BOBBIN_PAGE_PICTURES says where they go: make page-pictures")
	}
	var questions []string
	answers := map[string]string{}
	for line := range strings.Lines(string(must.Get(os.ReadFile(sampleConversation))(t))) {
		var m struct{ Role, Content string }
		must.Do(t, json.Unmarshal([]byte(line), &m))
		switch {
		case m.Role == "user":
			questions = append(questions, m.Content)
		case m.Role == "assistant" && answers[questions[len(questions)-1]] == "":
			answers[questions[len(questions)-1]] = m.Content
		}
	}
	say := func(question string) string { return answers[question] }
	summarize := func(material string) string {
		summary := "## Facts\n"
		for _, q := range questions {
			if strings.Contains(material, q) {
				summary += "- " + q + "\n"
			}
		}
		return summary
	}
	b := newBobbin(t, setup{database: dbtest.MigratedSQLiteURL(t), window: 5000, bare: true, say: say, summary: summarize})
	b.play(t, "pictures", "readme", map[string]any{"dir": dir, "questions": questions[:36]}, nil)
	for _, name := range []string{"page-chat.png", "page-context.png"} {
		info := must.Get(os.Stat(filepath.Join(dir, name)))(t)
		if info.Size() > largestPicture {
			t.Errorf("%s has %d bytes, want at most %d", name, info.Size(), largestPicture)
		}
	}
}

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
