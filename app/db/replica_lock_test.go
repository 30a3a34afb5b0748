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
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// Of several processes one has a name; another gets an error that names the first, and gets
// the name when the first has released it. Names of other replicas, and all names on
// SQLite, are free. Others counts the other processes.
func TestHoldName(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		first := must.Get(d.LockReplica(t.Context(), "a", "first"))(t)
		other, err := d.LockReplica(t.Context(), "b", "two")
		if err != nil || other.Check(t.Context()) != nil {
			t.Errorf("another name: %v", err)
		}
		compare.Equal(t, "n: want the one on PostgreSQL", map[string]int{"postgres": 1, "sqlite": 0}[d.Dialect()], must.Get(other.Others(t.Context()))(t))
		second, err := d.LockReplica(t.Context(), "a", "three")
		var taken *db.ReplicaLockedError
		if d.Dialect() == "postgres" && (!errors.As(err, &taken) || taken.Who != "first" || taken.Since.IsZero() || second != nil) {
			t.Errorf("the same name: got %v, want that first has it", err)
		}
		if d.Dialect() == "sqlite" && err != nil {
			t.Errorf("SQLite: %v", err)
		}
		must.Do(t, errors.Join(first.Check(t.Context()), first.Close(), second.Close(), other.Close()))
		if d.Dialect() == "postgres" && first.Check(t.Context()) == nil {
			t.Error("a name that was given back is held")
		}
		for { // the database lets go a moment after the connection is closed
			third, err := d.LockReplica(t.Context(), "a", "four")
			if err == nil {
				must.Do(t, third.Close())
				return
			}
			if !errors.As(err, &taken) {
				t.Fatal(err)
			}
		}
	})
}

// What a process that was killed held is free.
func TestNameOfADeadProcess(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	must.Get(d.LockReplica(t.Context(), "a", "one"))(t)
	must.Do(t, d.Gorm.Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'bobbin one'").Error)
	var taken *db.ReplicaLockedError
	for {
		n, err := d.LockReplica(t.Context(), "a", "two")
		if err == nil {
			must.Do(t, n.Close())
			return
		}
		if !errors.As(err, &taken) {
			t.Fatal(err)
		}
	}
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
	if !errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), "create it, for example with: createdb nosuch") {
		t.Errorf("got %v, want a hint to create it", err)
	}
}

// A replica's name whose connection is lost is taken again; while another process has it
// that is told once.
func TestReplicaNameIsKept(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	var log bytes.Buffer
	n, _ := db.OpenReplicaName(t.Context(), d, slog.New(slog.NewTextHandler(&log, nil)), "a")
	if n.Held() == nil {
		t.Fatalf("a free name was not taken: %s", &log)
	}
	lose := func() {
		t.Helper()
		must.Do(t, d.Gorm.Exec("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = ?", "bobbin "+n.Start()).Error)
	}
	lose()
	n.CheckHeld(t.Context())
	if n.Held() == nil || n.Held().Check(t.Context()) != nil || log.Len() != 0 {
		t.Errorf("the name was not taken again: %s", &log)
	}
	lose()
	twin := must.Get(db.WaitForReplica(t.Context(), d, "a", "two"))(t)
	n.CheckHeld(t.Context())
	n.CheckHeld(t.Context())
	if n.Held() != nil || strings.Count(log.String(), "same replica name") != 1 {
		t.Errorf("want one warning: %s", &log)
	}
	must.Do(t, twin.Close())
	for n.Held() == nil { // the database lets go a moment later
		n.CheckHeld(t.Context())
	}
	must.Do(t, n.Release())
}
