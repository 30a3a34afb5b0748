package repositories_test

import (
	"fmt"
	"testing"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/dbtest"
	"bobbin/app/db/repositories"
)

// wrote is what the user eve says in sessions of others.
func wrote(session core.SessionID) core.AcceptRun {
	in := ask(session, "my password is "+secret)
	in.User = "eve"
	return in
}

// fromShared purges eve from the session, by force.
func (s *store) fromShared(t *testing.T, id core.SessionID) core.Purged {
	t.Helper()
	gone, err := repositories.NewPurges(s.Gorm).FromShared(t.Context(), "ann", "eve", id, core.AllowUnleased)
	if err != nil {
		t.Fatalf("purge eve from session %s: %v", id, err)
	}
	return gone
}

// wantNothingLeft checks that nothing of eve is anywhere, and that the proof says so.
func (s *store) wantNothingLeft(t *testing.T, what string) {
	t.Helper()
	if hits := s.remains(t); len(hits) > 0 {
		t.Errorf("%s: the secret is still in %v", what, hits)
	}
	left, err := repositories.NewPurges(s.Gorm).CountUser(t.Context(), "ann", "eve")
	for table, n := range left.Emptied {
		if n > 0 {
			t.Errorf("%s: the proof counts %d in %s, error %v", what, n, table, err)
		}
	}
}

// A message that was accepted and canceled before it came into the log is told of in
// an event only.
func TestPurgeOfWhatWasNeverInTheLog(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		first := s.accept(t, ask(id, "work"))
		queued := s.accept(t, wrote(id))
		if _, _, err := s.runs.RequestCancel(t.Context(), ann(), queued.Run.ID); err != nil {
			t.Fatal(err)
		}
		s.finish(t, first.Run, "done")
		s.fromShared(t, id)
		s.wantNothingLeft(t, "canceled in the queue")
	})
}

// By force, where nobody works on them any more, runs of the user end: they must not
// go on later, with nothing to answer. Runs of others stay as they are.
func TestPurgeEndsRuns(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		running := s.accept(t, wrote(id)).Run
		queued := s.accept(t, wrote(id)).Run
		others := s.accept(t, ask(id, "and mine")).Run
		s.expire(t)
		gone := s.fromShared(t, id)
		for _, run := range []core.RunID{running.ID, queued.ID} {
			if got, err := s.runs.Get(t.Context(), ann(), run); err != nil || got.Status != core.RunCanceled {
				t.Errorf("run %s: got %s, error %v, want it canceled", run, got.Status, err)
			}
		}
		s.wantNothingLeft(t, "runs that had not ended")
		canceled := 0
		for _, e := range gone.Events {
			if e.Type == core.EventRunCanceled {
				canceled++
			}
		}
		if canceled != 2 {
			t.Errorf("got events %v, want two runs canceled", types(gone.Events))
		}
		if claimed, err := s.runs.Claim(t.Context(), id, worker); err != nil || claimed.Run.ID != others.ID {
			t.Errorf("claimed %s, error %v, want the run of the others", claimed.Run.ID, err)
		}
		// Whoever comes while somebody works is told so.
		_, err := repositories.NewPurges(d.Gorm).FromShared(t.Context(), "ann", "eve", id, core.AllowUnleased)
		wantError(t, "while a run works, by force", err, core.ErrConflict)
	})
}

// Copies in forks of others are the user's words, too, also without an author; and
// copies of copies.
func TestPurgeFindsCopies(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s, purges := open(d), repositories.NewPurges(d.Gorm)
		id := s.session(t).ID
		s.turns(t, id, 1)
		s.finish(t, s.accept(t, wrote(id)).Run, "it is "+secret)
		branches := repositories.NewBranches(d.Gorm)
		fork, err := branches.Fork(t.Context(), ann(), core.ForkSession{SessionID: id})
		if err != nil {
			t.Fatal(err)
		}
		again, err := branches.Fork(t.Context(), ann(), core.ForkSession{SessionID: fork.ID})
		if err != nil {
			t.Fatal(err)
		}
		shared, err := purges.Shared(t.Context(), "ann", "eve")
		if err != nil || len(shared) != 3 {
			t.Fatalf("got %v, error %v, want the session and both forks", shared, err)
		}
		for _, id := range shared {
			s.fromShared(t, id)
		}
		s.wantNothingLeft(t, "copies")
		for _, id := range []core.SessionID{id, fork.ID, again.ID} {
			if log := s.log(t, id); len(log) != 2 {
				t.Errorf("session %s: %d messages are left, want the two of others", id, len(log))
			}
		}
	})
}

// What the user deleted before, and the name that a client gave to a message, is
// nobody's any more.
func TestPurgeOfWhatWasDeleted(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		in := wrote(id)
		in.ClientMessageID = "eve-" + secret
		s.finish(t, s.accept(t, in).Run, "done")
		s.erase(t, id, s.log(t, id)[0].ID)
		s.fromShared(t, id)
		s.wantNothingLeft(t, "deleted before")
		if n := s.count(t, "SELECT COUNT(*) FROM messages WHERE client_message_id IS NOT NULL"); n > 0 {
			t.Errorf("%d messages have their clients' ids", n)
		}
		if n := s.count(t, "SELECT COUNT(*) FROM session_events WHERE CAST(data AS text) LIKE ?", "%eve-"+secret+"%"); n > 0 {
			t.Errorf("%d events have their clients' ids", n)
		}
	})
}

// Very many messages are one piece of work, not one for each of them.
func TestPurgeOfManyMessages(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		for i := range 150 {
			in := ask(id, fmt.Sprintf("mine %d", i))
			if i%2 == 0 {
				in = wrote(id)
			}
			s.finish(t, s.accept(t, in).Run, "answer")
		}
		gone := s.fromShared(t, id)
		if gone.Emptied["messages"] != 150 || gone.Emptied["runs"] != 75 {
			t.Errorf("got %+v emptied, want 75 questions with their answers", gone.Emptied)
		}
		updated := 0
		for _, e := range gone.Events {
			if e.Type == core.EventSessionUpdated {
				updated++
			}
		}
		if updated != 1 {
			t.Errorf("the session was told to have changed %d times, want once", updated)
		}
		s.wantNothingLeft(t, "many")
	})
}
