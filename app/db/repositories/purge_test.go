package repositories_test

import (
	"slices"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/dbtest"
)

// A new table has to say what a purge does with it: either something of a user is in
// it, or it is one of those here.
func TestPurgeKnowsEveryTable(t *testing.T) {
	t.Parallel()
	nobodys := []string{"goose_db_version", "message_vector_work", "model_calibrations", "write_checks",
		"api_keys", "audit_log", // the operator's; what a purge notes has no user in it
		"owner_webhooks",   // the owner's, whose users do not choose it
		"receiver_outages", // hosts
		"signing_keys",
		"slack_installations"} // of workspaces, for slack.owner
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		query := "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'search_words%'" // the words go with search_entries
		if d.Dialect() == "postgres" {
			query = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
		}
		var tables []string
		if err := d.Gorm.WithContext(t.Context()).Raw(query).Scan(&tables).Error; err != nil {
			t.Fatal(err)
		}
		for _, table := range tables {
			if !slices.Contains(nobodys, table) && !slices.Contains(repositories.PurgedTables(), table) {
				t.Errorf("what becomes of the table %s when a session or a user is purged? Say it in purge.go", table)
			}
		}
		for _, table := range repositories.PurgedTables() {
			if !slices.Contains(tables, table) {
				t.Errorf("there is no table %s", table)
			}
		}
	})
}

// A session with an unfinished run is removed only with force.
func TestPurgeWaitsForRuns(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s, purges := open(d), repositories.NewPurges(d.Gorm)
		session, other := s.session(t), s.session(t)
		s.turns(t, other.ID, 2)
		run := s.accept(t, ask(session.ID, "work")).Run
		s.accept(t, ask(session.ID, "and then"))
		_, err := purges.Session(t.Context(), session.ID, false)
		wantError(t, "purge while a run works", err, core.ErrConflict)
		runs, err := purges.Unfinished(t.Context(), []core.SessionID{session.ID, other.ID})
		if err != nil || len(runs) != 2 || runs[0].ID != run.ID || !runs[0].Leased || runs[1].Leased || runs[0].Owner != "ann" {
			t.Errorf("unfinished: %+v, %v, want the running run first and leased", runs, err)
		}
		s.expire(t)
		if runs, err = purges.Unfinished(t.Context(), []core.SessionID{session.ID}); err != nil || runs[0].Leased {
			t.Errorf("unfinished, with a lease that is past: %+v, %v", runs, err)
		}
		before := s.log(t, other.ID)
		gone, err := purges.Session(t.Context(), session.ID, true)
		if err != nil || gone.Removed["sessions"] != 1 || gone.Removed["runs"] != 2 || gone.Removed["messages"] != 1 {
			t.Errorf("forced: %+v, %v", gone, err)
		}
		_, err = purges.Session(t.Context(), session.ID, true)
		wantNotFound(t, "purge again", err)
		// Its former worker can no longer store anything.
		if _, err := s.runs.Write(t.Context(), core.RunWrite{RunID: run.ID, SessionID: session.ID, Attempt: run.Attempt, Messages: []core.Message{answer("late")}}); err == nil {
			t.Error("a late write was stored")
		}
		if left, err := purges.CountSessions(t.Context(), []core.SessionID{session.ID}); err != nil || left.Removed["messages"]+left.Removed["runs"]+left.Removed["session_events"] != 0 {
			t.Errorf("left: %+v, %v", left, err)
		}
		if after := s.log(t, other.ID); len(after) != len(before) {
			t.Errorf("the other session has %d messages, had %d", len(after), len(before))
		}
	})
}

func TestPurgeFindsSessions(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s, purges := open(d), repositories.NewPurges(d.Gorm)
		old, fresh := s.session(t), s.session(t)
		for _, id := range []core.SessionID{old.ID, fresh.ID} {
			if err := s.archive(t.Context(), ann(), id); err != nil {
				t.Fatal(err)
			}
		}
		s.session(t) // not archived
		s.exec(t, "UPDATE sessions SET archived_at = '2020-01-01 00:00:00+00:00' WHERE id = ?", old.ID)
		for owner, want := range map[string]int{"": 1, "ann": 1, "bob": 0} {
			ids, err := purges.Archived(t.Context(), owner, core.Now().Add(-time.Hour))
			if err != nil || len(ids) != want || want == 1 && ids[0] != old.ID {
				t.Errorf("archived an hour ago, of %q: %v, %v, want %d", owner, ids, err, want)
			}
		}
		wantNotFound(t, "an id that cannot be", purges.Exist(t.Context(), "", []core.SessionID{"x"}))
		wantNotFound(t, "another owner's", purges.Exist(t.Context(), "bob", []core.SessionID{old.ID}))
		if err := purges.Exist(t.Context(), "", []core.SessionID{old.ID, fresh.ID}); err != nil {
			t.Error(err)
		}
	})
}
