package compaction_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/tests/compare"
	"bobbin/tests/coretest"
	"bobbin/tests/llmtest"
)

// W5, W7, W10, B4, L6: what a compaction stores, records and reports.
func TestFitSummarizesOverTheTrigger(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.ContextSettings{Timing: new("inline")}, 8192)
	w.writer.Add(llmtest.Step{Text: []string{notes}, Usage: &core.Usage{InputTokens: 5000, OutputTokens: 20}})
	w.turns(26, 110)
	w.ask("what next?")
	w.Messages[2].Role = core.RoleSystem // W14: never sent, covered like the others
	log := w.Messages
	before := w.report()

	turn, _ := w.fit()
	session, summaries, after := w.now()
	if diff := cmp.Diff(log, after); diff != "" {
		t.Errorf("log (-before +after):\n%s, want it untouched", diff)
	}
	if len(summaries) != 1 {
		t.Fatalf("got %d summaries, want 1", len(summaries))
	}
	v := summaries[0]
	cut := int(v.ThroughSeq)
	replaced := 0
	for _, m := range log[:cut] {
		if m.Role != core.RoleSystem {
			replaced += m.TokenCount
		}
	}
	want := core.Summary{
		ID: v.ID, SessionID: session.ID, Owner: session.Owner, Version: 1, Kind: core.SummaryRolling, State: core.SummaryActive,
		Content: v.Content, FromID: log[0].ID, FromSeq: 1, ThroughID: log[cut-1].ID, ThroughSeq: int64(cut), OrderedSeq: int64(cut),
		MessagesCovered: cut, MessagesAdded: cut, TokensBefore: replaced, TokensAfter: w.count.Text(v.Content), TokenCount: w.count.Text(v.Content),
		TokensCovered: replaced, MadeFor: 5957, // the trigger, 0.8 · 8,192, by an estimate that is not measured
		Model: "writer", Strategy: "hybrid", Trigger: "share", Duration: v.Duration, CreatedAt: v.CreatedAt,
	}
	want.ActivatedAt = v.ActivatedAt
	compare.Equal(t, "summary", want, v)
	if !strings.Contains(v.Content, "Test the tester.") || v.CreatedAt.IsZero() || v.ID == "" {
		t.Errorf("got summary %+v, want the model's words, an id and a time", v)
	}
	if turn.Session.SummaryVersion != 1 || len(turn.History) != len(log)-1-cut {
		t.Errorf("turn: version %d, %d messages, want version 1 and the %d after the cursor", turn.Session.SummaryVersion, len(turn.History), len(log)-1-cut)
	}
	compare.Equal(t, "the tail begins with the: want the user", core.RoleUser, log[cut].Role)

	// The events say what /context says, and belong to the run.
	compare.Equal(t, "passing events", []core.EventType{core.EventContextStarted}, coretest.Types(w.feed.Passing()))
	if diff := cmp.Diff(w.Events, w.feed.Published()); diff != "" || len(w.Events) != 1 || w.Events[0].Type != core.EventContextCompleted {
		t.Fatalf("got events %v published %v, want context.completed in both", coretest.Types(w.Events), coretest.Types(w.feed.Published()))
	}
	told := core.ContextData{Kind: core.SummaryRolling, TokensBefore: before.Planned, TokensAfter: w.report().Planned, MessagesCovered: cut, Version: 1, Trigger: "share"}
	compare.Equal(t, "context.completed", told, coretest.Data[core.ContextData](w.Events[0]))
	for _, e := range append(w.Events, w.feed.Passing()...) {
		if e.RunID != turn.RunID {
			t.Errorf("%s is of run %q, want %s: who watches the run must see it", e.Type, e.RunID, turn.RunID)
		}
	}

	if len(w.Calls) != 1 {
		t.Fatalf("got %d booked calls, want 1", len(w.Calls))
	}
	c := w.Calls[0]
	c.Estimated, c.Duration, c.CreatedAt = 0, 0, session.CreatedAt
	call := core.ModelCall{
		ID: c.ID, Owner: session.Owner, User: "ann", SessionID: session.ID, RunID: turn.RunID, Agent: "tester",
		Purpose: core.PurposeSummary, Model: "writer", Provider: "scripted",
		Usage: core.Usage{InputTokens: 5000, OutputTokens: 20}, FinishReason: core.FinishStop, CreatedAt: session.CreatedAt,
	}
	if diff := cmp.Diff(call, c); diff != "" || c.ID == "" {
		t.Errorf("booked call (-want +got):\n%s", diff)
	}
}

// coarse counts short texts as large ones: no summary is smaller than what it
// replaces.
type coarse struct {
	llm.TokenCounter
	*world
}

// Text counts.
func (c coarse) Text(s string) int {
	if s == "" || len(s) > 2_000 || s == c.profile.SystemPrompt {
		return c.count.Text(s)
	}
	return 100_000
}

// Tools counts.
func (coarse) Tools([]llm.ToolSpec) int { return 10 }

// A summary that would not be smaller is not stored; the turn continues
// without one, and the next one does not try again.
func TestNoGainIsSkipped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.ContextSettings{Timing: new("inline")}, 200_000)
	w.profile.ToolUsage = ""
	w.useCounter(coarse{world: w})
	w.writer.WithInfo(llm.Info{Name: "writer", Provider: "scripted", Window: 400_000, MaxOutput: 8_000})
	w.writer.Add(always(notes))
	w.turns(6, 600)
	for i := range w.Messages {
		w.Messages[i].TokenCount = 14_000
	}
	w.ask("go on")
	turn, d := w.fit()
	if turn.Session.SummaryVersion != 0 || len(w.Summaries) != 0 {
		t.Fatalf("got summaries %+v, want none stored", w.Summaries)
	}
	if diff := cmp.Diff([]core.EventType{core.EventContextSkipped, core.EventContextWarning}, coretest.Types(w.Events)); diff != "" {
		t.Fatalf("events (-want +got):\n%s", diff)
	}
	if got := coretest.Data[core.ContextData](w.Events[0]); got.Reason == "" || got.Trigger != "share" || w.Events[0].RunID != turn.RunID {
		t.Errorf("context.skipped %+v of run %q, want the reason, the trigger and the run", got, w.Events[0].RunID)
	}
	if len(w.Calls) == 0 || len(w.Calls) != len(w.writer.Requests()) {
		t.Errorf("got %d booked calls, want the %d that were made", len(w.Calls), len(w.writer.Requests()))
	}
	if d.Total > d.Budget.Usable {
		t.Errorf("got a prompt of %d tokens, usable are %d", d.Total, d.Budget.Usable)
	}
	made := len(w.writer.Requests())
	w.add(w.said(core.RoleAssistant, "answer"))
	w.ask("and on")
	w.fit()
	if got := len(w.writer.Requests()); got != made {
		t.Errorf("got %d more calls for the next message, want none before new material", got-made)
	}
}

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
			compare.Equal(t, "model calls, summaries, revision: want none", []int{0, 0, 0}, []int{len(w.writer.Requests()), len(w.Summaries), w.Session.PromptRevision})
		})
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
	compare.Equal(t, "tokens", w.count.Text(v.Content), v.TokenCount)
}
