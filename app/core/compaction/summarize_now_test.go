package compaction_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/tests/coretest"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

// B5, C6: /summarize makes a version long before any trigger, with the focus in the
// prompt, and stores what it returns.
func TestSummarize(t *testing.T) {
	t.Parallel()
	for _, auto := range []bool{true, false} { // auto_summarize: false leaves /summarize alone
		w := newWorld(t, core.ContextSettings{AutoSummarize: &auto}, 128_000)
		w.writer.Add(notes)
		w.turns(5, 50)
		got := must.Get(w.keeper.Summarize(t.Context(), w.scope(), w.Session.ID, "the name of the dog"))(t)
		if diff := cmp.Diff(w.Summaries, []core.Summary{got}); diff != "" {
			t.Errorf("returned and stored (-stored +returned):\n%s", diff)
		}
		if got.Version != 1 || got.Trigger != "manual" || got.Focus != "the name of the dog" || got.MessagesCovered < 2 {
			t.Errorf("got %+v, want version 1, manual, with its focus", got)
		}
		if text := w.writer.Requests()[0].Messages[0].Content; !strings.Contains(text, "the name of the dog") {
			t.Errorf("the focus is not in the prompt:\n%.1000s", text)
		}
		told := coretest.Data[core.ContextData](w.Events[0])
		if r := w.report(); told.TokensAfter != r.Planned || told.TokensBefore <= r.Planned || told.Version != 1 {
			t.Errorf("context.completed says %+v, /context %d tokens planned", told, r.Planned)
		}
	}
}

// 422: with nothing to summarize there is no model call and no change.
func TestSummarizeNothing(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		log  func(w *world)
	}{
		{"empty", func(*world) {}},
		{"one turn", func(w *world) { w.turns(1, 10) }},
		{"only the run in progress", func(w *world) { w.ask("hello") }},
		{"all is summarized", func(w *world) { w.turns(1, 10); w.turns(1, 10); w.another(2, "before") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, core.ContextSettings{}, 128_000)
			tt.log(w)
			before := w.state()
			_, err := w.keeper.Summarize(t.Context(), w.scope(), w.Session.ID, "")
			if !errors.Is(err, core.ErrUnprocessable) {
				t.Errorf("got error %v, want ErrUnprocessable", err)
			}
			if w.state() != before || len(w.writer.Requests()) != 0 {
				t.Errorf("got %d calls, state %s, want nothing done", len(w.writer.Requests()), w.state())
			}
		})
	}
}

// 422 too when a summary would not be smaller than what it replaces.
func TestSummarizeNoGain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.ContextSettings{}, 200_000)
	w.useCounter(coarse{world: w})
	w.writer.Add(always(notes))
	w.turns(3, 600)
	before := w.state()
	if _, err := w.keeper.Summarize(t.Context(), w.scope(), w.Session.ID, ""); !errors.Is(err, core.ErrUnprocessable) {
		t.Errorf("got error %v, want ErrUnprocessable", err)
	}
	if w.state() != before {
		t.Errorf("got state %s, want nothing stored", w.state())
	}
	if len(w.Calls) == 0 || len(w.Calls) != len(w.writer.Requests()) {
		t.Errorf("got %d booked calls, want the %d that were made", len(w.Calls), len(w.writer.Requests()))
	}
}

// 409: while another one of the session is being made here, and when another
// process was faster.
func TestSummarizeConflict(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.ContextSettings{}, 128_000)
	w.turns(5, 50)
	gate := llmtest.NewGate()
	w.writer.Add(llmtest.Step{Text: []string{notes}, Gate: gate})
	done := make(chan error)
	go func() {
		_, err := w.keeper.Summarize(t.Context(), w.scope(), w.Session.ID, "")
		done <- err
	}()
	<-gate.Reached()
	if _, err := w.keeper.Summarize(t.Context(), w.scope(), w.Session.ID, ""); !errors.Is(err, core.ErrConflict) {
		t.Errorf("got error %v for a second one meanwhile, want ErrConflict", err)
	}
	gate.Open()
	if err := <-done; err != nil {
		t.Errorf("got error %v for the first", err)
	}

	w.turns(5, 50)
	w.writer.Add(llmtest.Step{From: func(llm.Request) llmtest.Step {
		w.another(12, "THEIRS")
		return llmtest.Say("OURS")
	}})
	_, err := w.keeper.Summarize(t.Context(), w.scope(), w.Session.ID, "")
	if !errors.Is(err, core.ErrConflict) || errors.Is(err, core.ErrStale) {
		t.Errorf("got error %v after another process was faster, want ErrConflict", err)
	}
	if *w.Session.ConversationSummary != "THEIRS" {
		t.Errorf("got summary %q, want the winner's", *w.Session.ConversationSummary)
	}
}
