package repositories_test

import (
	"fmt"
	"testing"

	"bobbin/app/core"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/must"
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
	must.True(t, err == nil, "summarize through %d: %v", through.Seq, err)
	return session
}

func (s *store) get(t *testing.T, id core.SessionID) core.Session {
	t.Helper()
	return must.Get(s.sessions.Get(t.Context(), ann(), id))(t)
}

// wantSummary checks which message the session's summary ends with; 0 = none.
func (s *store) wantSummary(t *testing.T, id core.SessionID, through int64, version int) {
	t.Helper()
	got := s.get(t, id)
	compare.Equal(t, "summary's cursor, version", []any{through, version}, []any{got.SummaryThroughSeq, got.SummaryVersion})
	active := s.count(t, "SELECT COUNT(*) FROM session_summaries WHERE session_id = ? AND state = 'active' AND version = ?", id, version)
	if all := s.count(t, "SELECT COUNT(*) FROM session_summaries WHERE session_id = ? AND state = 'active'", id); all != active || active != min(version, 1) {
		t.Errorf("got %d active versions and %d of version %d", all, active, version)
	}
	compare.True(t, (got.ConversationSummary == nil) == (through == 0), "got summary %v, want one through %d", got.ConversationSummary, through)
	if got.ConversationSummary != nil && *got.ConversationSummary != fmt.Sprintf("summary through %d", through) {
		t.Errorf("got summary %q, want the one through %d", *got.ConversationSummary, through)
	}
}

func (s *store) wantPath(t *testing.T, id core.SessionID, want ...int64) {
	t.Helper()
	compare.Equal(t, "path", want, seqs(s.log(t, id)))
}

// A run on a branch of its own cannot be queued behind others; a message that cannot be
// edited or answered is refused.
func TestBranchesRefused(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		branches := repositories.NewBranches(s.Gorm)
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
		compare.Error(t, "select what is selected", nil, err)
		_, err = branches.Delete(t.Context(), ann(), id, log[0].ID)
		wantError(t, "delete while busy", err, core.ErrConflict)

		must.Do(t, edits(log[0].ID, core.MultitaskInterrupt))
		s.wantPath(t, id, 1, 2, 3, 4, 5) // until it begins
		wantError(t, "a second interrupt", edits(log[0].ID, core.MultitaskInterrupt), core.ErrConflict)
		s.finish(t, active, "half")
		claimed, err := s.runs.Claim(t.Context(), id, worker)
		must.Do(t, err)
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
	each(t, func(t *testing.T, s *store) {
		id := s.session(t).ID
		first := s.accept(t, ask(id, "question"))
		in := ask(id, "")
		in.Answers, in.Multitask, in.ClientMessageID = first.Message.ID, core.MultitaskInterrupt, "c"
		queued := s.accept(t, in)
		compare.Equal(t, "run: want a queued one for the question", []any{core.RunQueued, "question", first.Message.ID}, []any{queued.Run.Status, queued.Message.Content, queued.Run.UserMessageID})
		s.finish(t, first.Run, "half")
		claimed, err := s.runs.Claim(t.Context(), id, worker)
		must.True(t, err == nil && claimed.Message.Content == "question" && claimed.Message.OnPath, "got message %+v, error %v, want the question", claimed.Message, err)
		s.wantPath(t, id, 1)
		s.finish(t, claimed.Run, "whole")
		s.wantPath(t, id, 1, 3)
		again := s.accept(t, in)
		compare.Equal(t, "repeated: want the same run", []any{true, queued.Run.ID}, []any{again.Repeated, again.Run.ID})
	})
}

// A message that names its place cannot be queued behind others, unless it interrupts the
// only one; a place that is not there is refused.
func TestAfterIsRefused(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id, other := s.session(t).ID, s.session(t).ID
		s.turns(t, id, 2)
		s.turns(t, other, 1)
		log := s.log(t, id)
		after := func(m core.MessageID, how core.Multitask) error {
			in := ask(id, "behind it")
			in.After, in.Multitask = m, how
			_, err := s.runs.Accept(t.Context(), ann(), in)
			return err
		}
		wantNotFound(t, "no message", after(core.NewID[core.MessageID](), core.MultitaskReject))
		wantNotFound(t, "a wrong id", after("x", core.MultitaskReject))
		wantNotFound(t, "of another session", after(s.log(t, other)[0].ID, core.MultitaskReject))
		must.Get(repositories.NewBranches(s.Gorm).Delete(t.Context(), ann(), id, log[3].ID))(t)
		wantNotFound(t, "deleted", after(log[3].ID, core.MultitaskReject))

		active := s.accept(t, ask(id, "busy")).Run // 5
		wantError(t, "busy", after(log[1].ID, core.MultitaskReject), core.ErrConflict)
		wantError(t, "busy, at the start", after(core.AfterStart, core.MultitaskReject), core.ErrConflict)
		must.Do(t, after(log[1].ID, core.MultitaskInterrupt))
		s.wantPath(t, id, 1, 2, 3, 5) // until it begins
		s.finish(t, active, "half")
		claimed := s.claim(t, id)
		if claimed.Run.Input.After != log[1].ID || claimed.Message.ParentID != log[1].ID {
			t.Errorf("got %+v behind %s, want it behind %s", claimed.Run.Input, claimed.Message.ParentID, log[1].ID)
		}
		s.wantPath(t, id, 1, 2, 7)
	})
}

// A run that resumes after waiting keeps what it wrote: only its first start changes the
// path.
func TestBranchBeginsOnce(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id := s.session(t).ID
		s.turns(t, id, 2)
		log := s.log(t, id)
		for _, in := range []core.AcceptRun{
			{SessionID: id, Worker: worker, Answers: log[1].ID},
			{SessionID: id, Worker: worker, Input: core.RunInput{Content: "new", Edits: log[0].ID}},
			{SessionID: id, Worker: worker, After: log[1].ID, Input: core.RunInput{Content: "behind it"}},
			{SessionID: id, Worker: worker, After: core.AfterStart, Input: core.RunInput{Content: "anew"}},
		} {
			run := s.accept(t, in).Run
			half := answer("half")
			s.write(t, core.RunWrite{RunID: run.ID, SessionID: id, Attempt: 1, Messages: []core.Message{half}})
			before := seqs(s.log(t, id))
			s.exec(t, "UPDATE runs SET status = 'queued' WHERE id = ?", run.ID)
			claimed, err := s.runs.Claim(t.Context(), id, worker)
			must.True(t, err == nil && claimed.Run.Attempt == 2, "claim: got attempt %d and %v, want the second", claimed.Run.Attempt, err)
			s.wantPath(t, id, before...)
			s.finish(t, claimed.Run, "whole")
			s.wantPath(t, id, append(before, before[len(before)-1]+1)...)
		}
	})
}
