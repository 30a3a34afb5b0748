package repositories_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

var errInjected = errors.New("injected")

// A transaction that database/sql rolls back before its COMMIT, because its context has ended, reports a
// database that did not answer in time, or the cancellation: never an unknown error. PostgreSQL's transactions
// do not use database/sql.
func TestContextEndsBeforeCommit(t *testing.T) {
	t.Parallel()
	for want, end := range map[error]error{core.ErrNoDatabase: context.DeadlineExceeded, context.Canceled: context.Canceled} {
		d := dbtest.SQLite(t)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		err := repositories.InTx(ctx, d.Gorm, func(tx *gorm.DB) error {
			if errors.Is(end, context.Canceled) {
				cancel()
			}
			<-ctx.Done()
			for tx.WithContext(t.Context()).Exec("SELECT 1").Error == nil { // until it is rolled back
			}
			return nil
		})
		if cancel(); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
}

// faults makes the statements from the one with that number on fail; 0 = none.
type faults struct {
	from, n int
}

func (f *faults) install(t *testing.T, g *gorm.DB) {
	t.Helper()
	fail := func(tx *gorm.DB) {
		if tx.DryRun { // a part of another statement
			return
		}
		if f.n++; f.from > 0 && f.n >= f.from {
			_ = tx.AddError(errInjected)
		}
	}
	cb := g.Callback()
	must.Do(t, errors.Join(
		cb.Create().Before("gorm:create").Register("faults:create", fail),
		cb.Query().Before("gorm:query").Register("faults:query", fail),
		cb.Update().Before("gorm:update").Register("faults:update", fail),
		cb.Row().Before("gorm:row").Register("faults:row", fail),
		cb.Raw().Before("gorm:raw").Register("faults:raw", fail),
	))
}

// rows is all that is in the database.
func (s *store) rows(t *testing.T) map[string][]map[string]any {
	t.Helper()
	out := map[string][]map[string]any{}
	for _, table := range []string{"sessions", "messages", "runs", "session_events", "session_summaries", "tool_executions", "model_calls", "model_calibrations"} {
		var list []map[string]any
		must.Do(t, s.Gorm.WithContext(t.Context()).Raw("SELECT * FROM "+table+" ORDER BY 1, 2").Scan(&list).Error)
		out[table] = list
	}
	return out
}

// A write that fails at any of its statements stores nothing, emits nothing, and can be
// retried; internal errors are not shown to callers.
func TestWritesAreAllOrNothing(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		f := &faults{}
		f.install(t, s.Gorm)
		title := "T"
		busy, idle, waiting := s.session(t).ID, s.session(t).ID, s.session(t).ID
		s.turns(t, busy, 1)
		run := s.accept(t, ask(busy, "go")).Run
		queued := s.accept(t, ask(busy, "later")).Run
		in := ask(waiting, "wait")
		in.Worker = ""
		s.accept(t, in)
		log := s.log(t, busy)

		steps := []struct {
			name string
			do   func(ctx context.Context) error
		}{
			{"update", func(ctx context.Context) error {
				_, _, err := s.sessions.Update(ctx, ann(), busy, core.SessionPatch{Title: &title})
				return err
			}},
			{"apply context", func(ctx context.Context) error {
				_, _, err := s.sessions.ApplyContext(ctx, ann(), pathChange(core.Session{ID: busy}, "sum", log[0], log[1]))
				return err
			}},
			{"start tools", func(ctx context.Context) error {
				return s.runs.StartTools(ctx, run.ID, 1, []core.ToolExecution{{CallID: "a", Tool: "x"}})
			}},
			{"write", func(ctx context.Context) error {
				m := answer("bye")
				_, err := s.runs.Write(ctx, core.RunWrite{
					RunID: run.ID, SessionID: busy, Attempt: 1, Usage: core.Usage{InputTokens: 1},
					Messages:   []core.Message{{Role: core.RoleTool, ToolCallID: "a"}, m},
					ModelCalls: []core.ModelCall{{Purpose: core.PurposeAnswer, Model: "m"}},
					End:        &core.RunEnd{Status: core.RunSucceeded, AnswerID: m.ID},
				})
				return err
			}},
			{"cancel", func(ctx context.Context) error {
				_, _, err := s.runs.RequestCancel(ctx, ann(), queued.ID)
				return err
			}},
			{"accept", func(ctx context.Context) error {
				in := ask(idle, "hello")
				in.ClientMessageID = "c-1"
				_, err := s.runs.Accept(ctx, ann(), in)
				return err
			}},
			{"accept behind", func(ctx context.Context) error {
				_, err := s.runs.Accept(ctx, ann(), ask(idle, "hello"))
				return err
			}},
			{"claim", func(ctx context.Context) error {
				_, err := s.runs.Claim(ctx, waiting, worker)
				return err
			}},
			{"take over", func(ctx context.Context) error {
				_, err := s.runs.TakeOver(ctx, core.TakeOver{Worker: worker + "/2", Deaths: 1, Limit: 10})
				return err
			}},
		}
		for _, step := range steps {
			before := s.rows(t)
			failed := 0
			for {
				f.from, f.n = failed+1, 0
				err := step.do(t.Context())
				reached := f.n >= f.from
				f.from = 0
				if err == nil && !reached {
					break
				}
				var shown *core.Error
				must.True(t, errors.Is(err, errInjected) && !errors.As(err, &shown), "%s, statement %d fails: got %v, want an internal error", step.name, failed+1, err)
				if diff := cmp.Diff(before, s.rows(t)); diff != "" {
					t.Fatalf("%s, statement %d fails: something is stored (-before +after):\n%s", step.name, failed+1, diff)
				}
				failed++
			}
			compare.True(t, failed != 0, "%s: no statement was made to fail", step.name)
			compare.True(t, !cmp.Equal(before, s.rows(t)), "%s: nothing is stored after it succeeded", step.name)
		}
	})
}

// Another process writes for longer than busy_timeout: the error asks for a retry.
func TestABusySQLiteIsUnavailable(t *testing.T) {
	t.Parallel()
	url := dbtest.SQLiteURL(t)
	first, second := dbtest.Open(t, url), dbtest.Open(t, url)
	must.Do(t, first.Migrate(t.Context()))
	tx := first.Gorm.WithContext(t.Context()).Begin()
	if tx.Error != nil {
		t.Fatal(tx.Error)
	}
	wantError(t, "create while another process writes", compare.ErrorOf(open(second).sessions.Create(t.Context(), core.Session{Owner: "ann"})), core.ErrUnavailable)
	must.Do(t, tx.Rollback().Error)
	compare.Error(t, "create afterwards", nil, compare.ErrorOf(open(second).sessions.Create(t.Context(), core.Session{Owner: "ann"})))
}

// A caller that disconnects while its write waits gets its context's error.
func TestCanceledWrites(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		session := s.session(t).ID
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(fmt.Errorf("gone: %w", core.ErrCanceled))
		wantError(t, "accept", compare.ErrorOf(s.runs.Accept(ctx, ann(), ask(session, "x"))), context.Canceled)
		compare.Equal(t, "runs", 0, s.count(t, "SELECT COUNT(*) FROM runs"))
	})
}

// A value that only PostgreSQL refuses is reported as the caller's error.
func TestUnstorableNumber(t *testing.T) {
	t.Parallel()
	s := open(dbtest.Postgres(t))
	_, err := s.sessions.Create(t.Context(), core.Session{Owner: "ann", Metadata: json.RawMessage(`{"a":1e999999}`)})
	wantError(t, "number beyond numeric", err, core.ErrInvalid)
	compare.True(t, err == nil || strings.Contains(err.Error(), "a number in the JSON is too large"), "got %v, want it to say what is wrong", err)
}

// A PostgreSQL that stops, is unavailable, or starts again causes an error that asks for a
// retry and contains nothing internal.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	server := dbtest.NewServer(t)
	d, err := db.Open(t.Context(), server.URL, slog.New(slog.DiscardHandler))
	if err == nil {
		err = d.Migrate(t.Context())
	}
	must.Do(t, err)
	t.Cleanup(func() { _ = d.Close() }) // its server is gone
	s := open(d)
	session := s.session(t).ID
	for _, mode := range []dbtest.StopMode{dbtest.StopFast, dbtest.StopImmediate} {
		must.Do(t, server.Stop(mode))
		_, err := s.sessions.Get(t.Context(), ann(), session)
		wantAway(t, "read", err)
		_, err = s.runs.Accept(t.Context(), ann(), ask(session, "hello"))
		wantAway(t, "write", err)
		_, err = s.runs.Approvals(t.Context(), core.NewID[core.RunID]())
		wantAway(t, "read of what has no words for its errors", err)
		must.Do(t, server.Start(t.Context()))
		compare.Error(t, fmt.Sprintf("%s: when the server is there again", mode), nil, compare.ErrorOf(s.sessions.Get(t.Context(), ann(), session)))
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.sessions.Get(gone, ann(), session); errors.Is(err, core.ErrNoDatabase) || !errors.Is(err, context.Canceled) {
		t.Errorf("a caller who went away: got %v", err)
	}
}

func wantAway(t *testing.T, what string, err error) {
	t.Helper()
	var told *core.Error
	if !errors.Is(err, core.ErrNoDatabase) || !errors.As(err, &told) || !errors.Is(told.Kind, core.ErrUnavailable) || strings.Contains(told.Message, "127.0.0.1") {
		t.Errorf("%s: got %v, want that the database is away, and not where", what, err)
	}
}
