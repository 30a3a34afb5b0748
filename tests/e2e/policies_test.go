package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/provider"
)

// exchanges has so many short questions answered; each is two messages in the log.
func exchanges(t *testing.T, c *client.Client, id core.SessionID, n int) {
	t.Helper()
	for i := range n {
		apptest.SendMessage(t, c, core.SendMessage{SessionID: id, Content: fmt.Sprintf("Note %d: the pump in hall three lost %d liters, and nobody noticed.", i, 10+i)})
	}
}

// awaitSummary waits until the session has this version of a summary.
func awaitSummary(t *testing.T, c *client.Client, id core.SessionID, version int) core.Session {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for e, err := range c.WatchSession(ctx, id, core.Cursor{}) {
		must.Do(t, err)
		if e.Type == core.EventContextCompleted && apptest.EventData[core.ContextData](t, e).Version >= version {
			break
		}
	}
	return session(t, c, id)
}

// trigger returns the report's trigger of this name.
func trigger(t *testing.T, r core.ContextReport, name string) core.TriggerStatus {
	t.Helper()
	for _, s := range r.Triggers {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("got the triggers %+v, want one called %s", r.Triggers, name)
	return core.TriggerStatus{}
}

// B1, B3, B4, B5, C5: the Nth message since the last summary makes one, after the exchange. The status shows
// both triggers, each with its share, and the last summary.
func TestScenarioMessagesTrigger(t *testing.T) {
	t.Parallel()
	p := apptest.NewProvider(t, provider.Options{}) // so large that only the agent's own numbers trigger a summary
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 1_000_000, 8192, p),
		apptest.WithAgent("talker", "name: talker\nsystem_prompt: You answer.\ncontext:\n  policy: budget\n"))
	id := apptest.NewSession(t, h.Client, ops.NewSession{Agent: "talker"})
	exchanges(t, h.Client, id, 10)
	r := contextOf(t, h.Client, id)
	if m := trigger(t, r, "messages"); m.Value != 20 || m.Threshold != 30 || m.Percent != 66 || m.Fires {
		t.Errorf("got %+v, want 20 of 30 messages, 66 %%", m)
	}
	if k := trigger(t, r, "tokens"); k.Threshold != 128_000 || k.Value == 0 || k.Percent != k.Value*100/k.Threshold {
		t.Errorf("got %+v, want the tokens since the last summary of 128,000", k)
	}
	if len(r.Summaries) != 0 || r.Coverage.Summarized != 0 || r.Coverage.Verbatim != 20 {
		t.Errorf("got %d summaries and %+v, want none yet", len(r.Summaries), r.Coverage)
	}
	exchanges(t, h.Client, id, 4)
	if s := session(t, h.Client, id); s.SummaryVersion != 0 || p.Summaries() != 0 {
		t.Fatalf("28 messages: got summary %d, want none before the 30th", s.SummaryVersion)
	}
	exchanges(t, h.Client, id, 1)
	s := awaitSummary(t, h.Client, id, 1)
	if s.MessageCount != 30 || s.SummarizedCount != 24 || s.SummaryVersion != 1 {
		t.Errorf("30 messages: got %d, %d summarized in version %d, want 24 in version 1", s.MessageCount, s.SummarizedCount, s.SummaryVersion)
	}
	all := apptest.ListMessages(t, h.Client, id)
	made := must.Get(client.Call(t.Context(), h, ops.GetSummary, ops.InSummary{InSession: ops.InSession{SessionID: id}, Version: 1}))(t)
	if made.FromID != all[0].ID || made.ThroughID != all[23].ID || made.MessagesCovered != 24 || made.TokenCount == 0 || made.CreatedAt.IsZero() || made.Content == "" {
		t.Errorf("got the summary %+v, want what it covers, from the first to the 24th message, when and how large", made)
	}
	if made.Trigger != "messages" || p.Summaries() != 1 {
		t.Errorf("got the trigger %s and %d calls, want messages and 1", made.Trigger, p.Summaries())
	}
	r = contextOf(t, h.Client, id)
	if len(r.Summaries) != 1 || r.Summaries[0].MessagesCovered != 24 || trigger(t, r, "messages").Value != 6 {
		t.Errorf("got the summaries %+v and %+v, want one of 24 messages, and 6 since", r.Summaries, trigger(t, r, "messages"))
	}
}

// The ranges say of every message what its own answer says, and the turns what the reports of the
// runs say: a chart needs one request.
func TestContextTurns(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		h := apptest.New(t, url, apptest.WithModel("echo", 4096, 512, apptest.NewProvider(t, provider.Options{})),
			apptest.WithAgent("inline", "name: inline\nsystem_prompt: You count.\ncontext: {timing: inline}\n")) // no summary comes between two answers
		id := apptest.NewSession(t, h.Client, ops.NewSession{Agent: "inline"})
		empty, err := client.Call(t.Context(), h, ops.GetContextTurns, ops.InSession{SessionID: id})
		if err != nil || empty.Ranges == nil || len(empty.Ranges)+len(empty.Turns)+empty.TurnsOmitted != 0 {
			t.Fatalf("got %+v, %v of an empty session, want empty lists", empty, err)
		}
		const turns = 12
		var runs []core.Run
		for range turns {
			runs = append(runs, apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: strings.Repeat("The lighthouse keeper counts ships. ", 60)}).Run)
		}
		got, err := client.Call(t.Context(), h, ops.GetContextTurns, ops.InSession{SessionID: id})
		if err != nil || len(got.Turns) != turns || got.TurnsOmitted != 0 {
			t.Fatalf("got %d turns and %d omitted, %v, want %d", len(got.Turns), got.TurnsOmitted, err, turns)
		}
		checkRanges(t, h, id, got.Ranges)
		if first := got.Ranges[0]; first.Place != core.PlaceCovered || first.SummaryVersion == 0 {
			t.Errorf("got %+v first, want what the summary covers", first)
		}
		pinned := apptest.ListMessages(t, h.Client, id)[2]
		must.Get(client.Call(t.Context(), h, ops.PinMessage, ops.Pinned{InMessage: apptest.InMessage(id, pinned.ID), Pinned: new(true)}))(t)
		if got, err := client.Call(t.Context(), h, ops.GetContextTurns, ops.InSession{SessionID: id}); err != nil || len(got.Ranges) < 3 || got.Ranges[1] != (core.PlacedRange{FromSeq: pinned.Seq, ThroughSeq: pinned.Seq, Place: core.PlaceVerbatim}) {
			t.Errorf("got %+v, %v with message %d pinned, want it verbatim between covered ones", got.Ranges, err, pinned.Seq)
		} else {
			checkRanges(t, h, id, got.Ranges)
		}
		summarized := 0
		for i, turn := range got.Turns {
			if turn.RunID != runs[i].ID || turn.Seq != int64(2*i+1) || turn.Used <= 0 || turn.Used > turn.Usable || turn.Sections["run"] == 0 || turn.At.IsZero() {
				t.Errorf("turn %d: got %+v, want that of run %s", i, turn, runs[i].ID)
			}
			if turn.Without < turn.Used || turn.SummaryVersion > 0 && turn.Without == turn.Used {
				t.Errorf("turn %d: got %d tokens without a summary and %d with version %d", i, turn.Without, turn.Used, turn.SummaryVersion)
			}
			if turn.Summarized {
				summarized++
			}
		}
		if last := got.Turns[turns-1]; summarized == 0 || last.SummaryVersion == 0 {
			t.Errorf("got %d turns with a new summary, the last with version %d", summarized, last.SummaryVersion)
		}

		// What turns were stays, whatever becomes of their summaries.
		must.Get(client.Call(t.Context(), h, ops.RestoreSummary, ops.SummaryRestore{InSession: ops.InSession{SessionID: id}}))(t)
		undone := must.Get(client.Call(t.Context(), h, ops.GetContextTurns, ops.InSession{SessionID: id}))(t)
		compare.Equal(t, "turns after the undo", got.Turns, undone.Turns)

		imported := apptest.NewSession(t, h.Client, ops.NewSession{})
		must.Get(h.ImportMessages(t.Context(), core.ImportMessages{SessionID: imported, Body: strings.NewReader(`{"messages":[{"role":"user","content":"hello"},{"role":"assistant","content":"bye"}]}`)}))(t)
		got, err = client.Call(t.Context(), h, ops.GetContextTurns, ops.InSession{SessionID: imported})
		if err != nil || got.Turns == nil || len(got.Turns) != 0 || len(got.Ranges) != 1 || got.Ranges[0] != (core.PlacedRange{FromSeq: 1, ThroughSeq: 2, Place: core.PlaceVerbatim}) {
			t.Errorf("got %+v, %v of an import, want one range and no turns", got, err)
		}
	})
}

// checkRanges compares the ranges with where each message is. A pinned one that is quoted is in the
// prompt, wherever its place is.
func checkRanges(t *testing.T, h *apptest.Bobbin, id core.SessionID, ranges []core.PlacedRange) {
	t.Helper()
	for _, m := range apptest.ListMessages(t, h.Client, id) {
		where := must.Get(client.Call(t.Context(), h, ops.WhereIsMessage, apptest.InMessage(id, m.ID)))(t)
		if where.Pinned && where.PromptTokens > 0 {
			where.Placement, where.SummaryVersion = core.PlaceVerbatim, 0
		}
		found := 0
		for _, r := range ranges {
			if r.FromSeq <= m.Seq && m.Seq <= r.ThroughSeq {
				if found++; r.Place != where.Placement || r.SummaryVersion != where.SummaryVersion {
					t.Errorf("message %d: got %+v, want %s by version %d", m.Seq, r, where.Placement, where.SummaryVersion)
				}
			}
		}
		compare.True(t, found == 1, "message %d is in %d ranges, want one", m.Seq, found)
	}
}
