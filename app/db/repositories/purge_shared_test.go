package repositories_test

import (
	"fmt"
	"testing"

	"bobbin/app/core"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/must"
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

// With force, unfinished runs of the user end: they must not resume later with nothing to
// answer. Runs of others stay as they are.
func TestPurgeEndsRuns(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id := s.session(t).ID
		running := s.accept(t, wrote(id)).Run
		queued := s.accept(t, wrote(id)).Run
		others := s.accept(t, ask(id, "and mine")).Run
		s.expire(t)
		gone := s.fromShared(t, id)
		for _, run := range []core.RunID{running.ID, queued.ID} {
			compare.Equal(t, fmt.Sprintf("run %s: got.Status: want it canceled", run), core.RunCanceled, must.Get(s.runs.Get(t.Context(), ann(), run))(t).Status)
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
		compare.Equal(t, "claimed run: want that of the others", others.ID, must.Get(s.runs.Claim(t.Context(), id, worker))(t).Run.ID)
		// Whoever comes while somebody works is told so.
		_, err := repositories.NewPurges(s.Gorm).FromShared(t.Context(), "ann", "eve", id, core.AllowUnleased)
		wantError(t, "while a run works, by force", err, core.ErrConflict)
	})
}

// Copies in forks of others are the user's words, too, also without an author; and
// copies of copies.
func TestPurgeFindsCopies(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		purges := repositories.NewPurges(s.Gorm)
		id := s.session(t).ID
		s.turns(t, id, 1)
		s.finish(t, s.accept(t, wrote(id)).Run, "it is "+secret)
		branches := repositories.NewBranches(s.Gorm)
		fork := must.Get(branches.Fork(t.Context(), ann(), core.ForkSession{SessionID: id}))(t)
		again := must.Get(branches.Fork(t.Context(), ann(), core.ForkSession{SessionID: fork.ID}))(t)
		shared, err := purges.Shared(t.Context(), "ann", "eve")
		if err != nil || len(shared) != 3 {
			t.Fatalf("got %v, error %v, want the session and both forks", shared, err)
		}
		for _, id := range shared {
			s.fromShared(t, id)
		}
		s.wantNothingLeft(t, "copies")
		for _, id := range []core.SessionID{id, fork.ID, again.ID} {
			compare.Equal(t, fmt.Sprintf("session %s: messages are left: want the two of others", id), 2, len(s.log(t, id)))
		}
	})
}

// Messages that the user deleted before lose their client message id.
func TestPurgeOfWhatWasDeleted(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
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

// What others appended in the user's name is found by the author's id, in copies too; and the
// session forgets that the user spoke.
func TestPurgeOfAppendedMessages(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		purges := repositories.NewPurges(s.Gorm)
		id := s.session(t).ID
		m := said(core.RoleUser, "my password is "+secret)
		m.Author, m.AuthorID, m.ClientMessageID = secret, "eve", "c-"+secret
		s.append(t, id, false, m)
		s.append(t, id, false, said(core.RoleAssistant, "noted"))
		fork := must.Get(repositories.NewBranches(s.Gorm).Fork(t.Context(), ann(), core.ForkSession{SessionID: id}))(t)
		compare.Equal(t, "the copy is by: want its author", "eve", s.log(t, fork.ID)[0].AuthorID)
		compare.Equal(t, "exported messages: want the message and its copy", 2, len(must.Get(repositories.NewPurges(s.Gorm).Elsewhere(t.Context(), "ann", "eve", "", 10))(t)))
		shared, err := purges.Shared(t.Context(), "ann", "eve")
		if err != nil || len(shared) != 2 {
			t.Fatalf("got %v, error %v, want the session and its fork", shared, err)
		}
		for _, id := range shared {
			s.fromShared(t, id)
		}
		s.wantNothingLeft(t, "appended")
		if n := s.count(t, "SELECT COUNT(*) FROM messages WHERE author_id <> ''") + s.count(t, "SELECT COUNT(*) FROM sessions WHERE speakers <> ''"); n > 0 {
			t.Errorf("%d rows know that the user spoke", n)
		}
	})
}
