package db_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/pgproxy"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestSQLiteFileIsPrivateWhateverItsName(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new folder", "a #1 100% größe &x=y.db")
	d := dbtest.Open(t, "sqlite://"+path)
	must.Do(t, d.Migrate(t.Context()))
	for _, name := range []string{path, path + "-wal", filepath.Dir(path)} {
		info, err := os.Stat(name)
		must.True(t, err == nil, "%s: %v", name, err)
		compare.Equal(t, name+": others may", 0, info.Mode().Perm()&0o077)
	}
}

// A file that was moved away is not created again, and is found when it is back.
func TestSQLiteFileMovedAwayAndBack(t *testing.T) {
	t.Parallel()
	url := dbtest.SQLiteURL(t)
	d := dbtest.Open(t, url)
	must.Do(t, d.Migrate(t.Context()))
	path := strings.TrimPrefix(url, "sqlite://")
	d.Pool().SetMaxIdleConns(0) // each question has a new connection
	must.Do(t, os.Rename(path, path+".away"))
	count := func() error {
		var n int
		return d.Gorm.WithContext(t.Context()).Raw("SELECT COUNT(*) FROM runs").Scan(&n).Error
	}
	if err := count(); err == nil || strings.Contains(err.Error(), "no such table") {
		t.Errorf("without its file: got %v, want that it cannot be opened", err)
	}
	compare.Error(t, "compare.ErrorOf(os.Stat(path)): want no new file in its place", os.ErrNotExist, compare.ErrorOf(os.Stat(path)))
	must.Do(t, os.Rename(path+".away", path))
	compare.Error(t, "with its file back", nil, count())
}

// S4: what both databases must do alike.
func TestTimesAndConstraintsAreAlike(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		g := d.Gorm.WithContext(t.Context())
		compare.Error(t, "ping", nil, d.Ping(t.Context()))
		now := d.Gorm.NowFunc()
		compare.True(t, now.Location() == time.UTC && now.Nanosecond()%1000 == 0, "now: got %v, want UTC in whole microseconds", now)
		insert := "INSERT INTO model_calibrations (model, factor, deviation, samples, updated_at) VALUES (?, 1, 0, 0, ?)"
		// The same moment in another zone: it must be found by a question in UTC.
		at := time.Date(2026, 3, 1, 23, 30, 0, 120_000, time.FixedZone("x", -5*3600))
		must.Do(t, g.Exec(insert, "a", at).Error)
		var n int
		for _, bound := range []time.Time{at.UTC().Add(-time.Microsecond), at.Add(-time.Hour)} {
			if err := g.Raw("SELECT COUNT(*) FROM model_calibrations WHERE updated_at > ?", bound).Scan(&n).Error; err != nil || n != 1 {
				t.Errorf("after %v: got %d rows, %v, want 1", bound, n, err)
			}
		}
		compare.Error(t, "same key", gorm.ErrDuplicatedKey, g.Exec(insert, "a", at).Error)
		orphan := "INSERT INTO tool_executions (run_id, call_id, session_id, owner, attempt, tool, started_at) VALUES (?, 'c', ?, 'ann', 1, 'x', ?)"
		id := core.NewID[string]()
		compare.Error(t, "orphan", gorm.ErrForeignKeyViolated, g.Exec(orphan, id, id, at).Error)
	})
}

func TestStatementsAreCountedAndLoggedWithoutValues(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		var out bytes.Buffer // written by this goroutine only
		d := must.Get(db.Open(t.Context(), url, slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))))(t)
		defer func() { _ = d.Close() }()
		var got string
		for range 3 {
			err := d.Gorm.WithContext(t.Context()).Raw("SELECT CAST(? AS text)", "s3cret").Scan(&got).Error
			must.True(t, err == nil && got == "s3cret", "select: got %q, %v", got, err)
		}
		compare.Equal(t, "statements", 3, d.Statements())
		compare.True(t, strings.Contains(out.String(), "SELECT CAST(") && !strings.Contains(out.String(), "s3cret"), "log: got %s, want the statement without its value", out.String())
	})
}

// A canceled caller leaves the line; the next one is served.
func TestSQLiteWritersWaitInLine(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	tx := d.Gorm.WithContext(t.Context()).Begin()
	if tx.Error != nil {
		t.Fatal(tx.Error)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	compare.Error(t, "begin, canceled", context.Canceled, d.Gorm.WithContext(ctx).Begin().Error)
	write := func(ctx context.Context) error {
		return d.Gorm.WithContext(ctx).Exec("DELETE FROM model_calibrations").Error
	}
	compare.Error(t, "write, canceled", context.Canceled, write(ctx))
	var n int
	compare.Error(t, "a reader beside the writer", nil, d.Gorm.WithContext(t.Context()).Raw("SELECT COUNT(*) FROM sessions").Scan(&n).Error)
	compare.Error(t, "rollback", nil, tx.Rollback().Error)
	compare.Error(t, "write afterwards", nil, write(t.Context()))
}

// The operator's error is one line, without the password and without repetitions.
func TestOpenTellsThatPostgresIsNotThere(t *testing.T) {
	t.Parallel()
	_, err := db.Open(t.Context(), "postgres://user:s3cret@127.0.0.1:1/x", discard())
	must.True(t, errors.Is(err, core.ErrUnavailable), "got %v, want an ErrUnavailable", err)
	text := err.Error()
	compare.True(t, !strings.Contains(text, "\n") && !strings.Contains(text, "s3cret") && strings.Contains(text, "127.0.0.1:1"), "got %q, want one line with the address", text)
}

// Of several processes one has a name; others learn which one has it, and that there are
// others. Names of other replicas, and all names on SQLite, are free.
func TestHoldName(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		var log bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&log, nil))
		first, _ := db.OpenReplicaName(t.Context(), d, logger, "a")
		other, _ := db.OpenReplicaName(t.Context(), d, logger, "b")
		compare.Equal(t, "warnings at two names", "", log.String())
		other.WarnOfOthers(t.Context())
		compare.Equal(t, "warnings of others", d.Dialect() == "postgres", strings.Contains(log.String(), "others=1"))
		var locked *db.ReplicaLockedError
		err := db.CheckReplicaName(t.Context(), d, "a")
		isLocked := errors.As(err, &locked) && locked.Who == first.Start() && !locked.Since.IsZero()
		compare.Equal(t, "the first one has the name", d.Dialect() == "postgres", isLocked)
		must.Do(t, first.Release())
		for db.CheckReplicaName(t.Context(), d, "a") != nil { // the database lets go a moment after the connection is closed
			must.Do(t, t.Context().Err())
		}
		must.Do(t, other.Release())
	})
}

// A database that does not exist is named, with how to make it.
func TestDatabaseThatDoesNotExist(t *testing.T) {
	t.Parallel()
	at := must.Get(url.Parse(dbtest.PostgresURL(t)))(t)
	at.Path = "/nosuch"
	d, err := db.Open(t.Context(), at.String(), slog.New(slog.DiscardHandler))
	if err == nil {
		_ = d.Close()
	}
	compare.True(t, errors.Is(err, core.ErrUnavailable) && strings.Contains(err.Error(), "create it, for example with: createdb nosuch"), "got %v, want a hint to create it", err)
}

// A replica's name whose connection is lost is taken again, or by another process, about which
// it warns once.
func TestReplicaNameIsKept(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	var log bytes.Buffer
	n, _ := db.OpenReplicaName(t.Context(), d, slog.New(slog.NewTextHandler(&log, nil)), "a")
	lose := func() {
		t.Helper()
		must.Do(t, d.Gorm.Exec("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = ?", "bobbin "+n.Start()).Error)
	}
	lose()
	compare.True(t, n.CheckHeld(t.Context()) && log.Len() == 0, "the name was not taken again: %s", &log)
	lose()
	twin, _ := db.OpenReplicaName(t.Context(), d, slog.New(slog.DiscardHandler), "a")
	compare.True(t, twin.CheckHeld(t.Context()) && !n.CheckHeld(t.Context()) && !n.CheckHeld(t.Context()) && strings.Count(log.String(), "same replica name") == 1, "want one warning: %s", &log)
	must.Do(t, twin.Release())
	for !n.CheckHeld(t.Context()) { // the database lets go a moment later
		must.Do(t, t.Context().Err())
	}
	must.Do(t, n.Release())
}

// The runs of a process that has died are free, before their leases have expired. Those of a process that only
// lost its connection are not, nor those of one that nobody has seen since the database restarted.
func TestRunsOfDeadReplicasAreFree(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	open := func(name string) (*db.ReplicaName, string) {
		return db.OpenReplicaName(t.Context(), d, slog.New(slog.DiscardHandler), name)
	}
	watcher, _ := open("watcher")
	other, worker := open("other")
	lose := func(names ...*db.ReplicaName) {
		t.Helper()
		for _, n := range names {
			must.Do(t, d.Gorm.Exec("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = ?", "bobbin "+n.Start()).Error)
		}
	}
	session := must.Get(repositories.NewSessions(d.Gorm).Create(t.Context(), core.Session{Owner: "ann", Agent: "assistant"}))(t)
	runs := repositories.NewRuns(d.Gorm)
	must.Get(runs.Accept(t.Context(), core.Tenant{Owner: "ann"}, core.AcceptRun{SessionID: session.ID, Agent: "assistant", Worker: worker, Input: core.RunInput{Content: "hello"}}))(t)
	check := func(when string, times int, want map[int]int) {
		t.Helper()
		for range times {
			compare.Equal(t, when+": the watcher has its name", true, watcher.CheckHeld(t.Context()))
		}
		compare.Equal(t, when+": free runs by their deaths", want, must.Get(runs.Due(t.Context(), "third/1", false))(t))
	}
	check("both live", 2, map[int]int{})
	lose(other)
	check("a connection is lost", 3, map[int]int{})
	other.CheckHeld(t.Context())
	check("it is there again", 8, map[int]int{})
	lose(watcher, other)
	check("the database has restarted", 8, map[int]int{})
	other.CheckHeld(t.Context())
	check("both live again", 1, map[int]int{})
	lose(other)
	check("one has died", 4, map[int]int{1: 1})
	must.Do(t, watcher.Release())
}

// A reader of an old state keeps bytes in SQLite's log: Compact waits for it, and
// takes them out as soon as it ends.
func TestCompactWaitsForReaders(t *testing.T) {
	t.Parallel()
	address := dbtest.SQLiteURL(t)
	d, other := dbtest.Open(t, address), dbtest.Open(t, address)
	must.Do(t, d.Migrate(t.Context()))
	for _, stmt := range []string{"CREATE TABLE x (content TEXT)", "INSERT INTO x VALUES ('thesecret')"} {
		must.Do(t, d.Gorm.Exec(stmt).Error)
	}
	pool := must.Get(other.Gorm.DB())(t)
	conn, err := pool.Conn(t.Context())
	must.Do(t, err)
	defer conn.Close()
	var n int
	for _, stmt := range []string{"BEGIN", "SELECT COUNT(*) FROM x"} {
		if stmt == "BEGIN" {
			_, err = conn.ExecContext(t.Context(), stmt)
		} else {
			err = conn.QueryRowContext(t.Context(), stmt).Scan(&n)
		}
		must.Do(t, err)
	}
	must.Do(t, d.Gorm.Exec("DELETE FROM x").Error)
	short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := d.Compact(short, nil); err == nil || !errors.Is(err, context.DeadlineExceeded) && !strings.Contains(err.Error(), "interrupt") {
		t.Errorf("while somebody reads: got %v, want it to wait", err)
	}
	must.Get(conn.ExecContext(t.Context(), "ROLLBACK"))(t)
	must.Get(d.Compact(t.Context(), nil))(t)
	files, err := filepath.Glob(strings.TrimPrefix(address, "sqlite://") + "*")
	must.True(t, err == nil && len(files) != 0, "files: %v, %v", files, err)
	for _, file := range files {
		data := must.Get(os.ReadFile(file))(t)
		compare.True(t, !bytes.Contains(data, []byte("thesecret")), "%s, or what was deleted is in it", file)
	}
}

// On PostgreSQL the program's user need not be a superuser; Compact reports what it may not
// do.
func TestCompactWithoutSuperuser(t *testing.T) {
	t.Parallel()
	address := dbtest.PostgresURL(t)
	admin := dbtest.Open(t, address)
	role := "bobbin_" + strings.ReplaceAll(core.NewID[string](), "-", "")
	for _, stmt := range []string{"CREATE ROLE " + role + " LOGIN", "GRANT CREATE, USAGE ON SCHEMA public TO " + role} {
		must.Do(t, admin.Gorm.Exec(stmt).Error)
	}
	t.Cleanup(func() {
		if err := admin.Gorm.Exec("DROP OWNED BY " + role).Error; err == nil {
			_ = admin.Gorm.Exec("DROP ROLE " + role) // the cluster goes anyway
		}
	})
	u := must.Get(url.Parse(address))(t)
	u.User = url.User(role)
	d := dbtest.Open(t, u.String())
	for _, stmt := range []string{
		"CREATE TABLE x (content text)", "INSERT INTO x SELECT 'thesecret' FROM generate_series(1, 100)", "ANALYZE x", "DELETE FROM x",
	} {
		must.Do(t, d.Gorm.Exec(stmt).Error)
	}
	notes := must.Get(d.Compact(t.Context(), []string{"x"}))(t)
	if !slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "checkpoint") }) ||
		!slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "pg_statistic") }) {
		t.Errorf("notes: %q, want what this user may not do", notes)
	}
	var samples int
	if err := d.Gorm.Raw("SELECT COUNT(*) FROM pg_stats WHERE tablename = 'x'").Scan(&samples).Error; err != nil || samples != 0 {
		t.Errorf("samples of the empty table: %d, %v, want none", samples, err)
	}
}

// A statement whose caller goes away costs no connection.
func TestCanceledStatementsKeepTheirConnection(t *testing.T) {
	t.Parallel()
	url := dbtest.PostgresURL(t)
	d, observer := dbtest.Open(t, url), dbtest.Open(t, url)
	d.Pool().SetMaxOpenConns(1)
	number := func(d *db.DB, query string, args ...any) (n int) {
		t.Helper()
		must.Do(t, d.Gorm.Raw(query, args...).Scan(&n).Error)
		return n
	}
	const backend = "SELECT pg_backend_pid()"
	first := number(d, backend)
	for range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = d.Gorm.WithContext(ctx).Exec("SELECT 1 FROM pg_sleep(0.04)").Error // none if it ended before it was canceled
		}()
		for !isClosed(done) && number(observer, "SELECT COUNT(*) FROM pg_stat_activity WHERE pid = ? AND state = 'active'", first) == 0 {
			runtime.Gosched() // until the statement is at work
		}
		cancel()
		<-done
		compare.Equal(t, "backend after a cancel", first, number(d, backend))
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Of several hosts the one that takes writes is taken, unless the URL says otherwise.
func TestHostThatTakesWritesIsTaken(t *testing.T) {
	t.Parallel()
	raw := dbtest.MigratedPostgresURL(t)
	standby := host(t, pgproxy.NewReadOnly(t, raw).URL)
	both := strings.Replace(raw, host(t, raw), standby+","+host(t, raw), 1)
	for also, readOnly := range map[string]bool{"": false, "&target_session_attrs=any": true} {
		d := must.Get(db.Open(t.Context(), both+also, slog.New(slog.DiscardHandler)))(t)
		compare.Equal(t, fmt.Sprintf("%q: read-only", also), readOnly, must.Get(d.Inspect(t.Context()))(t).ReadOnly)
		must.Do(t, d.Close())
	}
}

func host(t *testing.T, raw string) string {
	t.Helper()
	u := must.Get(url.Parse(raw))(t)
	return u.Host
}

// Only a connection to another machine that checks who answers is verified.
func TestIsUnverified(t *testing.T) {
	t.Setenv("PGSSLMODE", "")
	for url, want := range map[string]bool{
		"sqlite://bobbin.db":                                               false,
		"postgres://u:p@127.0.0.1:5432/x":                                  false,
		"postgres://u:p@localhost/x?sslmode=disable":                       false,
		"postgres://u:p@[::1]/x":                                           false,
		"postgres:///x?host=/var/run/postgresql":                           false,
		"postgres://u:p@db.example/x":                                      true,
		"postgresql://u:p@db.example/x?sslmode=disable":                    true,
		"postgres://u:p@db.example/x?sslmode=prefer":                       true,
		"postgres://u:p@db.example/x?sslmode=require":                      true,
		"postgres://u:p@db.example/x?sslmode=verify-ca":                    false,
		"postgres://u:p@db.example/x?sslmode=verify-full":                  false,
		"postgres://u:p@db.example/x?sslrootcert=system":                   false,
		"postgres://u:p@127.0.0.1,db.example/x":                            true,
		"postgres://u:p@127.0.0.1:5432,db.example:5/x?sslmode=verify-full": false,
	} {
		compare.Equal(t, url, want, db.IsUnverified(url))
	}
}
