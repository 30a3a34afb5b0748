package repositories_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/tests/dbtest"
)

func TestEvents(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		bounds := func(oldest, last int64) {
			t.Helper()
			gotOldest, err := s.events.Oldest(t.Context(), id)
			if err != nil || gotOldest != oldest {
				t.Errorf("oldest: got %d, %v, want %d", gotOldest, err, oldest)
			}
			gotLast, err := s.events.Last(t.Context(), ann(), id)
			if err != nil || gotLast != last {
				t.Errorf("last: got %d, %v, want %d", gotLast, err, last)
			}
			all, err := s.events.LastOf(t.Context(), []core.SessionID{id, core.NewID[core.SessionID]()})
			if err != nil || len(all) != 1 || all[id] != last {
				t.Errorf("last of several: got %v, %v, want %d of the one that exists", all, err, last)
			}
		}
		bounds(0, 0)
		if got := s.allEvents(t, id); got == nil || len(got) != 0 {
			t.Errorf("events: got %v, want an empty list", got)
		}
		s.turns(t, id, 2)
		bounds(1, 8)
		got, err := s.events.After(t.Context(), id, 3, 2)
		if err != nil || len(got) != 2 || got[0].Seq != 4 || got[1].Seq != 5 {
			t.Errorf("after 3, two: got %+v, %v, want 4 and 5", got, err)
		}
		s.exec(t, "DELETE FROM session_events WHERE event_seq < 4") // the retention
		bounds(4, 8)
		_, err = s.events.After(t.Context(), "nonsense", 0, 1)
		wantNotFound(t, "after, no id", err)
		_, err = s.events.Oldest(t.Context(), "nonsense")
		wantNotFound(t, "oldest, no id", err)
	})
}

// A run stores the number of its first event, so that no reader scans those of its session.
func TestFirstEventOfARun(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		runs := []core.Run{s.waits(t, id, 0, "store:always")}
		runs = append(runs, s.accept(t, ask(id, "instead")).Run) // closes the question first
		runs = append(runs, s.accept(t, ask(id, "behind")).Run)
		events := s.allEvents(t, id)
		for i, run := range runs {
			want := int64(0)
			for _, e := range events {
				if e.RunID == run.ID && want == 0 {
					want = e.Seq
				}
			}
			got, err := s.runs.Get(t.Context(), ann(), run.ID)
			if err != nil || want == 0 || run.FirstEvent != want || got.FirstEvent != want {
				t.Errorf("run %d: accepted with %d, stored %d, %v, want %d", i, run.FirstEvent, got.FirstEvent, err, want)
			}
		}
	})
}

func TestSessionUsage(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		usage := func() core.Usage {
			got, err := s.sessionUsage(t.Context(), ann(), id)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		if got := usage(); got != (core.Usage{}) {
			t.Errorf("no calls: got %+v, want nothing", got)
		}
		run := s.accept(t, ask(id, "go")).Run
		one := core.Usage{InputTokens: 10, OutputTokens: 5, ReasoningTokens: 3, CacheReadTokens: 2, CacheWriteTokens: 1}
		calls := []core.ModelCall{{Purpose: core.PurposeAnswer, Usage: one}, {Purpose: core.PurposeSummary, Usage: one}}
		s.write(t, core.RunWrite{RunID: run.ID, SessionID: id, Attempt: 1, ModelCalls: calls, Usage: one})
		if got, want := usage(), one.Add(one); got != want {
			t.Errorf("two calls: got %+v, want %+v", got, want)
		}
	})
}

func TestCalibrations(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		at := time.Date(2026, 1, 2, 3, 4, 5, 678_000, time.UTC)
		a := core.Calibration{Model: "a", Factor: 1.17, Deviation: 0.02, Samples: 7, UpdatedAt: at}
		b := core.Calibration{Model: "b", Factor: 0.9, UpdatedAt: at}
		newer := a
		newer.Factor, newer.Samples, newer.Window, newer.WindowAt = 1.2, 8, 8192, &at
		for _, list := range [][]core.Calibration{nil, {b, a}, {newer}, {b, a, newer}} {
			if err := s.calibrations.Save(t.Context(), list); err != nil {
				t.Fatal(err)
			}
		}
		got, err := s.calibrations.All(t.Context())
		if diff := cmp.Diff([]core.Calibration{newer, b}, got); err != nil || diff != "" {
			t.Errorf("calibrations (-want +got): %v\n%s", err, diff)
		}
		wantError(t, "NUL", s.calibrations.Save(t.Context(), []core.Calibration{{Model: "\x00"}}), core.ErrInvalid)
		race(racers, func(i int) {
			if err := s.calibrations.Save(t.Context(), []core.Calibration{{Model: fmt.Sprint(i % 3)}, {Model: fmt.Sprint((i + 1) % 3)}}); err != nil {
				t.Errorf("save %d: %v", i, err)
			}
		})
	})
}

// A plain turn is two write transactions with a fixed number of statements,
// however long the session is.
func TestStatementsStayConstant(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		turn := func(i int) (accept, write int64) {
			before := s.Statements()
			in := ask(id, "question")
			in.ClientMessageID = fmt.Sprint("c-", i)
			run := s.accept(t, in).Run
			between := s.Statements()
			m := answer("answer")
			s.write(t, core.RunWrite{
				RunID: run.ID, SessionID: id, Attempt: 1, Messages: []core.Message{m},
				Events:     []core.Event{core.NewEvent(id, "", core.EventContextWarning, core.ContextData{})},
				ModelCalls: []core.ModelCall{{Purpose: core.PurposeAnswer, Model: "m"}},
				End:        &core.RunEnd{Status: core.RunSucceeded, AnswerID: m.ID},
			})
			return between - before, s.Statements() - between
		}
		for i := range 40 {
			accept, write := turn(i)
			want := [2]int64{5, 8}
			if d.Dialect() == "postgres" {
				want = [2]int64{2, 3}
			}
			if got := [2]int64{accept, write}; got != want {
				t.Fatalf("turn %d: got %v statements to accept and to write, want %v", i, got, want)
			}
		}
		before := s.Statements()
		if got := len(s.log(t, id)); got != 80 {
			t.Errorf("log: got %d messages, want 80", got)
		}
		if got := s.Statements() - before; got != 1 {
			t.Errorf("GetMessagesAfter: got %d statements, want 1", got)
		}
	})
}

// An operator's purge of a session removes all of it except usage records.
func TestPurge(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		s.turns(t, id, 3)
		log := s.log(t, id)
		if _, _, err := s.sessions.ApplyContext(t.Context(), ann(), pathChange(s.sessionOf(t, id), "sum", log[0], log[3])); err != nil {
			t.Fatal(err)
		}
		s.exec(t, "DELETE FROM sessions WHERE id = ?", id)
		for _, table := range []string{"sessions", "messages", "runs", "session_events", "session_summaries", "tool_executions"} {
			if n := s.count(t, "SELECT COUNT(*) FROM "+table); n != 0 {
				t.Errorf("%s: got %d rows, want none", table, n)
			}
		}
		if n := s.count(t, "SELECT COUNT(*) FROM model_calls"); n != 1 {
			t.Errorf("model_calls: got %d rows, want 1", n)
		}
	})
}

// The database itself refuses a second active run, whatever a program does.
func TestOneActiveRunIsTheDatabasesLaw(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		s.accept(t, ask(id, "one"))
		second := s.accept(t, ask(id, "two")).Run
		for _, status := range []string{"running", "waiting"} {
			err := s.Gorm.WithContext(t.Context()).Exec("UPDATE runs SET status = ? WHERE id = ?", status, second.ID).Error
			if err == nil {
				t.Errorf("a second run is %s: got no error", status)
			}
		}
	})
}
