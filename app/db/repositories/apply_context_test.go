package repositories_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

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
