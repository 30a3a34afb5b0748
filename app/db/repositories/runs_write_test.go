package repositories_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"
	"pgregory.net/rapid"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/commit"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/pgproxy"
	"bobbin/tests/seed"
)

// sameJSON compares JSON columns by what they say: jsonb orders keys anew.
func sameJSON() cmp.Option {
	return cmp.Comparer(func(a, b json.RawMessage) bool {
		var x, y any
		if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
			return len(a) == len(b)
		}
		return cmp.Equal(x, y)
	})
}

// acceptAtOnce sends a message to each of n sessions concurrently, and returns how many
// were accepted. The limit refused the others.
func (s *store) acceptAtOnce(t *testing.T, n int, limit func(*core.AcceptRun)) int {
	t.Helper()
	sessions := make([]core.SessionID, n)
	for i := range sessions {
		sessions[i] = s.session(t).ID
	}
	results := make([]error, n)
	race(n, func(i int) {
		in := ask(sessions[i], fmt.Sprint(i))
		limit(&in)
		// A caller waits for the others a limited time, and then tries again.
		for busy := true; busy; busy = core.IsSessionBusy(results[i]) {
			_, results[i] = s.runs.Accept(t.Context(), ann(), in)
		}
	})
	accepted := 0
	for _, err := range results {
		var refused *core.Error
		switch {
		case err == nil:
			accepted++
		case !errors.As(err, &refused) || refused.Code != core.CodeTooManyRuns:
			t.Errorf("got %v, want it accepted, or refused as too many runs", err)
		}
	}
	return accepted
}

// The limits of an owner's and a user's runs hold for concurrent requests to many sessions.
func TestRunLimitsHoldForRequestsAtOnce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		requests, want int
		limit          func(*core.AcceptRun)
	}{
		"of an owner":           {20, 2, func(in *core.AcceptRun) { in.MaxOwned = 2 }},
		"of an owner, a higher": {160, 130, func(in *core.AcceptRun) { in.MaxOwned = 130 }},
		"of a user":             {30, 2, func(in *core.AcceptRun) { in.User, in.MaxOfUser = "eve", 2 }},
		"of a user, a higher":   {30, 12, func(in *core.AcceptRun) { in.User, in.MaxOfUser, in.MaxOwned = "eve", 12, 1000 }},
		"of both":               {30, 5, func(in *core.AcceptRun) { in.User, in.MaxOfUser, in.MaxOwned = "eve", 9, 5 }},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, s *store) {
				compare.Equal(t, fmt.Sprintf("%d requests at once: accepted", tt.requests), tt.want, s.acceptAtOnce(t, tt.requests, tt.limit))
			})
		})
	}
}

// A message whose session was locked, and that is accepted in a transaction, counts for others until then.
func TestAcceptedAloneCounts(t *testing.T) {
	t.Parallel()
	s := open(dbtest.Postgres(t))
	in := ask(s.session(t).ID, "hello")
	in.User, in.MaxOfUser = "eve", 20
	release := s.hog(t, in.SessionID)
	var sending sync.WaitGroup
	sending.Go(func() { s.accept(t, in) })
	for s.count(t, "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") == 0 && t.Context().Err() == nil {
	}
	table := s.Gorm.Begin()
	must.Do(t, table.Exec("LOCK TABLE runs IN SHARE MODE").Error)
	release()
	for s.count(t, "SELECT COUNT(*) FROM pg_locks WHERE NOT granted AND relation = 'runs'::regclass AND database = (SELECT oid FROM pg_database WHERE datname = current_database())") == 0 && t.Context().Err() == nil {
	}
	compare.Equal(t, "messages that are being accepted", 1, commit.Of(s.Gorm).Count("runs ann / eve", 0))
	table.Rollback()
	sending.Wait()
}

// A write that does not look at the session again finds what has changed since the one before.
func TestKnownWriteFindsChanges(t *testing.T) {
	t.Parallel()
	title := "changed"
	for name, tt := range map[string]struct {
		change     func(t *testing.T, s *store, d *db.DB, run core.Run) error
		deliveries int
		canceled   bool
		alone      bool // nobody else has written to the session
	}{
		"nothing": {change: func(*testing.T, *store, *db.DB, core.Run) error { return nil }, alone: true},
		"the owner's webhook": {deliveries: 1, change: func(t *testing.T, _ *store, d *db.DB, _ core.Run) error {
			return repositories.NewOwnerWebhooks(d.Gorm).Set(t.Context(), "ann", core.Webhook{URL: "https://example.com/hook", Secret: "whsec_c2VjcmV0c2VjcmV0c2VjcmV0"})
		}, alone: true},
		"a cancel": {canceled: true, change: func(t *testing.T, s *store, _ *db.DB, run core.Run) error {
			_, _, err := s.runs.RequestCancel(t.Context(), ann(), run.ID)
			return err
		}, alone: true},
		"the title": {change: func(t *testing.T, s *store, _ *db.DB, run core.Run) error {
			_, _, err := s.sessions.Update(t.Context(), ann(), run.SessionID, core.SessionPatch{Title: &title})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, s *store) {
				a, m := s.accept(t, ask(s.session(t).ID, "hello")), answer("bye")
				must.Do(t, tt.change(t, s, s.DB, a.Run))
				out := s.write(t, core.RunWrite{
					RunID: a.Run.ID, SessionID: a.Run.SessionID, Attempt: 1, Messages: []core.Message{m}, Known: a.Known,
					End: &core.RunEnd{Status: core.RunSucceeded, AnswerID: m.ID},
				})
				end := out.Events[len(out.Events)-1].Data.(core.RunData)
				n := s.count(t, "SELECT COUNT(*) FROM deliveries")
				compare.Equal(t, "deliveries, told", []any{tt.deliveries, n > 0}, []any{n, end.Delivers})
				compare.True(t, end.Run.CancelRequested == tt.canceled && (out.Known != nil) == tt.alone, "got canceled %v and known %v, want %v and %v", end.Run.CancelRequested, out.Known != nil, tt.canceled, tt.alone)
				compare.Equal(t, "the parent", a.Message.ID, out.Messages[0].ParentID)
			})
		})
	}
}

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
