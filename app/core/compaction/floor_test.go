package compaction_test

import (
	"errors"
	"strings"
	"testing"

	"bobbin/app/core"
)

// CONTEXT § 4, rung 8, § 10 row 1: when nothing can make the prompt fit, no model
// is called for a summary and the session stays as it was.
func TestFloorCallsNoModel(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"window", "budget", "sliding", "ratio", "off"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, core.ContextSettings{Policy: policy}, 8192)
			w.profile.SystemPrompt = strings.Repeat("rule ", 8000)
			w.writer.Add(always(notes))
			w.turns(40, 110)
			w.ask("what next?")
			_, d, err := w.keeper.Fit(t.Context(), w.turn())
			if !errors.Is(err, core.ErrContextFloor) || d.Floor == nil || !strings.Contains(d.Floor.Culprit, "system prompt") {
				t.Errorf("got error %v, floor %v, want the system prompt named", err, d.Floor)
			}
			if n := len(w.writer.Requests()); n != 0 || len(w.summaries) != 0 || w.session.PromptRevision != 0 {
				t.Errorf("got %d model calls, %d summaries, revision %d, want none", n, len(w.summaries), w.session.PromptRevision)
			}
		})
	}
}

// A summary in text that PostgreSQL does not take is stored in text that it takes
// (B7), and counted as that.
func TestSummaryIsStorable(t *testing.T) {
	t.Parallel()
	w := full(t)
	w.writer.Add(always(notes + " \x00 and \xff"))
	w.fit()
	v := w.summaries[0]
	if !strings.Contains(v.Content, "turn 1 happened \uFFFD and \uFFFD") || v.Note != "" {
		t.Errorf("got summary %q, note %q", v.Content, v.Note)
	}
	if want := w.count.Text(v.Content); v.TokenCount != want {
		t.Errorf("got %d tokens, want %d", v.TokenCount, want)
	}
}
