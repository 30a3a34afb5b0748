package repositories_test

import (
	"testing"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/dbtest"
)

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
