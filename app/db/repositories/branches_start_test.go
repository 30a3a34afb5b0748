package repositories_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/dbtest"
)

// A summary never covers the question of a run, even if one ends with it because its first
// run failed.
func TestRegenerateUncoversTheQuestion(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		s.turns(t, id, 1)
		log := s.log(t, id)
		s.summarize(t, id, log[1])
		failed := s.accept(t, ask(id, "unanswered"))
		s.write(t, core.RunWrite{RunID: failed.Run.ID, SessionID: id, Attempt: 1, End: &core.RunEnd{Status: core.RunFailed}})
		s.summarize(t, id, failed.Message)
		s.wantSummary(t, id, 3, 2)

		a := s.accept(t, core.AcceptRun{SessionID: id, Worker: worker, Answers: failed.Message.ID})
		if a.Message.ID != failed.Message.ID || a.Run.Input.Content != "" || !a.Run.Input.Regenerate {
			t.Errorf("got message %s, input %+v, want the question without a copy", a.Message.ID, a.Run.Input)
		}
		s.wantPath(t, id, 1, 2, 3)
		s.wantSummary(t, id, 2, 3)
		if diff := cmp.Diff(a.Session, s.get(t, id)); diff != "" {
			t.Errorf("session as returned and as stored (-returned +stored):\n%s", diff)
		}
	})
}

// A run that resumes after waiting keeps what it wrote: only its first start changes the
// path.
func TestBranchBeginsOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
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
			if err != nil || claimed.Run.Attempt != 2 {
				t.Fatalf("claim: got attempt %d and %v, want the second", claimed.Run.Attempt, err)
			}
			s.wantPath(t, id, before...)
			s.finish(t, claimed.Run, "whole")
			s.wantPath(t, id, append(before, before[len(before)-1]+1)...)
		}
	})
}

// A summary in progress becomes stale when the path changes, with a summary or without one.
func TestBranchesMakeSummariesStale(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		branches := repositories.NewBranches(d.Gorm)
		id := s.session(t).ID
		s.turns(t, id, 3)
		log := s.log(t, id)
		apply := func(expect int) error {
			_, _, err := s.sessions.ApplyContext(t.Context(), ann(), core.ContextChange{SessionID: id, Expect: expect,
				Summary: &core.Summary{Content: "c", ThroughID: log[1].ID, ThroughSeq: 2, MessagesCovered: 2}})
			return err
		}
		for name, change := range map[string]func() error{
			"edit":   func() error { s.edit(t, id, log[2].ID, "edited"); return nil },
			"select": func() error { _, _, err := branches.Select(t.Context(), ann(), id, log[2].ID); return err },
			"delete": func() error { _, err := branches.Delete(t.Context(), ann(), id, log[5].ID); return err },
		} {
			expect := s.get(t, id).PromptRevision
			if name == "select" { // there must be another branch
				s.edit(t, id, log[2].ID, "again")
				expect = s.get(t, id).PromptRevision
			}
			if err := change(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			wantError(t, name, apply(expect), core.ErrStale)
		}
		if err := apply(s.get(t, id).PromptRevision); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}
