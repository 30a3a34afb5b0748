package repositories_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

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
