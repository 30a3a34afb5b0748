package repositories_test

import (
	"sync"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

const month = 30 * 24 * time.Hour

// sweep removes all old events, limit at a time, and returns how many.
func sweep(t *testing.T, r *repositories.Purges, limit int) int {
	t.Helper()
	removed := 0
	var place core.EventPlace
	for range 1000 {
		step := must.Get(r.SweepEvents(t.Context(), month, place, limit))(t)
		removed += int(step.Removed)
		if step.Done {
			return removed
		}
		place = step.Next
	}
	t.Fatal("the sweep does not come to an end")
	return 0
}

// seqs returns the numbers of the events that are kept.
func (s *store) seqs(t *testing.T, id core.SessionID) []int64 {
	t.Helper()
	var list []int64
	for _, e := range s.allEvents(t, id) {
		list = append(list, e.Seq)
	}
	return list
}

// A sweep of any step size removes old events; the newest of a session stays, and its
// numbers continue.
func TestSweepEvents(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		r := repositories.NewPurges(s.Gorm)
		for _, limit := range []int{1, 3, 500} {
			old, mixed, fresh := s.session(t), s.session(t), s.session(t)
			for _, session := range []core.Session{old, mixed, fresh} {
				s.turns(t, session.ID, 2)
			}
			all := s.seqs(t, old.ID)
			last := all[len(all)-1]
			s.exec(t, "UPDATE session_events SET at = '2020-01-01 00:00:00.5+00:00' WHERE session_id = ?", old.ID)
			s.exec(t, "UPDATE session_events SET at = '2020-01-01 00:00:00+00:00' WHERE session_id = ? AND event_seq < 7", mixed.ID) // one run and the beginning of another
			got := sweep(t, r, limit)
			compare.True(t, got == len(all)-1+4, "steps of %d: got %d removed, want %d of one session and 4 of the other", limit, got, len(all)-1)
			if got := s.seqs(t, old.ID); len(got) != 1 || got[0] != last {
				t.Errorf("kept of the old session: %v, want its last one, %d", got, last)
			}
			if got := s.seqs(t, mixed.ID); got[0] != 5 || len(got) != len(all)-4 {
				t.Errorf("kept of the session with an old run: %v", got)
			}
			compare.Equal(t, "kept of the fresh session", len(all), len(s.seqs(t, fresh.ID)))
			s.turns(t, old.ID, 1)
			if got := s.seqs(t, old.ID); got[1] != last+1 {
				t.Errorf("the numbers do not go on: %v after %d", got, last)
			}
			compare.Equal(t, "messages: want all 6", 6, len(s.log(t, old.ID)))
			s.exec(t, "DELETE FROM session_events WHERE session_id IN (?, ?, ?)", old.ID, mixed.ID, fresh.ID)
		}
	})
}

// A sweep continues where the last one ended, so that it does not read the newest events of
// all sessions again: these are removed with the next old event of their session.
func TestSweepEventsGoesOn(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		r := repositories.NewPurges(s.Gorm)
		id := s.session(t).ID
		s.turns(t, id, 1)
		s.exec(t, "UPDATE session_events SET at = '2020-01-01 00:00:00+00:00'")
		first, err := r.SweepEvents(t.Context(), month, core.EventPlace{}, 500)
		must.True(t, err == nil && first.Removed == 3 && first.Done, "got %+v, %v, want all but the newest removed", first, err)
		s.turns(t, id, 1)
		s.exec(t, "UPDATE session_events SET at = '2020-02-01 00:00:00+00:00' WHERE event_seq > 4")
		next, err := r.SweepEvents(t.Context(), month, first.Next, 500)
		if got := s.seqs(t, id); err != nil || next.Removed != 4 || len(got) != 1 || got[0] != 8 {
			t.Errorf("got %+v, %v, and %v left, want the one that was the newest removed, too", next, err, got)
		}
		last := must.Get(r.SweepEvents(t.Context(), month, next.Next, 500))(t)
		compare.Equal(t, "want it to begin behind", []any{next.Next, int64(0)}, []any{last.Next, last.Removed})
	})
}

// Concurrent sweeps remove each old event once, while a session continues.
func TestSweepEventsTogether(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		r := repositories.NewPurges(s.Gorm)
		want := 0
		for range 4 {
			id := s.session(t).ID
			s.turns(t, id, 5)
			want += len(s.seqs(t, id)) - 1
			s.exec(t, "UPDATE session_events SET at = '2020-01-01 00:00:00+00:00' WHERE session_id = ?", id)
		}
		busy := s.session(t).ID
		var sweepers sync.WaitGroup
		for range 4 {
			sweepers.Go(func() { sweep(t, r, 7) })
		}
		s.turns(t, busy, 5)
		sweepers.Wait()
		sweep(t, r, 500) // what one of them passed by, as another held it and gave up
		left := s.count(t, "SELECT COUNT(*) FROM session_events WHERE session_id <> ?", busy)
		compare.True(t, left == 4, "%d events are left, want the last one of each of 4 sessions (of %d)", left, want+4)
		got := s.seqs(t, busy)
		compare.True(t, got[0] == 1 && got[len(got)-1] == int64(len(got)), "the session at work has %v", got)
	})
}

func TestArchivedSessions(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		r := repositories.NewPurges(s.Gorm)
		older, old, fresh, working := s.session(t), s.session(t), s.session(t), s.session(t)
		s.session(t) // not archived
		s.accept(t, ask(working.ID, "work"))
		for _, session := range []core.Session{older, old, fresh, working} {
			must.Do(t, s.archive(t.Context(), ann(), session.ID))
		}
		s.exec(t, "UPDATE sessions SET archived_at = '2020-01-01 00:00:00+00:00' WHERE id IN (?, ?)", older.ID, working.ID)
		s.exec(t, "UPDATE sessions SET archived_at = '2020-02-01 00:00:00+00:00' WHERE id = ?", old.ID)
		for limit, want := range map[int][]core.SessionID{1: {older.ID}, 10: {older.ID, old.ID}} {
			got := must.Get(r.ExpiredSessions(t.Context(), false, month, limit))(t)
			compare.True(t, len(got) == len(want) && got[0] == want[0] && got[len(got)-1] == want[len(want)-1], "up to %d: got %v, want %v", limit, got, want)
		}
	})
}
