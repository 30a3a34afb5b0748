package repositories_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/tests/dbtest"
)

// work is what a session says of its runs.
type work struct {
	Status    core.SessionStatus
	ActiveRun core.RunID
	Open      int
}

func workOf(s core.Session) work { return work{s.Status, s.ActiveRunID, s.OpenApprovals} }

// Every read of a session includes the state of its runs, and a list needs no more queries
// for more sessions.
func TestSessionStatus(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		check := func(what string, want work) {
			t.Helper()
			got, err := s.sessions.Get(t.Context(), ann(), id)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, workOf(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
			page, err := s.sessions.List(t.Context(), ann(), core.SessionQuery{Archived: true})
			if err != nil || len(page.Items) != 1 || workOf(page.Items[0]) != want {
				t.Errorf("%s: list has %+v, %v", what, page.Items, err)
			}
			changed, events, err := s.sessions.Update(t.Context(), ann(), id, core.SessionPatch{Title: new(what)})
			if err != nil || workOf(changed) != want {
				t.Errorf("%s: update answers %+v, %v", what, workOf(changed), err)
			}
			if told := decode[core.SessionData](t, events[0]).Session; workOf(told) != want {
				t.Errorf("%s: session.updated has %+v", what, workOf(told))
			}
		}
		check("new", work{Status: core.SessionIdle})
		run := s.waits(t, id, time.Hour, "pay:always", "look:always")
		check("asks", work{core.SessionWaiting, run.ID, 2})
		next := ask(id, "then?")
		next.Multitask = core.MultitaskEnqueue
		second := s.accept(t, next).Run
		check("asks, another is queued", work{core.SessionWaiting, run.ID, 2})
		for _, a := range run.Approvals {
			if _, err := s.runs.Decide(t.Context(), ann(), run.ID, a.ID, core.ApprovalDecision{Approve: true}); err != nil {
				t.Fatal(err)
			}
		}
		check("decided", work{core.SessionQueued, run.ID, 0})
		claimed := s.claim(t, id).Run
		check("claimed", work{core.SessionRunning, run.ID, 0})
		s.write(t, core.RunWrite{RunID: run.ID, SessionID: id, Attempt: claimed.Attempt, End: &core.RunEnd{Status: core.RunSucceeded}})
		check("the next is queued", work{core.SessionQueued, second.ID, 0})
		claimed = s.claim(t, id).Run
		s.write(t, core.RunWrite{RunID: second.ID, SessionID: id, Attempt: claimed.Attempt, End: &core.RunEnd{Status: core.RunFailed}})
		check("all have ended", work{Status: core.SessionIdle})

		list := func() int {
			return len(s.recorded(t, func() {
				if _, err := s.sessions.List(t.Context(), ann(), core.SessionQuery{}); err != nil {
					t.Error(err)
				}
			}))
		}
		one := list()
		for range 5 {
			s.accept(t, ask(s.session(t).ID, "go"))
		}
		if six := list(); six != one {
			t.Errorf("a list of one session takes %d statements, one of six %d", one, six)
		}
	})
}

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
