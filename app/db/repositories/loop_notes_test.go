package repositories_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/dbtest"
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
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatalf("note: %v", err)
	}
	return n
}

// wantLoops checks which notes are in use: by the prompt state and by their rows.
func (s *store) wantLoops(t *testing.T, what string, id core.SessionID, want ...string) {
	t.Helper()
	state, err := contextwindow.DecodeState(s.get(t, id).PromptState)
	if err != nil {
		t.Fatal(err)
	}
	var ids []core.SummaryID
	for _, r := range state.Loops {
		ids = append(ids, r.ID)
	}
	found, err := s.summaries.Find(t.Context(), ann(), id, ids)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i, n := range found {
		got = append(got, n.Content)
		if r := state.Loops[i]; n.State != core.SummaryActive || r.From != n.FromSeq || r.Through != n.ThroughSeq || r.Tokens != n.TokenCount {
			t.Errorf("%s: notes %+v stand as %+v", what, n, r)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: notes in use (-want +got):\n%s", what, diff)
	}
	if n := s.count(t, "SELECT COUNT(*) FROM session_summaries WHERE session_id = ? AND kind = 'run' AND state = 'active'", id); n != len(want) {
		t.Errorf("%s: %d rows are active, want %d", what, n, len(want))
	}
}

// Notes are rows of kind run, under the same compare-and-set as the summary. Later ones of
// the loop replace them, and the rolling summary that passes them drops them; the session's
// own summary is separate.
func TestLoopRows(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		s.turns(t, id, 1)
		s.summarize(t, id, s.log(t, id)[1])
		turn := s.loop(t, id, 6)
		first := s.note(t, id, turn[1], turn[4])
		s.wantLoops(t, "first", id, "notes 4–7")
		s.note(t, id, turn[1], turn[8])
		s.wantLoops(t, "extended", id, "notes 4–11")
		other := s.loop(t, id, 4)
		s.note(t, id, other[1], other[2])
		s.wantLoops(t, "of two runs", id, "notes 4–11", "notes 18–19")
		got := s.get(t, id)
		if got.SummaryVersion != 1 || got.SummaryThroughSeq != 2 || got.SummaryCount != 4 || *got.ConversationSummary != "summary through 2" {
			t.Errorf("session %+v, want its own summary as it was, and four in all", got)
		}
		stored, err := s.summaries.Find(t.Context(), ann(), id, []core.SummaryID{first.ID})
		if err != nil || len(stored) != 1 || stored[0].State != core.SummaryDropped || stored[0].Version != 2 || stored[0].Content != first.Content {
			t.Errorf("got %+v and %v, want the first notes, dropped", stored, err)
		}
		for name, look := range map[string]func() ([]core.Summary, error){
			"bob": func() ([]core.Summary, error) {
				return s.summaries.Find(t.Context(), bob(), id, []core.SummaryID{first.ID})
			},
			"session": func() ([]core.Summary, error) {
				return s.summaries.Find(t.Context(), ann(), s.session(t).ID, []core.SummaryID{first.ID})
			},
			"nothing": func() ([]core.Summary, error) { return s.summaries.Find(t.Context(), ann(), id, nil) },
		} {
			if found, err := look(); err != nil || len(found) > 0 {
				t.Errorf("%s: got %+v and %v, want none", name, found, err)
			}
		}
		list, err := s.summaries.Loops(t.Context(), ann(), id, 0)
		if err != nil || len(list) != 2 || list[0].ThroughSeq != 11 || list[1].ThroughSeq != 19 {
			t.Errorf("got %+v and %v, want the notes of both runs", list, err)
		}
		_, err = s.summaries.Loops(t.Context(), bob(), id, 0)
		wantNotFound(t, "bob's notes", err)

		passed := s.get(t, id)
		in := pathChange(passed, "more", turn[0], turn[len(turn)-1])
		in.PromptState = []byte(`{}`)
		if _, _, err := s.sessions.ApplyContext(t.Context(), ann(), in); err != nil {
			t.Fatal(err)
		}
		if n := s.count(t, "SELECT COUNT(*) FROM session_summaries WHERE kind = 'run' AND state = 'active'"); n != 1 {
			t.Errorf("%d notes are active, want those behind the cursor", n)
		}
	})
}

// When the path changes, so do the notes: the longest of those whose messages are all on
// it, and none that the summary covers.
func TestLoopsFollowThePath(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		branches := repositories.NewBranches(d.Gorm)
		s.turns(t, id, 1)
		turn := s.loop(t, id, 6) // #3 question, #4 … #15, #16 answer
		s.note(t, id, turn[1], turn[4])
		s.note(t, id, turn[1], turn[8])
		second := s.loop(t, id, 4) // #17, #18 … #25, #26
		s.note(t, id, second[1], second[4])

		edited := s.edit(t, id, second[0].ID, "other work")
		s.wantLoops(t, "the second question has another version", id, "notes 4–11")
		s.again(t, id, turn[0].ID)
		s.wantLoops(t, "the first is answered anew", id)
		pick := func(m core.MessageID) {
			t.Helper()
			if _, _, err := branches.Select(t.Context(), ann(), id, m); err != nil {
				t.Fatal(err)
			}
		}
		pick(second[5].ID)
		s.wantLoops(t, "back on the first branch", id, "notes 4–11", "notes 18–21")
		pick(edited.Message.ID)
		s.wantLoops(t, "and on the second", id, "notes 4–11")
		pick(second[5].ID)

		s.summarize(t, id, turn[len(turn)-1])
		if n := s.count(t, "SELECT COUNT(*) FROM session_summaries WHERE kind = 'run' AND state = 'active'"); n != 1 {
			t.Errorf("%d notes are active after the summary, want one", n)
		}
		s.again(t, id, turn[0].ID) // before the cursor: the summary is gone
		pick(second[5].ID)
		s.wantSummaryThrough(t, id, 16)
		s.wantLoops(t, "with the summary again", id, "notes 18–21")
	})
}

func (s *store) wantSummaryThrough(t *testing.T, id core.SessionID, want int64) {
	t.Helper()
	if got := s.get(t, id).SummaryThroughSeq; got != want {
		t.Errorf("the summary goes to #%d, want #%d", got, want)
	}
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
			if _, err := repositories.NewBranches(d.Gorm).Delete(t.Context(), ann(), id, turn[tt.at].ID); err != nil {
				t.Fatal(err)
			}
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
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
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
		if _, err := repositories.NewBranches(d.Gorm).Delete(t.Context(), ann(), id, question.ID); err != nil {
			t.Fatal(err)
		}
		s.wantLoops(t, "after", id)
		if n := s.count(t, "SELECT COUNT(*) FROM session_summaries WHERE session_id = ? AND content <> ''", id); n != 0 {
			t.Errorf("%d notes still say something", n)
		}
	})
}

// A fork has the notes of its source, for the copies of their messages.
func TestForkCopiesNotes(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		s.turns(t, id, 2)
		first := s.log(t, id)
		turn := s.loop(t, id, 6) // #5, #6 … #17, #18
		s.note(t, id, turn[1], turn[4])
		s.note(t, id, turn[1], turn[8])
		branches := repositories.NewBranches(d.Gorm)
		fork := func(m core.MessageID) core.Session {
			t.Helper()
			out, err := branches.Fork(t.Context(), ann(), core.ForkSession{SessionID: id, MessageID: m})
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		s.wantLoops(t, "a copy of all", fork("").ID, "notes 6–13")
		s.wantLoops(t, "through the middle of the loop", fork(turn[6].ID).ID, "notes 6–9")
		s.wantLoops(t, "before it", fork(turn[0].ID).ID)
		s.wantLoops(t, "the source", id, "notes 6–13")

		if _, err := branches.Delete(t.Context(), ann(), id, first[1].ID); err != nil {
			t.Fatal(err)
		}
		copied := fork("") // what was deleted is not copied: all numbers are one less
		found, err := s.summaries.Loops(t.Context(), ann(), copied.ID, 0)
		if err != nil || len(found) != 1 || found[0].FromSeq != 5 || found[0].ThroughSeq != 12 || found[0].Version != 1 || !strings.HasPrefix(found[0].Note, "repeats version 2 of session ") {
			t.Errorf("got %+v and %v, want the notes on #5 to #12", found, err)
		}
		s.summarize(t, id, turn[len(turn)-1])
		if got := fork(""); got.SummaryVersion != 1 || got.SummaryThroughSeq != 17 {
			t.Errorf("got version %d through #%d, want the summary alone", got.SummaryVersion, got.SummaryThroughSeq)
		}
		s.wantLoops(t, "covered by the summary", fork("").ID)
	})
}
