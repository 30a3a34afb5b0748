package repositories_test

import (
	"fmt"
	"strings"
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

// A message that cannot be edited is refused, and so is a second interrupt. tests/branches has what a run
// prevents, and what is on the path after an interrupt.
func TestBranchesRefused(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id := s.session(t).ID
		s.turns(t, id, 2)
		log := s.log(t, id)
		edits := func(m core.MessageID, how core.Multitask) error {
			in := ask(id, "edited")
			in.Input.Edits, in.Multitask = m, how
			return compare.ErrorOf(s.runs.Accept(t.Context(), ann(), in))
		}
		wantError(t, "edit an answer", edits(log[1].ID, ""), core.ErrUnprocessable)
		wantNotFound(t, "edit nothing", edits(core.NewID[core.MessageID](), ""))
		wantNotFound(t, "edit by a wrong id", edits("x", ""))

		s.accept(t, ask(id, "busy"))
		must.Get2(repositories.NewBranches(s.Gorm).Select(t.Context(), ann(), id, log[0].ID))(t) // it is selected
		must.Do(t, edits(log[0].ID, core.MultitaskInterrupt))
		wantError(t, "a second interrupt", edits(log[0].ID, core.MultitaskInterrupt), core.ErrConflict)
	})
}

// A place that is not there is refused.
func TestAfterIsRefused(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id, other := s.session(t).ID, s.session(t).ID
		s.turns(t, id, 2)
		s.turns(t, other, 1)
		log := s.log(t, id)
		after := func(m core.MessageID) error {
			in := ask(id, "behind it")
			in.After, in.Multitask = m, core.MultitaskReject
			return compare.ErrorOf(s.runs.Accept(t.Context(), ann(), in))
		}
		wantNotFound(t, "no message", after(core.NewID[core.MessageID]()))
		wantNotFound(t, "a wrong id", after("x"))
		wantNotFound(t, "of another session", after(s.log(t, other)[0].ID))
		must.Get(repositories.NewBranches(s.Gorm).Delete(t.Context(), ann(), id, log[3].ID))(t)
		wantNotFound(t, "deleted", after(log[3].ID))

		s.accept(t, ask(id, "busy"))
		wantError(t, "busy, at the start", after(core.AfterStart), core.ErrConflict)
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

// remainsOf counts the rows of every table in which a text is.
func (s *store) remainsOf(t *testing.T, text string) map[string]int {
	t.Helper()
	hits := map[string]int{}
	for table, column := range map[string]string{
		"messages": "content", "message_revisions": "content", "session_events": "CAST(data AS text)", "session_summaries": "content",
		"sessions": "title || COALESCE(conversation_summary, '')", "idempotency_keys": "COALESCE(CAST(body AS text), '')",
	} {
		if n := s.count(t, "SELECT COUNT(*) FROM "+table+" WHERE "+column+" LIKE ?", "%"+text+"%"); n > 0 {
			hits[table] = n
		}
	}
	return hits
}

// After an edit in place the old text is in its revision and nowhere else; a deletion, a purge
// and a fork leave no revision.
func TestReviseReplacesEverywhere(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		branches := repositories.NewBranches(s.Gorm)
		id := s.session(t).ID
		run := s.accept(t, ask(id, "the zebra is red")).Run
		s.finish(t, run, "noted")
		log := s.log(t, id)
		s.giveTitle(t, id, "About a zebra", log[0].ID)
		s.summarize(t, id, log[1])
		s.exec(t, "UPDATE session_summaries SET content = 'zebra' WHERE session_id = ?", id)
		s.exec(t, "UPDATE sessions SET conversation_summary = 'zebra' WHERE id = ?", id)
		s.exec(t, "UPDATE messages SET finish_reason = 'content_filter' WHERE id = ?", log[0].ID)
		s.keep(t, "k", "POST /x", `{"message":{"id":"`+string(log[0].ID)+`","content":"zebra"}}`)

		_, _, err := branches.Revise(t.Context(), ann(), core.ReviseMessage{SessionID: id, MessageID: log[0].ID, Content: "the horse is blue", TokenCount: 5})
		must.Do(t, err)
		hits := s.remainsOf(t, "zebra")
		compare.True(t, len(hits) == 1 && hits["message_revisions"] == 1, "got the old text in %v, want it in its revision alone", hits)
		for _, e := range s.allEvents(t, id) {
			text := dataText(t, e)
			compare.True(t, !strings.Contains(text, "zebra"), "event %d %s: got %s", e.Seq, e.Type, text)
		}
		for word, want := range map[string]int{"zebra": 0, "horse": 1} {
			compare.Equal(t, fmt.Sprintf("search %s: results", word), want, len(s.search(t, ann(), core.SearchQuery{Text: word}).Items))
		}
		late := core.NewTitle{SessionID: id, RunID: run.ID, Title: "About a zebra", Of: []core.MessageID{log[0].ID}}
		compare.Equal(t, "title of the old text: len(events): want it dropped", 0, len(must.Get(s.sessions.GiveTitle(t.Context(), ann(), late))(t)))
		for _, wanted := range []bool{true, false} {
			page, err := s.messages.List(t.Context(), ann(), id, core.MessageQuery{Revisions: wanted})
			if err != nil || page.Items[0].RevisedAt == nil || page.Items[0].FinishReason != "" || len(page.Items[0].Revisions) > 0 != wanted {
				t.Errorf("list with revisions %v: got %+v, error %v", wanted, page.Items[0], err)
			}
		}
		fork := must.Get(branches.Fork(t.Context(), ann(), core.ForkSession{SessionID: id}))(t)
		copied := s.log(t, fork.ID)[0]
		compare.True(t, copied.Content == "the horse is blue" && copied.RevisedAt == nil, "fork: got %+v, want the new text without a revision", copied)
		s.erase(t, id, log[0].ID)
		if hits := s.remainsOf(t, "zebra"); len(hits) > 0 {
			t.Errorf("after the deletion: got the old text in %v", hits)
		}
	})
}
