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
	"time"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/llm"
)

// CONTEXT § 10 row 16: 16 at once on one session: one call of the summarizer, one
// version, and everybody goes on with it.
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
		if slices.Max(versions[:]) != 1 || slices.Min(versions[:]) != 1 || len(w.summaries) != 1 || len(w.writer.Requests()) != 1 {
			t.Errorf("got versions %v, %d summaries, %d calls, want one of each", versions, len(w.summaries), len(w.writer.Requests()))
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
		if len(w.summaries) != 1 {
			t.Errorf("got %d summaries, want 1", len(w.summaries))
		}
	})
}

// § 10 rows 17 and 25: what is appended while a summary is made is not lost and
// does not make it stale.
func TestRow17AppendedMeanwhile(t *testing.T) {
	t.Parallel()
	w := full(t)
	w.writer.Add(llm.Step{From: func(llm.Request) llm.Step {
		w.turns(3, 10)
		return llm.Say(notes)
	}})
	w.fit()
	if got := len(w.writer.Requests()); got != 1 || w.session.SummaryVersion != 1 {
		t.Errorf("got %d calls and version %d, want one of each", got, w.session.SummaryVersion)
	}
	turn := w.turn()
	if got, want := len(turn.History)+len(turn.Run)+w.session.SummarizedCount, len(w.log); got != want {
		t.Errorf("%d messages are covered, in the history or in the run, want all %d", got, want)
	}
	w.report()
}

// another is what another process commits: a summary up to the message.
func (w *world) another(through int64, content string) {
	s, _, log := w.now()
	m := log[through-1]
	keep := w.store.before
	w.store.before = nil
	defer func() { w.store.before = keep }()
	_, _, err := w.ApplyContext(w.t.Context(), w.scope(), core.ContextChange{
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

// CONTEXT § 7: who loses the compare-and-set takes over the winner's summary, and
// makes no second one when that suffices.
func TestLostToAnotherProcess(t *testing.T) {
	t.Parallel()
	w := full(t)
	w.writer.Add(llm.Step{From: func(llm.Request) llm.Step {
		w.another(50, "THEIRS")
		return llm.Say("OURS")
	}})
	turn, d := w.fit()
	if got := len(w.writer.Requests()); got != 1 || len(w.summaries) != 1 {
		t.Errorf("got %d calls and %d summaries, want no second one", got, len(w.summaries))
	}
	if got := w.request(turn, d).System[1]; !strings.Contains(got, "THEIRS") || strings.Contains(got, "OURS") {
		t.Errorf("got summary block %q, want the winner's", got)
	}
	if len(turn.History) != 10 {
		t.Errorf("got %d messages after the cursor, want the 10 that theirs does not cover", len(turn.History))
	}
}

// The winner's summary may not suffice: then ours extends theirs.
func TestLostAndStillTooLong(t *testing.T) {
	t.Parallel()
	w := full(t)
	w.writer.Add(llm.Step{From: func(llm.Request) llm.Step {
		w.another(2, "THEIRS")
		return llm.Say("OURS")
	}}, notes)
	turn, _ := w.fit()
	reqs := w.writer.Requests()
	if len(reqs) != 2 || !strings.Contains(fmt.Sprint(reqs[1]), "THEIRS") || turn.Session.SummaryVersion != 2 {
		t.Errorf("got %d calls and version %d, want a second one that extends theirs", len(reqs), turn.Session.SummaryVersion)
	}
}

// Losing again and again ends, and never as ErrStale: that would say that the run
// belongs to somebody else, and nobody would end it.
func TestLostAgainAndAgain(t *testing.T) {
	t.Parallel()
	w := full(t)
	w.writer.Add(always(notes))
	var commits atomic.Int32
	w.before = func(method string) error {
		if method == "ApplyContext" {
			commits.Add(1)
			return core.Errorf(core.ErrStale, "lost")
		}
		return nil
	}
	_, _, err := w.keeper.Fit(t.Context(), w.turn())
	var shown *core.Error
	if errors.Is(err, core.ErrStale) || !errors.Is(err, core.ErrConflict) || !errors.As(err, &shown) || shown.Code == "" {
		t.Errorf("got error %v, want a conflict that may be shown, with a code", err)
	}
	if n := commits.Load(); n < 2 || n > 10 {
		t.Errorf("got %d tries, want a few", n)
	}
	w.before = nil
	w.fit()
}

// many is the sessions of several worlds behind one Keeper. The other stores are
// not asked by Fit.
type many map[core.SessionID]*store

// Get is Sessions.Get.
func (m many) Get(ctx context.Context, scope core.Scope, id core.SessionID) (core.Session, error) {
	return m[id].Get(ctx, scope, id)
}

// SummaryWork is Sessions.SummaryWork.
func (m many) SummaryWork(ctx context.Context, scope core.Scope, id core.SessionID) (core.SummaryWork, error) {
	return m[id].SummaryWork(ctx, scope, id)
}

// LeaseSummary is Sessions.LeaseSummary.
func (m many) LeaseSummary(ctx context.Context, scope core.Scope, id core.SessionID, holder string, d time.Duration) (core.Grant, error) {
	return m[id].LeaseSummary(ctx, scope, id, holder, d)
}

// FreeSummary is Sessions.FreeSummary.
func (m many) FreeSummary(ctx context.Context, id core.SessionID, holder string) error {
	return m[id].FreeSummary(ctx, id, holder)
}

// FreeSummaries is Sessions.FreeSummaries, which Fit does not call.
func (many) FreeSummaries(context.Context, string) error { panic("not expected") }

// SummaryFailed is Sessions.SummaryFailed.
func (m many) SummaryFailed(ctx context.Context, scope core.Scope, f core.SummaryFailure) ([]core.Event, error) {
	return m[f.SessionID].SummaryFailed(ctx, scope, f)
}

// ApplyContext is Sessions.ApplyContext.
func (m many) ApplyContext(ctx context.Context, scope core.Scope, c core.ContextChange) (core.Session, []core.Event, error) {
	return m[c.SessionID].ApplyContext(ctx, scope, c)
}

// Different sessions do not wait for each other.
func TestSessionsDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	a, b := full(t), full(t)
	b.options.Stores.Sessions = many{a.session.ID: a.store, b.session.ID: b.store}
	keeper := compaction.New(b.options)
	gate := llm.NewGate()
	b.writer.Add(llm.Step{Text: []string{notes}, Gate: gate}, notes)
	done := make(chan error)
	go func() {
		_, _, err := keeper.Fit(t.Context(), a.turn())
		done <- err
	}()
	<-gate.Reached()
	if turn, _, err := keeper.Fit(t.Context(), b.turn()); err != nil || turn.Session.SummaryVersion != 1 {
		t.Errorf("got version %d, error %v, want a summary while another session's is being made", turn.Session.SummaryVersion, err)
	}
	gate.Open()
	if err := <-done; err != nil || a.session.SummaryVersion != 1 {
		t.Errorf("got version %d, error %v for the first", a.session.SummaryVersion, err)
	}
}
