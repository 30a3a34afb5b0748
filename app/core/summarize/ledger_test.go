package summarize_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/summarize"
)

// hybridOver runs strategy hybrid over the model.
func hybridOver(t *testing.T, model llm.Model, req summarize.Request) summarize.Result {
	t.Helper()
	s := summarize.New(summarize.NewHybrid(summarize.NewLLM(model, counter{}, nil)), counter{})
	res, err := s.Summarize(t.Context(), req)
	if err != nil {
		t.Fatalf("summarize: %v", err)
	}
	wantSummary(t, req, res)
	return res
}

// ledgerOf returns the entries of a section of the summary.
func ledgerOf(summary, heading string) []string {
	_, rest, _ := strings.Cut("\n"+summary, "\n## "+heading+"\n")
	rest, _, _ = strings.Cut(rest, "\n\n")
	if rest == "" {
		return nil
	}
	return strings.Split(rest, "\n")
}

// C3: what code extracts, by section.
func TestExtraction(t *testing.T) {
	t.Parallel()
	call := func(name, arguments string) core.Message {
		return assistant(1, "", core.ToolCall{ID: "c", Name: name, Arguments: arguments})
	}
	tests := []struct {
		name     string
		messages []core.Message
		section  string
		want     []string
	}{
		{"paths in prose", []core.Message{user(1, `Read /etc/hosts, ./run.sh and "app/core/llm/model.go:12:5"; then (see README.md) ~/notes/a.txt.`)}, "Files Referenced",
			[]string{"- /etc/hosts [1]", "- ./run.sh [1]", "- app/core/llm/model.go [1]", "- README.md [1]", "- ~/notes/a.txt [1]"}},
		{"Windows", []core.Message{user(1, `In C:\Users\ann\todo.txt and src\main.cpp.`), call("open", `{"path":"C:\\Program Files\\App\\app.exe"}`)}, "Files Referenced",
			[]string{`- C:\Users\ann\todo.txt [1]`, `- src\main.cpp [1]`, `- C:\Program Files\App\app.exe [1]`}},
		{"no paths", []core.Message{user(1, "and/or 1/2 w/o n/a /help 3.14 v1.2.3 e.g. Node.js TCP/IP 2024/01/02 text/html a.b.x")}, "Files Referenced", nil},
		{"once, newest mention", []core.Message{user(1, "a.go b.go"), user(9, "a.go again")}, "Files Referenced", []string{"- b.go [1]", "- a.go [9]"}},
		{"paths in other scripts", []core.Message{user(1, "Öffne /home/jörg/größe.txt und docs/概要.md。")}, "Files Referenced", []string{"- /home/jörg/größe.txt [1]", "- docs/概要.md [1]"}},
		{"prompts", []core.Message{user(1, "I ran\n$ go test ./...\nann@host:~/x$ make all\nPS C:\\x> dir /s\n$ 5 is a price\n> quoted text")}, "Commands Executed",
			[]string{"- go test ./... [1]", "- make all [1]", "- dir /s [1]"}},
		{"shell block", []core.Message{assistant(1, "Run\n```sh\n# first\nnpm install\n./build.sh --all\n```\nand\n```go\nfmt.Println()\n```\n```console\n$ ls\na.txt b.txt\n```")}, "Commands Executed",
			[]string{"- npm install [1]", "- ./build.sh --all [1]", "- ls [1]"}},
		{"arguments and exit code", []core.Message{
			assistant(1, "", core.ToolCall{ID: "a", Name: "shell", Arguments: `{"command":"go vet ./..."}`}, core.ToolCall{ID: "b", Name: "shell", Arguments: `{"cmd":["git","push"]}`}),
			toolResult(2, "a", "vet: bad\nexit status 1"), toolResult(3, "b", `{"stdout":"ok","exit_code":0}`),
		}, "Commands Executed", []string{"- go vet ./... → exit 1 [2]", "- git push → exit 0 [3]"}},
		{"errors in output", []core.Message{toolResult(1, "x", "ok\npanic: runtime error: index out of range\n\tat foo(bar)\n0 errors\nerror TS2304: Cannot find name\nCannot open: ENOENT\nTraceback (most recent call last):\nValueError: bad\nerr := f()\nfatal things happen")}, "Errors Encountered",
			[]string{`- tool said: "panic: runtime error: index out of range" [1]`, `- tool said: "error TS2304: Cannot find name" [1]`, `- tool said: "Cannot open: ENOENT" [1]`, `- tool said: "ValueError: bad" [1]`, `- tool said: "fatal things happen" [1]`}},
		{"errors in prose", []core.Message{user(1, "How do I handle an error or exception? It says\nError: no such table\nand E0308 too.\nThere is no error: it works")}, "Errors Encountered",
			[]string{`- user said: "Error: no such table" [1]`, `- user said: "and E0308 too." [1]`}},
		{"errors in JSON", []core.Message{toolResult(1, "x", `{"error":"quota used up","detail":{"items":[1,null,"x"]}}`), toolResult(2, "x", `{"error":null}`)}, "Errors Encountered",
			[]string{`- tool said: "quota used up" [1]`}},
		{"failed tool", []core.Message{func() core.Message {
			m := toolResult(1, "x", "timed out after 30 s")
			m.Status = core.MessageFailed
			return m
		}()}, "Errors Encountered", []string{`- tool said: "timed out after 30 s" [1]`}},
		{"URLs", []core.Message{user(1, "See https://example.com/a?b=c#d, (http://en.wikipedia.org/wiki/Go_(game)) and <ftp://x.org/f.tar>. Not file:///x or ://.")}, "URLs",
			[]string{"- https://example.com/a?b=c#d [1]", "- http://en.wikipedia.org/wiki/Go_(game) [1]", "- ftp://x.org/f.tar [1]"}},
		{"broken arguments", []core.Message{call("open", `{"path": "app/x.go`)}, "Files Referenced", []string{"- app/x.go [1]"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			req := summarize.Request{Messages: tt.messages, Limit: 2_000, Replaces: 4_000}
			res := hybridOver(t, llm.Scripted(good), req)
			if diff := cmp.Diff(tt.want, ledgerOf(res.Content, tt.section)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.section, diff)
			}
		})
	}
}

// The ledger is merged with the one before, by code: the model neither sees nor
// writes it.
func TestHybridMerge(t *testing.T) {
	t.Parallel()
	model := llm.Scripted(good, good+"\n\n## Files Referenced\n- invented.go")
	req := summarize.Request{Messages: []core.Message{user(1, "Fix a.go, see https://x.org/1")}, Limit: 800, Replaces: 2_000}
	first := hybridOver(t, model, req)
	want := "## Conversation Summary\n" + good + "\n\n## Files Referenced\n- a.go [1]\n\n## URLs\n- https://x.org/1 [1]"
	if diff := cmp.Diff(want, first.Content); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	if first.Strategy != "hybrid" || first.Model != "scripted" {
		t.Errorf("got strategy %q of model %q, want hybrid of scripted", first.Strategy, first.Model)
	}
	req.Previous, req.Messages = first.Content, []core.Message{user(9, "Now b.go")}
	second := hybridOver(t, model, req)
	if got := ledgerOf(second.Content, "Files Referenced"); !slices.Equal(got, []string{"- a.go [1]", "- b.go [9]"}) {
		t.Errorf("got files %q, want both rounds and nothing invented", got)
	}
	if got := between(t, lastUser(t, model.Requests()[1]), "summary"); got != good {
		t.Errorf("the model was shown %q, want its own words alone", got)
	}
	only := llm.Scripted("## Files Referenced\n- x.go", "## URLs\n- y")
	if res := hybridOver(t, only, req); res.Strategy != "extractive" {
		t.Errorf("got %q, want a summary of lists only refused", res.Content)
	}
}

// 60 planted facts after 20 rounds are in the ledger, or counted in
// "+12 more"; the ledger stays within its own 600 tokens, whatever the model forgets.
func TestRow8FactsSurvive(t *testing.T) {
	t.Parallel()
	req := summarize.Request{Limit: 2_000, Replaces: 10_000}
	for round := range 20 {
		req.Messages = []core.Message{
			assistant(int64(4*round+1), "", core.ToolCall{ID: "c", Name: "shell", Arguments: fmt.Sprintf(`{"command":"make t%d"}`, round)}),
			toolResult(int64(4*round+2), "c", fmt.Sprintf("Error: E%d\nexit status %d", 1000+round, round%3)),
			user(int64(4*round+3), fmt.Sprintf("Look at pkg/f%d.go", round)),
		}
		res := hybridOver(t, llm.Scripted(good), req)
		req.Previous = res.Content
		if got := (counter{}).Text(res.Content) - (counter{}).Text(good); got > 600+20 {
			t.Fatalf("round %d: the ledger has %d tokens, want at most 600", round, got)
		}
	}
	total := 0
	for _, section := range []string{"Files Referenced", "Commands Executed", "Errors Encountered"} {
		lines := ledgerOf(req.Previous, section)
		n, more := 0, 0
		for _, line := range lines {
			if _, err := fmt.Sscanf(line, "+%d more", &more); err != nil {
				n++
			}
		}
		if n+more != 20 {
			t.Errorf("%s: got %d entries and %d more, want 20 together", section, n, more)
		}
		total += n
	}
	if total < 54 { // what the budget holds with these texts
		t.Errorf("got %d of 60 facts in the ledger", total)
	}
	t.Logf("%d of 60 facts in the ledger", total)
}

// Too many facts: the newest are shown, the rest is counted.
func TestLedgerBudget(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range 39 {
		fmt.Fprintf(&text, "a/very/long/path/to/some/folder/with/a/file/number%03d.go\n", i)
	}
	req := summarize.Request{Messages: []core.Message{user(1, text.String())}, Limit: 900, Replaces: 4_000}
	res := hybridOver(t, llm.Scripted(good), req)
	files := ledgerOf(res.Content, "Files Referenced")
	if got := files[len(files)-1]; got != fmt.Sprintf("+%d more", 39-len(files)+1) {
		t.Errorf("got %q below %d entries of 39, want the rest counted", got, len(files)-1)
	}
	if !strings.Contains(files[len(files)-2], "number038") {
		t.Errorf("got %q last, want the newest", files[len(files)-2])
	}
	// Counted over rounds.
	req.Previous, req.Messages = res.Content, []core.Message{user(2, "other.go"), assistant(3, "Fine.")}
	again := ledgerOf(hybridOver(t, llm.Scripted(good), req).Content, "Files Referenced")
	if got := again[len(again)-1]; got != fmt.Sprintf("+%d more", 40-len(again)+1) {
		t.Errorf("got %q below %d entries of 40, want the rest counted", got, len(again)-1)
	}
}
