package browser_test

import (
	"encoding/json"
	"html/template"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
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
