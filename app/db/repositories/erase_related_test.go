package repositories_test

import (
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// titled creates a session with a turn and a generated title that contains the secret, and
// returns it with its messages.
func (s *store) titled(t *testing.T) (core.SessionID, []core.Message) {
	t.Helper()
	id := s.session(t).ID
	log := s.confess(t, id)
	s.giveTitle(t, id, "About "+secret, log[0].ID, log[3].ID)
	s.keep(t, string(id), "PATCH /x", `{"id":"`+string(id)+`","title":"About `+secret+`"}`)
	return id, log
}

func (s *store) giveTitle(t *testing.T, id core.SessionID, title string, of ...core.MessageID) []core.Event {
	t.Helper()
	events := must.Get(s.sessions.GiveTitle(t.Context(), ann(), core.NewTitle{SessionID: id, Title: title, Of: of}))(t)
	return events
}

func (s *store) erase(t *testing.T, id core.SessionID, m core.MessageID) {
	t.Helper()
	if _, err := repositories.NewBranches(s.Gorm).Delete(t.Context(), ann(), id, m); err != nil {
		t.Fatalf("delete: %v", err)
	}
}

// wantNoTitle checks that nothing of the title is left anywhere.
func (s *store) wantNoTitle(t *testing.T, id core.SessionID) {
	t.Helper()
	if n := s.count(t, "SELECT COUNT(*) FROM session_events WHERE session_id = ? AND CAST(data AS text) LIKE ?", id, "%About "+secret+"%"); n > 0 {
		t.Errorf("the title is still in %d events", n)
	}
	if n := s.count(t, "SELECT COUNT(*) FROM search_entries WHERE session_id = ? AND message_id IS NULL", id); n > 0 {
		t.Errorf("the title is still in the search index")
	}
	if n := s.count(t, "SELECT COUNT(*) FROM idempotency_keys WHERE key = ? AND body IS NOT NULL", string(id)); n > 0 {
		t.Errorf("the title is still in an answer that is kept")
	}
}

// A generated title is erased with its message, also from the events and the index; the
// next answer generates a new one.
func TestDeleteTakesTheTitle(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		for name, which := range map[string]int{"question": 0, "answer": 3, "call": 1} {
			id, log := s.titled(t)
			s.erase(t, id, log[which].ID)
			got := s.sessionOf(t, id)
			if got.Title != "" || got.TitledAt != nil {
				t.Errorf("%s: got title %q, at %v, want none", name, got.Title, got.TitledAt)
			}
			s.wantNoTitle(t, id)
			last := s.allEvents(t, id)
			if told := decode[core.SessionData](t, last[len(last)-1]).Session; told.Title != "" {
				t.Errorf("%s: watchers are told the title %q", name, told.Title)
			}
			if events := s.giveTitle(t, id, "Another", log[0].ID); which == 0 && len(events) > 0 {
				t.Errorf("a title was made of what was deleted: %v", events)
			}
			s.turns(t, id, 1)
			log = s.log(t, id)
			s.giveTitle(t, id, "Another", log[len(log)-2].ID)
			if got := s.sessionOf(t, id); got.Title != "Another" {
				t.Errorf("%s: got title %q after the next answer", name, got.Title)
			}
		}
	})
}

// A title that a user set stays, but an earlier generated one is erased from the events.
// Deleting another turn does not affect the title.
func TestDeleteSparesTitles(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id, log := s.titled(t)
		if _, _, err := s.sessions.Update(t.Context(), ann(), id, core.SessionPatch{Title: new("Mine")}); err != nil {
			t.Fatal(err)
		}
		s.erase(t, id, log[0].ID)
		if got := s.sessionOf(t, id); got.Title != "Mine" || got.TitledAt == nil {
			t.Errorf("got title %q, at %v, want the user's own", got.Title, got.TitledAt)
		}
		if n := s.count(t, "SELECT COUNT(*) FROM session_events WHERE session_id = ? AND CAST(data AS text) LIKE ?", id, "%About "+secret+"%"); n > 0 {
			t.Errorf("the title of before is still in %d events", n)
		}
		other, _ := s.titled(t)
		s.turns(t, other, 1)
		log = s.log(t, other)
		s.erase(t, other, log[len(log)-1].ID)
		if got := s.sessionOf(t, other); !strings.Contains(got.Title, secret) {
			t.Errorf("got title %q, want it as it was: another turn was deleted", got.Title)
		}
	})
}

// The title of a fork is erased with the copy of the message that it was generated from.
func TestDeleteTakesTheTitleOfAFork(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id, log := s.titled(t)
		fork := must.Get(repositories.NewBranches(d.Gorm).Fork(t.Context(), ann(), core.ForkSession{SessionID: id, Title: "About " + secret + " (fork)"}))(t)
		s.erase(t, id, log[0].ID)
		if got := s.sessionOf(t, fork.ID); got.Title == "" {
			t.Error("the title of the fork went with the original")
		}
		s.erase(t, fork.ID, s.log(t, fork.ID)[0].ID)
		if got := s.sessionOf(t, fork.ID); got.Title != "" {
			t.Errorf("got title %q of the fork, want none", got.Title)
		}
		s.wantNoTitle(t, fork.ID)
	})
}
