package purge_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"modernc.org/sqlite"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/app/purge"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// TestMain gives SQLite the clock of the bubble that asks for it.
func TestMain(m *testing.M) {
	sqlite.MustRegisterScalarFunction("strftime", -1, func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
		plus, err := time.ParseDuration(strings.Replace(args[2].(string), " seconds", "s", 1))
		return time.Now().UTC().Add(plus).Format("2006-01-02 15:04:05.000+00:00"), err
	})
	m.Run()
}

// world is a Service over a database of the owner "shop", in a bubble.
type world struct {
	core.Publisher
	*purge.Service
	*db.DB
	t        *testing.T
	sessions *repositories.Sessions
	runs     *repositories.Runs
	canceled []core.RunID
	compact  int
	torn     error  // of the compaction
	told     int    // events
	removed  func() // follows the first removal
}

func (w *world) Publish(_ context.Context, events []core.Event) {
	if w.told += len(events); w.removed != nil && len(events) > 0 {
		w.removed()
	}
}

func (w *world) cancel(ctx context.Context, tenant core.Tenant, id core.RunID) error {
	w.canceled = append(w.canceled, id)
	_, _, err := w.runs.RequestCancel(ctx, tenant, id)
	return err
}

// simulate runs f over an empty database.
func simulate(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := dbtest.SQLite(t)
		w := &world{DB: d, t: t, sessions: repositories.NewSessions(d.Gorm), runs: repositories.NewRuns(d.Gorm)}
		w.Service = purge.New(purge.Options{
			Store: repositories.NewPurges(d.Gorm), Deletions: repositories.NewDeletions(d.Gorm), Sessions: w.sessions, CancelRun: w.cancel,
			Publisher: w, Observer: core.NoObserver{}, Audit: repositories.NewAudit(d.Gorm), Worker: "one/1", Logger: slog.New(slog.DiscardHandler),
			CompactFiles: func(context.Context, []string) ([]string, error) {
				w.compact++
				return []string{"a note"}, w.torn
			},
		})
		f(t, w)
	})
}

// purge purges while the service runs.
func (w *world) purge(in core.Purge) (report core.PurgeReport, err error) {
	w.deleting(func(ctx context.Context) { report, err = w.Purge(ctx, in) })
	return report, err
}

// tables returns what a report says about sessions, messages and memories.
func tables(r core.PurgeReport) (list []core.PurgedTable) {
	for _, t := range r.Tables {
		if t.Table == "sessions" || t.Table == "messages" || t.Table == "memories" {
			list = append(list, t)
		}
	}
	return list
}

func scope() core.Tenant { return core.Tenant{Owner: "shop"} }

// id returns the id of the session that a test calls so, in up to six letters.
func id(name string) core.SessionID {
	return core.SessionID(fmt.Sprintf("01920000-0000-7000-8000-%s%x", strings.Repeat("0", 12-2*len(name)), name))
}

// idsOf returns the ids of sessions.
func idsOf(names ...string) []core.SessionID {
	var ids []core.SessionID
	for _, name := range names {
		ids = append(ids, id(name))
	}
	return ids
}

// session creates a session of kim's with two messages.
func (w *world) session(name string) {
	w.t.Helper()
	w.empty(name, "kim")
	w.answer(w.accept(name, "kim"))
}

// empty creates a session of the user's.
func (w *world) empty(name, user string) {
	w.t.Helper()
	must.Get(w.sessions.Create(w.t.Context(), core.Session{ID: id(name), Owner: "shop", UserID: user, Agent: "a"}))(w.t)
}

// accept has the user write in the session.
func (w *world) accept(name, user string) core.Run {
	w.t.Helper()
	return must.Get(w.runs.Accept(w.t.Context(), scope(), core.AcceptRun{SessionID: id(name), Agent: "a", User: user, Worker: "two/1", Input: core.RunInput{Content: "hello", Source: core.SourceAPI}}))(w.t).Run
}

func (w *world) answer(run core.Run) {
	w.t.Helper()
	m := core.Message{ID: core.NewID[core.MessageID](), Role: core.RoleAssistant, Content: "hi"}
	must.Get(w.runs.Write(w.t.Context(), core.RunWrite{
		RunID: run.ID, SessionID: run.SessionID, Attempt: run.Attempt, Messages: []core.Message{m}, End: &core.RunEnd{Status: core.RunSucceeded, AnswerID: m.ID},
	}))(w.t)
}

func (w *world) exec(stmt string, args ...any) {
	w.t.Helper()
	must.Do(w.t, w.Gorm.WithContext(w.t.Context()).Exec(stmt, args...).Error)
}

// breaks has the removal of a session fail.
func (w *world) breaks(name string) {
	w.exec("CREATE TRIGGER fire BEFORE DELETE ON sessions WHEN old.id = '" + string(id(name)) + "' BEGIN SELECT RAISE(ABORT, 'disk on fire'); END")
}

// wantLeft checks which sessions exist.
func (w *world) wantLeft(names ...string) {
	w.t.Helper()
	var left []core.SessionID
	must.Do(w.t, w.Gorm.WithContext(w.t.Context()).Raw("SELECT id FROM sessions ORDER BY created_at, id").Scan(&left).Error)
	if want := idsOf(names...); !slices.Equal(left, want) {
		w.t.Errorf("got the sessions %v, want %v", left, want)
	}
}

// during has f done while the posts of a session are removed, before the session.
func (w *world) during(f func(of core.SessionID)) core.PurgeOptions {
	w.DeletePosts = func(_ context.Context, of core.SessionID, _ bool) (core.PurgedPosts, error) {
		f(of)
		return core.PurgedPosts{}, nil
	}
	return core.PurgeOptions{SlackPosts: true, Force: true, Compact: true}
}

// Sessions are removed once each, with those that were archived; one that is gone meanwhile is passed by.
func TestSessions(t *testing.T) {
	simulate(t, func(t *testing.T, w *world) {
		for _, name := range []string{"a", "gone", "new", "old"} {
			w.session(name)
		}
		must.Get2(w.sessions.Update(t.Context(), scope(), id("old"), core.SessionPatch{Archived: new(true)}))(t)
		time.Sleep(time.Second)
		in := core.Purge{IDs: idsOf("a", "gone", "a"), ArchivedBefore: new(core.Now())}
		in.PurgeOptions = w.during(func(of core.SessionID) {
			if of == id("a") {
				must.Get(w.Store.Session(t.Context(), id("gone"), false))(t)
			}
		})
		got := must.Get(w.purge(in))(t)
		compare.Equal(t, "sessions", idsOf("a", "old", "gone"), got.Sessions)
		compare.Equal(t, "tables", []core.PurgedTable{{Table: "sessions", Removed: 3}, {Table: "messages", Removed: 6}, {Table: "memories"}}, tables(got))
		compare.Equal(t, "compacted, with its note", []any{true, "a note"}, []any{got.Compacted, got.Notes[0]})
		w.wantLeft("new")
	})
}

// The report shows what is left, also of data that is written again and again.
func TestTheProofCounts(t *testing.T) {
	simulate(t, func(t *testing.T, w *world) {
		w.session("a")
		w.removed = func() { w.session("a") }
		got, err := w.purge(core.Purge{IDs: idsOf("a")})
		compare.True(t, err == nil && w.told == 4 && tables(got)[1].Left == 2, "got %+v, %v after %d removals, want two messages left after four", got, err, w.told)
		w.removed = nil
		got, err = w.purge(core.Purge{IDs: idsOf("a")})
		compare.True(t, err == nil && got.Left() == 0 && !got.Compacted && len(got.Notes) == 1, "got %+v, %v, want none left and a note about the files", got, err)
	})
}

func TestNothingIsRemovedBefore(t *testing.T) {
	simulate(t, func(t *testing.T, w *world) {
		w.session("a")
		w.session("busy")
		w.exec("UPDATE sessions SET busy = 'import', busy_until = '2001-01-01' WHERE id = ?", id("busy"))
		w.accept("a", "kim")
		for name, tt := range map[string]struct {
			in   core.Purge
			want error
		}{
			"no name":          {core.Purge{}, core.ErrInvalid},
			"everybody":        {core.Purge{Owner: "shop"}, core.ErrInvalid},
			"no owner":         {core.Purge{User: "kim"}, core.ErrInvalid},
			"one is not there": {core.Purge{IDs: idsOf("a", "b"), PurgeOptions: core.PurgeOptions{Force: true}}, core.ErrNotFound},
			"a run works":      {core.Purge{IDs: idsOf("a")}, core.ErrConflict},
			"an import":        {core.Purge{IDs: idsOf("busy")}, core.ErrConflict},
			"dry run":          {core.Purge{IDs: idsOf("a"), PurgeOptions: core.PurgeOptions{DryRun: true, Force: true, Compact: true}}, nil},
		} {
			compare.Error(t, name, tt.want, compare.ErrorOf(w.purge(tt.in)))
		}
		w.wantLeft("a", "busy")
		compare.Equal(t, "cancels and compactions", 0, len(w.canceled)+w.compact)
	})
}

func TestUser(t *testing.T) {
	simulate(t, func(t *testing.T, w *world) {
		w.session("own")
		w.empty("team", "bob")
		w.answer(w.accept("team", "kim"))
		w.answer(w.accept("team", "bob"))
		must.Get(repositories.NewMemories(w.Gorm).Create(t.Context(), core.Memory{Owner: "shop", UserID: "kim", Content: "tea"}))(t)
		got := must.Get(w.purge(core.Purge{Owner: "shop", User: "kim"}))(t)
		compare.Equal(t, "tables", []core.PurgedTable{{Table: "sessions", Removed: 1}, {Table: "messages", Removed: 2, Emptied: 2}, {Table: "memories", Removed: 1}}, tables(got))
		w.wantLeft("team")
		compare.True(t, w.told >= 2 && !strings.Contains(fmt.Sprint(got.Notes), "nothing was found"), "%d events told, got the notes %q", w.told, got.Notes) // one of them of the session that is gone
		got = must.Get(w.purge(core.Purge{Owner: "shop", User: "kim"}))(t)
		compare.Contains(t, "notes of a second purge", "nothing was found", fmt.Sprint(got.Notes))
	})
}

// With force, queued runs are canceled first; while a run does not end nothing is removed. The purge goes on
// without who asked for it, in the next process too.
func TestForce(t *testing.T) {
	simulate(t, func(t *testing.T, w *world) {
		w.session("a")
		running, queued := w.accept("a", "kim"), w.accept("a", "kim")
		w.exec("UPDATE runs SET lease_until = '2001-01-01' WHERE status = 'running'")
		begin := time.Now()
		err := compare.ErrorOf(w.purge(core.Purge{Owner: "shop", IDs: idsOf("a"), PurgeOptions: core.PurgeOptions{Force: true}}))
		compare.True(t, errors.Is(err, core.ErrUnavailable) && strings.Contains(err.Error(), string(running.ID)) && time.Since(begin).Round(time.Second) == 45*time.Second, "a run that does not end: %v after %s", err, time.Since(begin))
		w.wantLeft("a")
		compare.Equal(t, "canceled", []core.RunID{queued.ID, running.ID}, w.canceled)
		w.exec("UPDATE runs SET lease_until = '1999-01-01'")
		w.deleting(func(context.Context) { time.Sleep(10 * time.Second) })
		w.wantLeft()
	})
}

// Data written while a user is removed is removed too, and a session that was forked meanwhile
// is checked again, also its fork.
func TestUserWhoGoesOn(t *testing.T) {
	simulate(t, func(t *testing.T, w *world) {
		w.session("own")
		w.empty("team", "bob")
		w.answer(w.accept("team", "kim"))
		o := w.during(func(of core.SessionID) {
			if of == id("own") {
				w.session("new")
				must.Get(repositories.NewBranches(w.Gorm).Fork(t.Context(), scope(), core.ForkSession{SessionID: id("team")}))(t)
			}
		})
		got := must.Get(w.purge(core.Purge{Owner: "shop", User: "kim", PurgeOptions: o}))(t)
		compare.Equal(t, "sessions, left", []any{idsOf("new", "own"), int64(0)}, []any{got.Sessions, got.Left()})
	})
}

// What was removed is reported also if its bytes could not be taken out of the
// files, which can be done later.
func TestCompactionFails(t *testing.T) {
	simulate(t, func(t *testing.T, w *world) {
		w.session("a")
		w.torn = errors.New("no room")
		in := core.Purge{IDs: idsOf("a"), PurgeOptions: core.PurgeOptions{Compact: true}}
		got, err := w.purge(in)
		compare.True(t, err == nil && !got.Compacted && tables(got)[0].Removed == 1 && len(got.Notes) == 1 && strings.Contains(got.Notes[0], "no room"), "got %+v, error %v", got, err)
		w.torn, in.IDs = nil, nil
		if got, err = w.purge(in); err != nil || !got.Compacted || len(got.Sessions) != 0 || w.compact != 2 {
			t.Errorf("only the files: got %+v, error %v", got, err)
		}
	})
}

// noted returns the entries of the audit log, the newest first.
func (w *world) noted() []core.AuditEntry {
	w.t.Helper()
	return must.Get(repositories.NewAudit(w.Gorm).List(w.t.Context(), core.PageQuery{}))(w.t).Items
}

// A removal is in the audit log, with its actor and its size, but without the names of what is
// gone; a dry run, and a purge that removed nothing, are not.
func TestAudit(t *testing.T) {
	simulate(t, func(t *testing.T, w *world) {
		w.session("a")
		w.session("b")
		must.Get(w.purge(core.Purge{Owner: "shop", IDs: idsOf("a")}))(t)
		time.Sleep(time.Second)
		must.Get(w.purge(core.Purge{Owner: "shop", User: "kim"}))(t)
		must.Get(w.purge(core.Purge{Owner: "shop", User: "kim", PurgeOptions: core.PurgeOptions{DryRun: true}}))(t)
		compare.Error(t, "of nothing", core.ErrNotFound, compare.ErrorOf(w.purge(core.Purge{IDs: idsOf("a")})))
		var told []string
		for _, e := range w.noted() {
			told = append(told, strings.Join([]string{e.Actor, e.Action, e.Owner, e.Target}, " "))
			text := fmt.Sprintf("%+v %s", e, e.Details)
			compare.True(t, !strings.Contains(text, "kim") && strings.Contains(text, `"complete":true`) && strings.Contains(text, `"removed":{`), "got entry %s, want the numbers, and no user", text)
		}
		compare.Equal(t, "audit log", []string{"cli user.purged shop user sha256:" + core.SecretHash("kim")[:12], "cli sessions.purged shop sessions: 1"}, told)
	})
}

// What processes left behind is removed at the start, and later within 5 s; a session
// that goes with it is gone for those who watch it.
func TestRecoversAbandonedSessions(t *testing.T) {
	simulate(t, func(t *testing.T, w *world) {
		leave := func(name, owner, until string) {
			w.session(name)
			w.exec("UPDATE sessions SET busy = ?, busy_owner = ?, busy_until = ? WHERE id = ?", name, owner, until, id(name))
		}
		leave("import", "one/0", "2001-01-01")
		leave("fork", "one/0", "2001-01-01")
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.Run(ctx) }()
		synctest.Wait()
		w.wantLeft("import")
		compare.Equal(t, "events told", 1, w.told)
		leave("purge", "two/0", "1999-01-01")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		w.wantLeft("import")
		cancel()
		compare.Error(t, "from Run", nil, <-ended)
	})
}
