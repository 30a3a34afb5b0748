package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/documents"
	"bobbin/tests/must"
	"bobbin/tests/provider"
)

// truth compares what is said of prompts with what the provider received.
type truth struct {
	*apptest.Bobbin
	t        *testing.T
	text     func(string) int // counts cl100k_base with another library
	provider *provider.Server
	fig      *apptest.Table

	mu   sync.Mutex
	id   core.SessionID // guarded by mu; the session that is asked in
	asks string         // guarded by mu; the question
	seen int            // guarded by mu; requests that were compared
	what string         // guarded by mu; the situation
}

// sectionsOf splits a request as it came over the wire, and counts each section by
// the rules of B8.
func (tr *truth) sectionsOf(r provider.Received, question string) map[string]int {
	out := map[string]int{"system": 3 + 4}
	joined, before := "", 0
	for i, block := range tr.blocks(r) {
		if i > 0 {
			joined += "\n\n"
		}
		joined += block
		size := tr.text(joined)
		out[sectionOf(block)] += size - before
		before = size
	}
	for _, tool := range r.Tools {
		out["tools"] += 8 + tr.text(tool.Name) + tr.text(tool.Description) + tr.text(string(tool.Parameters))
	}
	run := 0 // where the question stands
	for i, m := range r.Messages {
		if m.Role == "user" && strings.HasPrefix(m.Text, question) {
			run = i
		}
	}
	for i, m := range r.Messages {
		section := "tail"
		if i >= run {
			section = "run"
		}
		out[section] += provider.MessageByTheBook(m, tr.text)
	}
	return out
}

// What begins and ends the blocks of the system text besides the agent's own.
const (
	summaryBegins, summaryEnds = "Summary of earlier conversation:\n<conversation_summary>", "The messages are kept word for word.]"
	pinnedBegins, pinnedEnds   = "Messages that the user pinned, quoted", "</pinned>"
)

func sectionOf(block string) string {
	switch {
	case strings.HasPrefix(block, summaryBegins):
		return "summary"
	case strings.HasPrefix(block, pinnedBegins):
		return "pinned"
	default:
		return "system"
	}
}

// blocks returns the system's blocks; where they came joined into one text they are
// cut out of it.
func (tr *truth) blocks(r provider.Received) []string {
	if len(r.System) != 1 {
		return r.System
	}
	var out []string
	rest := "\n\n" + r.System[0]
	for _, b := range [][2]string{{summaryBegins, summaryEnds}, {pinnedBegins, pinnedEnds}} {
		from := strings.Index(rest, "\n\n"+b[0])
		if from < 0 {
			continue
		}
		to := from + strings.LastIndex(rest[from:], b[1]) + len(b[1])
		out = append(out, rest[:from], rest[from:to])
		rest = rest[to:]
	}
	out = append(out, rest)
	for i, b := range out {
		out[i] = strings.TrimPrefix(b, "\n\n")
	}
	return slices.DeleteFunc(out, func(b string) bool { return b == "" })
}

// at is provider.Options.At: while the provider answers, /context says what it got.
func (tr *truth) at(p provider.Point, _ provider.Asked) {
	if p != provider.PointStream && p != provider.PointTool {
		return
	}
	all := tr.provider.Received()
	tr.mu.Lock()
	id, question, what := tr.id, tr.asks, tr.what
	tr.mu.Unlock()
	if id == "" {
		return // not measured yet
	}
	report, err := client.Call(context.WithoutCancel(tr.t.Context()), tr, ops.GetContext, ops.InSession{SessionID: id})
	if err != nil {
		tr.t.Errorf("%s: %v", what, err)
		return
	}
	tr.compare(what+", asked meanwhile", report, all[len(all)-1], question)
	tr.mu.Lock()
	tr.seen++
	tr.mu.Unlock()
}

// compare holds a report against a request, section by section.
func (tr *truth) compare(what string, r core.ContextReport, got provider.Received, question string) {
	tr.t.Helper()
	want, used := tr.sectionsOf(got, question), 0
	for _, s := range r.Sections {
		if s.Name == "reserve" || s.Name == "free" {
			continue
		}
		used += s.Tokens
		compare.Equal(tr.t, what+": reported of "+s.Name+", and received", want[s.Name], s.Tokens)
	}
	if r.Used != used || r.Used != got.Tokens || r.Planned < r.Used || r.Used+r.Free > r.Usable && r.Free > 0 {
		tr.t.Errorf("%s: used %d (planned %d, free %d), the sections have %d, the provider counted %d", what, r.Used, r.Planned, r.Free, used, got.Tokens)
	}
	if r.Calibration.Factor != 1 || r.Calibration.Deviation != 0 || !r.Calibration.Measured {
		tr.t.Errorf("%s: got the calibration %+v, want exactly 1: the same texts were counted", what, r.Calibration)
	}
}

// ask asks in a session and holds each request against all that is said of it: while
// it is answered, and in the run.
func (tr *truth) ask(what string, id core.SessionID, question string, parts ...core.Part) core.ContextReport {
	tr.t.Helper()
	tr.mu.Lock()
	tr.id, tr.asks, tr.what, tr.seen = id, core.Clip(question, 40), what, 0
	tr.mu.Unlock()
	before := len(tr.provider.Received())
	got := apptest.SendMessage(tr.t, tr.Client, core.SendMessage{SessionID: id, Content: question, Parts: parts})
	all := tr.provider.Received()
	last := all[len(all)-1]
	r := reported(tr.t, tr.Client, got.Run.ID)
	tr.compare(what, r, last, tr.asks)
	compare.True(tr.t, tr.seen == len(all)-before && tr.seen != 0, "%s: %d requests were compared of %d", what, tr.seen, len(all)-before)
	received := tr.sectionsOf(last, tr.asks)
	row := []any{what, len(all) - before}
	for _, s := range r.Sections[:6] {
		row = append(row, fmt.Sprintf("%d = %d", s.Tokens, received[s.Name]))
	}
	tr.fig.AddRow(append(row, r.Used, last.Tokens, r.Planned)...)
	return r
}

// The numbers of /context are those of the prompt that the provider
// got, section by section, whatever was done to make it fit.
func TestShowTruth(t *testing.T) {
	t.Parallel()
	for _, dialect := range []string{"openai", "anthropic"} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			text := must.Get(provider.Cl100k())(t)
			tr := &truth{t: t, text: text, fig: apptest.NewTable("Reported = received, in tokens (%s)", dialect)}
			tr.provider = apptest.NewProvider(t, provider.Options{
				Record: true, At: tr.at, Count: func(r provider.Received) int { return provider.ByTheBook(r, text) },
			})
			tr.Bobbin = apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 8192, 2048, tr.provider), func(c *config.Config) {
				c.Models[0].Provider = dialect
			}, apptest.WithAgent("manual", "name: manual\nsystem_prompt: You wait.\ntools: [calculator]\ncontext: {auto_summarize: false}\n"),
				apptest.WithAgent("off", "name: off\nsystem_prompt: You never forget.\ncontext: {policy: \"off\"}\n"))
			tr.fig.AddRow("", "requests", "system", "tools", "summary", "pinned", "tail", "run", "used", "received", "planned")
			tr.run()
			tr.fig.Log(t)
		})
	}
}

func (tr *truth) run() {
	t, w := tr.t, apptest.NewWriter(11)
	id := apptest.NewSession(t, tr.Client, ops.NewSession{})
	for range 5 { // until the model is measured
		apptest.SendMessage(t, tr.Client, core.SendMessage{SessionID: id, Content: w.Sentences(3)})
	}
	tr.ask("plain", id, w.Sentences(3))
	tr.ask("a tool", id, w.Sentences(2)+" Use a tool.")
	tr.ask("Chinese", id, w.Chinese(5))
	csv := upload(t, tr.Client, "data.csv", []byte(strings.Repeat("pump,pressure\n7,3.5\n", 20)))
	pdf := upload(t, tr.Client, "paper.pdf", documents.PDF("The pump in hall three runs at seven bar."))
	png := upload(t, tr.Client, "cat.png", picture(t, 640, 480)) // the model does not see it: it is described
	tr.ask("files", id, "Look at these. "+w.Sentences(1), csv, pdf, png)
	tr.ask("after the files", id, w.Sentences(2))

	pinned := apptest.ListMessages(t, tr.Client, id)[0]
	must.Get(client.Call(t.Context(), tr, ops.PinMessage, ops.Pinned{InMessage: apptest.InMessage(id, pinned.ID), Pinned: new(true)}))(t)
	tr.ask("pinned, in its place", id, w.Sentences(2))
	must.Get(client.Call(t.Context(), tr, ops.SummarizeSession, ops.Summarize{InSession: ops.InSession{SessionID: id}}))(t)
	between := contextOf(t, tr.Client, id)
	r := tr.ask("summary, pinned as a note", id, w.Sentences(2)+" Use a tool.")
	for i, s := range between.Sections[:5] { // all but the run
		compare.Equal(t, "shown between two runs, then", r.Sections[i], s)
	}
	compare.True(t, r.Sections[2].Tokens != 0 && r.Sections[3].Tokens != 0, "got %+v, want a summary and a note", r.Sections)

	masked := apptest.NewSession(t, tr.Client, ops.NewSession{Agent: "manual"})
	bringIn(t, tr.Client, masked, core.ImportLines, rounds(w, 12, 30))
	if c := tr.ask("tool results masked", masked, w.Sentences(2)).Coverage; c.Masked == 0 {
		t.Errorf("got %+v, want results masked", c)
	}
	left := apptest.NewSession(t, tr.Client, ops.NewSession{Agent: "off"})
	bringIn(t, tr.Client, left, core.ImportLines, history(400))
	if c := tr.ask("oldest left out", left, w.Sentences(2)).Coverage; c.LeftOut == 0 {
		t.Errorf("got %+v, want messages left out", c)
	}
	huge := apptest.NewSession(t, tr.Client, ops.NewSession{Agent: "off"})
	if c := tr.ask("a question over the budget", huge, w.Sentences(1000)).Coverage; c.Shortened == 0 {
		t.Errorf("got %+v, want the question shortened", c)
	}
}

// rounds returns JSON lines of n turns with a tool's result of so many sentences.
func rounds(w *apptest.Writer, n, size int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"role":"user","content":"Question %d?"}`+"\n", i)
		fmt.Fprintf(&b, `{"role":"assistant","content":"","tool_calls":[{"id":"call_%d","name":"calculator","arguments":"{\"expression\":  \"%d+1\"}"}]}`+"\n", i, i)
		fmt.Fprintf(&b, `{"role":"tool","tool_call_id":"call_%d","content":%q}`+"\n", i, w.Sentences(size))
		fmt.Fprintf(&b, `{"role":"assistant","content":"Answer %d."}`+"\n", i)
	}
	return b.String()
}
