package repositories_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"gorm.io/gorm"
	"pgregory.net/rapid"

	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/pgproxy"
	"bobbin/tests/seed"
)

// together executes writes so that they share commits: the first two are under way when the others come.
// Loads of them load their session first. Then it calls release, before any of them is written.
func (s *store) together(t testing.TB, loads int64, release func(), writes []func() error) []error {
	t.Helper()
	before := s.Statements()
	errs := make([]error, len(writes))
	var all sync.WaitGroup
	err := s.Gorm.WithContext(t.Context()).Transaction(func(tx *gorm.DB) error {
		if s.Dialect() == "postgres" {
			if err := tx.Exec("LOCK TABLE session_events IN EXCLUSIVE MODE").Error; err != nil {
				return err
			}
		}
		for i, write := range writes {
			all.Go(func() { errs[i] = write() })
		}
		for s.Statements() < before+loads && t.Context().Err() == nil {
			runtime.Gosched()
		}
		release()
		return nil
	})
	all.Wait()
	must.Do(t, err)
	return errs
}

// A change that the database refuses, or that comes too late, fails alone: all others of its batch are
// written once.
func TestBadChangeFailsAlone(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		taken := s.accept(t, ask(s.session(t).ID, "first")).Message
		seed.Check(t, func(rt *rapid.T) {
			n := rapid.IntRange(2, 12).Draw(rt, "changes")
			bad := rapid.IntRange(0, n-1).Draw(rt, "bad")
			kind := rapid.SampledFrom([]string{"refused", "stale", "late attempt"}).Draw(rt, "kind")
			loads := int64(n)
			writes, sessions, asked := make([]func() error, n), make([]core.SessionID, n), make([]bool, n)
			for i := range n {
				id := s.session(t).ID
				sessions[i], asked[i] = id, i != bad && rapid.Bool().Draw(rt, "asks")
				if asked[i] {
					writes[i] = func() error { _, err := s.runs.Accept(t.Context(), ann(), ask(id, "hello")); return err }
					continue
				}
				accepted, m := s.accept(t, ask(id, "hello")), answer("bye")
				run := accepted.Run
				w := core.RunWrite{
					ID: core.NewID[string](), RunID: run.ID, SessionID: id, Attempt: run.Attempt, Messages: []core.Message{m},
					ModelCalls: []core.ModelCall{{Purpose: core.PurposeAnswer, Model: "m", Usage: core.Usage{InputTokens: 3}}},
					End:        &core.RunEnd{Status: core.RunSucceeded, AnswerID: m.ID},
				}
				if rapid.Bool().Draw(rt, "known") {
					w.Known = accepted.Known
					loads--
				}
				switch {
				case i == bad && kind == "refused":
					w.Messages[0].ID = taken.ID
				case i == bad && kind == "stale": // another process has changed the session since
					s.exec(t, "UPDATE sessions SET last_event_seq = last_event_seq + 1 WHERE id = ?", id)
				case i == bad:
					w.Attempt++
				}
				writes[i] = func() error { _, err := s.runs.Write(t.Context(), w); return err }
			}
			for i, err := range s.together(t, loads, func() {}, writes) {
				want := map[string]error{"refused": core.ErrConflict, "late attempt": core.ErrStale}[kind]
				if i != bad {
					want = nil
				}
				messages := 2
				if asked[i] || want != nil {
					messages = 1
				}
				compare.Error(rt, fmt.Sprintf("change %d", i), want, err)
				compare.Equal(rt, fmt.Sprintf("change %d: messages", i), messages, len(s.log(t, sessions[i])))
			}
		})
		compare.Equal(t, "model calls, but in the sums of days", s.count(t, "SELECT CAST(SUM(calls) AS integer) FROM usage_days WHERE level = 'all'"), s.count(t, "SELECT COUNT(*) FROM model_calls"))
	})
}

// Changes that come while a commit is under way share the next one.
func TestChangesShareCommits(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	s := open(d)
	s.turns(t, s.session(t).ID, 1)
	const n = 40
	writes := make([]func() error, n)
	for i := range writes {
		id := s.session(t).ID
		writes[i] = func() error { _, err := s.runs.Accept(t.Context(), ann(), ask(id, "hello")); return err }
	}
	before := s.Statements()
	for i, err := range s.together(t, n, func() {}, writes) {
		compare.Error(t, fmt.Sprintf("change %d", i), nil, err)
	}
	got := s.Statements() - before
	compare.True(t, got <= n+6, "got %d statements for %d changes, want a few besides those that load the sessions", got, n) // each loads its session
}

// A session whose row another transaction has locked does not hold up its batch.
func TestLockedSessionGoesAlone(t *testing.T) {
	t.Parallel()
	s := open(dbtest.Postgres(t))
	locked, free := s.session(t).ID, s.session(t).ID
	release := s.hog(t, locked)
	var all sync.WaitGroup
	all.Go(func() {
		compare.Error(t, "the locked session", nil, compare.ErrorOf(s.runs.Accept(t.Context(), ann(), ask(locked, "hello"))))
	})
	for range 5 {
		s.turns(t, free, 1)
	}
	release()
	all.Wait()
}

// If the answer to a commit is lost, every change of the batch reports that the database did not
// answer, and each was written once.
func TestUnknownOutcomeOfASharedCommit(t *testing.T) {
	t.Parallel()
	proxy := pgproxy.New(t, dbtest.MigratedPostgresURL(t))
	s := open(dbtest.Open(t, proxy.URL))
	for largest, round := 0, 0; largest < 2; round++ { // until the answer of a batch with several is lost
		must.True(t, round != 30, "no batch had several changes")
		asks, writes := make([]core.AcceptRun, 8), make([]func() error, 8)
		for i := range asks {
			asks[i] = ask(s.session(t).ID, "hello")
			asks[i].ClientMessageID = "c"
			writes[i] = func() error { _, err := s.runs.Accept(t.Context(), ann(), asks[i]); return err }
		}
		var committed <-chan struct{}
		unknown := 0
		for i, err := range s.together(t, int64(len(writes)), func() { committed = proxy.Lose(`INTO "runs"`) }, writes) {
			switch {
			case errors.Is(err, core.ErrNoDatabase):
				unknown++
			case err != nil:
				t.Errorf("change %d: got %v, want success or that the database did not answer", i, err)
			}
		}
		<-committed
		for i, in := range asks {
			before := s.count(t, "SELECT COUNT(*) FROM runs WHERE session_id = '"+string(in.SessionID)+"'")
			again := must.Get(s.runs.Accept(t.Context(), ann(), in))(t)
			compare.Equal(t, fmt.Sprintf("change %d: want one run and its repetition", i), []any{1, true}, []any{before, again.Repeated})
		}
		largest = max(largest, unknown)
	}
}
