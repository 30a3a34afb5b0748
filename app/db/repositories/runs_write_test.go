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
	"bobbin/tests/dbtest"
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

func (s *store) sessionOf(t *testing.T, id core.SessionID) core.Session {
	t.Helper()
	session, err := s.sessions.Get(t.Context(), ann(), id)
	if err != nil {
		t.Fatalf("get session: %v", err)
	}
	return session
}

// acceptAtOnce sends a message to each of n sessions concurrently, and returns how many
// were accepted. The limit refused the others.
func (s *store) acceptAtOnce(t *testing.T, n int, limit func(*core.AcceptRun)) int {
	t.Helper()
	sessions := make([]core.SessionID, n)
	for i := range sessions {
		sessions[i] = s.session(t).ID
	}
	var wait sync.WaitGroup
	results := make([]error, n)
	begin := make(chan struct{})
	for i, id := range sessions {
		wait.Go(func() {
			in := ask(id, fmt.Sprint(i))
			limit(&in)
			<-begin
			// A caller waits for the others a limited time, and then tries again.
			for busy := true; busy; busy = core.IsSessionBusy(results[i]) {
				_, results[i] = s.runs.Accept(t.Context(), ann(), in)
			}
		})
	}
	close(begin)
	wait.Wait()
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
			t.Parallel()
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				if got := open(d).acceptAtOnce(t, tt.requests, tt.limit); got != tt.want {
					t.Errorf("%d requests at once: got %d accepted, want %d", tt.requests, got, tt.want)
				}
			})
		})
	}
}
