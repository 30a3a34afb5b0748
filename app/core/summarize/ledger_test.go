package summarize_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/summarize"
	"bobbin/tests/compare"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
	"bobbin/tests/seed"
)

// hybridOver runs strategy hybrid over the model.
func hybridOver(t *testing.T, model llm.Model, req summarize.Request) summarize.Result {
	t.Helper()
	s := summarize.New(summarize.NewHybrid(summarize.NewLLM(model, counter{}, nil)), counter{})
	res := must.Get(s.Summarize(t.Context(), req))(t)
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

// C3: code extracts the users' words, files, commands with their exit codes, errors and addresses, and
// names the message of each.
func TestExtraction(t *testing.T) {
	t.Parallel()
	answer := good + "\nThe user wants to fix pkg/a.go, please: see https://x.org/1. Shell: go vet ./... printed the error of pkg/a.go:3 and exit status 1, git push went well."
	res := hybridOver(t, llmtest.Scripted(answer), summarize.Request{Limit: 2_000, Replaces: 2_000, Messages: []core.Message{
		user(1, "Fix pkg/a.go,\nplease: see https://x.org/1."),
		assistant(2, "I look.", core.ToolCall{ID: "a", Name: "shell", Arguments: `{"command":"go vet ./..."}`}, core.ToolCall{ID: "b", Name: "shell", Arguments: `{"cmd":["git","push"]}`}),
		toolResult(3, "a", "pkg/a.go:3: error: bad\nexit status 1"), toolResult(4, "b", `{"stdout":"ok","exit_code":0}`),
		{Seq: 5, Role: core.RoleUser, Content: "Good.", FinishReason: core.FinishRefused}, assistant(6, "Thanks for x.org."), // answered by luck
		{Seq: 7, Role: core.RoleUser, Content: "Read https://x.org/2, too.", FinishReason: core.FinishRefused},
	}})
	want := "## Conversation Summary\n" + answer + `

## User Messages
- "Fix pkg/a.go, please: see https://x.org/1." [1]

## Files Referenced
- pkg/a.go [3]

## Commands Executed
- go vet ./... → exit 1 [3]
- git push → exit 0 [4]

## Errors Encountered
- tool said: "pkg/a.go:3: error: bad" [3]

## URLs
- https://x.org/1 [1]`
	compare.Equal(t, "summary", want, res.Content)
}

// The ledger is merged with the one before, by code: the model neither sees nor
// writes it.
func TestHybridMerge(t *testing.T) {
	t.Parallel()
	model := llmtest.Scripted(good, good+"\n\n## Files Referenced\n- invented.go\n\n**User Messages:**\n- \"Call me boss.\" [1]")
	req := summarize.Request{Messages: []core.Message{user(1, "Fix a.go, see https://x.org/1")}, Limit: 800, Replaces: 2_000}
	first := hybridOver(t, model, req)
	compare.Equal(t, "strategy of model: want hybrid of scripted", []string{"hybrid", "scripted"}, []string{first.Strategy, first.Model})
	req.Previous, req.Messages = first.Content, []core.Message{user(9, "Now b.go")}
	second := hybridOver(t, model, req)
	want := "## Conversation Summary\n" + good + "\n\n## User Messages\n- \"Fix a.go, see https://x.org/1\" [1]\n- \"Now b.go\" [9]\n\n## Files Referenced\n- a.go [1]\n- b.go [9]\n\n## URLs\n- https://x.org/1 [1]"
	compare.Equal(t, "summary", want, second.Content)
	compare.Equal(t, "the model was shown: want its own words alone", good, between(t, lastUser(t, model.Requests()[1]), "summary"))
	only := llmtest.Scripted("## Files Referenced\n- x.go", "## URLs\n- y")
	compare.Equal(t, "strategy instead of a summary of lists only", "extractive", hybridOver(t, only, req).Strategy)
	plain := run(t, llmtest.Scripted(good+"\n\n## Files Referenced\n- invented.go"), req)
	compare.Contains(t, "without a ledger: the model's own list", "\n### Files Referenced\n", plain.Content)
}

// 60 planted facts after 20 rounds are in the ledger, or counted in
// "+12 more"; the ledger stays within its own 600 tokens, whatever the model forgets.
func TestRow8FactsSurvive(t *testing.T) {
	t.Parallel()
	req := summarize.Request{Limit: 2_000, Replaces: 10_000}
	for round := range 20 {
		req.Messages = []core.Message{
			assistant(int64(4*round+1), "", core.ToolCall{ID: "c", Name: "shell", Arguments: fmt.Sprintf(`{"command":"make t%d"}`, round)}),
			toolResult(int64(4*round+2), "c", fmt.Sprintf("Error: E%d\nexit status %d", 1000+round, round%3+1)),
			user(int64(4*round+3), fmt.Sprintf("Look at pkg/f%d.go", round)),
		}
		res := hybridOver(t, llmtest.Scripted(good), req)
		req.Previous = res.Content
		if got := (counter{}).Text(res.Content) - (counter{}).Text(good); got > 600+20 {
			t.Fatalf("round %d: the ledger has %d tokens, want at most 600", round, got)
		}
	}
	total := 0
	for _, section := range []string{"User Messages", "Files Referenced", "Commands Executed", "Errors Encountered"} {
		lines := ledgerOf(req.Previous, section)
		n, more := len(lines), 0
		if _, err := fmt.Sscanf(lines[0], "+%d more", &more); err == nil {
			n--
		}
		compare.True(t, n+more == 20, "%s: got %d entries and %d more, want 20 together", section, n, more)
		if section != "User Messages" {
			total += n
		}
	}
	compare.True(t, total >= 45, "got %d of 60 facts in the ledger", total) // what the budget holds with these texts
	t.Logf("%d of 60 facts in the ledger", total)
}

// Too many facts: the newest are shown, the rest is counted, also over rounds. The users' messages
// have at most half of the ledger, and the newest one is shown in part if it does not fit.
func TestLedgerBudget(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range 39 {
		fmt.Fprintf(&text, "a/very/long/path/to/some/folder/with/a/file/number%03d.go\n", i)
	}
	req := summarize.Request{Messages: []core.Message{user(1, text.String())}, Limit: 900, Replaces: 4_000}
	res := hybridOver(t, llmtest.Scripted(good+"\n\nThe files are in a very long path to some folder with a file."), req)
	files := ledgerOf(res.Content, "Files Referenced")
	got := files[0]
	compare.True(t, got == fmt.Sprintf("+%d more", 39-len(files)+1) && len(files) >= 5, "got %q above %d entries of 39, want the rest counted", got, len(files)-1)
	compare.Contains(t, "last: want the newest", "number038", files[len(files)-1])
	said := ledgerOf(res.Content, "User Messages")
	if len(said) != 1 || !strings.HasPrefix(said[0], `- "a/very/long/path`) || !strings.HasSuffix(said[0], `…" [1]`) || (counter{}).Text(said[0]) > 180 {
		t.Errorf("got %q of the user's message, want its beginning", said)
	}
	req.Previous, req.Messages = res.Content, []core.Message{user(2, "other.go"), assistant(3, "Fine.")}
	again := ledgerOf(hybridOver(t, llmtest.Scripted(good+"\n\nThe files are in a very long path to some folder with a file."), req).Content, "Files Referenced")
	if got := again[0]; got != fmt.Sprintf("+%d more", 40-len(again)+1) || !slices.Contains(again, "- other.go [2]") {
		t.Errorf("got %q above %d entries of 40, want the rest counted", got, len(again)-1)
	}
}

// factsOf returns what is extracted of a kind from messages.
func factsOf(kind string, messages ...core.Message) []string {
	var out []string
	for _, f := range summarize.Facts(messages) {
		if f.Kind == kind {
			out = append(out, f.Text)
		}
	}
	return out
}

// What is a path or an address, and what only looks like one.
func TestNamesInText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"src/main.rs and **lib/util.py**, `docs/b.md`":                                                              {"src/main.rs", "lib/util.py", "docs/b.md"},
		"run `go test pkg/x_test.go` twice; Makefile Dockerfile .env go.mod":                                        {"pkg/x_test.go", "Makefile", "Dockerfile", ".env", "go.mod"},
		"app/models/user.rb:42:in `save'":                                                                           {"app/models/user.rb"},
		`Read /etc/hosts, ./run.sh and "app/core/llm/model.go:12:5"; then ~/notes/a.txt.`:                           {"/etc/hosts", "./run.sh", "app/core/llm/model.go", "~/notes/a.txt"},
		`In C:\Users\ann\todo.txt and src\main.cpp; C:\b.txt.`:                                                      {`C:\Users\ann\todo.txt`, `src\main.cpp`, `C:\b.txt`},
		"Öffne /home/jörg/größe.txt und docs/概要.md。":                                                                {"/home/jörg/größe.txt", "docs/概要.md"},
		"a.go b.go, then a.go again":                                                                                {"b.go", "a.go"},
		"and/or he/she km/h 24/7 1/2 3/4/2025 2025/12/04 n/a w/o TCP/IP I/O CI/CD a/b/c Mo/Di/Mi":                   nil,
		"text/html image/png multipart/form-data openai/gpt-4o anthropic/claude-3.5-sonnet @scope/pkg ubuntu:22.04": nil,
		"github.com/gin-gonic/gin e.g. i.e. U.S.A. v1.2.3 3.14 10.0.0.1 192.168.1.0/24 ::1 /help s/foo/bar/":        nil,
		"ann@example.com ../.. ./ ~ // /* c */ </div> <br/> \\n \\d+ file:///x":                                     nil,
	} {
		compare.Equal(t, text, want, factsOf(summarize.FactPath, user(1, text)))
	}
	text := "See https://example.com/a?b=c#d, (http://en.wikipedia.org/wiki/Go_(game)) and <ftp://x.org/f.tar>. Not file:///x or ://. 见 https://x.org/中文。"
	want := []string{"https://example.com/a?b=c#d", "http://en.wikipedia.org/wiki/Go_(game)", "ftp://x.org/f.tar", "https://x.org/中文"}
	compare.Equal(t, "factsOf(summarize.FactURL, user(1, text))", want, factsOf(summarize.FactURL, user(1, text)))
	got := factsOf(summarize.FactURL, toolResult(1, "x", text))
	compare.True(t, got == nil, "got %q from a tool's result, want nothing: it may be an order", got)
}

func extract(tb interface {
	Helper()
	Fatalf(string, ...any)
	Context() context.Context
}, req summarize.Request) summarize.Result {
	tb.Helper()
	res, err := summarize.NewExtractive(counter{}).Summarize(tb.Context(), req)
	if err != nil {
		tb.Fatalf("extractive: %v", err)
	}
	return res
}

func TestExtractive(t *testing.T) {
	t.Parallel()
	res := extract(t, summarize.Request{Limit: 800, Messages: []core.Message{
		user(1, "Build me a parser\nfor dates."), assistant(2, "Which format? There are many of them, and they differ by country. The parser needs a table."), user(3, "ISO, in pkg/date.go"),
	}})
	want := `(Extracted by a program, without a language model.)

## User Messages
- "Build me a parser for dates." [1]
- "ISO, in pkg/date.go" [3]

## Assistant Messages
- "There are many of them, and they differ by country." [2]

## Also Mentioned
- Build parser dates [1]
- Which format There many them they differ country parser needs table [2]

## Files Referenced
- pkg/date.go [3]`
	compare.Equal(t, "summary", want, res.Content)
	compare.Equal(t, "want strategy extractive without a model", []any{"extractive", "", (counter{}).Text(want)}, []any{res.Strategy, res.Model, res.Tokens})
}

// An earlier summary is folded in, whoever wrote it.
func TestExtractiveFolds(t *testing.T) {
	t.Parallel()
	first := "## Conversation Summary\n## Goal\nShip it.\n\n## Decisions\nUse Go.\n\n## Files Referenced\n- a.go [1]"
	res := extract(t, summarize.Request{Limit: 800, Previous: first, Messages: []core.Message{user(7, "And b.go?")}})
	want := `(Extracted by a program, without a language model.)

## Earlier Summary
## Goal
Ship it.

## Decisions
Use Go.

## User Messages
- "And b.go?" [7]

## Files Referenced
- a.go [1]
- b.go [7]`
	compare.Equal(t, "over a model's summary", want, res.Content)
	again := extract(t, summarize.Request{Limit: 800, Previous: res.Content, Messages: []core.Message{user(9, "Thanks")}})
	want = strings.Replace(want, "- \"And b.go?\" [7]", "- \"And b.go?\" [7]\n- \"Thanks\" [9]", 1)
	compare.Equal(t, "over its own", want, again.Content)
}

// message draws a message of any kind and any text.
func message(t *rapid.T, seq int64) core.Message {
	text := rapid.OneOf(
		rapid.String(), rapid.StringN(0, 2_000, -1),
		rapid.SampledFrom([]string{"", "\xff\xfe", "## Goal\nx", "+3 more", "- a [1]", "## User Messages\n- [2]", "$ make\nexit status 2\nError: x", "https://x.org/a.go", "</summary>", strings.Repeat("長い文", 300)}),
	).Draw(t, "text")
	m := core.Message{Seq: seq, Role: rapid.SampledFrom([]core.Role{core.RoleUser, core.RoleAssistant, core.RoleTool, core.RoleSystem}).Draw(t, "role"), Content: text}
	if m.Role == core.RoleAssistant && rapid.Bool().Draw(t, "calls") {
		m.ToolCalls = []core.ToolCall{{ID: "c", Name: "run", Arguments: rapid.SampledFrom([]string{`{"cmd":"ls"}`, "{", `[["a"]]`, `"x"`}).Draw(t, "arguments")}}
	}
	return m
}

// Extractive and, L5, notes always succeed: within any limit, never empty, smaller than what they
// replace, valid UTF-8.
func TestExtractiveLaws(t *testing.T) {
	t.Parallel()
	seed.Check(t, func(t *rapid.T) {
		req := summarize.Request{
			Limit:    rapid.OneOf(rapid.IntRange(summarize.MinLimit, 100), rapid.IntRange(summarize.MinLimit, 3_000)).Draw(t, "limit"),
			Previous: rapid.OneOf(rapid.Just(""), rapid.String(), rapid.Just(good)).Draw(t, "previous"),
		}
		for i := range rapid.IntRange(1, 12).Draw(t, "messages") {
			req.Messages = append(req.Messages, message(t, int64(i+1)))
		}
		if rapid.Bool().Draw(t, "replaces") {
			req.Replaces = rapid.IntRange(summarize.MinLimit+1, 500).Draw(t, "tokens")
		}
		strategy := rapid.SampledFrom([]*summarize.Extract{summarize.NewExtractive(counter{}), summarize.NewSteps(counter{})}).Draw(t, "strategy")
		res, _ := strategy.Summarize(t.Context(), req)
		if got := (counter{}).Text(res.Content); got > req.Limit || got != res.Tokens {
			t.Fatalf("got %d tokens, said to be %d, want at most %d", got, res.Tokens, req.Limit)
		}
		if req.Replaces > 0 && res.Tokens >= req.Replaces {
			t.Fatalf("got %d tokens, want less than %d", res.Tokens, req.Replaces)
		}
		if strings.TrimSpace(res.Content) == "" || !utf8.ValidString(res.Content) {
			t.Fatalf("got %q, want text", res.Content)
		}
		if again, _ := strategy.Summarize(t.Context(), req); again.Content != res.Content {
			t.Fatalf("got %q and then %q for the same request", res.Content, again.Content)
		}
	})
}
