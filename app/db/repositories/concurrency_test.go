package repositories_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

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

// A session has one running run at a time; runs start in the order of acceptance.
func TestConcurrentAcceptsStartOneRun(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		session := s.session(t).ID
		race(racers, func(i int) {
			compare.Error(t, fmt.Sprintf("accept %d", i), nil, compare.ErrorOf(s.runs.Accept(t.Context(), ann(), ask(session, fmt.Sprint("question ", i)))))
		})
		compare.Equal(t, "running: want exactly 1", 1, s.count(t, "SELECT COUNT(*) FROM runs WHERE status = 'running'"))
		list := must.Get(s.runs.List(t.Context(), ann(), session, core.PageQuery{}))(t)
		if len(list.Items) != racers {
			t.Fatalf("runs: got %d, want %d", len(list.Items), racers)
		}
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
			if claimed.Run.QueueSeq != int64(i) {
				t.Fatalf("claimed: got queue_seq %d, want %d", claimed.Run.QueueSeq, i)
			}
			run = claimed.Run
		}
		log := s.log(t, session)
		gapless(t, "message", log, func(m core.Message) int64 { return m.Seq })
		if len(log) != 2*racers {
			t.Fatalf("log: got %d messages, want %d", len(log), 2*racers)
		}
		for i := 0; i < len(log); i += 2 {
			compare.Equal(t, fmt.Sprintf("message %d", i+1), "answer to "+log[i].Content, log[i+1].Content)
			if log[i+1].ParentID != log[i].ID || i > 0 && log[i].ParentID != log[i-1].ID {
				t.Errorf("message %d: parents are not the messages before", i)
			}
		}
	})
}

func (s *store) activeRun(t *testing.T, session core.SessionID) core.Run {
	t.Helper()
	return must.Get(s.runs.Active(t.Context(), ann(), session))(t)
}

func TestConcurrentRepeatsAreOneRun(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		session := s.session(t).ID
		var mu sync.Mutex
		ids, fresh := map[core.RunID]int{}, 0
		race(racers, func(i int) {
			in := ask(session, "the same")
			in.ClientMessageID = "c-1"
			got, err := s.runs.Accept(t.Context(), ann(), in)
			if err != nil {
				t.Errorf("accept %d: %v", i, err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			ids[got.Run.ID]++
			if !got.Repeated {
				fresh++
			}
		})
		if len(ids) != 1 || fresh != 1 {
			t.Errorf("got %d runs, %d of them new, want 1 and 1", len(ids), fresh)
		}
	})
}

func TestConcurrentAppendersLeaveNoGap(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		session := s.session(t).ID
		run := s.accept(t, ask(session, "go")).Run
		const each = 5
		race(racers, func(i int) {
			for k := range each {
				_, err := s.runs.Write(t.Context(), core.RunWrite{
					RunID: run.ID, SessionID: session, Attempt: 1,
					Messages: []core.Message{answer(fmt.Sprint(i, k)), answer(fmt.Sprint(i, k, "b"))},
					Usage:    core.Usage{InputTokens: 1, OutputTokens: 2},
				})
				compare.Error(t, fmt.Sprintf("write %d/%d", i, k), nil, err)
			}
		})
		log := s.log(t, session)
		if want := 1 + 2*each*racers; len(log) != want {
			t.Fatalf("log: got %d messages, want %d", len(log), want)
		}
		gapless(t, "message", log, func(m core.Message) int64 { return m.Seq })
		gapless(t, "event", s.allEvents(t, session), func(e core.Event) int64 { return e.Seq })
		for i, m := range log[1:] {
			if m.ParentID != log[i].ID {
				t.Fatalf("message %d: got parent %s, want the message before, %s", i+1, m.ParentID, log[i].ID)
			}
		}
		stored := must.Get(s.runs.Get(t.Context(), ann(), run.ID))(t)
		if want := (core.Usage{InputTokens: each * racers, OutputTokens: 2 * each * racers}); stored.Usage != want {
			t.Errorf("usage: got %+v, want %+v", stored.Usage, want)
		}
	})
}

func TestConcurrentClaimsStartOneRun(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		session := s.session(t).ID
		for i := range 3 {
			in := ask(session, fmt.Sprint(i))
			in.Worker = ""
			s.accept(t, in)
		}
		var mu sync.Mutex
		var claimed []core.Claimed
		race(racers, func(i int) {
			got, err := s.runs.Claim(t.Context(), session, fmt.Sprint("worker-", i))
			if err != nil {
				compare.Error(t, fmt.Sprintf("claim %d", i), core.ErrNotFound, err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			claimed = append(claimed, got)
		})
		if len(claimed) != 1 || claimed[0].Run.QueueSeq != 1 {
			t.Errorf("claimed: got %d runs (%+v), want the first alone", len(claimed), claimed)
		}
	})
}

// Concurrent renewals, take-overs, writes and accepts in many sessions do not deadlock.
func TestEverythingAtOnce(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		var runs []core.Run
		for range 6 {
			runs = append(runs, s.accept(t, ask(s.session(t).ID, "go")).Run)
		}
		ids := make([]core.RunID, 0, len(runs))
		for _, r := range runs {
			ids = append(ids, r.ID)
		}
		check := func(what string, err error) {
			if err != nil && !errors.Is(err, core.ErrStale) && !errors.Is(err, core.ErrNotFound) {
				t.Errorf("%s: %v", what, err)
			}
		}
		race(racers, func(i int) {
			for k := range 10 {
				run := runs[(i+k)%len(runs)]
				switch i % 5 {
				case 0:
					_, err := s.runs.Renew(t.Context(), worker, ids)
					check("renew", err)
				case 1:
					_, err := s.takeOver(t.Context(), fmt.Sprint(worker, "/", i), true, 100)
					check("take over", err)
				case 2:
					_, err := s.runs.Write(t.Context(), core.RunWrite{
						RunID: run.ID, SessionID: run.SessionID, Attempt: 1 + k, Messages: []core.Message{answer("a")}})
					check("write", err)
				case 3:
					_, err := s.runs.Accept(t.Context(), ann(), ask(run.SessionID, "more"))
					check("accept", err)
				default:
					_, _, err := s.runs.RequestCancel(t.Context(), ann(), run.ID)
					check("cancel", err)
					check("release", s.runs.Release(t.Context(), worker))
				}
			}
		})
	})
}
