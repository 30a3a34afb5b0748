package db_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"bobbin/app/db"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

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
		if err := d.Gorm.Exec("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = ?", "bobbin "+n.Start()).Error; err != nil {
			t.Fatal(err)
		}
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
	if err := n.Release(); err != nil {
		t.Error(err)
	}
}
