package repositories_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// restore makes a version the active one again.
func (s *store) restore(t *testing.T, id core.SessionID, version int) (core.Session, []core.Event) {
	t.Helper()
	session, events, err := s.sessions.RestoreSummary(t.Context(), ann(), core.SummaryRestore{
		SessionID: id, Expect: s.get(t, id).PromptRevision, Version: version, PromptState: []byte(`{"landed":{"tokens":5,"seq":8,"window":100}}`),
		Events: []core.Event{core.NewEvent(id, "", core.EventContextCompleted, core.ContextData{Trigger: core.TriggerRestore})},
	})
	must.True(t, err == nil, "restore version %d: %v", version, err)
	return session, events
}

// Undone versions are not restored when the path changes; others are.
func TestRestoredStays(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		branches := repositories.NewBranches(s.Gorm)
		id := s.session(t).ID
		s.turns(t, id, 5)
		log := s.log(t, id)
		s.summarize(t, id, log[1])
		s.summarize(t, id, log[5])
		s.restore(t, id, 1)
		s.edit(t, id, log[8].ID, "behind all summaries")
		s.wantSummary(t, id, 2, 3)
		s.restore(t, id, 0)
		edited := s.edit(t, id, log[8].ID, "once more")
		s.wantSummary(t, id, 0, 0)
		s.restore(t, id, 2)
		s.wantSummary(t, id, 6, 4)
		must.Get2(branches.Select(t.Context(), ann(), id, log[8].ID))(t)
		s.wantSummary(t, id, 6, 4)

		// A restore does not undo a version of another branch.
		s.summarize(t, id, log[9]) // version 5
		must.Get2(branches.Select(t.Context(), ann(), id, edited.Run.UserMessageID))(t)
		s.wantSummary(t, id, 6, 6)
		s.restore(t, id, 0)
		must.Get2(branches.Select(t.Context(), ann(), id, log[9].ID))(t)
		s.wantSummary(t, id, 10, 7)
	})
}

// A version that cannot be restored is refused with the reason, and changes nothing.
func TestRestoreRefused(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		branches := repositories.NewBranches(s.Gorm)
		id := s.session(t).ID
		s.turns(t, id, 4)
		log := s.log(t, id)
		s.summarize(t, id, log[1])
		s.summarize(t, id, log[7])            // 2
		s.edit(t, id, log[6].ID, "elsewhere") // 3 repeats 1
		compare.Equal(t, "covered on another path only: got: want none", 0, must.Get(s.summaries.FirstCovering(t.Context(), ann(), id, 3))(t))
		s.summarize(t, id, s.log(t, id)[7]) // 4
		run := must.Get(s.summaries.Get(t.Context(), ann(), id, 4))(t)
		run.Kind, run.ID, run.State = core.SummaryRun, "", "" // 5
		must.Get2(s.sessions.ApplyContext(t.Context(), ann(), core.ContextChange{SessionID: id, Expect: s.get(t, id).PromptRevision, Summary: &run}))(t)
		s.ahead(t, id, s.log(t, id)[7]) // 6
		restore := func(version int, tenant core.Tenant, behind int) error {
			_, _, err := s.sessions.RestoreSummary(t.Context(), tenant, core.SummaryRestore{SessionID: id, Expect: s.get(t, id).PromptRevision - behind, Version: version, PromptState: []byte(`{}`)})
			return err
		}
		wantRefused := func(version int, says string) {
			t.Helper()
			err := restore(version, ann(), 0)
			_, asked := s.summaries.Restorable(t.Context(), ann(), id, version)
			for _, err := range []error{err, asked} {
				wantError(t, says, err, core.ErrUnprocessable)
				compare.True(t, err != nil && strings.Contains(err.Error(), says), "got %v, want it to say %q", err, says)
			}
		}
		before := s.get(t, id)
		wantRefused(2, "on another branch")
		wantRefused(5, "one run's tool calls")
		wantRefused(6, "never used")
		wantError(t, "stale", restore(1, ann(), 1), core.ErrStale)
		wantError(t, "another owner", restore(1, bob(), 0), core.ErrNotFound)
		compare.Equal(t, "the session has changed", before, s.get(t, id), sameJSON())
		compare.Equal(t, "a version was taken back by a restore that was refused", 0, s.count(t, "SELECT COUNT(*) FROM session_summaries WHERE state = 'undone'"))
		must.Get(branches.Delete(t.Context(), ann(), id, log[0].ID))(t)
		wantRefused(4, "was deleted")
	})
}

// ahead prepares a summary of the path up to the message.
func (s *store) ahead(t *testing.T, id core.SessionID, through core.Message) core.Session {
	t.Helper()
	session := s.get(t, id)
	session, _, err := s.sessions.ApplyContext(t.Context(), ann(), core.ContextChange{
		SessionID: id, Expect: session.PromptRevision, PromptState: []byte(`{"masked_through":9}`),
		Summary: &core.Summary{
			State: core.SummaryPrepared, Content: fmt.Sprintf("summary through %d", through.Seq), ThroughID: through.ID, ThroughSeq: through.Seq,
			FromSeq: 1, MessagesCovered: int(through.Seq), TokenCount: 3,
		},
	})
	must.True(t, err == nil, "prepare through %d: %v", through.Seq, err)
	return session
}

// work returns what goes on with the session's summaries.
func (s *store) work(t *testing.T, id core.SessionID) core.SummaryWork {
	t.Helper()
	return must.Get(s.sessions.SummaryWork(t.Context(), ann(), id))(t)
}

// wantPrepared checks which message the prepared summary ends with; 0 = none.
func (s *store) wantPrepared(t *testing.T, id core.SessionID, through int64) {
	t.Helper()
	got := s.work(t, id).Prepared
	compare.Equal(t, "prepared, want one through", []any{through, (through == 0)}, []any{got.ThroughSeq, (got.Version == 0)})
}

// A deletion also erases prepared summaries of the message.
func TestDeleteErasesPreparedSummaries(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id := s.session(t).ID
		s.turns(t, id, 1)
		log := s.confess(t, id)
		s.turns(t, id, 1)
		s.ahead(t, id, log[5]) // dropped by the next one
		s.ahead(t, id, log[5])
		s.exec(t, "UPDATE session_summaries SET content = ? WHERE session_id = ?", "told "+secret, id)
		for _, m := range log[2:6] {
			must.Get(repositories.NewBranches(s.Gorm).Delete(t.Context(), ann(), id, m.ID))(t)
		}
		left := s.remains(t)
		compare.True(t, len(left) == 0, "the secret is still in %v", left)
		s.wantPrepared(t, id, 0)
		compare.Equal(t, "versions erased: want both", 2, s.count(t, "SELECT COUNT(*) FROM session_summaries WHERE state = 'erased'"))
	})
}

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

// Of several concurrent holders one gets the lease, and keeps it for its time.
func TestConcurrentLeasesOneWins(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id := s.session(t).ID
		var won atomic.Int32
		race(racers, func(i int) {
			if must.Get(s.sessions.LeaseSummary(t.Context(), ann(), id, fmt.Sprint(i), time.Minute))(t).OK() {
				won.Add(1)
			}
		})
		compare.Equal(t, "holders", 1, won.Load())
	})
}

// Of several concurrent compactions exactly one succeeds.
func TestConcurrentCompactionsOneWins(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id := s.session(t).ID
		s.turns(t, id, 2)
		log := s.log(t, id)
		for round := range 3 {
			session := s.get(t, id)
			var won atomic.Int32
			race(racers, func(i int) {
				_, _, err := s.sessions.ApplyContext(t.Context(), ann(), pathChange(session, fmt.Sprint(round, i), log[0], log[1]))
				if err == nil {
					won.Add(1)
				} else if !errors.Is(err, core.ErrStale) {
					t.Errorf("racer %d: %v", i, err)
				}
			})
			compare.Equal(t, fmt.Sprintf("round %d: winners", round), 1, won.Load())
		}
		got := s.get(t, id)
		compare.Equal(t, "session: want three compactions", []int{3, 3, 3}, []int{got.PromptRevision, got.SummaryVersion, got.SummaryCount})
		compare.Equal(t, "active summaries", 1, s.count(t, "SELECT COUNT(*) FROM session_summaries WHERE state = 'active'"))
		gapless(t, "event", s.allEvents(t, id), func(e core.Event) int64 { return e.Seq })
	})
}
