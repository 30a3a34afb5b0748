package eval_test

import (
	"testing"

	"bobbin/app/core"
	"bobbin/app/eval"
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
