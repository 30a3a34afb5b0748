package repositories_test

import (
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/tests/dbtest"
)

// Lists and events have no texts of summaries, unless a list is asked for them.
func TestListsHaveNoSummaries(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		s.turns(t, id, 2)
		s.exec(t, "UPDATE sessions SET conversation_summary = 'They counted.', summary_version = 1")
		for _, q := range []core.SessionQuery{{}, {Order: core.OrderByCreation}, {Text: "Travel"}, {Archived: true}} {
			for _, whole := range []bool{false, true} {
				if q.Summaries = whole; q.Text != "" {
					if _, _, err := s.sessions.Update(t.Context(), ann(), id, core.SessionPatch{Title: new("Travel")}); err != nil {
						t.Fatal(err)
					}
				}
				page, err := s.sessions.List(t.Context(), ann(), q)
				if err != nil || len(page.Items) != 1 {
					t.Fatalf("%+v: got %d sessions, %v", q, len(page.Items), err)
				}
				if got := page.Items[0]; (got.ConversationSummary != nil) != whole || got.SummaryVersion != 1 || got.Agent == "" {
					t.Errorf("%+v: got %+v", q, got)
				}
			}
		}
		_, events, err := s.sessions.Update(t.Context(), ann(), id, core.SessionPatch{Title: new("Count")})
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, s.allEvents(t, id)...)
		for _, e := range events {
			if e.Type != core.EventSessionUpdated {
				continue
			}
			if told := decode[core.SessionData](t, e).Session; told.ConversationSummary != nil || told.ID != id {
				t.Errorf("event %d has %+v", e.Seq, told)
			}
		}
	})
}

// Sessions are found by what their runs do.
func TestListByStatus(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		idle, running, waiting, queued := s.session(t).ID, s.session(t).ID, s.session(t).ID, s.session(t).ID
		s.accept(t, ask(running, "go"))
		s.accept(t, ask(running, "and then?"))
		s.waits(t, waiting, time.Hour, "pay:always")
		later := ask(queued, "go")
		later.Worker = ""
		s.accept(t, later)
		for status, want := range map[core.SessionStatus]core.SessionID{
			core.SessionIdle: idle, core.SessionRunning: running, core.SessionWaiting: waiting, core.SessionQueued: queued,
		} {
			page, err := s.sessions.List(t.Context(), ann(), core.SessionQuery{Status: status})
			if err != nil || len(page.Items) != 1 || page.Items[0].ID != want || page.Items[0].Status != status {
				t.Errorf("%s: got %+v, %v, want %s", status, page.Items, err, want)
			}
		}
	})
}
