package repositories_test

import (
	"fmt"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

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
			if left := s.count(t, "SELECT COUNT(*) FROM session_summaries WHERE session_id = ? AND content <> ''", id); gone+left != 2 || left < len(tt.want) {
				t.Errorf("%s: %d notes are erased, %d are left", tt.name, gone, left)
			}
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
