package compaction_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/tests/llmtest"
)

// Whoever waits for another's summary can be canceled, and leaves nothing behind.
func TestWaitingIsCanceled(t *testing.T) {
	t.Parallel()
	w := full(t)
	synctest.Test(t, func(t *testing.T) {
		gate := llmtest.NewGate()
		w.writer.Add(llmtest.Step{Text: []string{notes}, Gate: gate})
		turn := w.turn()
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, _, err := w.keeper.Fit(t.Context(), turn); err != nil {
				t.Errorf("got error %v for the one that summarizes", err)
			}
		})
		<-gate.Reached()
		ctx, cancel := context.WithCancelCause(t.Context())
		wg.Go(func() {
			if _, _, err := w.keeper.Fit(ctx, turn); !errors.Is(err, core.ErrCanceled) {
				t.Errorf("got error %v for the one that waits, want the cause of its cancel", err)
			}
		})
		synctest.Wait()
		cancel(core.ErrCanceled)
		synctest.Wait()
		gate.Open()
		wg.Wait()
		if len(w.Summaries) != 1 {
			t.Errorf("got %d summaries, want 1", len(w.Summaries))
		}
	})
}

// another is what another process commits: a summary up to the message.
func (w *world) another(through int64, content string) {
	s, _, log := w.now()
	m := log[through-1]
	hook := w.db.Before(nil)
	defer func() { w.db.Before(hook) }()
	_, _, err := w.db.Sessions.ApplyContext(w.t.Context(), w.scope(), core.ContextChange{
		SessionID: s.ID, Expect: s.PromptRevision, PromptState: []byte("{}"),
		Summary: &core.Summary{
			ID: core.NewID[core.SummaryID](), Content: content, ThroughID: m.ID, ThroughSeq: m.Seq,
			MessagesCovered: int(m.Seq), TokenCount: w.count.Text(content), State: core.SummaryActive,
		},
	})
	if err != nil {
		w.t.Error(err)
	}
}

// Who loses the compare-and-set takes over the winner's summary, and
// makes no second one when that suffices.
func TestLostToAnotherProcess(t *testing.T) {
	t.Parallel()
	w := full(t)
	w.writer.Add(llmtest.Step{From: func(llm.Request) llmtest.Step {
		w.another(50, "THEIRS")
		return llmtest.Say(notes + "\nOURS")
	}})
	turn, d := w.fit()
	if got := len(w.writer.Requests()); got != 1 || len(w.Summaries) != 1 {
		t.Errorf("got %d calls and %d summaries, want no second one", got, len(w.Summaries))
	}
	if got := w.request(turn, d).System[1]; !strings.Contains(got, "THEIRS") || strings.Contains(got, "OURS") {
		t.Errorf("got summary block %q, want the winner's", got)
	}
	if len(turn.History) != 10 {
		t.Errorf("got %d messages after the cursor, want the 10 that theirs does not cover", len(turn.History))
	}
}

// Losing again and again ends, and never as ErrStale: that would say that the run
// has another owner, and no process would end it.
func TestLostAgainAndAgain(t *testing.T) {
	t.Parallel()
	w := full(t)
	w.writer.Add(always(notes))
	var commits atomic.Int32
	w.db.Before(func(method string) error {
		if method == "ApplyContext" {
			commits.Add(1)
			return core.Errorf(core.ErrStale, "lost")
		}
		return nil
	})
	w.fit() // which continues without the summary
	if n := commits.Load(); n < 2 || n > 10 {
		t.Errorf("got %d tries, want a few", n)
	}
	w.db.Before(nil)
	w.fit()
}
