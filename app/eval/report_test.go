package eval_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/eval"
	"bobbin/tests/compare"
	"bobbin/tests/golden"
	"bobbin/tests/must"
)

// report is a small report of two policies, of which the second fails.
func report() eval.Report {
	prompts := func(sizes ...int) []eval.Prompt {
		var list []eval.Prompt
		for i, n := range sizes {
			list = append(list, eval.Prompt{Tokens: n, Bytes: 4 * n, CachedTokens: n / 2, CachedBytes: 2 * n, Everything: 600 * (i + 1)})
		}
		return list
	}
	done := []eval.Compaction{{Event: "context.completed", ContextData: core.ContextData{Trigger: "share", TokensBefore: 1800, TokensAfter: 900, MessagesCovered: 12}}}
	failed := []eval.Compaction{{Event: "context.failed", ContextData: core.ContextData{Reason: "fallback: timeout"}}}
	budget := eval.Budget{Window: 2000, Reserve: 500, Usable: 1500, Trigger: 1400, Landing: 875}
	window := eval.Result{
		Policy: "window", Budget: budget, Prompts: 3, Largest: 1300, LargestTurn: 1, Last: 900, Tokens: 2800, CachedTokens: 1400, CacheShare: 0.5,
		Summaries: 1, Summarizer: eval.Summarizer{Name: "scripted", Calls: 1, InputTokens: 700, OutputTokens: 100},
		Facts: eval.Found{
			Planted: 3, Asked: 2, Reachable: 2, Prompt: 1, Summary: 1, SearchAlone: eval.Ranked{First5: 1, First20: 1},
			Unreachable: []eval.Fact{{Kind: "path", Text: "go.mod", Ask: "Which file names the dependencies?"}},
		},
		Coverage: core.Coverage{Messages: 20, Summarized: 12, Verbatim: 8},
		Turns: []eval.Turned{
			{Turn: 1, Prompts: prompts(600, 1300), Compactions: []eval.Compaction{}},
			{Turn: 2, Prompts: []eval.Prompt{}, Compactions: []eval.Compaction{}},
			{Turn: 3, Prompts: []eval.Prompt{{Tokens: 900, Bytes: 3600, CachedTokens: 100, Everything: 1800}}, Compactions: append(failed, done...), Rungs: []string{"summarize"}},
		},
	}
	off := eval.Result{
		Policy: "off", Budget: eval.Budget{Window: 2000, Reserve: 500, Usable: 1500, Landing: 900}, Prompts: 2, Largest: 1300, LargestTurn: 1, Last: 1300, Tokens: 1900,
		Facts:  eval.Found{Planted: 3, Asked: 2, Reachable: 3, Prompt: 1, First5: 1, First20: 1, SearchAlone: eval.Ranked{First5: 1, First20: 2}, Unreachable: []eval.Fact{}},
		Failed: &eval.Failure{Turn: 3, RunError: core.RunError{Code: "context_floor", Message: "It does not fit."}},
		Turns:  []eval.Turned{{Turn: 1, Prompts: prompts(600, 1300), Compactions: []eval.Compaction{}}},
	}
	r := eval.Report{
		Source: "talk.jsonl", Messages: 20, Turns: 3, Tokens: 12345, Model: "gpt-4o-mini", Window: 2000, FactsFrom: eval.FactsOfFile,
		Notices: []string{"1 of something"}, Policies: []eval.Result{window, off},
	}
	r.Complete()
	return r
}

func TestTable(t *testing.T) {
	t.Parallel()
	var several, single bytes.Buffer
	r := report()
	if err := r.WriteTable(&several); err != nil || !r.Failed() {
		t.Fatalf("got %v, failed %v, want a failed report", err, r.Failed())
	}
	golden.Check(t, "testdata/several.txt", several.String())
	r.Policies, r.FactsFrom = r.Policies[:1], eval.FactsOfLedger
	r.Policies[0].Facts.Asked, r.Policies[0].Facts.SearchAlone = 0, eval.Ranked{} // they have no questions
	if err := r.WriteTable(&single); err != nil || r.Failed() {
		t.Fatalf("got %v, failed %v, want a report that went well", err, r.Failed())
	}
	golden.Check(t, "testdata/single.txt", single.String())
}

// A conversation that needs no policy is told to need none.
func TestTableOfLittle(t *testing.T) {
	t.Parallel()
	little := func() eval.Report {
		r := report()
		r.Messages, r.Turns, r.Tokens, r.Everything, r.Policies = 1, 1, 1, eval.Everything{Prompts: 1}, r.Policies[:1]
		p := &r.Policies[0]
		p.Turns, p.Coverage = p.Turns[:1], core.Coverage{Messages: 1, Verbatim: 1}
		return r
	}
	for name, tt := range map[string]struct {
		change func(*eval.Report)
		idle   bool
	}{
		"little":  {func(*eval.Report) {}, true},
		"large":   {func(r *eval.Report) { r.Everything.TooLargeFrom = 1 }, false},
		"masked":  {func(r *eval.Report) { r.Policies[0].Coverage = core.Coverage{Messages: 1, Masked: 1} }, false},
		"rungs":   {func(r *eval.Report) { r.Policies[0].Turns[0].Rungs = []string{"mask"} }, false},
		"failed":  {func(r *eval.Report) { r.Policies[0].Failed = &eval.Failure{Turn: 1} }, false},
		"one out": {func(r *eval.Report) { r.Policies[0].Coverage = core.Coverage{Messages: 2, Verbatim: 1, Excluded: 1} }, true},
	} {
		r := little()
		tt.change(&r)
		var table strings.Builder
		must.Do(t, r.WriteTable(&table))
		got := strings.Contains(table.String(), "a smaller --window")
		compare.True(t, got == tt.idle, "%s: got the note: %v, want %v, in\n%s", name, got, tt.idle, table.String())
		compare.True(t, strings.HasPrefix(table.String(), "talk.jsonl: 1 message in 1 turn, 1 token\n"), "%s: want one of each in\n%s", name, table.String())
	}
}

// The document of --json, as docs/CLI.md tells it.
func TestJSON(t *testing.T) {
	t.Parallel()
	raw := must.Get(json.MarshalIndent(report(), "", "  "))(t)
	golden.Check(t, "testdata/report.json", string(raw)+"\n")
}
