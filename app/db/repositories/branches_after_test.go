package repositories_test

import (
	"testing"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/dbtest"
)

// A run begins behind any message of the tree, or at its start; behind the end of the path
// nothing changes. The summary that is valid there comes back.
func TestAfter(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		s.turns(t, id, 3) // 1 to 6
		log := s.log(t, id)
		s.summarize(t, id, log[1])
		s.summarize(t, id, log[3])
		after := func(m core.MessageID) core.Accepted {
			t.Helper()
			in := ask(id, "behind it")
			in.After = m
			a := s.accept(t, in)
			s.finish(t, a.Run, "answer")
			return a
		}
		a := after(log[5].ID)
		s.wantPath(t, id, 1, 2, 3, 4, 5, 6, 7, 8)
		s.wantSummary(t, id, 4, 2)
		if a.Message.ParentID != log[5].ID || len(a.Events) != 2 || a.Run.Input.After != log[5].ID {
			t.Errorf("behind the end: got the parent %s and %d events, want no change of the path", a.Message.ParentID, len(a.Events))
		}
		after(log[2].ID)
		s.wantPath(t, id, 1, 2, 3, 9, 10)
		s.wantSummary(t, id, 2, 3)
		a = after(core.AfterStart)
		s.wantPath(t, id, 11, 12)
		s.wantSummary(t, id, 0, 0)
		if a.Message.ParentID != "" {
			t.Errorf("got the parent %s, want a root", a.Message.ParentID)
		}
		after(log[5].ID) // off the path
		s.wantPath(t, id, 1, 2, 3, 4, 5, 6, 13, 14)
		s.wantSummary(t, id, 4, 4)
	})
}

// A tool call stays with its results: behind any of them is behind the last.
func TestAfterAToolCall(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		log := s.confess(t, id) // 1: question, 2: call, 3: result, 4: answer
		for i, m := range log[1:3] {
			in := ask(id, "behind it")
			in.After = m.ID
			a := s.accept(t, in)
			s.finish(t, a.Run, "answer")
			if a.Message.ParentID != log[2].ID {
				t.Errorf("behind %s: got the parent %s, want the result", m.Role, a.Message.ParentID)
			}
			s.wantPath(t, id, 1, 2, 3, int64(5+2*i), int64(6+2*i))
		}
	})
}

// A message that names its place cannot be queued behind others, unless it interrupts the
// only one; a place that is not there is refused.
func TestAfterIsRefused(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
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
		if _, err := repositories.NewBranches(d.Gorm).Delete(t.Context(), ann(), id, log[3].ID); err != nil {
			t.Fatal(err)
		}
		wantNotFound(t, "deleted", after(log[3].ID, core.MultitaskReject))

		active := s.accept(t, ask(id, "busy")).Run // 5
		wantError(t, "busy", after(log[1].ID, core.MultitaskReject), core.ErrConflict)
		wantError(t, "busy, at the start", after(core.AfterStart, core.MultitaskReject), core.ErrConflict)
		if err := after(log[1].ID, core.MultitaskInterrupt); err != nil {
			t.Fatalf("interrupt: %v", err)
		}
		s.wantPath(t, id, 1, 2, 3, 5) // until it begins
		s.finish(t, active, "half")
		claimed := s.claim(t, id)
		if claimed.Run.Input.After != log[1].ID || claimed.Message.ParentID != log[1].ID {
			t.Errorf("got %+v behind %s, want it behind %s", claimed.Run.Input, claimed.Message.ParentID, log[1].ID)
		}
		s.wantPath(t, id, 1, 2, 7)
	})
}
