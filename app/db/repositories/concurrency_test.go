package repositories_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// race calls f n times concurrently and waits for all.
func race(n int, f func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}

const racers = 16

// A session has one running run at a time; runs start in the order of acceptance, and a message that
// comes twice has one.
func TestConcurrentAcceptsStartOneRun(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		session := s.session(t).ID
		race(2*racers, func(i int) {
			in := ask(session, fmt.Sprint("question ", i/2))
			in.ClientMessageID = fmt.Sprint("c-", i/2)
			compare.Error(t, fmt.Sprintf("accept %d", i), nil, compare.ErrorOf(s.runs.Accept(t.Context(), ann(), in)))
		})
		compare.Equal(t, "running: want exactly 1", 1, s.count(t, "SELECT COUNT(*) FROM runs WHERE status = 'running'"))
		list := must.Get(s.runs.List(t.Context(), ann(), session, core.PageQuery{}))(t)
		must.True(t, len(list.Items) == racers, "runs: got %d, want %d", len(list.Items), racers)
		for i, run := range list.Items { // newest first
			if want := int64(racers - i); run.QueueSeq != want {
				t.Fatalf("run %d: got queue_seq %d, want %d", i, run.QueueSeq, want)
			}
		}
		gapless(t, "event", s.allEvents(t, session), func(e core.Event) int64 { return e.Seq })

		// All of them run in the order of acceptance, whoever claims: U1 A1 U2 A2.
		run := s.activeRun(t, session)
		for i := 2; ; i++ {
			s.finish(t, run, "answer to "+run.Input.Content)
			claimed, err := s.runs.Claim(t.Context(), session, worker)
			if errors.Is(err, core.ErrNotFound) {
				break
			}
			must.Do(t, err)
			must.True(t, claimed.Run.QueueSeq == int64(i), "claimed: got queue_seq %d, want %d", claimed.Run.QueueSeq, i)
			run = claimed.Run
		}
		log := s.log(t, session)
		gapless(t, "message", log, func(m core.Message) int64 { return m.Seq })
		must.True(t, len(log) == 2*racers, "log: got %d messages, want %d", len(log), 2*racers)
		for i := 0; i < len(log); i += 2 {
			compare.Equal(t, fmt.Sprintf("message %d", i+1), "answer to "+log[i].Content, log[i+1].Content)
			compare.True(t, log[i+1].ParentID == log[i].ID && (i == 0 || log[i].ParentID == log[i-1].ID), "message %d: parents are not the messages before", i)
		}
	})
}

func (s *store) activeRun(t *testing.T, session core.SessionID) core.Run {
	t.Helper()
	return must.Get(s.runs.Active(t.Context(), ann(), session))(t)
}

func TestCalibrations(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		at := time.Date(2026, 1, 2, 3, 4, 5, 678_000, time.UTC)
		a := core.Calibration{Model: "a", Factor: 1.17, Deviation: 0.02, Samples: 7, UpdatedAt: at}
		b := core.Calibration{Model: "b", Factor: 0.9, UpdatedAt: at}
		newer := a
		newer.Factor, newer.Samples, newer.Window, newer.WindowAt = 1.2, 8, 8192, &at
		for _, list := range [][]core.Calibration{nil, {b, a}, {newer}, {b, newer}} {
			must.Do(t, s.calibrations.Save(t.Context(), list))
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

// The database itself refuses a second active run, whatever a program does.
func TestOneActiveRunIsTheDatabasesLaw(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id := s.session(t).ID
		s.accept(t, ask(id, "one"))
		second := s.accept(t, ask(id, "two")).Run
		for _, status := range []string{"running", "waiting"} {
			err := s.Gorm.WithContext(t.Context()).Exec("UPDATE runs SET status = ? WHERE id = ?", status, second.ID).Error
			compare.True(t, err != nil, "a second run is %s: got no error", status)
		}
	})
}
