package compaction_test

import (
	"context"
	"errors"
	"regexp"
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
	"bobbin/tests/compare"
	"bobbin/tests/coretest"
	"bobbin/tests/llmtest"
)

// Across processes: two Keepers over one store, 16 calls concurrently: one call
// of the summarizer, one version, which all of them use.
func TestRow16OneSummaryAtATimeInTwoProcesses(t *testing.T) {
	t.Parallel()
	w := full(t)
	synctest.Test(t, func(t *testing.T) {
		gate := llmtest.NewGate()
		w.writer.Add(llmtest.Step{Text: []string{notes}, Gate: gate})
		turn := w.turn()
		second := w.options
		second.Worker = "another"
		keepers := []*compaction.Compactor{compaction.New(w.options), compaction.New(second)}
		var versions [16]int
		var wg sync.WaitGroup
		for i := range versions {
			wg.Go(func() {
				got, d, err := keepers[i%2].Fit(t.Context(), turn)
				if err != nil || d.Summarize != nil {
					t.Errorf("goroutine %d: error %v, decision %+v, want a prompt that fits", i, err, d)
				}
				versions[i] = got.Session.SummaryVersion
			})
		}
		<-time.After(3 * time.Second)
		synctest.Wait()
		if got := len(w.writer.Requests()); got != 1 || w.db.CallCount("LeaseSummary") < 3 {
			t.Errorf("got %d calls and %d requests for the lease, want one call that the other process waits for", got, w.db.CallCount("LeaseSummary"))
		}
		gate.Open()
		wg.Wait()
		if slices.Max(versions[:]) != 1 || slices.Min(versions[:]) != 1 || len(w.Summaries) != 1 || len(w.writer.Requests()) != 1 {
			t.Errorf("got versions %v, %d summaries, %d calls, want one of each", versions, len(w.Summaries), len(w.writer.Requests()))
		}
		compare.Equal(t, "the lease is still held by", "", w.Lease.Holder)
	})
}

// The lease of a process that died ends by itself.
func TestLeaseOfTheDead(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		left time.Duration
		want time.Duration // that a prompt which does not fit waits
		made int           // summaries, by then
	}{
		{"it ends while somebody waits", 4 * time.Second, 4 * time.Second, 1},
		{"it does not end in time", time.Minute, 10 * time.Second, 0},
	} {
		w := full(t)
		w.writer.Add(notes)
		watch := w.watched()
		synctest.Test(t, func(t *testing.T) {
			w.t, w.Lease = t, coretest.Lease{Holder: "other/1", Until: time.Now().Add(tt.left)}
			begun := time.Now()
			w.fit()
			if got := time.Since(begun); got < tt.want || got > tt.want+time.Second {
				t.Errorf("%s: waited %s, want %s", tt.name, got, tt.want)
			}
		})
		compare.Equal(t, tt.name+": told of a take-over", (tt.left < 10*time.Second), strings.Contains(watch.told(), "takeovers_total summary 1"))
		if len(w.Summaries) != tt.made || tt.made == 1 && w.Summaries[0].Model != "writer" {
			t.Errorf("%s: got %+v, want %d of the model", tt.name, w.Summaries, tt.made)
		}
	}
}

// Three failures in a row open the breaker; the model is not called then, a
// prompt that does not fit is compacted by rung 5, and after its time the breaker closes by
// itself.
func TestRow24BreakerOpensAndCloses(t *testing.T) {
	t.Parallel()
	w := grown(t, at("window", "background"), over)
	works := false
	turns := regexp.MustCompile(`turn \d+`)
	w.writer.Add(llmtest.Step{Repeat: true, From: func(r llm.Request) llmtest.Step {
		if works {
			return llmtest.Say(notes + "\n- " + strings.Join(turns.FindAllString(r.Messages[0].Content, 20), ", "))
		}
		return llmtest.Step{Err: &llm.Error{Kind: llm.KindOverloaded, Provider: "scripted", Message: "no"}}
	}})
	w.bubble(func() {
		look := func() int {
			before := len(w.writer.Requests())
			w.keeper.Enqueue(w.scope(), w.Session.ID)
			synctest.Wait()
			<-time.After(time.Minute) // the model is called again after a pause
			synctest.Wait()
			return len(w.writer.Requests()) - before
		}
		for i := range core.BreakerFailures {
			if r := w.report(); r.Breaker != "closed" || r.OpenUntil != nil {
				t.Errorf("after %d failures: breaker %q", i, r.Breaker)
			}
			if look() == 0 {
				t.Errorf("failure %d: the model was not asked", i+1)
			}
		}
		r := w.report()
		if r.Breaker != "open" || r.OpenUntil == nil || !strings.Contains(r.Failure, "overloaded") || !slices.ContainsFunc(r.Reasons, func(s string) bool { return strings.Contains(s, "are paused") }) {
			t.Errorf("got breaker %q until %v because of %q, reasons %q", r.Breaker, r.OpenUntil, r.Failure, r.Reasons)
		}
		compare.Equal(t, "calls with the breaker open", 0, look())
		before := len(w.writer.Requests())
		if turn, d := w.fit(); turn.Session.SummaryVersion != 0 || d.Total < over {
			t.Errorf("got version %d, %d tokens, want the prompt as it is", turn.Session.SummaryVersion, d.Total)
		}
		w.grow(burst)
		turn, d := w.fit()
		if _, summaries, _ := w.now(); turn.Session.SummaryVersion != 1 || d.Total > d.Budget.Usable || summaries[0].Model != "" || !strings.Contains(summaries[0].Note, "failed too often") {
			t.Errorf("got %+v, want a summary without a model that says why", summaries)
		}
		compare.Equal(t, "the model was asked with the breaker open", before, len(w.writer.Requests()))

		w.grow(over)
		<-time.After(core.BreakerTime)
		if n := look(); n == 0 {
			t.Error("the breaker has not let one try through after its time")
		}
		if r := w.report(); r.Breaker != "open" {
			t.Errorf("got breaker %q after the one try failed, want it open again", r.Breaker)
		}
		<-time.After(core.BreakerTime)
		works = true
		look()
		if r := w.report(); r.Breaker != "closed" || r.Failure != "" || r.Prepared == nil && r.Coverage.Summarized < 100 {
			t.Errorf("got breaker %q, failure %q, prepared %v, want a success to close it", r.Breaker, r.Failure, r.Prepared)
		}
	})
}

// A manual request calls the model even while the breaker is open.
func TestManualSummaryWithTheBreakerOpen(t *testing.T) {
	t.Parallel()
	w := grown(t, at("window", "background"), near)
	until := time.Now().Add(time.Minute)
	w.Breaker = core.Breaker{Failures: 3, Reason: "the model failed (auth)", Until: &until}
	w.writer.Add(notes)
	v, err := w.keeper.Summarize(t.Context(), w.scope(), w.Session.ID, "")
	if err != nil || v.Model != "writer" || w.Breaker.Failures != 0 {
		t.Errorf("got %+v, %v, breaker %+v, want the model's, and the breaker closed", v, err, w.Breaker)
	}
}

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
		compare.Equal(t, "summaries", 1, len(w.Summaries))
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

// Who loses the compare-and-set takes over the winner's summary, and makes no second one when that suffices.
func TestLostToAnotherProcess(t *testing.T) {
	t.Parallel()
	w := full(t)
	w.writer.Add(llmtest.Step{From: func(llm.Request) llmtest.Step {
		w.another(50, "THEIRS")
		return llmtest.Say(notes + "\nOURS")
	}})
	turn, d := w.fit()
	compare.Equal(t, "calls and summaries: want no second one", []int{1, 1}, []int{len(w.writer.Requests()), len(w.Summaries)})
	if got := w.request(turn, d).System[1]; !strings.Contains(got, "THEIRS") || strings.Contains(got, "OURS") {
		t.Errorf("got summary block %q, want the winner's", got)
	}
	compare.Equal(t, "messages after the cursor: want the 10 that theirs does not cover", 10, len(turn.History))
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
