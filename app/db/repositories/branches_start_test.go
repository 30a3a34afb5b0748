package repositories_test

import (
	"testing"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/tests/dbtest"
)

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
