package app

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"bobbin/app/db/dbtest"
)

// A replica's name whose connection is lost is taken again; while another process has it
// that is told once.
func TestReplicaNameIsKept(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	var log bytes.Buffer
	n := &replicaName{database: d, log: slog.New(slog.NewTextHandler(&log, nil)), name: "a", start: "one"}
	if !n.wait(t.Context()) {
		t.Fatalf("a free name was not taken: %s", &log)
	}
	lose := func() {
		t.Helper()
		if err := d.Gorm.Exec("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'bobbin one'").Error; err != nil {
			t.Fatal(err)
		}
	}
	lose()
	n.look(t.Context())
	if n.held == nil || n.held.Check(t.Context()) != nil || log.Len() != 0 {
		t.Errorf("the name was not taken again: %s", &log)
	}
	lose()
	twin, err := holdName(t.Context(), d, "a", "two")
	if err != nil {
		t.Fatal(err)
	}
	n.look(t.Context())
	n.look(t.Context())
	if n.held != nil || strings.Count(log.String(), "same replica name") != 1 {
		t.Errorf("want one warning: %s", &log)
	}
	if err := twin.Close(); err != nil {
		t.Fatal(err)
	}
	for n.held == nil { // the database lets go a moment later
		n.look(t.Context())
	}
	if err := n.release(); err != nil {
		t.Error(err)
	}
}
