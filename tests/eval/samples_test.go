package eval_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/eval"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/golden"
	"bobbin/tests/must"
)

// evaluate replays.
func evaluate(t *testing.T, e eval.Evaluation) eval.Report {
	t.Helper()
	report, err := eval.Evaluate(t.Context(), config.Default(), slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})), e)
	must.True(t, err == nil, "evaluate %s: %v", e.Source, err)
	return report
}

// sample is the evaluation of a sample as the command makes it.
func sample(t *testing.T, name string, policies ...string) eval.Evaluation {
	t.Helper()
	s, data, err := eval.Get(name)
	must.Do(t, err)
	return eval.Evaluation{Source: s.Name, Data: data, Format: core.ImportLines, Window: s.Window, Policies: policies}
}

// TestEval replays each sample under each policy: the table is golden, the laws
// hold. CI has one policy of one sample.
func TestEval(t *testing.T) {
	t.Parallel()
	for _, s := range eval.List() {
		policies := eval.Policies()
		if !*golden.Update && !apptest.IsLong() {
			if s.Name != "coding" {
				continue
			}
			policies = []string{"window"}
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			report := evaluate(t, sample(t, s.Name, policies...))
			laws(t, report)
			var table bytes.Buffer
			must.Do(t, report.WriteTable(&table))
			t.Logf("%s\n\n%s", s.About, table.String())
			if len(policies) > 1 {
				golden.Check(t, filepath.Join("testdata", s.Name+".txt"), table.String(), near)
			}
			for _, p := range report.Policies {
				if u := p.Summarizer; p.Summaries > 0 && (u.Calls == 0 || u.InputTokens <= u.OutputTokens || u.OutputTokens == 0) {
					t.Errorf("%s: got %+v for %d summaries", p.Policy, u, p.Summaries)
				}
				if f := p.Facts; f.Planted == 0 || f.Asked != f.Planted || p.Failed != nil {
					t.Errorf("%s: got %d of %d facts asked, failed %+v; want a question for each, and the conversation to go on", p.Policy, f.Asked, f.Planted, p.Failed)
				}
			}
			if s.Name == "chat" {
				timings(t, report)
			}
			if report.FactsFrom != eval.FactsOfFile || report.Everything.TooLargeFrom == 0 {
				t.Errorf("got facts from %s, too large from turn %d; want planted ones, and more than fits", report.FactsFrom, report.Everything.TooLargeFrom)
			}
		})
	}
}

// timings: in a replay, too, each policy summarizes when it says it does.
func timings(t *testing.T, r eval.Report) {
	t.Helper()
	want := map[string]bool{"budget": true, "sliding": true, "ratio": false} // after the answer
	for _, p := range r.Policies {
		after, ok := want[p.Policy]
		if !ok {
			continue
		}
		compare.True(t, p.Summaries != 0, "%s: got no summary, want some", p.Policy)
		for _, turn := range p.Turns {
			for _, c := range turn.Compactions {
				compare.Equal(t, fmt.Sprintf("%s, turn %d: after the answer", p.Policy, turn.Turn), after, c.After)
			}
		}
	}
}

// The same conversation, policy and settings give the same report: ids and clocks
// leave no trace in it.
func TestSameAgain(t *testing.T) {
	t.Parallel()
	policies := []string{"window", "sliding"}
	if os.Getenv("BOBBIN_TEST_LONG") == "" {
		policies = policies[1:]
	}
	first, second := evaluate(t, sample(t, "incident", policies...)), evaluate(t, sample(t, "incident", policies...))
	compare.Equal(t, "second replay", first, second)
}

// docs is the folder of the documentation.
var docs = filepath.Join("..", "..", "docs")

// The table in docs/EVALUATION.md is the one of the sample.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	file := filepath.Join(docs, "EVALUATION.md")
	text := must.Get(os.ReadFile(file))(t)
	table := must.Get(os.ReadFile(filepath.Join("testdata", "coding.txt")))(t)
	block := regexp.MustCompile("(?s)```text\n.*?```")
	must.True(t, len(block.FindAll(text, -1)) == 1, "%s: want one block of text, which is the table", file)
	golden.Check(t, file, string(block.ReplaceAllLiteral(text, []byte("```text\n"+string(table)+"```"))), near)
	for _, s := range eval.List() {
		compare.Contains(t, fmt.Sprintf("%s: want a row of the sample %s", file, s.Name), "| `"+s.Name+"` |", string(text))
	}
}

// Every field of --json is in docs/CLI.md.
func TestFieldsAreDocumented(t *testing.T) {
	t.Parallel()
	text := must.Get(os.ReadFile(filepath.Join(docs, "CLI.md")))(t)
	raw := must.Get(json.Marshal(evaluate(t, sample(t, "incident", "window"))))(t)
	var report any
	must.Do(t, json.Unmarshal(raw, &report))
	names := fields(report)
	must.True(t, len(names) >= 40, "got %d fields, want all of the report: %v", len(names), names)
	for _, name := range names {
		compare.True(t, regexp.MustCompile("`"+name+"(\\[\\])?`").Match(text), "docs/CLI.md does not tell of the field %s of --json", name)
	}
}

// fields returns the names of all members of a JSON value, each once, sorted.
func fields(v any) []string {
	var names []string
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			names = append(names, fields(item)...)
		}
	case map[string]any:
		for name, value := range v {
			names = append(append(names, name), fields(value)...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// How far numbers may be from the stored ones: another sentence in a prompt, or a
// tool described in other words, makes no table stale.
const (
	nearShare = 0.05
	nearSteps = 2 // for small numbers
)

var (
	numbers = regexp.MustCompile(`\d[\d,]*(?:\.\d+)?`)
	blanks  = regexp.MustCompile(` +`)
)

// near reports whether two texts differ in nothing but a little in their numbers.
// Columns move with the digits in them, so that runs of blanks are alike.
func near(want, got string) bool {
	if want == got {
		return true
	}
	words := func(s string) string { return blanks.ReplaceAllString(numbers.ReplaceAllString(s, "0"), " ") }
	if words(want) != words(got) {
		return false
	}
	wants, gots := numbers.FindAllString(want, -1), numbers.FindAllString(got, -1)
	for i := range wants {
		a, errA := strconv.ParseFloat(strings.ReplaceAll(wants[i], ",", ""), 64)
		b, errB := strconv.ParseFloat(strings.ReplaceAll(gots[i], ",", ""), 64)
		if errA != nil || errB != nil || math.Abs(a-b) > max(nearSteps, nearShare*math.Abs(a)) {
			return false
		}
	}
	return true
}

// laws are what holds for every report.
func laws(t *testing.T, r eval.Report) {
	t.Helper()
	for _, p := range r.Policies {
		what := r.Source + ", " + p.Policy
		if p.Failed == nil {
			wholeLog(t, what, r, p)
		}
		sums(t, what, p)
		// Invariant 1, by the count of what was really sent.
		compare.True(t, p.Largest <= p.Budget.Usable, "%s: got a prompt of %d tokens in turn %d, want at most %d", what, p.Largest, p.LargestTurn, p.Budget.Usable)
		f := p.Facts
		if f.Reachable+len(f.Unreachable) != f.Planted || f.Prompt+f.Summary+f.First5+f.First20 != f.Reachable {
			t.Errorf("%s: got facts %+v, want each of them in one place", what, f)
		}
		if s := f.SearchAlone; f.First5 > s.First5 || s.First5 > s.First20 || s.First20 > f.Asked || f.Asked > f.Planted {
			t.Errorf("%s: got facts %+v, want search to find what it was asked for", what, f)
		}
		compare.True(t, p.Policy != "off" || p.Summaries == 0, "%s: got %d summaries, want none", what, p.Summaries)
	}
}

// wholeLog: every message is in exactly one place (invariant 2), and every recorded
// answer was asked for.
func wholeLog(t *testing.T, what string, r eval.Report, p eval.Result) {
	t.Helper()
	c := p.Coverage
	if sum := c.Summarized + c.Compacted + c.Verbatim + c.Masked + c.Shortened + c.LeftOut + c.Excluded; c.Messages != r.Messages || sum != r.Messages || c.Lost != 0 {
		t.Errorf("%s: got %+v, sum %d, want each of the %d messages once", what, c, sum, r.Messages)
	}
	if len(p.Turns) != r.Turns || p.Prompts != r.Everything.Prompts {
		t.Errorf("%s: got %d turns and %d prompts, want %d and %d", what, len(p.Turns), p.Prompts, r.Turns, r.Everything.Prompts)
	}
}

// sums: the totals are those of the turns, and what is cached is part of what is sent.
func sums(t *testing.T, what string, p eval.Result) {
	t.Helper()
	prompts, tokens, cached, completed := 0, 0, 0, 0
	var before eval.Prompt
	for _, turn := range p.Turns {
		for _, prompt := range turn.Prompts {
			prompts, tokens, cached = prompts+1, tokens+prompt.Tokens, cached+prompt.CachedTokens
			if prompt.CachedTokens > min(prompt.Tokens, before.Tokens) || prompt.CachedBytes > min(prompt.Bytes, before.Bytes) || prompt.Everything <= before.Everything {
				t.Errorf("%s, turn %d: got %+v after %+v, want a prefix of both as cached, and everything to grow", what, turn.Turn, prompt, before)
			}
			before = prompt
		}
		for _, c := range turn.Compactions {
			if c.Event == string(core.EventContextCompleted) && c.Version > 0 {
				completed++
			}
		}
	}
	if prompts != p.Prompts || tokens != p.Tokens || cached != p.CachedTokens || before.Tokens != p.Last {
		t.Errorf("%s: got %d prompts, %d tokens, %d cached; the turns have %d, %d, %d", what, p.Prompts, p.Tokens, p.CachedTokens, prompts, tokens, cached)
	}
	compare.Equal(t, what+": summaries and events of them", p.Summaries, completed)
}
