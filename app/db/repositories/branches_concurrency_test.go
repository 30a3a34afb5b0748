package repositories_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/seed"
)

// Under concurrent changes the path is one line from a root, numbers have no gaps, and
// nothing waits forever.
func TestBranchesAtOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		s.turns(t, id, 4)
		s.summarize(t, id, s.log(t, id)[3])
		var wg sync.WaitGroup
		for who := range uint64(6) {
			wg.Go(func() {
				r := seed.Rand(t, who)
				for range 6 {
					if err := s.anyBranch(t, id, r); err != nil && !harmless(err) {
						t.Errorf("got error %v, want a conflict at most", err)
					}
				}
			})
		}
		wg.Wait()
		page := must.Get(s.messages.List(t.Context(), ann(), id, core.MessageQuery{PageQuery: core.PageQuery{Limit: 200}, AllBranches: true}))(t)
		var last core.MessageID
		for _, m := range page.Items {
			if !m.OnPath {
				continue
			}
			if m.ParentID != last {
				t.Errorf("message #%d on the path: got the parent %s, want %s", m.Seq, m.ParentID, last)
			}
			last = m.ID
		}
		gapless(t, "event", s.allEvents(t, id), func(e core.Event) int64 { return e.Seq })
		session := s.get(t, id)
		if n := s.count(t, "SELECT COUNT(*) FROM messages WHERE session_id = ?", id); int64(n) != session.LastSeq {
			t.Errorf("got %d messages, the last one is %d", n, session.LastSeq)
		}
		if n := s.count(t, "SELECT COUNT(*) FROM sessions s JOIN messages m ON m.id = s.summary_through_id WHERE s.id = ? AND NOT m.on_path", id); n > 0 {
			t.Error("the summary ends beside the path")
		}
	})
}

// anyBranch applies one random change to a message of the session.
func (s *store) anyBranch(t *testing.T, id core.SessionID, r *rand.Rand) error {
	t.Helper()
	branches, ctx := repositories.NewBranches(s.Gorm), t.Context()
	page, err := s.messages.List(ctx, ann(), id, core.MessageQuery{PageQuery: core.PageQuery{Limit: 200}, AllBranches: true})
	if err != nil {
		return err
	}
	m := page.Items[r.IntN(len(page.Items))].ID
	in := ask(id, "new")
	switch r.IntN(6) {
	case 0:
		_, _, err = branches.Select(ctx, ann(), id, m)
		return err
	case 1:
		_, _, err = branches.Pin(ctx, ann(), id, m, r.IntN(2) == 0)
		return err
	case 2:
		_, err = branches.Fork(ctx, ann(), core.ForkSession{SessionID: id, MessageID: m})
		return err
	case 3:
		in.Input = core.RunInput{Source: core.SourceAPI}
		in.Answers = m
	case 4:
		in.Input.Edits = m
	}
	a, err := s.runs.Accept(ctx, ann(), in)
	if err != nil || a.Run.Status != core.RunRunning {
		return err
	}
	for run := a.Run; ; {
		reply := answer("reply")
		_, err := s.runs.Write(ctx, core.RunWrite{RunID: run.ID, SessionID: id, Attempt: run.Attempt, Messages: []core.Message{reply},
			End: &core.RunEnd{Status: core.RunSucceeded, AnswerID: reply.ID}})
		if err != nil {
			return err
		}
		claimed, err := s.runs.Claim(ctx, id, worker)
		if err != nil {
			return err
		}
		run = claimed.Run
	}
}

// harmless reports whether an error is expected. A run is stale when another of the
// goroutines, which are one worker, has claimed it.
func harmless(err error) bool {
	for _, kind := range []error{core.ErrConflict, core.ErrNotFound, core.ErrUnprocessable, core.ErrStale} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
