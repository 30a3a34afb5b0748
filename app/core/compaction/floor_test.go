package compaction_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/tests/coretest"
)

// Rung 8: when nothing can make the prompt fit, no model
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
			if n := len(w.writer.Requests()); n != 0 || len(w.Summaries) != 0 || w.Session.PromptRevision != 0 {
				t.Errorf("got %d model calls, %d summaries, revision %d, want none", n, len(w.Summaries), w.Session.PromptRevision)
			}
		})
	}
}

// A system prompt that nearly fills the window pays for no summary that cannot help:
// whenever nothing can be sent, no model was called for one.
func TestFullSystemPromptPaysForNoSummary(t *testing.T) {
	t.Parallel()
	refused := 0
	for tokens := 6300; tokens <= 6700; tokens += 20 { // usable are 7,168 tokens, by an estimate that is a tenth higher 6,516
		w := newWorld(t, core.ContextSettings{Policy: "window"}, 8192)
		w.profile.SystemPrompt = strings.Repeat("rule ", tokens)
		w.writer.Add(always(notes))
		w.turns(8, 20)
		w.ask("what next?")
		_, _, err := w.keeper.Fit(t.Context(), w.turn())
		if n := len(w.writer.Requests()); err != nil && n != 0 {
			t.Errorf("%d tokens: got error %v after %d calls for a summary, want none", tokens, err, n)
		}
		if errors.Is(err, core.ErrContextFloor) {
			refused++
		}
	}
	if refused == 0 || refused == 21 {
		t.Errorf("got %d of 21 refused, want the border between", refused)
	}
}

// A shortened message is reported by an event, once, with both sizes; /context says it.
func TestShortenedMessageIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.ContextSettings{}, 4096)
	w.ask(strings.Repeat("word ", 20_000))
	turn, d := w.fit()
	w.fit() // in the next round of the run
	var told []core.ContextData
	for _, e := range w.Events {
		if e.Type == core.EventContextWarning {
			told = append(told, coretest.Data[core.ContextData](e))
		}
	}
	want := fmt.Sprintf("Your message has %s tokens; the model saw its beginning and its end, %s.", core.Number(d.Shown(turn.Run[0].TokenCount)), core.Number(d.Run[0].Size))
	if len(told) != 1 || told[0].Trigger != "shortened" || told[0].Reason != want {
		t.Errorf("got the warnings %+v, want one: %s", told, want)
	}
	if r := w.report(); !slices.Contains(r.Reasons, want) {
		t.Errorf("got reasons %q, want %q", r.Reasons, want)
	}
}

// The summary block says how many messages it covers, and that they can be searched.
func TestSummaryBlockSaysWhatItStandsFor(t *testing.T) {
	t.Parallel()
	w := full(t)
	w.writer.Add(notes)
	w.profile.Agent.Tools = []string{core.ToolSearchHistory}
	turn, d := w.fit()
	want := fmt.Sprintf("[They stand for the first %d messages, in which search_history finds what they leave out. The messages are kept word for word.]", turn.Session.SummarizedCount)
	if system := strings.Join(w.request(turn, d).System, "\n"); !strings.Contains(system, want) {
		t.Errorf("got the system blocks %q, want %q in them", system, want)
	}
	if r := w.report(); r.SummaryVersion != 1 || !strings.HasPrefix(r.SummaryReason, fmt.Sprintf("Version 1 covers the first %d messages, which the agent can search.", turn.Session.SummarizedCount)) {
		t.Errorf("got version %d, reason %q", r.SummaryVersion, r.SummaryReason)
	}
}

// A summary in text that PostgreSQL does not take is stored in text that it takes
// (B7), and counted as that.
func TestSummaryIsStorable(t *testing.T) {
	t.Parallel()
	w := full(t)
	w.writer.Add(always(notes + " \x00 and \xff"))
	w.fit()
	v := w.Summaries[0]
	if !strings.Contains(v.Content, "what comes out of it. \uFFFD and \uFFFD") || v.Note != "" {
		t.Errorf("got summary %q, note %q", v.Content, v.Note)
	}
	if want := w.count.Text(v.Content); v.TokenCount != want {
		t.Errorf("got %d tokens, want %d", v.TokenCount, want)
	}
}
