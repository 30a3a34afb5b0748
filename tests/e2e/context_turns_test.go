package e2e_test

import (
	"strings"
	"testing"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/provider"
)

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
		where := apptest.Must(client.Call(t.Context(), h, ops.WhereIsMessage, apptest.InMessage(id, m.ID)))(t)
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
		if found != 1 {
			t.Errorf("message %d is in %d ranges, want one", m.Seq, found)
		}
	}
}
