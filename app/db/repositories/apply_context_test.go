package repositories_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/tests/dbtest"
)

// pathChange is a compaction that covers the log through the message.
func pathChange(session core.Session, content string, from, through core.Message) core.ContextChange {
	return core.ContextChange{
		SessionID: session.ID, Expect: session.PromptRevision, PromptState: []byte(`{"cursor": 1}`),
		Summary: &core.Summary{
			Content: content, FromID: from.ID, ThroughID: through.ID, FromSeq: from.Seq, ThroughSeq: through.Seq,
			MessagesCovered: int(through.Seq), MessagesAdded: int(through.Seq - from.Seq + 1), TokensBefore: 100, TokensAfter: 10,
			TokenCount: 9, Model: "gpt-4o", Strategy: "llm", Trigger: "share", Focus: "f", Note: "n", Duration: time.Second,
		},
		Events: []core.Event{
			core.NewEvent(session.ID, "", core.EventContextStarted, core.ContextData{Trigger: "share"}),
			core.NewEvent(session.ID, "", core.EventContextCompleted, core.ContextData{TokensBefore: 100, TokensAfter: 10, Version: 77}),
		},
		ModelCalls: []core.ModelCall{{Purpose: core.PurposeSummary, Model: "gpt-4o", Usage: core.Usage{InputTokens: 100, OutputTokens: 9}}},
	}
}

// W2, W5, B4: the session has the active summary, versions are append-only.
func TestApplyContext(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		s.turns(t, id, 3)
		log := s.log(t, id)
		before := s.sessionOf(t, id)
		if before.ConversationSummary != nil || before.SummaryThroughID != nil || before.LastSummarizedAt != nil {
			t.Fatalf("new session: got %+v, want no summary", before)
		}
		got, events, err := s.sessions.ApplyContext(t.Context(), ann(), pathChange(before, "first", log[0], log[1]))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(s.sessionOf(t, id), got, sameJSON()); diff != "" {
			t.Errorf("session (-stored +returned):\n%s", diff)
		}
		if got.ConversationSummary == nil || *got.ConversationSummary != "first" || got.SummaryThroughID == nil || *got.SummaryThroughID != log[1].ID ||
			got.SummaryThroughSeq != 2 || got.SummaryVersion != 1 || got.SummaryTokens != 9 || got.SummarizedCount != 2 ||
			got.SummaryCount != 1 || got.LastSummarizedAt == nil || got.PromptRevision != 1 || string(got.PromptState) != `{"cursor": 1}` {
			t.Errorf("session: got %+v, want the first summary through message 2", got)
		}
		stored := s.allEvents(t, id)
		if diff := cmp.Diff(stored[len(stored)-2:], events, asRead()); diff != "" {
			t.Errorf("events (-stored +returned):\n%s", diff)
		}
		if data := decode[core.ContextData](t, events[1]); data.Version != 1 || data.TokensBefore != 100 {
			t.Errorf("context.completed: got %+v, want version 1", data)
		}
		usage, err := s.sessionUsage(t.Context(), ann(), id)
		if err != nil || usage.InputTokens != 100 {
			t.Errorf("usage: got %+v, %v, want the summary's", usage, err)
		}

		// Stale: nothing is stored.
		_, _, err = s.sessions.ApplyContext(t.Context(), ann(), pathChange(before, "late", log[0], log[3]))
		wantError(t, "stale", err, core.ErrStale)
		if diff := cmp.Diff(got, s.sessionOf(t, id), sameJSON()); diff != "" {
			t.Errorf("session after a stale write (-before +after):\n%s", diff)
		}

		// Messages appended meanwhile do not make it stale.
		s.turns(t, id, 1)
		second, _, err := s.sessions.ApplyContext(t.Context(), ann(), pathChange(got, "second", log[2], log[3]))
		if err != nil {
			t.Fatal(err)
		}
		if second.SummaryVersion != 2 || second.SummaryCount != 2 || second.MessageCount != 8 {
			t.Errorf("session: got %+v, want version 2 and 8 messages", second)
		}
		first, err := s.summaries.Get(t.Context(), ann(), id, 1)
		if err != nil || first.State != core.SummaryDropped || first.Content != "first" {
			t.Errorf("version 1: got %+v, %v, want its content, no longer active", first, err)
		}
		active, err := s.summaries.Get(t.Context(), ann(), id, 2)
		want := *pathChange(got, "second", log[2], log[3]).Summary
		want.ID, want.SessionID, want.Owner, want.Version, want.CreatedAt = active.ID, id, "ann", 2, active.CreatedAt
		want.Kind, want.State, want.ActivatedAt = core.SummaryRolling, core.SummaryActive, second.LastSummarizedAt
		if diff := cmp.Diff(want, active); err != nil || diff != "" {
			t.Errorf("version 2 (-want +got): %v\n%s", err, diff)
		}
		_, err = s.summaries.Get(t.Context(), ann(), id, 3)
		wantNotFound(t, "version 3", err)
		// W10: the log is unchanged.
		if diff := cmp.Diff(log, s.log(t, id)[:6]); diff != "" {
			t.Errorf("log (-before +after):\n%s", diff)
		}
	})
}

func TestApplyContextRefuses(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		session := s.session(t)
		s.turns(t, session.ID, 1)
		log := s.log(t, session.ID)
		before := s.sessionOf(t, session.ID)
		tests := []struct {
			name   string
			change func(*core.ContextChange)
			want   error
		}{
			{"NUL in the summary", func(c *core.ContextChange) { c.Summary.Content = "\x00" }, core.ErrInvalid},
			{"state that is not JSON", func(c *core.ContextChange) { c.PromptState = []byte("{") }, core.ErrInvalid},
			{"event that is not JSON", func(c *core.ContextChange) { c.Events[0].Data = json.RawMessage("{") }, core.ErrInvalid},
			{"message that does not exist", func(c *core.ContextChange) { c.Summary.ThroughID = core.NewID[core.MessageID]() }, core.ErrConflict},
			{"revision of the future", func(c *core.ContextChange) { c.Expect = 5 }, core.ErrStale},
		}
		for _, tt := range tests {
			c := pathChange(before, "summary", log[0], log[1])
			tt.change(&c)
			_, _, err := s.sessions.ApplyContext(t.Context(), ann(), c)
			wantError(t, tt.name, err, tt.want)
		}
		if diff := cmp.Diff(before, s.sessionOf(t, session.ID)); diff != "" {
			t.Errorf("session (-before +after):\n%s", diff)
		}
	})
}

// Of several concurrent compactions exactly one succeeds.
func TestConcurrentCompactionsOneWins(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		s.turns(t, id, 2)
		log := s.log(t, id)
		for round := range 3 {
			session := s.sessionOf(t, id)
			var won atomic.Int32
			race(racers, func(i int) {
				_, _, err := s.sessions.ApplyContext(t.Context(), ann(), pathChange(session, fmt.Sprint(round, i), log[0], log[1]))
				if err == nil {
					won.Add(1)
				} else if !errors.Is(err, core.ErrStale) {
					t.Errorf("racer %d: %v", i, err)
				}
			})
			if won.Load() != 1 {
				t.Errorf("round %d: got %d winners, want 1", round, won.Load())
			}
		}
		got := s.sessionOf(t, id)
		if got.PromptRevision != 3 || got.SummaryVersion != 3 || got.SummaryCount != 3 {
			t.Errorf("session: got %+v, want three compactions", got)
		}
		if n := s.count(t, "SELECT COUNT(*) FROM session_summaries WHERE state = 'active'"); n != 1 {
			t.Errorf("active summaries: got %d, want 1", n)
		}
		gapless(t, "event", s.allEvents(t, id), func(e core.Event) int64 { return e.Seq })
	})
}
