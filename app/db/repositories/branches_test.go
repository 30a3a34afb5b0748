package repositories_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/dbtest"
)

// edit accepts a new version of a message and ends its run with an answer.
func (s *store) edit(t *testing.T, session core.SessionID, id core.MessageID, content string) core.Accepted {
	t.Helper()
	in := ask(session, content)
	in.Input.Edits = id
	a := s.accept(t, in)
	s.finish(t, a.Run, "answer to "+content)
	return a
}

// again regenerates the answer to a message.
func (s *store) again(t *testing.T, session core.SessionID, id core.MessageID) core.Accepted {
	t.Helper()
	in := ask(session, "")
	in.Answers = id
	a := s.accept(t, in)
	s.finish(t, a.Run, "another answer")
	return a
}

// summarize gives the session a summary of the path up to the message.
func (s *store) summarize(t *testing.T, id core.SessionID, through core.Message) core.Session {
	t.Helper()
	session := s.get(t, id)
	covered := 0
	for _, m := range s.log(t, id) {
		if m.Seq <= through.Seq {
			covered++
		}
	}
	session, _, err := s.sessions.ApplyContext(t.Context(), ann(), core.ContextChange{
		SessionID: id, Expect: session.PromptRevision, PromptState: []byte(`{"masked_through":1}`),
		Summary: &core.Summary{
			Content: fmt.Sprintf("summary through %d", through.Seq), ThroughID: through.ID, ThroughSeq: through.Seq,
			FromSeq: 1, MessagesCovered: covered, TokenCount: 3,
		},
	})
	if err != nil {
		t.Fatalf("summarize through %d: %v", through.Seq, err)
	}
	return session
}

func (s *store) get(t *testing.T, id core.SessionID) core.Session {
	t.Helper()
	session, err := s.sessions.Get(t.Context(), ann(), id)
	if err != nil {
		t.Fatalf("get session: %v", err)
	}
	return session
}

// wantSummary checks which message the session's summary ends with; 0 = none.
func (s *store) wantSummary(t *testing.T, id core.SessionID, through int64, version int) {
	t.Helper()
	got := s.get(t, id)
	if got.SummaryThroughSeq != through || got.SummaryVersion != version {
		t.Errorf("got version %d through %d, want version %d through %d", got.SummaryVersion, got.SummaryThroughSeq, version, through)
	}
	active := s.count(t, "SELECT COUNT(*) FROM session_summaries WHERE session_id = ? AND state = 'active' AND version = ?", id, version)
	if all := s.count(t, "SELECT COUNT(*) FROM session_summaries WHERE session_id = ? AND state = 'active'", id); all != active || active != min(version, 1) {
		t.Errorf("got %d active versions and %d of version %d", all, active, version)
	}
	if (got.ConversationSummary == nil) != (through == 0) {
		t.Errorf("got summary %v, want one through %d", got.ConversationSummary, through)
	}
	if got.ConversationSummary != nil && *got.ConversationSummary != fmt.Sprintf("summary through %d", through) {
		t.Errorf("got summary %q, want the one through %d", *got.ConversationSummary, through)
	}
}

func (s *store) wantPath(t *testing.T, id core.SessionID, want ...int64) {
	t.Helper()
	if diff := cmp.Diff(want, seqs(s.log(t, id))); diff != "" {
		t.Errorf("path (-want +got):\n%s", diff)
	}
}

// Editing, regenerating and selecting at or before the cursor falls back to the newest
// version that ends before.
func TestBranches(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		branches := repositories.NewBranches(d.Gorm)
		id := s.session(t).ID
		s.turns(t, id, 4)
		log := s.log(t, id)
		s.summarize(t, id, log[1])
		s.summarize(t, id, log[5])
		s.wantSummary(t, id, 6, 2)

		edited := s.edit(t, id, log[6].ID, "after the cursor")
		s.wantPath(t, id, 1, 2, 3, 4, 5, 6, 9, 10)
		s.wantSummary(t, id, 6, 2)
		if got := s.get(t, id); got.PromptState != nil || got.PromptRevision != 3 {
			t.Errorf("got prompt state %s, revision %d, want none and 3", got.PromptState, got.PromptRevision)
		}
		if want := []core.EventType{core.EventRunStarted, core.EventSessionUpdated, core.EventMessageCreated}; !slices.Equal(types(edited.Events), want) {
			t.Errorf("got events %v, want %v", types(edited.Events), want)
		}
		path := decode[core.SessionData](t, edited.Events[1]).Path
		if diff := cmp.Diff(&core.PathChange{AfterID: log[5].ID, AfterSeq: log[5].Seq, LeafID: log[5].ID}, path); diff != "" {
			t.Errorf("change of the path (-want +got):\n%s", diff)
		}

		s.again(t, id, log[5].ID) // the question is covered, and must not be
		s.wantPath(t, id, 1, 2, 3, 4, 5, 11)
		s.wantSummary(t, id, 2, 3)

		if _, _, err := branches.Select(t.Context(), ann(), id, edited.Message.ID); err != nil {
			t.Fatalf("select: %v", err)
		}
		s.wantPath(t, id, 1, 2, 3, 4, 5, 6, 9, 10)
		s.wantSummary(t, id, 6, 4)

		s.edit(t, id, log[0].ID, "another beginning")
		s.wantPath(t, id, 12, 13)
		s.wantSummary(t, id, 0, 0)

		session, events, err := branches.Select(t.Context(), ann(), id, log[0].ID)
		if err != nil || len(events) != 1 || session.SummaryVersion != 5 {
			t.Errorf("got version %d, events %v, error %v, want 5 and one event", session.SummaryVersion, types(events), err)
		}
		s.wantPath(t, id, 1, 2, 3, 4, 5, 11) // the newest below
		s.wantSummary(t, id, 2, 5)
		if _, events, err = branches.Select(t.Context(), ann(), id, log[1].ID); err != nil || len(events) != 0 {
			t.Errorf("select what is selected: got events %v, error %v, want none", types(events), err)
		}
		gapless(t, "event", s.allEvents(t, id), func(e core.Event) int64 { return e.Seq })
		s.wantBranches(t, id)
	})
}

// wantBranches checks the siblings in the list.
func (s *store) wantBranches(t *testing.T, id core.SessionID) {
	t.Helper()
	page, err := s.messages.List(t.Context(), ann(), id, core.MessageQuery{AllBranches: true})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	bySeq := map[core.MessageID]int64{}
	for _, m := range page.Items {
		bySeq[m.ID] = m.Seq
	}
	for _, m := range page.Items {
		if b := m.Branch; b != nil {
			got = append(got, fmt.Sprintf("%d: %d of %d, %d←→%d", m.Seq, b.Index, b.Count, bySeq[b.Previous], bySeq[b.Next]))
		}
	}
	want := []string{
		"1: 1 of 2, 0←→12", "6: 1 of 2, 0←→11", "7: 1 of 2, 0←→9", "9: 2 of 2, 7←→0", "11: 2 of 2, 6←→0", "12: 2 of 2, 1←→0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("branches (-want +got):\n%s", diff)
	}
}

// A run on a branch of its own cannot be queued behind others; a message that cannot be
// edited or answered is refused.
func TestBranchesRefused(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		branches := repositories.NewBranches(d.Gorm)
		id := s.session(t).ID
		s.turns(t, id, 2)
		log := s.log(t, id)
		accept := func(in core.AcceptRun) error {
			_, err := s.runs.Accept(t.Context(), ann(), in)
			return err
		}
		edits := func(m core.MessageID, how core.Multitask) error {
			in := ask(id, "edited")
			in.Input.Edits, in.Multitask = m, how
			return accept(in)
		}
		wantError(t, "edit an answer", edits(log[1].ID, ""), core.ErrUnprocessable)
		wantNotFound(t, "edit nothing", edits(core.NewID[core.MessageID](), ""))
		wantNotFound(t, "edit by a wrong id", edits("x", ""))

		active := s.accept(t, ask(id, "busy")).Run
		wantError(t, "edit while busy", edits(log[0].ID, core.MultitaskReject), core.ErrConflict)
		_, _, err := branches.Select(t.Context(), ann(), id, log[0].ID)
		if err != nil {
			t.Errorf("select what is selected: %v", err)
		}
		_, err = branches.Delete(t.Context(), ann(), id, log[0].ID)
		wantError(t, "delete while busy", err, core.ErrConflict)

		if err := edits(log[0].ID, core.MultitaskInterrupt); err != nil {
			t.Fatalf("interrupt: %v", err)
		}
		s.wantPath(t, id, 1, 2, 3, 4, 5) // until it begins
		wantError(t, "a second interrupt", edits(log[0].ID, core.MultitaskInterrupt), core.ErrConflict)
		s.finish(t, active, "half")
		claimed, err := s.runs.Claim(t.Context(), id, worker)
		if err != nil {
			t.Fatalf("claim: %v", err)
		}
		s.wantPath(t, id, 7)
		s.finish(t, claimed.Run, "edited answer")
		s.wantPath(t, id, 7, 8)
		_, _, err = branches.Select(t.Context(), bob(), id, log[0].ID)
		wantNotFound(t, "another owner's select", err)
		_, err = branches.Fork(t.Context(), bob(), core.ForkSession{SessionID: id})
		wantNotFound(t, "another owner's fork", err)
		_, _, err = branches.Pin(t.Context(), bob(), id, log[0].ID, true)
		wantNotFound(t, "another owner's pin", err)
		_, err = branches.Delete(t.Context(), bob(), id, log[0].ID)
		wantNotFound(t, "another owner's delete", err)
	})
}

// An interrupted answer is regenerated when the previous run has ended.
func TestRegenerateInterrupts(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		first := s.accept(t, ask(id, "question"))
		in := ask(id, "")
		in.Answers, in.Multitask, in.ClientMessageID = first.Message.ID, core.MultitaskInterrupt, "c"
		queued := s.accept(t, in)
		if queued.Run.Status != core.RunQueued || queued.Message.Content != "question" || queued.Run.UserMessageID != first.Message.ID {
			t.Errorf("got %s run for %q, want a queued one for the question", queued.Run.Status, queued.Message.Content)
		}
		s.finish(t, first.Run, "half")
		claimed, err := s.runs.Claim(t.Context(), id, worker)
		if err != nil || claimed.Message.Content != "question" || !claimed.Message.OnPath {
			t.Fatalf("got message %+v, error %v, want the question", claimed.Message, err)
		}
		s.wantPath(t, id, 1)
		s.finish(t, claimed.Run, "whole")
		s.wantPath(t, id, 1, 3)
		if again := s.accept(t, in); !again.Repeated || again.Run.ID != queued.Run.ID {
			t.Errorf("got run %s, repeated %v, want %s again", again.Run.ID, again.Repeated, queued.Run.ID)
		}
	})
}

// A fork has the log up to the message with gapless numbers, and the summary that
// is valid there; the source is not touched.
func TestFork(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		branches := repositories.NewBranches(d.Gorm)
		id := s.session(t).ID
		s.turns(t, id, 4)
		log := s.log(t, id)
		s.summarize(t, id, log[1])
		s.summarize(t, id, log[5])
		s.edit(t, id, log[2].ID, "edited")
		if _, err := branches.Delete(t.Context(), ann(), id, log[6].ID); err != nil {
			t.Fatal(err)
		}
		before := s.get(t, id)
		fork, err := branches.Fork(t.Context(), ann(), core.ForkSession{SessionID: id, MessageID: log[7].ID, Title: "x (fork)"})
		if err != nil {
			t.Fatalf("fork: %v", err)
		}
		if diff := cmp.Diff(before, s.get(t, id)); diff != "" {
			t.Errorf("the source (-before +after):\n%s", diff)
		}
		got := s.log(t, fork.ID)
		gapless(t, "message", got, func(m core.Message) int64 { return m.Seq })
		var texts []string
		for i, m := range got {
			texts = append(texts, m.Content)
			if i > 0 && m.ParentID != got[i-1].ID || !core.ValidID(m.ID) || m.RunID != "" {
				t.Errorf("got message %+v after %+v", m, got[max(i-1, 0)])
			}
		}
		want := "question 0|answer 0|question 1|answer 1|question 2|answer 2|answer 3"
		if strings.Join(texts, "|") != want {
			t.Errorf("got %q, want %s", texts, want)
		}
		s.wantSummary(t, fork.ID, 6, 1)
		if fork.MessageCount != 7 || fork.SummarizedCount != 6 || fork.Title != "x (fork)" {
			t.Errorf("got %d messages, %d summarized, title %q", fork.MessageCount, fork.SummarizedCount, fork.Title)
		}
		s.turns(t, fork.ID, 1)
		s.wantPath(t, fork.ID, 1, 2, 3, 4, 5, 6, 7, 8, 9)

		empty, err := branches.Fork(t.Context(), ann(), core.ForkSession{SessionID: s.session(t).ID})
		if err != nil || empty.MessageCount != 0 {
			t.Errorf("fork of nothing: got %d messages, error %v", empty.MessageCount, err)
		}
		path, err := branches.Fork(t.Context(), ann(), core.ForkSession{SessionID: id})
		if err != nil || path.MessageCount != 4 || path.SummaryThroughSeq != 2 {
			t.Errorf("fork of the path: got %d messages, summary through %d, error %v", path.MessageCount, path.SummaryThroughSeq, err)
		}
	})
}
