package repositories_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
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

// loop makes a turn of so many tool rounds and returns the question, the rounds and
// the answer.
func (s *store) loop(t *testing.T, session core.SessionID, rounds int) []core.Message {
	t.Helper()
	a := s.accept(t, ask(session, "work"))
	for i := range rounds {
		call := answer("")
		call.ToolCalls = []core.ToolCall{{ID: fmt.Sprintf("call-%d", i), Name: "read", Arguments: "{}"}}
		result := core.Message{ID: core.NewID[core.MessageID](), Role: core.RoleTool, Content: "text", ToolCallID: call.ToolCalls[0].ID, ToolName: "read", TokenCount: 4}
		s.write(t, core.RunWrite{RunID: a.Run.ID, SessionID: session, Attempt: 1, Messages: []core.Message{call, result}})
	}
	s.finish(t, a.Run, "done")
	log := s.log(t, session)
	return log[len(log)-2*rounds-2:]
}

// note stores notes on the messages, with the prompt state that names them.
func (s *store) note(t *testing.T, id core.SessionID, from, through core.Message) core.Summary {
	t.Helper()
	session := s.get(t, id)
	state, err := contextwindow.DecodeState(session.PromptState)
	must.Do(t, err)
	n := core.Summary{
		ID: core.NewID[core.SummaryID](), Kind: core.SummaryRun, Content: fmt.Sprintf("notes %d–%d", from.Seq, through.Seq),
		FromID: from.ID, FromSeq: from.Seq, ThroughID: through.ID, ThroughSeq: through.Seq, TokenCount: 5, Trigger: "iterations",
	}
	in := contextwindow.Input{State: state}.After(contextwindow.Order{
		Kind: core.SummaryRun, SummaryID: n.ID, FromSeq: n.FromSeq, ThroughSeq: n.ThroughSeq,
	}, n.TokenCount, 0)
	_, _, err = s.sessions.ApplyContext(t.Context(), ann(), core.ContextChange{
		SessionID: id, Expect: session.PromptRevision, PromptState: in.State.Encode(), Summary: &n,
	})
	must.Do(t, err)
	return n
}

// wantLoops checks which notes are in use: by the prompt state and by their rows.
func (s *store) wantLoops(t *testing.T, what string, id core.SessionID, want ...string) {
	t.Helper()
	state := must.Get(contextwindow.DecodeState(s.get(t, id).PromptState))(t)
	var ids []core.SummaryID
	for _, r := range state.Loops {
		ids = append(ids, r.ID)
	}
	found := must.Get(s.summaries.Find(t.Context(), ann(), id, ids))(t)
	var got []string
	for i, n := range found {
		got = append(got, n.Content)
		r := state.Loops[i]
		compare.Equal(t, what+": notes stand as", []any{core.SummaryActive, n.FromSeq, n.ThroughSeq, n.TokenCount}, []any{n.State, r.From, r.Through, r.Tokens})
	}
	compare.Equal(t, fmt.Sprintf("%s: notes in use", what), want, got)
	compare.Equal(t, what+": rows are active", len(want), s.count(t, "SELECT COUNT(*) FROM session_summaries WHERE session_id = ? AND kind = 'run' AND state = 'active'", id))
}

// A user's deletion erases the notes that were written with the message in view; shorter
// ones of the same loop become active again.
func TestDeletingTakesNotes(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for _, tt := range []struct {
			name string
			at   int
			want []string
		}{
			{"the question", 0, nil},
			{"a result at the beginning", 2, nil},
			{"a result that the longer ones alone cover", 6, []string{"notes 2–5"}},
			{"a result behind both", 10, []string{"notes 2–9"}},
			{"the answer", 13, []string{"notes 2–9"}},
		} {
			s := open(d)
			id := s.session(t).ID
			turn := s.loop(t, id, 6)
			s.note(t, id, turn[1], turn[4])
			s.note(t, id, turn[1], turn[8])
			must.Get(repositories.NewBranches(d.Gorm).Delete(t.Context(), ann(), id, turn[tt.at].ID))(t)
			s.wantLoops(t, tt.name, id, tt.want...)
			gone := s.count(t, "SELECT COUNT(*) FROM session_summaries WHERE session_id = ? AND state = 'erased' AND content = ''", id)
			left := s.count(t, "SELECT COUNT(*) FROM session_summaries WHERE session_id = ? AND content <> ''", id)
			compare.True(t, gone+left == 2 && left >= len(tt.want), "%s: %d notes are erased, %d are left", tt.name, gone, left)
		}
	})
}

// The question of a loop is not always the previous message: that of a regenerated answer
// is further up. Deleting it still erases the notes.
func TestDeletingAQuestionThatWasAnsweredAnew(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id := s.session(t).ID
		s.turns(t, id, 1)
		question := s.log(t, id)[0]
		in := ask(id, "")
		in.Answers = question.ID
		a := s.accept(t, in)
		call := answer("")
		call.ToolCalls = []core.ToolCall{{ID: "call-1", Name: "read", Arguments: "{}"}}
		result := core.Message{ID: core.NewID[core.MessageID](), Role: core.RoleTool, Content: "text", ToolCallID: "call-1", ToolName: "read", TokenCount: 4}
		s.write(t, core.RunWrite{RunID: a.Run.ID, SessionID: id, Attempt: 1, Messages: []core.Message{call, result}})
		s.finish(t, a.Run, "done")
		log := s.log(t, id) // #1, #3, #4, #5
		s.note(t, id, log[1], log[2])
		s.wantLoops(t, "before", id, "notes 3–4")
		must.Get(repositories.NewBranches(s.Gorm).Delete(t.Context(), ann(), id, question.ID))(t)
		s.wantLoops(t, "after", id)
		compare.Equal(t, "notes still say something", 0, s.count(t, "SELECT COUNT(*) FROM session_summaries WHERE session_id = ? AND content <> ''", id))
	})
}

// A fork has the notes of its source, for the copies of their messages.
func TestForkCopiesNotes(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id := s.session(t).ID
		s.turns(t, id, 2)
		first := s.log(t, id)
		turn := s.loop(t, id, 6) // #5, #6 … #17, #18
		s.note(t, id, turn[1], turn[4])
		s.note(t, id, turn[1], turn[8])
		branches := repositories.NewBranches(s.Gorm)
		fork := func(m core.MessageID) core.Session {
			t.Helper()
			return must.Get(branches.Fork(t.Context(), ann(), core.ForkSession{SessionID: id, MessageID: m}))(t)
		}
		s.wantLoops(t, "a copy of all", fork("").ID, "notes 6–13")
		s.wantLoops(t, "through the middle of the loop", fork(turn[6].ID).ID, "notes 6–9")
		s.wantLoops(t, "before it", fork(turn[0].ID).ID)
		s.wantLoops(t, "the source", id, "notes 6–13")

		must.Get(branches.Delete(t.Context(), ann(), id, first[1].ID))(t)
		copied := fork("") // what was deleted is not copied: all numbers are one less
		found, err := s.summaries.Loops(t.Context(), ann(), copied.ID, 0)
		if err != nil || len(found) != 1 || found[0].FromSeq != 5 || found[0].ThroughSeq != 12 || found[0].Version != 1 || !strings.HasPrefix(found[0].Note, "repeats version 2 of session ") {
			t.Errorf("got %+v and %v, want the notes on #5 to #12", found, err)
		}
		s.summarize(t, id, turn[len(turn)-1])
		got := fork("")
		compare.Equal(t, "version, cursor: want the summary alone", []any{1, int64(17)}, []any{got.SummaryVersion, got.SummaryThroughSeq})
		s.wantLoops(t, "covered by the summary", fork("").ID)
	})
}
