package eval_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/eval"
	"bobbin/tests/apptest"
	"bobbin/tests/must"
	"bobbin/tests/seed"
)

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
		if p.Largest > p.Budget.Usable {
			t.Errorf("%s: got a prompt of %d tokens in turn %d, want at most %d", what, p.Largest, p.LargestTurn, p.Budget.Usable)
		}
		f := p.Facts
		if f.Reachable+len(f.Unreachable) != f.Planted || f.Prompt+f.Summary+f.First5+f.First20 != f.Reachable {
			t.Errorf("%s: got facts %+v, want each of them in one place", what, f)
		}
		if s := f.SearchAlone; f.First5 > s.First5 || s.First5 > s.First20 || s.First20 > f.Asked || f.Asked > f.Planted {
			t.Errorf("%s: got facts %+v, want search to find what it was asked for", what, f)
		}
		if p.Policy == "off" && p.Summaries > 0 {
			t.Errorf("%s: got %d summaries, want none", what, p.Summaries)
		}
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
	if completed != p.Summaries {
		t.Errorf("%s: got %d summaries and %d events of them, want as many", what, p.Summaries, completed)
	}
}

// line is a message in Bobbin's shape.
type line struct {
	Role       string          `json:"role"`
	Content    string          `json:"content"`
	ToolCalls  []core.ToolCall `json:"tool_calls,omitempty"`
	ToolCallID string          `json:"tool_call_id,omitempty"`
	Metadata   map[string]any  `json:"metadata,omitempty"`
}

// jsonl writes the lines.
func jsonl(t *testing.T, lines []line) []byte {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for _, l := range lines {
		must.Do(t, enc.Encode(l))
	}
	return b.Bytes()
}

// random makes up a conversation: talk, tool loops, large results, questions nobody
// answers, and facts between.
func random(r *rand.Rand) []line {
	words := strings.Fields("the deploy of server nine broke at noon 数据库 連接 버그 naïve café internal/api/main.go timeout=30s {\"a\":1} and then again")
	text := func(most int) string {
		var b strings.Builder
		for range 1 + r.IntN(most) {
			b.WriteString(words[r.IntN(len(words))] + " ")
		}
		return b.String()
	}
	var out []line
	calls := 0
	for n := range 4 + r.IntN(26) {
		fact := fmt.Sprintf("/srv/data%d/file%d.csv", n, r.IntN(1000))
		out = append(out, line{Role: "user", Content: text(120) + fact, Metadata: map[string]any{"facts": []any{map[string]string{"kind": "path", "text": fact, "ask": "the deploy of server nine"}}}})
		if r.IntN(8) == 0 {
			continue
		}
		for range r.IntN(4) {
			l := line{Role: "assistant", Content: text(8)}
			var results []line
			for range 1 + r.IntN(2) {
				id := fmt.Sprintf("c%d", calls)
				calls++
				l.ToolCalls = append(l.ToolCalls, core.ToolCall{ID: id, Name: []string{"read", "run"}[r.IntN(2)], Arguments: `{"path":"` + fact + `"}`})
				if r.IntN(12) > 0 {
					results = append(results, line{Role: "tool", ToolCallID: id, Content: text([]int{30, 300, 6000}[r.IntN(3)])})
				}
			}
			out = append(append(out, l), results...)
		}
		if r.IntN(10) > 0 {
			out = append(out, line{Role: "assistant", Content: text(200)})
		}
		if r.IntN(12) == 0 {
			out = append(out, line{Role: "assistant", Content: text(50)})
		}
	}
	return out
}

// The laws hold for conversations of all kinds, in small windows and large ones,
// whoever summarizes and however a model counts.
func TestLaws(t *testing.T) {
	t.Parallel()
	for n := range uint64(apptest.ChooseSize(1, 4)) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			r := seed.Rand(t, n)
			e := eval.Evaluation{
				Source: fmt.Sprint("conversation ", n), Data: jsonl(t, random(r)), Format: core.ImportLines, Policies: eval.Policies()[:apptest.ChooseSize(2, len(eval.Policies()))],
				Window: []int{4_096, 6_000, 8_192, 20_000}[r.IntN(4)], Model: []string{"gpt-4o-mini", "claude-sonnet-4-5", "demo"}[r.IntN(3)],
				Summarizer: []string{eval.SummarizerScripted, eval.SummarizerExtractive}[r.IntN(2)],
			}
			laws(t, evaluate(t, e))
		})
	}
}
