package repositories_test

import (
	"testing"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// A session that is being removed is hidden; when the process dies, another one continues,
// and nothing is left.
func TestPurgeThatBreaksOff(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s, purges := open(d), repositories.NewPurges(d.Gorm)
		id := s.session(t).ID
		if _, _, err := s.sessions.Update(t.Context(), ann(), id, core.SessionPatch{Title: new("a copy")}); err != nil {
			t.Fatal(err)
		}
		blob := s.upload(t, "", "a.txt", "a secret")
		in := ask(id, "rope")
		in.Input.Parts = []core.Part{{Type: core.PartFile, BlobID: blob.ID, Name: "a.txt"}}
		s.finish(t, s.accept(t, in).Run, "rope")
		s.append(t, id, true, history(700, "rope")...)
		s.summarize(t, id, s.log(t, id)[100])
		must.Do(t, repositories.BeginPurge(t.Context(), purges, id))
		s.checkHidden(t, id)
		_, err := purges.Session(t.Context(), id, true)
		wantBusy(t, "another purge", err)
		s.exec(t, "DELETE FROM session_readers WHERE session_id = ?", id) // one of the last tables
		s.lapse(t)
		if n := s.recover(t); n != 1 {
			t.Errorf("recovered %d sessions, want 1", n)
		}
		if n := s.left(t, id) + s.count(t, "SELECT COUNT(*) FROM blob_contents"); n != 0 {
			t.Errorf("%d rows are left", n)
		}
		_, err = purges.Session(t.Context(), id, true)
		wantNotFound(t, "a purge after it", err)
	})
}

// A purge that is forced takes a session over that a history is imported into, and a
// fork that is not complete.
func TestPurgeOfABusySession(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s, purges := open(d), repositories.NewPurges(d.Gorm)
		id := s.session(t).ID
		s.append(t, id, true, history(40, "rope")...)
		fork, finishFork := s.beginFork(t, id, 20)
		finishImport := s.beginImport(t, id, "w/1", history(300, "rope")...)
		for what, tt := range map[string]struct {
			id     core.SessionID
			finish func() error
		}{"import": {id, func() error { return finishImport(t.Context()) }}, "fork": {fork, finishFork}} {
			_, err := purges.Session(t.Context(), tt.id, false)
			wantBusy(t, "a purge during the "+what, err)
			must.Get(purges.Session(t.Context(), tt.id, true))(t)
			if err := tt.finish(); err == nil {
				t.Errorf("the %s went on after the purge", what)
			}
			if n := s.left(t, tt.id); n != 0 {
				t.Errorf("%d rows are left after the %s", n, what)
			}
		}
	})
}

// A purge of a large session counts what it removed in all its steps.
func TestPurgeInSteps(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s, purges := open(d), repositories.NewPurges(d.Gorm)
		id, other := s.session(t).ID, s.session(t).ID
		s.append(t, id, true, history(100, "rope")...)
		s.append(t, id, true, history(1234, "rope")...)
		s.append(t, other, true, history(3, "rope")...)
		s.index(t)
		gone, err := purges.Session(t.Context(), id, false)
		if err != nil || gone.Removed["messages"] != 1334 || gone.Removed["search_entries"] != 1334 || gone.Removed["session_events"] != 101 || gone.Removed["sessions"] != 1 {
			t.Errorf("got %+v, %v, want all 1334 messages counted", gone, err)
		}
		if n := s.left(t, id); n != 0 {
			t.Errorf("%d rows are left", n)
		}
		if got := len(s.log(t, other)); got != 3 {
			t.Errorf("the other session has %d messages, want 3", got)
		}
	})
}
