package compaction_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/tests/compare"
	"bobbin/tests/coretest"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

// full returns a world whose next turn must be summarized.
func full(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, core.ContextSettings{}, 8192)
	w.turns(30, 110)
	w.ask("what next?")
	return w
}

// B7: whatever the summarizer does, the conversation continues with a summary made without a model, and says
// so; nothing of the failure is in it.
func TestRow3SummarizerFails(t *testing.T) {
	t.Parallel()
	fails := func(kind llm.ErrorKind) llmtest.Step {
		return llmtest.Step{Repeat: true, Err: &llm.Error{Kind: kind, Provider: "scripted", Message: "SECRET words of the provider"}}
	}
	for _, tt := range []struct {
		name  string
		step  llmtest.Step
		cause string // of the note
	}{
		{"overloaded", fails(llm.KindOverloaded), "the model failed (overloaded)"},
		{"context length", fails(llm.KindContextLength), "the model failed (context_length)"},
		{"row 4: reasoning only", llmtest.Step{Repeat: true, Reasoning: "SECRET thoughts"}, "the answer was reasoning only"},
		{"row 5: cut off", llmtest.Step{Repeat: true, Text: []string{"## SECRET"}, Finish: core.FinishLength}, "the answer was cut off at the output limit"},
		{"row 6: chats", always("Sure! What can I do for you? SECRET"), "the answer was too short for what it replaces"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := full(t)
			w.writer.Add(tt.step)
			turn, d := w.fit()
			if len(w.Summaries) != 1 {
				t.Fatalf("got %d summaries, want 1", len(w.Summaries))
			}
			v := w.Summaries[0]
			if v.Strategy != "extractive" || v.Model != "" || v.Note != "fallback: "+tt.cause {
				t.Errorf("got strategy %q of model %q, note %q, want extractive and %q", v.Strategy, v.Model, v.Note, tt.cause)
			}
			if text := fmt.Sprint(v, w.Events, w.request(turn, d)); strings.Contains(text, "SECRET") {
				t.Errorf("the provider's words are in the summary, the events or the prompt:\n%.2000s", text)
			}
			if diff := cmp.Diff([]core.EventType{core.EventContextFailed, core.EventContextCompleted}, coretest.Types(w.Events)); diff != "" {
				t.Fatalf("events (-want +got):\n%s", diff)
			}
			compare.Equal(t, "context.failed says", v.Note, coretest.Data[core.ContextData](w.Events[0]).Reason)
			if len(w.Calls) != len(w.writer.Requests()) || len(w.Calls) == 0 {
				t.Errorf("got %d booked calls, want the %d that were made", len(w.Calls), len(w.writer.Requests()))
			}
		})
	}
}

// A canceled summary leaves the state as it was, and the run ends with the cause of the cancel.
func TestRow3Canceled(t *testing.T) {
	t.Parallel()
	w := full(t)
	gate := llmtest.NewGate()
	w.writer.Add(llmtest.Step{Text: []string{notes}, Gate: gate})
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-gate.Reached()
		cancel(core.ErrCanceled)
	}()
	before, _, _ := w.now()
	_, _, err := w.keeper.Fit(ctx, w.turn())
	compare.Error(t, "err: want the cause of the cancel", core.ErrCanceled, err)
	after, summaries, _ := w.now()
	if diff := cmp.Diff(before, after); diff != "" || len(summaries) != 0 || len(w.Events) != 0 {
		t.Errorf("session (-before +after):\n%s, %d summaries, events %v, want nothing changed", diff, len(summaries), coretest.Types(w.Events))
	}
	w.writer.Add(notes)
	if turn, _ := w.fit(); turn.Session.SummaryVersion != 1 {
		t.Errorf("after a cancel: version %d, want the next try to make version 1", turn.Session.SummaryVersion)
	}
}

// state is what a compaction may change, as one of two values: old or new.
func (w *world) state() string {
	s, summaries, log := w.now()
	content := "none"
	if s.ConversationSummary != nil {
		content = *s.ConversationSummary
	}
	return fmt.Sprint(content, s.SummaryThroughID, s.SummaryThroughSeq, s.SummaryVersion, s.SummarizedCount, s.SummaryCount,
		s.PromptRevision, string(s.PromptState), len(summaries), len(log))
}

// errBroken is what a store says that fails.
var errBroken = errors.New("the database is gone")

// failAt has the n-th call of the store fail, before or after it took effect. It
// returns how many there were.
func (w *world) failAt(n int, late bool) *int {
	made := 0
	hook := func(method string) error {
		if method == "FreeSummary" || method == "CountOnPath" { // the lease ends by itself: TestLeaseNotGivenBack; nothing depends on the check of the coverage
			return nil
		}
		if made++; made == n {
			return errBroken
		}
		return nil
	}
	if late {
		w.db.After(hook)
	} else {
		w.db.Before(hook)
	}
	return &made
}

// A failure at any call of the store, before or after it took effect,
// leaves the old or the new state, and the next try is as good as the first.
func TestRow18FailureAtEachStoreCall(t *testing.T) {
	t.Parallel()
	prepared := func() *world {
		w := full(t)
		w.writer.Add(always(notes))
		w.Messages[0].Pinned = true
		w.fit() // a first version, so that the pinned messages are loaded
		w.turns(30, 110)
		w.ask("and then?")
		return w
	}
	for _, late := range []bool{false, true} {
		for n := 1; ; n++ {
			w := prepared()
			before := w.state()
			made := w.failAt(n, late)
			_, _, err := w.keeper.Fit(t.Context(), w.turn())
			if *made < n {
				if err != nil || n < 3 {
					t.Fatalf("got error %v with %d calls of the store, want a whole compaction with several", err, *made)
				}
				break
			}
			if !errors.Is(err, errBroken) || errors.Is(err, core.ErrStale) {
				t.Errorf("call %d, late %v: got error %v, want the store's", n, late, err)
			}
			old := w.state() == before
			if now := w.Session; !old && (now.SummaryVersion != 2 || len(w.Summaries) != 2 || w.Summaries[1].Content != *now.ConversationSummary || w.Summaries[1].ThroughID != *now.SummaryThroughID) {
				t.Errorf("call %d, late %v: neither the old nor the new state: %s", n, late, w.state())
			}
			if old && len(w.Events)+len(w.Calls) != 2 {
				t.Errorf("call %d, late %v: events %v without what they report", n, late, coretest.Types(w.Events))
			}
			w.db.Before(nil)
			w.db.After(nil)
			if turn, _ := w.fit(); turn.Session.SummaryVersion != 2 {
				t.Errorf("call %d, late %v: version %d after the next try, want 2", n, late, turn.Session.SummaryVersion)
			}
			w.report()
		}
	}
}

// C7: a summarizer that takes long is not awaited: the prompt is sent without its
// oldest messages, which says so, and the summary is still made.
func TestRow22SummaryTimeLimit(t *testing.T) {
	t.Parallel()
	w := full(t)
	synctest.Test(t, func(t *testing.T) {
		w.t, w.keeper = t, compaction.New(w.options)
		gate := llmtest.NewGate()
		w.writer.Add(llmtest.Step{Gate: gate, Text: []string{notes}})
		before, begun := w.Session, time.Now()
		turn, d := w.fit()
		if took := time.Since(begun); took != w.options.SummaryTime || !turn.Waited {
			t.Errorf("waited %s, want %s", took, w.options.SummaryTime)
		}
		if now := w.Session; len(w.Summaries) > 0 || now.SummaryThroughSeq != before.SummaryThroughSeq || len(must.Get(contextwindow.DecodeState(now.PromptState))(t).LeftOut) > 0 || !slices.Contains(d.Rungs, 7) || !strings.Contains(fmt.Sprint(d.Reasons), "does not wait for the summary") {
			t.Errorf("got rungs %v, reasons %q, want the oldest left out and no summary, nor what is left out, stored", d.Rungs, d.Reasons)
		}
		begun = time.Now()
		if _, _, err := w.keeper.Fit(t.Context(), turn); err != nil || time.Since(begun) > 0 {
			t.Errorf("the next prompt of the run waited %s, %v, want no second wait", time.Since(begun), err)
		}
		gate.Open()
		synctest.Wait()
		if v := w.Summaries; len(v) != 1 || v[0].Model != "writer" || v[0].Note != "" || len(w.writer.Requests()) != 1 {
			t.Errorf("got %+v after %d calls, want the summary that was paid for", v, len(w.writer.Requests()))
		}
	})
}

// What a report shows is what is sent, but that a summary takes too long: when it is due, while its model is called,
// and when that has failed, so that there is one by code.
func TestReportsShowWhatIsSent(t *testing.T) {
	t.Parallel()
	w := full(t)
	w.bubble(func() {
		check := func(when string, isCut map[string]bool) {
			w.t.Helper()
			shown := w.report()
			turn, d := w.fit()
			_, sent, err := w.keeper.Request(t.Context(), turn, d)
			must.Do(w.t, err)
			for name, r := range map[string]core.ContextReport{"before": shown, "after": w.report()} {
				want := w.keeper.Describe(turn, d, sent)
				if r.Used != want.Used || r.Used > r.Usable || isCut[name] != (r.Coverage.LeftOut > 0) || isCut[name] && r.Coverage.LeftOut != want.Coverage.LeftOut {
					w.t.Errorf("%s, %s the prompt: shown %d of %d tokens, %d left out, sent %d tokens, %d left out", when, name, r.Used, r.Usable, r.Coverage.LeftOut, want.Used, want.Coverage.LeftOut)
				}
			}
		}
		gate := llmtest.NewGate()
		w.writer.Add(llmtest.Step{Gate: gate, Err: &llm.Error{Kind: llm.KindOverloaded, Provider: "scripted", Message: "no"}})
		check("when it is due", map[string]bool{"after": true})
		check("while it is made", map[string]bool{"before": true, "after": true})
		gate.Open()
		synctest.Wait()
		check("when its model has failed", nil)
		compare.Equal(w.t, "version", 1, w.Session.SummaryVersion)
	})
}

// C7: while summaries are awaited and fail, the prompt fills the window, its cut moves seldom and only
// forward, whatever the providers' counts do, and it has one reason.
func TestCutWhileSummariesFail(t *testing.T) {
	t.Parallel()
	w := full(t)
	w.options.BackgroundTime = 3 * time.Minute
	w.bubble(func() {
		gate := llmtest.NewGate() // no call of the summarizer ends in its time
		w.writer.Add(llmtest.Step{Gate: gate, Repeat: true, Text: []string{notes}})
		var cut int64
		moves, cutPrompts, version := 0, 0, 0
		for turn := 0; len(w.writer.Requests()) < 7; turn++ {
			w.turns(1, 60)
			w.ask("what next?")
			<-time.After(5 * time.Second)
			synctest.Wait() // a call that ends at this moment has ended
			before, _, _ := w.now()
			_, d := w.fit()
			for range 3 { // what the counts are corrected by goes up and down
				w.ruler.Observe("answerer", w.Session.ID, 1_000, []int{1_120, 960, 1_060}[turn%3])
			}
			after, _, _ := w.now()
			if v := after.SummaryVersion; v > version { // by code, after the call has failed
				version, cut = v, 0
			}
			if after.SummaryVersion > before.SummaryVersion {
				continue // the plan is with either of them
			}
			var last int64
			for _, s := range d.History {
				if s.Place == core.PlaceLeftOut {
					last = s.Seq
				}
			}
			if last > 0 {
				cutPrompts++
			}
			if last < cut || last > 0 && (d.Total > d.Budget.Trigger || len(d.Reasons) != 1) {
				t.Fatalf("turn %d: got %d tokens, cut after #%d, before after #%d, reasons %q", turn, d.Total, last, cut, d.Reasons)
			}
			if last > cut {
				moves, cut = moves+1, last
			}
			if turn > 500 {
				t.Fatal("the summarizer is not called any more")
			}
		}
		t.Logf("%d moves of the cut in %d prompts that were cut, %d versions", moves, cutPrompts, version)
		if cutPrompts < 50 || 5*moves > cutPrompts {
			t.Errorf("the cut moved %d times in %d prompts, want it to stay where it is for five", moves, cutPrompts)
		}
	})
}
