package compaction_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// 16 concurrent calls on one session: one call of the summarizer, one
// version, which all of them use.
func TestRow16OneSummaryAtATime(t *testing.T) {
	t.Parallel()
	w := full(t)
	synctest.Test(t, func(t *testing.T) {
		gate := llm.NewGate()
		w.writer.Add(llm.Step{Text: []string{notes}, Gate: gate})
		turn := w.turn()
		var versions [16]int
		var wg sync.WaitGroup
		for i := range versions {
			wg.Go(func() {
				got, d, err := w.keeper.Fit(t.Context(), turn)
				if err != nil || d.Summarize != nil || len(got.History) == len(turn.History) {
					t.Errorf("goroutine %d: error %v, decision %+v, want a prompt that fits", i, err, d)
				}
				versions[i] = got.Session.SummaryVersion
			})
		}
		synctest.Wait() // one at the model, 15 behind it
		if got := len(w.writer.Requests()); got != 1 {
			t.Errorf("got %d calls of the summarizer at once, want 1", got)
		}
		gate.Open()
		wg.Wait()
		if slices.Max(versions[:]) != 1 || slices.Min(versions[:]) != 1 || len(w.Summaries) != 1 || len(w.writer.Requests()) != 1 {
			t.Errorf("got versions %v, %d summaries, %d calls, want one of each", versions, len(w.Summaries), len(w.writer.Requests()))
		}
	})
}

// Whoever waits for another's summary can be canceled, and leaves nothing behind.
func TestWaitingIsCanceled(t *testing.T) {
	t.Parallel()
	w := full(t)
	synctest.Test(t, func(t *testing.T) {
		gate := llm.NewGate()
		w.writer.Add(llm.Step{Text: []string{notes}, Gate: gate})
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

// What is appended while a summary is made is not lost and
// does not make it stale.
func TestRow17AppendedMeanwhile(t *testing.T) {
	t.Parallel()
	w := full(t)
	w.writer.Add(llm.Step{From: func(llm.Request) llm.Step {
		w.turns(3, 10)
		return llm.Say(notes)
	}})
	w.fit()
	if got := len(w.writer.Requests()); got != 1 || w.Session.SummaryVersion != 1 {
		t.Errorf("got %d calls and version %d, want one of each", got, w.Session.SummaryVersion)
	}
	turn := w.turn()
	if got, want := len(turn.History)+len(turn.Run)+w.Session.SummarizedCount, len(w.Messages); got != want {
		t.Errorf("%d messages are covered, in the history or in the run, want all %d", got, want)
	}
	w.report()
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
	w.writer.Add(llm.Step{From: func(llm.Request) llm.Step {
		w.another(50, "THEIRS")
		return llm.Say(notes + "\nOURS")
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

// The winner's summary may not suffice: then this prompt is sent without its oldest
// messages, as it waits for one call only, and at the next ours extends theirs.
func TestLostAndStillTooLong(t *testing.T) {
	t.Parallel()
	w := full(t)
	w.writer.Add(llm.Step{From: func(llm.Request) llm.Step {
		w.another(2, "THEIRS")
		return llm.Say(notes + "\nOURS")
	}}, notes+"\n- turn 3, turn 5, turn 7, turn 9 and turn 11 were said.")
	if turn, d := w.fit(); len(w.writer.Requests()) != 1 || turn.Session.SummaryVersion != 1 || !slices.Contains(d.Rungs, 7) {
		t.Errorf("got %d calls, version %d, rungs %v, want theirs and no second call", len(w.writer.Requests()), turn.Session.SummaryVersion, d.Rungs)
	}
	turn, _ := w.fit()
	reqs := w.writer.Requests()
	if len(reqs) != 2 || !strings.Contains(fmt.Sprint(reqs[1]), "THEIRS") || turn.Session.SummaryVersion != 2 {
		t.Errorf("got %d calls and version %d, want a second one that extends theirs", len(reqs), turn.Session.SummaryVersion)
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

// Different sessions do not wait for each other.
func TestSessionsDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	a := full(t)
	b := new(*a) // another session of the same Compactor
	b.begin()
	b.turns(30, 110)
	b.ask("what next?")
	a.WithTexts, b.WithTexts = 0, 0
	gate := llm.NewGate()
	b.writer.Add(llm.Step{Text: []string{notes}, Gate: gate}, notes)
	done := make(chan error)
	go func() {
		_, _, err := a.keeper.Fit(t.Context(), a.turn())
		done <- err
	}()
	<-gate.Reached()
	if turn, _, err := a.keeper.Fit(t.Context(), b.turn()); err != nil || turn.Session.SummaryVersion != 1 {
		t.Errorf("got version %d, error %v, want a summary while another session's is being made", turn.Session.SummaryVersion, err)
	}
	gate.Open()
	if err := <-done; err != nil || a.Session.SummaryVersion != 1 {
		t.Errorf("got version %d, error %v for the first", a.Session.SummaryVersion, err)
	}
}
