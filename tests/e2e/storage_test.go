package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"bobbin/app"
	"bobbin/app/api/handlers"
	operations "bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/ops"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/process"
	"bobbin/tests/provider"
)

// Without NATS a replica serves all the same: it is ready, and says that it is degraded.
func TestReadyWithoutNATS(t *testing.T) {
	t.Parallel()
	h := apptest.New(t, dbtest.MigratedPostgresURL(t), func(c *config.Config) { c.NATS.URL = config.NewSecret("nats://127.0.0.1:1") })
	awaitReadiness(t, h, http.StatusOK, `"status":"degraded"`)
	awaitReadiness(t, h, http.StatusOK, `"nats":"not connected`)
	compare.Equal(t, "without NATS", core.RunSucceeded, must.Get(apptest.SendAndWait(t.Context(), h, core.SendMessage{SessionID: apptest.NewSession(t, h.Client, operations.NewSession{}), Content: "hello"}))(t).Run.Status)
}

// A database that answers and takes no writes makes the server unready. Whoever wants
// something stored is told to come again, and nothing internal. The run at work ends well.
func TestReadOnlyDatabase(t *testing.T) {
	t.Parallel()
	url := dbtest.MigratedPostgresURL(t)
	p, gate := newHolding(t)
	h := apptest.New(t, url, apptest.WithModel("house", 8192, 2048, p))
	id := apptest.NewSession(t, h.Client, operations.NewSession{})
	run := must.Get(apptest.SendAsync(t.Context(), h, core.SendMessage{SessionID: id, Content: "hold this"}))(t)
	<-gate.arrived
	setReadOnly(t, url, true)
	refused(t, h, "database_read_only")
	awaitReadiness(t, h, http.StatusServiceUnavailable, `"field":"database","detail":"the database is currently read-only`)
	compare.Error(t, "read: want the session", nil, compare.ErrorOf(client.Call(t.Context(), h, operations.GetSession, operations.InSession{SessionID: id})))
	gate.open()
	setReadOnly(t, url, false)
	awaitReadiness(t, h, http.StatusOK, `"database":"ok"`)
	compare.Equal(t, "run", core.RunSucceeded, apptest.ReadTurn(t, h.WatchRun(t.Context(), run.ID, core.Cursor{})).Run.Status)
}

// setReadOnly makes the database take no writes from now on, as a standby after a failover
// does, or take them again.
func setReadOnly(t *testing.T, url string, on bool) {
	t.Helper()
	alterDatabase(t, url, fmt.Sprintf("SET default_transaction_read_only = %t", on), true)
}

// alterDatabase alters the database from outside of it, and breaks its connections if that is wanted.
func alterDatabase(t *testing.T, raw, change string, breaks bool) {
	t.Helper()
	u := must.Get(url.Parse(raw))(t)
	name := strings.TrimPrefix(u.Path, "/")
	u.Path = "/postgres"
	conn := must.Get(pgx.Connect(t.Context(), u.String()))(t)
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	must.Get(conn.Exec(t.Context(), "ALTER DATABASE "+name+" "+change))(t)
	if breaks {
		must.Get(conn.Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+name+"'"))(t)
	}
}

// refused sends requests that store something until they are refused with the code, and
// checks what is told then.
func refused(t *testing.T, h *apptest.Bobbin, code string) {
	t.Helper()
	for limit := time.Now().Add(apptest.Patience); ; {
		_, err := client.Call(t.Context(), h, operations.CreateSession, operations.NewSession{Instructions: strings.Repeat("x", 16<<10)})
		problem, _ := errors.AsType[*client.ProblemError](err)
		switch {
		case problem != nil && problem.Code == code:
			compare.True(t, problem.Status == http.StatusServiceUnavailable && problem.RetryAfter > 0, "got %+v, want 503 with a time", problem)
			return
		case err != nil && (problem == nil || problem.Code != "database_unavailable") || time.Now().After(limit):
			t.Fatalf("got %v, want %s in the end", err, code)
		}
	}
}

// A database that is gone, or of an older schema, makes the server unready, and one that is back
// ready again; meanwhile the process lives.
func TestReadyWithoutDatabase(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		h := apptest.New(t, url)
		id := apptest.NewSession(t, h.Client, operations.NewSession{})
		const older = "UPDATE goose_db_version SET version_id = -version_id"
		must.Do(t, dbtest.Open(t, url).Gorm.Exec(older).Error)
		awaitReadiness(t, h, http.StatusServiceUnavailable, `"field":"migrations"`)
		must.Do(t, dbtest.Open(t, url).Gorm.Exec(older).Error)
		awaitReadiness(t, h, http.StatusOK, `"migrations":"ok"`)
		back := takeAway(t, url)
		awaitReadiness(t, h, http.StatusServiceUnavailable, `"field":"database"`)
		if status, _, _ := followPath(h, "/healthz"); status != http.StatusOK {
			t.Errorf("/healthz answers %d without the database, want 200: a restart would not help", status)
		}
		back()
		awaitReadiness(t, h, http.StatusOK, `"runs":"ok"`)
		process.Await(t, "an answer with the database back", func() bool { // connections that were cut are found out one by one
			a, err := apptest.SendAndWait(t.Context(), h, core.SendMessage{SessionID: id, Content: "Are you back?"})
			return err == nil && a.Run.Status == core.RunSucceeded
		})
	})
}

// takeAway makes the database unreachable, until back is called.
func takeAway(t *testing.T, url string) (back func()) {
	t.Helper()
	if path, ok := strings.CutPrefix(url, "sqlite://"); ok {
		must.Do(t, os.Rename(path, path+".away"))
		return func() {
			must.Do(t, os.Rename(path+".away", path))
		}
	}
	alterDatabase(t, url, "ALLOW_CONNECTIONS false", true)
	return func() { alterDatabase(t, url, "ALLOW_CONNECTIONS true", false) }
}

// becomes waits until the readiness has the status, with the words in the answer.
func awaitReadiness(t *testing.T, h *apptest.Bobbin, want int, words string) {
	t.Helper()
	process.Await(t, fmt.Sprintf("/readyz answers %d %s", want, words), func() bool {
		status, _, body := followPath(h, "/readyz")
		return status == want && strings.Contains(body, words)
	})
}

// One process works on a SQLite file, whatever data folders are named and by whatever
// path; the second one says which process that is. Who only reads it may.
func TestOneProcessOnAFile(t *testing.T) {
	t.Parallel()
	url := dbtest.MigratedSQLiteURL(t)
	h := apptest.New(t, url)
	file := strings.TrimPrefix(url, "sqlite://")
	folder := filepath.Join(t.TempDir(), "link")
	must.Do(t, os.Symlink(filepath.Dir(file), folder))
	quiet := slog.New(slog.DiscardHandler)
	for _, other := range []string{url, "sqlite://" + filepath.Join(folder, filepath.Base(file))} {
		cfg := h.Config
		cfg.DataDir, cfg.Database.URL = t.TempDir(), config.NewSecretURL(other)
		_, started := app.New(t.Context(), cfg, handlers.Build{}, quiet)
		if !errors.Is(started, core.ErrConflict) || !strings.Contains(started.Error(), fmt.Sprintf("process %d uses the database", os.Getpid())) {
			t.Errorf("got %v, want a conflict that names the process", started)
		}
		compare.Error(t, "backup", nil, compare.ErrorOf(ops.Backup(t.Context(), cfg, quiet, filepath.Join(cfg.DataDir, "copy.db"), "test")))
		for _, f := range ops.Doctor(t.Context(), ops.DoctorOptions{Config: cfg, Logger: quiet}).Findings {
			compare.True(t, f.Check != "database" || f.Status == ops.VerdictOK, "doctor: got %+v, want the database sound", f)
		}
	}
	h.Restart() // it may come back to its own file
	apptest.NewSession(t, h.Client, operations.NewSession{})
}

// What was acknowledged before a backup began is in it, though others wrote on while it
// was made; a Bobbin on the copy is sound, and its conversations go on.
func TestBackupUnderLoad(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		model := apptest.WithModel("echo", 8192, 1024, apptest.NewProvider(t, provider.Options{}))
		h := apptest.New(t, url, model)
		quiet := apptest.NewSession(t, h.Client, operations.NewSession{})
		apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: quiet, Content: "Remember the harpsichord."})
		ctx, stop := context.WithCancel(t.Context())
		answers := make(chan core.Message, 10_000)
		var talking sync.WaitGroup
		for who := range 4 {
			id := apptest.NewSession(t, h.Client, operations.NewSession{})
			talking.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					a, err := apptest.SendAndWait(ctx, h, core.SendMessage{SessionID: id, Content: fmt.Sprintf("question %d of %d", n, who)})
					if ctx.Err() == nil && (err != nil || a.Message == nil) {
						t.Errorf("question %d of %d: %v", n, who, err)
						stop()
					} else if ctx.Err() == nil {
						answers <- *a.Message
					}
				}
			})
		}
		await := func(n int) (list []core.Message) {
			for range n {
				select {
				case m := <-answers:
					list = append(list, m)
				case <-ctx.Done():
					t.Fatal("the conversations have ended")
				}
			}
			return list
		}
		known := await(20)
		copied := backUp(t, h, url)
		await(len(answers) + 4) // it went on
		stop()
		talking.Wait()
		want := apptest.ListMessages(t, h.Client, quiet)
		h.Stop()

		restored := apptest.New(t, copied, model)
		logs := map[core.SessionID][]core.Message{}
		for _, answer := range known {
			if logs[answer.SessionID] == nil {
				logs[answer.SessionID] = apptest.ListMessages(t, restored.Client, answer.SessionID)
			}
			if !slices.ContainsFunc(logs[answer.SessionID], func(m core.Message) bool { return m.ID == answer.ID && m.Content == answer.Content }) {
				t.Errorf("message %s (%q) of before the backup is not there", answer.ID, answer.Content)
			}
		}
		if got := apptest.ListMessages(t, restored.Client, quiet); len(got) != len(want) || got[1].Content != want[1].Content {
			t.Errorf("got %d messages of the quiet session, want the %d of before", len(got), len(want))
		}
		apptest.SendMessage(t, restored.Client, core.SendMessage{SessionID: quiet, Content: "And go on."})
		checkup := ops.Doctor(t.Context(), ops.DoctorOptions{Config: restored.Config, Logger: slog.New(slog.DiscardHandler)})
		for _, f := range checkup.Findings {
			if (f.Check == "database" || f.Check == "migrations") && f.Status != ops.VerdictOK {
				t.Errorf("doctor on the copy: %+v", f)
			}
		}
	})
}

// backUp makes a backup with the tools that operators have, while the house works, and
// returns the URL of what was restored from it.
func backUp(t *testing.T, h *apptest.Bobbin, url string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "backup")
	if strings.HasPrefix(url, "sqlite://") {
		must.Get(ops.Backup(t.Context(), h.Config, slog.New(slog.DiscardHandler), file, "test"))(t)
		return "sqlite://" + file
	}
	empty := dbtest.PostgresURL(t)
	for _, args := range [][]string{
		{dbtest.Program(t, "pg_dump"), "--format=custom", "--no-owner", "--file=" + file, url},
		{dbtest.Program(t, "pg_restore"), "--no-owner", "--exit-on-error", "--dbname=" + empty, file},
	} {
		if out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", filepath.Base(args[0]), err, out)
		}
	}
	return empty
}
