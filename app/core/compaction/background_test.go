package compaction_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/llm"
	"bobbin/tests/compare"
	"bobbin/tests/coretest"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

// The window of 8,192 tokens has its trigger at 6,553, is near it over 5,733, and takes
// 7,168.
const (
	near  = 5_800
	over  = 6_600
	burst = 7_300
)

// at gives the policy a timing.
func at(policy, timing string) core.ContextSettings {
	return core.ContextSettings{Policy: policy, Timing: &timing}
}

// grown returns a world whose conversation has at least that many tokens, a run that has
// just begun included.
func grown(t *testing.T, settings core.ContextSettings, tokens int) *world {
	t.Helper()
	w := newWorld(t, settings, 8192)
	w.turns(tokens/110, 40) // most of it, without a look each
	w.grow(tokens)
	return w
}

// grow ends the run in progress and adds turns until the prompt of a new run has at
// least that many tokens.
func (w *world) grow(tokens int) {
	w.t.Helper()
	w.endRun()
	r := w.report()
	for r.Planned < tokens-20 {
		w.turns(1, 40)
		_, _, log := w.now()
		for _, m := range log[len(log)-2:] {
			r.Planned += int(math.Ceil(r.Calibration.Factor * float64(m.TokenCount)))
		}
	}
	w.ask("and then?")
}

// bubble runs f in a bubble of synctest, with the Compactor's work in the background.
func (w *world) bubble(f func()) {
	w.t.Helper()
	outside := w.t
	defer func() { w.t = outside }()
	synctest.Test(w.t, func(t *testing.T) {
		w.t = t
		w.keeper = compaction.New(w.options) // its channels are of the bubble
		ctx, cancel := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		wait.Go(func() {
			if err := w.keeper.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		f()
		cancel()
		wait.Wait()
	})
}

// prepared returns the versions that are prepared.
func (w *world) prepared() []core.Summary {
	_, summaries, _ := w.now()
	return slices.DeleteFunc(summaries, func(s core.Summary) bool { return s.State != core.SummaryPrepared })
}

// W5: near the trigger a summary is prepared, and nothing changes; over it
// it is activated, and no model is called.
func TestPreparedThenActivated(t *testing.T) {
	t.Parallel()
	w := newWorld(t, at("window", "background"), 8192)
	w.ask("hello")
	if turn, _ := w.fit(); !w.keeper.IsDone(turn) {
		t.Error("a run in a short conversation leaves work")
	}
	w = grown(t, at("window", "background"), near)
	w.bubble(func() {
		gate := llmtest.NewGate() // or it could be there at once
		w.writer.Add(llmtest.Step{Gate: gate, Text: []string{notes}})
		turn, d := w.fit()
		if w.keeper.IsDone(turn) {
			t.Error("a run leaves no work, want a summary to prepare")
		}
		gate.Open()
		before := w.request(turn, d)
		session, _, _ := w.now()
		synctest.Wait()
		w.fit() // nothing more
		synctest.Wait()
		if len(w.prepared()) != 1 || len(w.writer.Requests()) != 1 {
			t.Fatalf("got %d prepared after %d calls, want one", len(w.prepared()), len(w.writer.Requests()))
		}
		after, _, _ := w.now()
		if diff := cmp.Diff(session, after); diff != "" || len(w.Events) != 0 {
			t.Errorf("session (-before +after):\n%s, events %v, want nothing changed", diff, coretest.Types(w.Events))
		}
		told := w.feed.Passing()
		compare.Equal(t, "what watchers were told", []core.EventType{core.EventContextStarted, core.EventContextCompleted}, coretest.Types(told))
		for _, e := range told {
			if !coretest.Data[core.ContextData](e).Ahead {
				t.Errorf("got %s without ahead, want it to say that no prompt changes", e.Type)
			}
		}
		turn, d = w.fit()
		compare.Equal(t, "the prompt changed", before, w.request(turn, d))
		if !w.keeper.IsDone(turn) {
			t.Error("a run leaves work although the summary is ready")
		}
		if r := w.report(); r.Prepared == nil || r.Prepared.Version != 1 || len(r.Summaries) != 0 || r.Summarizing {
			t.Errorf("got prepared %+v, summaries %+v, want the one that is ready", r.Prepared, r.Summaries)
		}

		w.grow(over)
		if r := w.report(); !strings.Contains(strings.Join(r.Reasons, "\n"), "first activates version 1 of the summary") || !r.WillTrigger {
			t.Errorf("got reasons %q, will trigger %v, want the summary announced", r.Reasons, r.WillTrigger)
		}
		turn, d = w.fit()
		synctest.Wait()
		compare.Equal(t, "version after calls: want the prepared one in use", []int{1, 1, 0}, []int{turn.Session.SummaryVersion, len(w.writer.Requests()), len(w.prepared())})
		if d.Total > d.Budget.Landing+150 || len(turn.History)+turn.Session.SummarizedCount+1 != len(w.Messages) {
			t.Errorf("landed at %d of %d, %d messages after the cursor", d.Total, d.Budget.Landing, len(turn.History))
		}
		compare.Contains(t, "the prompt has not the summary's words", "Test the tester.", w.request(turn, d).System[1])
		if diff := cmp.Diff([]core.EventType{core.EventContextCompleted}, coretest.Types(w.Events)); diff != "" {
			t.Fatalf("events (-want +got):\n%s", diff)
		}
		if got := coretest.Data[core.ContextData](w.Events[0]); got.Version != 1 || got.Trigger != "share" || got.TokensAfter >= got.TokensBefore || got.MessagesCovered == 0 || w.Events[0].RunID != turn.RunID {
			t.Errorf("got %+v, want what the activation did", got)
		}
		compare.Equal(t, "booked calls: want the one", 1, len(w.Calls))
	})
}

// What is appended while a summary is made, and after, does not make
// it stale; no more does a prompt state that changes (a warning, a tool loop).
func TestRow25AppendsDoNotInvalidate(t *testing.T) {
	t.Parallel()
	w := grown(t, at("window", "background"), near)
	w.bubble(func() {
		gate := llmtest.NewGate()
		w.writer.Add(llmtest.Step{Text: []string{notes}, Gate: gate})
		w.fit()
		synctest.Wait()
		if r := w.report(); !r.Summarizing || r.Prepared != nil {
			t.Errorf("got summarizing %v, prepared %+v, want one in the making", r.Summarizing, r.Prepared)
		}
		w.grow(over) // many messages later
		session, _, _ := w.now()
		if _, _, err := w.db.Sessions.ApplyContext(w.t.Context(), w.scope(), core.ContextChange{
			SessionID: session.ID, Expect: session.PromptRevision, PromptState: []byte(`{"warned":true}`),
		}); err != nil {
			t.Fatal(err)
		}
		if turn, d := w.fit(); d.Total < over || turn.Session.SummaryVersion != 0 {
			t.Errorf("got %d tokens, version %d, want the prompt sent as it is meanwhile", d.Total, turn.Session.SummaryVersion)
		}
		gate.Open()
		synctest.Wait()
		if turn, _ := w.fit(); turn.Session.SummaryVersion != 1 || len(w.writer.Requests()) != 1 {
			t.Errorf("got version %d after %d calls, want the one summary in use", turn.Session.SummaryVersion, len(w.writer.Requests()))
		}
	})
}

// A summary whose material was changed is not stored, and its calls are paid for all the
// same.
func TestChangedMaterialInvalidates(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(w *world){
		"deletion": func(w *world) { w.Messages = slices.Delete(w.Messages, 1, 2) },
		"edit": func(w *world) {
			now := core.Now()
			w.Messages[1].Content, w.Messages[1].RevisedAt = "something else", &now
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := grown(t, at("window", "background"), near)
			w.bubble(func() {
				w.writer.Add(llmtest.Step{From: func(llm.Request) llmtest.Step {
					w.db.Edit(func() {
						change(w)
						w.Session.PromptRevision++
					})
					return llmtest.Say(notes + "\n- Open: what is gone.")
				}}, notes)
				w.fit()
				synctest.Wait()
				if got := w.prepared(); len(got) > 1 || len(got) == 1 && strings.Contains(got[0].Content, "what is gone") {
					t.Errorf("got %+v prepared, want nothing that was made from what is gone", got)
				}
				compare.Equal(t, "booked calls", len(w.writer.Requests()), len(w.Calls))
			})
		})
	}
}

// R4: after a run the summary is made beside it and is in use immediately; the
// next run waits for nothing.
func TestAfterRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.ContextSettings{Policy: "sliding"}, 8192)
	w.turns(8, 20)
	w.bubble(func() {
		gate := llmtest.NewGate()
		w.writer.Add(llmtest.Step{Text: []string{shortNotes}, Gate: gate})
		w.keeper.Enqueue(w.scope(), w.Session.ID)
		synctest.Wait()
		w.ask("next")
		if turn, d := w.fit(); len(turn.History) != 16 || d.Summarize != nil {
			t.Errorf("got %d messages, want all while the summary is made", len(turn.History))
		}
		old := w.turn() // what the run knows, also after the summary is there
		gate.Open()
		synctest.Wait()
		turn, _, err := w.keeper.Fit(w.t.Context(), old)
		if err != nil || turn.Session.SummaryVersion != 1 || len(turn.History) != 10 || len(w.writer.Requests()) != 1 {
			t.Errorf("got version %d with %d messages, %v, want the summary in use", turn.Session.SummaryVersion, len(turn.History), err)
		}
		compare.Equal(t, "events", []core.EventType{core.EventContextCompleted}, coretest.Types(w.Events))
	})
}

// A summarizer that fails in the background leaves the state as it was, and says so.
func TestRow3BackgroundFailureStoresNothing(t *testing.T) {
	t.Parallel()
	for _, settings := range []core.ContextSettings{at("window", "background"), at("window", "after_run")} {
		w := grown(t, settings, over)
		before := w.state()
		w.writer.Add(llmtest.Step{Repeat: true, Text: []string{"Error: 500 SECRET internal server error"}})
		w.bubble(func() {
			w.keeper.Enqueue(w.scope(), w.Session.ID)
			synctest.Wait()
		})
		compare.Equal(t, *settings.Timing+": state", before, w.state())
		if len(w.Events) != 1 || w.Events[0].Type != core.EventContextFailed || len(w.feed.Published()) != 1 {
			t.Fatalf("%s: got events %v, want context.failed", *settings.Timing, coretest.Types(w.Events))
		}
		if got := coretest.Data[core.ContextData](w.Events[0]); got.Reason != "no summary was made: the answer was too short for what it replaces" || got.Ahead != (*settings.Timing == "background") {
			t.Errorf("%s: got %+v, want the reason", *settings.Timing, got)
		}
		if w.Breaker.Failures != 1 || len(w.Calls) == 0 || w.Lease.Holder != "" {
			t.Errorf("%s: got breaker %+v, %d calls, lease %+v, want a failure that is booked", *settings.Timing, w.Breaker, len(w.Calls), w.Lease)
		}
	}
}

// When the process stops, a summary in progress has the grace period; then it is
// broken off, and nothing half-done is stored.
func TestStopping(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		takes time.Duration
		want  int
	}{"in time": {20 * time.Second, 1}, "too late": {50 * time.Second, 0}} {
		w := grown(t, at("window", "background"), near)
		synctest.Test(t, func(t *testing.T) {
			gate := llmtest.NewGate()
			w.writer.Add(llmtest.Step{Text: []string{notes}, Gate: gate})
			w.t, w.keeper = t, compaction.New(w.options)
			ctx, cancel := context.WithCancel(t.Context())
			left := make(chan time.Time)
			go func() {
				if err := w.keeper.Run(ctx); err != nil {
					t.Error(err)
				}
				left <- time.Now()
			}()
			synctest.Wait()
			w.fit()
			synctest.Wait()
			begun := time.Now()
			time.AfterFunc(tt.takes, gate.Open)
			cancel()
			compare.Equal(t, name+": stopped after", min(tt.takes, w.options.Grace), (<-left).Sub(begun))
			if got := len(w.prepared()); got != tt.want || w.Lease.Holder != "" || len(w.Events) != 0 || w.Breaker.Failures != 0 {
				t.Errorf("%s: got %d prepared, lease %+v, events %v, want %d and nothing left behind", name, got, w.Lease, coretest.Types(w.Events), tt.want)
			}
			w.keeper.Enqueue(w.scope(), w.Session.ID) // no worker runs
			gate.Open()
		})
	}
}

// Jobs of one session are done one after the other, and once more if it was wanted
// meanwhile, however often.
func TestJobsAreDoneOnce(t *testing.T) {
	t.Parallel()
	w := grown(t, at("window", "background"), near)
	loads := 0
	w.db.Before(func(method string) error {
		if method == "Sessions.Get" {
			loads++
		}
		return nil
	})
	w.bubble(func() {
		gate := llmtest.NewGate()
		w.writer.Add(llmtest.Step{Text: []string{notes}, Gate: gate})
		for range 100 {
			w.keeper.Enqueue(w.scope(), w.Session.ID)
		}
		synctest.Wait()
		for range 100 {
			w.keeper.Enqueue(w.scope(), w.Session.ID)
		}
		gate.Open()
		synctest.Wait()
	})
	if loads > 4 || len(w.writer.Requests()) != 1 || len(w.prepared()) != 1 {
		t.Errorf("got %d loads, %d calls, %d prepared, want two looks and one summary", loads, len(w.writer.Requests()), len(w.prepared()))
	}
}

// A session that has gone, or a store that fails, stops nothing.
func TestJobsThatFail(t *testing.T) {
	t.Parallel()
	w := grown(t, at("window", "background"), near)
	w.writer.Add(notes)
	w.bubble(func() {
		w.keeper.Enqueue(w.scope(), core.NewID[core.SessionID]())
		w.db.Before(func(string) error { return errors.New("the database is gone") })
		w.keeper.Enqueue(w.scope(), w.Session.ID)
		synctest.Wait()
		w.db.Before(nil)
		w.keeper.Enqueue(w.scope(), w.Session.ID)
		synctest.Wait()
	})
	compare.Equal(t, "prepared: want the work to go on", 1, len(w.prepared()))
}

// A run that ends while its session is read does not count as half a turn: what a summary
// covers depends on the conversation, not on the moment.
func TestSummarizeDueAsRunEnds(t *testing.T) {
	t.Parallel()
	limit := 15
	w := newWorld(t, core.ContextSettings{Policy: "budget", MaxMessagesBeforeSummary: &limit}, 128_000)
	w.writer.Add(notes)
	w.turns(7, 40)
	w.ask("and then?")
	var ended sync.Once
	w.db.Before(func(method string) error {
		if method == "Active" {
			ended.Do(func() {
				answer := w.said(core.RoleAssistant, "then it ended")
				answer.RunID = w.run.ID
				w.add(answer)
				w.endRun()
			})
		}
		return nil
	})
	must.Do(t, w.keeper.SummarizeDue(t.Context(), w.scope(), w.Session.ID))
	if got := w.Session.SummarizedCount; got != 10 {
		t.Errorf("got a summary of %d messages, want 10 of 16", got)
	}
}
