package repositories_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"bobbin/app/core"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// A message is accepted in a second attempt after a deadlock: it refers to two files while
// another user deletes a message with the same two.
func TestAcceptAfterADeadlock(t *testing.T) {
	t.Parallel()
	url := dbtest.PostgresURL(t)
	s := open(dbtest.Open(t, url))
	must.Do(t, s.Migrate(t.Context()))
	first, second := s.upload(t, "", "a.txt", "a"), s.upload(t, "", "b.txt", "b")
	other := must.Get(pgx.Connect(t.Context(), url))(t)
	defer func() { _ = other.Close(context.WithoutCancel(t.Context())) }()
	exec := func(stmt string, args ...any) {
		t.Helper()
		if _, err := other.Exec(t.Context(), stmt, args...); err != nil {
			t.Fatalf("%s: %v", stmt, err)
		}
	}
	exec("SET deadlock_timeout = '30s'") // the other side is the one that finds out
	exec("BEGIN")
	exec("SELECT id FROM blobs WHERE id = $1 FOR UPDATE", second.ID)
	in := ask(s.session(t).ID, "look")
	in.Input.Parts = []core.Part{first.Part(), second.Part()}
	accepted := make(chan error, 1)
	go func() {
		_, err := s.runs.Accept(t.Context(), ann(), in)
		accepted <- err
	}()
	for waits := 0; waits == 0; { // until it has the first file and waits for the second
		if err := other.QueryRow(t.Context(), "SELECT COUNT(*) FROM pg_locks WHERE NOT granted AND pid IN (SELECT pid FROM pg_stat_activity WHERE datname = current_database())").Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
	exec("SELECT id FROM blobs WHERE id = $1 FOR UPDATE", first.ID)
	exec("COMMIT")
	select {
	case err := <-accepted:
		if err != nil {
			t.Errorf("accept: %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the message is still not accepted")
	}
}
