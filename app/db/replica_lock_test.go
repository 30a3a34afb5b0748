package db_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

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
