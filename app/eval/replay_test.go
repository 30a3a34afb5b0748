package eval_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/searchtext"
	"bobbin/app/eval"
	"bobbin/tests/compare"
	"bobbin/tests/golden"
	"bobbin/tests/must"
)

// replay replays the messages, each a JSON object, in a window of 8,192 tokens under the policy window.
func replay(t *testing.T, facts string, messages ...string) (eval.Report, eval.Result) {
	t.Helper()
	r := must.Get(eval.Evaluate(t.Context(), config.Default(), slog.New(slog.DiscardHandler), eval.Evaluation{
		Data: []byte(strings.Join(messages, "\n")), Format: core.ImportLines, Facts: []byte(facts), Window: 8192, Policies: []string{"window"},
	}))(t)
	return r, r.Policies[0]
}

// A conversation is said as it was recorded, whoever answered in it, and measured.
func TestReplay(t *testing.T) {
	t.Parallel()
	r, got := replay(t, "one", `{"role":"assistant","content":"hello there"}`, `{"role":"user","content":"1"}`,
		`{"role":"assistant","tool_calls":[{"id":"a","name":"f","arguments":"{}"}]}`, `{"role":"tool","tool_call_id":"a","content":"A"}`,
		`{"role":"assistant","content":"one"}`, `{"role":"assistant","content":"later"}`, `{"role":"user","content":"nobody"}`,
		`{"role":"user","content":"long"}`, `{"role":"assistant","content":"two"}`)
	if got.Prompts != 3 || len(got.Turns) != 3 || got.Largest != got.Turns[2].Prompts[0].Tokens || got.LargestTurn != 3 || got.Last != got.Largest {
		t.Errorf("got %+v, want three prompts, the last the largest", got)
	}
	compare.Equal(t, "tokens sent: want the sum of the prompts", got.Turns[0].Prompts[0].Tokens+got.Turns[0].Prompts[1].Tokens+got.Turns[2].Prompts[0].Tokens, got.Tokens)
	compare.Equal(t, "messages, covered, verbatim", []int{9, 9, 9}, []int{r.Messages, got.Coverage.Messages, got.Coverage.Verbatim})
}

// A run that fails ends the conversation.
func TestReplayFails(t *testing.T) {
	t.Parallel()
	_, got := replay(t, "1", `{"role":"system","content":"`+strings.Repeat("too long ", 9_000)+`"}`, `{"role":"user","content":"1"}`, `{"role":"assistant","content":"one"}`,
		`{"role":"user","content":"2"}`, `{"role":"assistant","content":"two"}`)
	compare.True(t, got.Failed != nil && got.Failed.Turn == 1 && got.Failed.Code == "context_floor" && len(got.Turns) == 1, "got %+v after %d turns, want a failure in the first", got.Failed, len(got.Turns))
}

// Search is asked a fact's question, never its words, and each fact counts in the first place that has it.
func TestFactsAreLookedFor(t *testing.T) {
	t.Parallel()
	_, got := replay(t, `["hello there", {"text":"blue house","ask":"Which color did we take?"}, {"text":"rm -rf \"x\"","ask":"Who sweeps?"}, {"text":"gray","ask":"Who sings?"}]`,
		`{"role":"user","content":"hello there"}`, `{"role":"assistant","content":"<work_notes> gray </work_notes>"}`,
		`{"role":"user","content":"run rm -rf  \"X\" now"}`, `{"role":"assistant","content":"the color that we take is that of the blue house"}`)
	compare.Equal(t, "facts", eval.Found{Planted: 4, Asked: 3, Reachable: 4, Prompt: 2, Summary: 1, First5: 1, Unreachable: []eval.Fact{}, SearchAlone: eval.Ranked{First5: 1, First20: 1}}, got.Facts)
	first := got.Turns[0].Prompts[0]
	compare.True(t, first.Everything == first.Tokens, "got %+v, want that the first prompt is everything", first)
}

// Who said what is searched as it was recorded: of answers with the same words the one that a question means is first.
func TestRecordedAuthors(t *testing.T) {
	t.Parallel()
	list := []string{`{"role":"user","content":"1"}`, `{"role":"assistant","content":"the pump stands on ground four","author":"Zoe"}`}
	for range 8 {
		list = append(list, `{"role":"user","content":"and?"}`, `{"role":"assistant","content":"the pump stands on firm ground"}`)
	}
	if _, got := replay(t, `[{"text":"ground four","ask":"Where does Zoe say that the pump stands?"}]`, list...); got.Facts.SearchAlone.First5 != 1 {
		t.Errorf("got %+v, want it among the first", got.Facts)
	}
}

// Every fact of a sample has a question that nobody could answer with the fact's own
// words: none of them is in it, and at most half of its words are in the message.
func TestQuestionsAreInOtherWords(t *testing.T) {
	t.Parallel()
	for _, s := range eval.List() {
		_, raw, err := eval.Get(s.Name)
		must.Do(t, err)
		asked := map[string]string{}
		for line := range bytes.Lines(raw) {
			var m struct {
				Content   string `json:"content"`
				ToolCalls []struct {
					Arguments string `json:"arguments"`
				} `json:"tool_calls"`
				Metadata struct {
					Facts []struct{ Text, Ask string }
				}
			}
			must.Do(t, json.Unmarshal(line, &m))
			for _, c := range m.ToolCalls {
				m.Content += " " + c.Arguments
			}
			said := words(m.Content)
			for _, f := range m.Metadata.Facts {
				ask, fact, shared := words(f.Ask), words(f.Text), 0
				for w := range ask {
					compare.True(t, !fact[w], "%s: the question %q has %q of its fact %q", s.Name, f.Ask, w, f.Text)
					if said[w] {
						shared++
					}
				}
				compare.True(t, len(ask) != 0 && 2*shared <= len(ask), "%s: the question %q shares %d of its %d words with the message that says %q; want other words", s.Name, f.Ask, shared, len(ask), f.Text)
				if other, ok := asked[f.Ask]; ok && other != f.Text {
					t.Errorf("%s: the question %q has two answers, %q and %q", s.Name, f.Ask, other, f.Text)
				}
				asked[f.Ask] = f.Text
			}
		}
		compare.True(t, len(asked) >= 15, "%s: got %d questions, want more", s.Name, len(asked))
	}
}

// words returns the words of a text that are longer than the commonest of English.
func words(text string) map[string]bool {
	out := map[string]bool{}
	for _, w := range searchtext.Text(text).Words {
		if len(w) > 3 {
			out[w] = true
		}
	}
	return out
}

func TestGet(t *testing.T) {
	t.Parallel()
	for _, s := range eval.List() {
		got, raw, err := eval.Get(s.Name)
		if err != nil || got != s || !bytes.HasPrefix(raw, []byte(`{"role":"system"`)) || s.About == "" || s.Window < 8_192 {
			t.Errorf("sample %s: got %+v, %d bytes, %v, want a conversation", s.Name, got, len(raw), err)
		}
		compare.True(t, bytes.Contains(raw, []byte(`"facts"`)) && !bytes.ContainsAny(raw, "⟦⟧") && !bytes.Contains(raw, []byte("%!")), "sample %s: want planted facts, and no marks of the generator", s.Name)
	}
	if _, _, err := eval.Get("../secret"); !errors.Is(err, core.ErrNotFound) || !strings.Contains(err.Error(), "chat, coding, cjk, incident") {
		t.Errorf("got %v, want an error that names the samples", err)
	}
}

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
