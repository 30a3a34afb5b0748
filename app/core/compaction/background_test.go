package compaction_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
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

// grown returns a world whose conversation has at least so many tokens, a run that has
// just begun included.
func grown(t *testing.T, settings core.ContextSettings, tokens int) *world {
	t.Helper()
	w := newWorld(t, settings, 8192)
	w.turns(tokens/110, 40) // most of it, without a look each
	w.grow(tokens)
	return w
}

// grow ends the run in progress and adds turns until the prompt of a new run has at
// least so many tokens.
func (w *world) grow(tokens int) {
	w.t.Helper()
	w.mu.Lock()
	w.run = core.Run{}
	w.mu.Unlock()
	for w.report().Planned < tokens-20 {
		w.turns(1, 40)
	}
	w.ask("and then?")
}

// bubble runs f in a bubble of synctest, with the Keeper's work in the background.
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

// W5, CONTEXT § 8: near the trigger a summary is prepared, and nothing changes; over it
// it is put to use, and no model is called.
func TestPreparedThenActivated(t *testing.T) {
	t.Parallel()
	w := grown(t, at("window", "background"), near)
	w.writer.Add(notes)
	w.bubble(func() {
		before := w.request(w.fit())
		session, _, _ := w.now()
		synctest.Wait()
		if len(w.prepared()) != 1 || len(w.writer.Requests()) != 1 {
			t.Fatalf("got %d prepared after %d calls, want one", len(w.prepared()), len(w.writer.Requests()))
		}
		after, _, _ := w.now()
		if diff := cmp.Diff(session, after); diff != "" || len(w.events) != 0 {
			t.Errorf("session (-before +after):\n%s, events %v, want nothing changed", diff, kinds(w.events))
		}
		if got := w.passing; len(got) != 1 || got[0].Type != core.EventContextStarted || !data[core.ContextData](t, got[0]).Ahead {
			t.Errorf("got %v, want to be told that a summary is made ahead", got)
		}
		if diff := cmp.Diff(before, w.request(w.fit())); diff != "" {
			t.Errorf("the prompt changed (-before +after):\n%s", diff)
		}
		if r := w.report(); r.Prepared == nil || r.Prepared.Version != 1 || len(r.Summaries) != 0 || r.Summarizing {
			t.Errorf("got prepared %+v, summaries %+v, want the one that is ready", r.Prepared, r.Summaries)
		}

		w.grow(over)
		if r := w.report(); !strings.Contains(strings.Join(r.Reasons, "\n"), "first puts summary 1 to use") || !r.WillTrigger {
			t.Errorf("got reasons %q, will trigger %v, want the summary announced", r.Reasons, r.WillTrigger)
		}
		turn, d := w.fit()
		synctest.Wait()
		if turn.Session.SummaryVersion != 1 || len(w.writer.Requests()) != 1 || len(w.prepared()) != 0 {
			t.Errorf("got version %d after %d calls, want the prepared one in use", turn.Session.SummaryVersion, len(w.writer.Requests()))
		}
		if d.Total > d.Budget.Landing+150 || len(turn.History)+turn.Session.SummarizedCount+1 != len(w.log) {
			t.Errorf("landed at %d of %d, %d messages after the cursor", d.Total, d.Budget.Landing, len(turn.History))
		}
		if !strings.Contains(w.request(turn, d).System[1], "Test the tester.") {
			t.Error("the prompt has not the summary's words")
		}
		if diff := cmp.Diff([]core.EventType{core.EventContextCompleted}, kinds(w.events)); diff != "" {
			t.Fatalf("events (-want +got):\n%s", diff)
		}
		if got := data[core.ContextData](t, w.events[0]); got.Version != 1 || got.Trigger != "share" || got.TokensAfter >= got.TokensBefore || got.MessagesCovered == 0 || w.events[0].RunID != turn.RunID {
			t.Errorf("got %+v, want what the activation did", got)
		}
		if len(w.calls) != 1 {
			t.Errorf("got %d booked calls, want the one", len(w.calls))
		}
	})
}

// CONTEXT § 10 row 25: what is appended while a summary is made, and after, does not make
// it stale; no more does a prompt state that changes (a warning, a tool loop).
func TestRow25AppendsDoNotInvalidate(t *testing.T) {
	t.Parallel()
	w := grown(t, at("window", "background"), near)
	w.bubble(func() {
		gate := llm.NewGate()
		w.writer.Add(llm.Step{Text: []string{notes}, Gate: gate})
		w.fit()
		synctest.Wait()
		if r := w.report(); !r.Summarizing || r.Prepared != nil {
			t.Errorf("got summarizing %v, prepared %+v, want one in the making", r.Summarizing, r.Prepared)
		}
		w.grow(over) // many messages later
		session, _, _ := w.now()
		if _, _, err := w.ApplyContext(w.t.Context(), w.scope(), core.ContextChange{
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
func TestDeletionInvalidates(t *testing.T) {
	t.Parallel()
	w := grown(t, at("window", "background"), near)
	w.bubble(func() {
		w.writer.Add(llm.Step{From: func(llm.Request) llm.Step {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.log = slices.Delete(w.log, 1, 2) // as a deletion does it
			w.session.PromptRevision++
			return llm.Say("## Goal\nTell what was deleted.")
		}}, notes)
		w.fit()
		synctest.Wait()
		if got := w.prepared(); len(got) > 1 || len(got) == 1 && strings.Contains(got[0].Content, "was deleted") {
			t.Errorf("got %+v prepared, want nothing that was made from what was deleted", got)
		}
		if len(w.calls) != len(w.writer.Requests()) {
			t.Errorf("got %d booked calls, want %d", len(w.calls), len(w.writer.Requests()))
		}
	})
}

// CONTEXT § 8, R4: after a run the summary is made beside it and is in use at once; the
// next run waits for nothing.
func TestAfterRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.ContextSettings{Policy: "sliding"}, 8192)
	w.turns(8, 20)
	w.bubble(func() {
		gate := llm.NewGate()
		w.writer.Add(llm.Step{Text: []string{"short notes"}, Gate: gate})
		w.keeper.Soon(w.scope(), w.session.ID)
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
		if diff := cmp.Diff([]core.EventType{core.EventContextCompleted}, kinds(w.events)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// R4: what the last run left undone is done before the next; where that fails, the run
// goes on as it is, and nothing is stored.
func TestAfterRunCatchesUpBeforeTheNext(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]any{"made": "short notes", "failed": &llm.Error{Kind: llm.KindAuth, Provider: "scripted", Message: "no"}} {
		w := newWorld(t, core.ContextSettings{Policy: "sliding"}, 8192)
		w.turns(8, 20)
		w.ask("next")
		w.writer.Add(step)
		turn, d := w.fit()
		want := map[string]int{"made": 10, "failed": 16}[name]
		if len(turn.History) != want || d.Summarize != nil || len(w.writer.Requests()) != 1 {
			t.Errorf("%s: got %d messages after %d calls, want %d", name, len(turn.History), len(w.writer.Requests()), want)
		}
		if name == "failed" && (len(w.summaries) != 0 || w.breaker.Failures != 1 || len(w.calls) != 1 || !slices.Equal(kinds(w.events), []core.EventType{core.EventContextFailed})) {
			t.Errorf("got summaries %+v, breaker %+v, events %v, want a failure that is told of and nothing else", w.summaries, w.breaker, kinds(w.events))
		}
	}
}

// Nobody waits for what fits; a prompt that does not fit waits for the summary that is
// being made, and uses it.
func TestBurstWaitsForTheSummaryInTheMaking(t *testing.T) {
	t.Parallel()
	w := grown(t, at("window", "background"), near)
	w.bubble(func() {
		gate := llm.NewGate()
		w.writer.Add(llm.Step{Text: []string{notes}, Gate: gate})
		w.fit()
		synctest.Wait()
		w.grow(burst)
		begun := time.Now()
		time.AfterFunc(3*time.Second, gate.Open)
		turn, d := w.fit()
		if turn.Session.SummaryVersion != 1 || len(w.writer.Requests()) != 1 || d.Total > d.Budget.Usable {
			t.Errorf("got version %d after %d calls, %d tokens, want the one that was being made", turn.Session.SummaryVersion, len(w.writer.Requests()), d.Total)
		}
		if got := time.Since(begun); got < 3*time.Second || got > 4*time.Second {
			t.Errorf("waited %s, want until the summary was made", got)
		}
	})
}

// CONTEXT § 10 row 22: whoever waits, waits no longer than the interactive limit, and
// goes on without a model, visibly. What comes too late is not stored.
func TestRow22WaitsNoLongerThanTheLimit(t *testing.T) {
	t.Parallel()
	w := grown(t, at("window", "background"), near)
	w.bubble(func() {
		gate := llm.NewGate()
		w.writer.Add(llm.Step{Text: []string{notes}, Gate: gate})
		w.fit()
		synctest.Wait()
		w.grow(burst)
		begun := time.Now()
		turn, d := w.fit()
		if got := time.Since(begun); got < w.options.SummaryTime || got > w.options.SummaryTime+time.Second {
			t.Errorf("waited %s, want %s", got, w.options.SummaryTime)
		}
		_, summaries, _ := w.now()
		if len(summaries) != 1 || summaries[0].Strategy != contextwindow.StrategyExtractive || summaries[0].Note != "fallback: another summary of the session takes too long" {
			t.Fatalf("got %+v, want one without a model that says why", summaries)
		}
		if d.Total > d.Budget.Usable || !slices.Contains(kinds(w.events), core.EventContextFailed) || w.breaker.Failures != 0 {
			t.Errorf("got %d tokens, events %v, breaker %+v, want a prompt that fits, and nobody blamed", d.Total, kinds(w.events), w.breaker)
		}
		gate.Open()
		synctest.Wait()
		if _, summaries, _ := w.now(); len(summaries) != 1 || turn.Session.SummaryVersion != 1 {
			t.Errorf("got %d summaries, want the late one thrown away", len(summaries))
		}
		if len(w.calls) != 1 {
			t.Errorf("got %d booked calls, want the one of the late summary", len(w.calls))
		}
	})
}

// CONTEXT § 10 row 3: a summarizer that fails in the background leaves the state as it
// was, and says so.
func TestRow3BackgroundFailureStoresNothing(t *testing.T) {
	t.Parallel()
	for _, settings := range []core.ContextSettings{at("window", "background"), at("window", "after_run")} {
		w := grown(t, settings, over)
		before := w.state()
		w.writer.Add(llm.Step{Repeat: true, Text: []string{"Error: 500 SECRET internal server error"}})
		w.bubble(func() {
			w.keeper.Soon(w.scope(), w.session.ID)
			synctest.Wait()
		})
		if w.state() != before {
			t.Errorf("%s: got state %s, want %s", *settings.Timing, w.state(), before)
		}
		if len(w.events) != 1 || w.events[0].Type != core.EventContextFailed || len(w.published) != 1 {
			t.Fatalf("%s: got events %v, want context.failed", *settings.Timing, kinds(w.events))
		}
		if got := data[core.ContextData](t, w.events[0]); got.Reason != "no summary was made: the answer was an error text" || got.Ahead != (*settings.Timing == "background") {
			t.Errorf("%s: got %+v, want the reason", *settings.Timing, got)
		}
		if w.breaker.Failures != 1 || len(w.calls) == 0 || w.lease.holder != "" {
			t.Errorf("%s: got breaker %+v, %d calls, lease %+v, want a failure that is booked", *settings.Timing, w.breaker, len(w.calls), w.lease)
		}
	}
}

// When the process stops, a summary in the making has the grace period; then it is
// broken off, and nothing half-done is stored.
func TestStopping(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		takes time.Duration
		want  int
	}{"in time": {20 * time.Second, 1}, "too late": {50 * time.Second, 0}} {
		w := grown(t, at("window", "background"), near)
		synctest.Test(t, func(t *testing.T) {
			gate := llm.NewGate()
			w.writer.Add(llm.Step{Text: []string{notes}, Gate: gate})
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
			if took := (<-left).Sub(begun); took != min(tt.takes, w.options.Grace) {
				t.Errorf("%s: stopped after %s", name, took)
			}
			if got := len(w.prepared()); got != tt.want || w.lease.holder != "" || len(w.events) != 0 || w.breaker.Failures != 0 {
				t.Errorf("%s: got %d prepared, lease %+v, events %v, want %d and nothing left behind", name, got, w.lease, kinds(w.events), tt.want)
			}
			w.keeper.Soon(w.scope(), w.session.ID) // nobody is there
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
	w.store.before = func(method string) error {
		if method == "Get" {
			loads++
		}
		return nil
	}
	w.bubble(func() {
		gate := llm.NewGate()
		w.writer.Add(llm.Step{Text: []string{notes}, Gate: gate})
		for range 100 {
			w.keeper.Soon(w.scope(), w.session.ID)
		}
		synctest.Wait()
		for range 100 {
			w.keeper.Soon(w.scope(), w.session.ID)
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
		w.keeper.Soon(w.scope(), core.NewID[core.SessionID]())
		w.mu.Lock()
		w.store.before = func(string) error { return errors.New("the database is gone") }
		w.mu.Unlock()
		w.keeper.Soon(w.scope(), w.session.ID)
		synctest.Wait()
		w.store.before = nil
		w.keeper.Soon(w.scope(), w.session.ID)
		synctest.Wait()
	})
	if len(w.prepared()) != 1 {
		t.Errorf("got %d prepared, want the work to go on", len(w.prepared()))
	}
}
