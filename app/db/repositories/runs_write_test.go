package repositories_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/commit"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// sameJSON compares JSON columns by what they say: jsonb orders keys anew.
func sameJSON() cmp.Option {
	return cmp.Comparer(func(a, b json.RawMessage) bool {
		var x, y any
		if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
			return len(a) == len(b)
		}
		return cmp.Equal(x, y)
	})
}

// acceptAtOnce sends a message to each of n sessions concurrently, and returns how many
// were accepted. The limit refused the others.
func (s *store) acceptAtOnce(t *testing.T, n int, limit func(*core.AcceptRun)) int {
	t.Helper()
	sessions := make([]core.SessionID, n)
	for i := range sessions {
		sessions[i] = s.session(t).ID
	}
	results := make([]error, n)
	race(n, func(i int) {
		in := ask(sessions[i], fmt.Sprint(i))
		limit(&in)
		// A caller waits for the others a limited time, and then tries again.
		for busy := true; busy; busy = core.IsSessionBusy(results[i]) {
			_, results[i] = s.runs.Accept(t.Context(), ann(), in)
		}
	})
	accepted := 0
	for _, err := range results {
		var refused *core.Error
		switch {
		case err == nil:
			accepted++
		case !errors.As(err, &refused) || refused.Code != core.CodeTooManyRuns:
			t.Errorf("got %v, want it accepted, or refused as too many runs", err)
		}
	}
	return accepted
}

// The limits of an owner's and a user's runs hold for concurrent requests to many sessions.
func TestRunLimitsHoldForRequestsAtOnce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		requests, want int
		limit          func(*core.AcceptRun)
	}{
		"of an owner":           {20, 2, func(in *core.AcceptRun) { in.MaxOwned = 2 }},
		"of an owner, a higher": {160, 130, func(in *core.AcceptRun) { in.MaxOwned = 130 }},
		"of a user":             {30, 2, func(in *core.AcceptRun) { in.User, in.MaxOfUser = "eve", 2 }},
		"of a user, a higher":   {30, 12, func(in *core.AcceptRun) { in.User, in.MaxOfUser, in.MaxOwned = "eve", 12, 1000 }},
		"of both":               {30, 5, func(in *core.AcceptRun) { in.User, in.MaxOfUser, in.MaxOwned = "eve", 9, 5 }},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, s *store) {
				compare.Equal(t, fmt.Sprintf("%d requests at once: accepted", tt.requests), tt.want, s.acceptAtOnce(t, tt.requests, tt.limit))
			})
		})
	}
}

// A message whose session was locked, and that is accepted in a transaction, counts for others until then.
func TestAcceptedAloneCounts(t *testing.T) {
	t.Parallel()
	s := open(dbtest.Postgres(t))
	in := ask(s.session(t).ID, "hello")
	in.User, in.MaxOfUser = "eve", 20
	release := s.hog(t, in.SessionID)
	var sending sync.WaitGroup
	sending.Go(func() { s.accept(t, in) })
	for s.count(t, "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") == 0 && t.Context().Err() == nil {
	}
	table := s.Gorm.Begin()
	must.Do(t, table.Exec("LOCK TABLE runs IN SHARE MODE").Error)
	release()
	for s.count(t, "SELECT COUNT(*) FROM pg_locks WHERE NOT granted AND relation = 'runs'::regclass AND database = (SELECT oid FROM pg_database WHERE datname = current_database())") == 0 && t.Context().Err() == nil {
	}
	compare.Equal(t, "messages that are being accepted", 1, commit.Of(s.Gorm).Count("runs ann / eve", 0))
	table.Rollback()
	sending.Wait()
}

// A write that does not look at the session again finds what has changed since the one before.
func TestKnownWriteFindsChanges(t *testing.T) {
	t.Parallel()
	title := "changed"
	for name, tt := range map[string]struct {
		change     func(t *testing.T, s *store, d *db.DB, run core.Run) error
		deliveries int
		canceled   bool
		alone      bool // nobody else has written to the session
	}{
		"nothing": {change: func(*testing.T, *store, *db.DB, core.Run) error { return nil }, alone: true},
		"the owner's webhook": {deliveries: 1, change: func(t *testing.T, _ *store, d *db.DB, _ core.Run) error {
			return repositories.NewOwnerWebhooks(d.Gorm).Set(t.Context(), "ann", core.Webhook{URL: "https://example.com/hook", Secret: "whsec_c2VjcmV0c2VjcmV0c2VjcmV0"})
		}, alone: true},
		"a cancel": {canceled: true, change: func(t *testing.T, s *store, _ *db.DB, run core.Run) error {
			_, _, err := s.runs.RequestCancel(t.Context(), ann(), run.ID)
			return err
		}, alone: true},
		"the title": {change: func(t *testing.T, s *store, _ *db.DB, run core.Run) error {
			_, _, err := s.sessions.Update(t.Context(), ann(), run.SessionID, core.SessionPatch{Title: &title})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, s *store) {
				a, m := s.accept(t, ask(s.session(t).ID, "hello")), answer("bye")
				must.Do(t, tt.change(t, s, s.DB, a.Run))
				out := s.write(t, core.RunWrite{
					RunID: a.Run.ID, SessionID: a.Run.SessionID, Attempt: 1, Messages: []core.Message{m}, Known: a.Known,
					End: &core.RunEnd{Status: core.RunSucceeded, AnswerID: m.ID},
				})
				end := out.Events[len(out.Events)-1].Data.(core.RunData)
				n := s.count(t, "SELECT COUNT(*) FROM deliveries")
				compare.Equal(t, "deliveries, told", []any{tt.deliveries, n > 0}, []any{n, end.Delivers})
				compare.True(t, end.Run.CancelRequested == tt.canceled && (out.Known != nil) == tt.alone, "got canceled %v and known %v, want %v and %v", end.Run.CancelRequested, out.Known != nil, tt.canceled, tt.alone)
				compare.Equal(t, "the parent", a.Message.ID, out.Messages[0].ParentID)
			})
		})
	}
}
