package repositories_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// All runs of an owner are listed, page by page, with totals: those since a time, and older ones that
// have not ended.
func TestListAllRuns(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		first, second := s.session(t).ID, s.session(t).ID
		s.turns(t, first, 2)
		s.turns(t, second, 1)
		s.accept(t, ask(second, "still at work"))
		s.accept(t, ask(second, "waits its turn"))
		list := func(q core.RunQuery) (got []string, totals core.RunTotals) {
			t.Helper()
			for {
				page := must.Get(s.runs.ListAll(t.Context(), ann(), q))(t)
				for _, r := range page.Items {
					got = append(got, map[core.SessionID]string{first: "first ", second: "second "}[r.SessionID]+string(r.Status))
				}
				if totals = page.Totals; page.NextCursor == nil {
					return got, totals
				}
				q.Cursor = *page.NextCursor
			}
		}
		hour := time.Now().Add(-time.Hour)
		all := []string{"second queued", "second running", "second succeeded", "first succeeded", "first succeeded"}
		for _, limit := range []int{0, 1, 2} {
			got, totals := list(core.RunQuery{From: hour, PageQuery: core.PageQuery{Limit: limit}})
			if diff := cmp.Diff(all, got); diff != "" || totals != (core.RunTotals{Queued: 1, Running: 1, Succeeded: 3}) {
				t.Errorf("%d a page: got totals %+v, runs (-want +got):\n%s", limit, totals, diff)
			}
		}
		if got, _ := list(core.RunQuery{From: hour, Status: core.RunsActive}); !slices.Equal(got, all[:2]) {
			t.Errorf("active: got %q, want %q", got, all[:2])
		}
		oldest := slices.Clone(all)
		slices.Reverse(oldest)
		if got, _ := list(core.RunQuery{From: hour, Oldest: true, PageQuery: core.PageQuery{Limit: 2}}); !slices.Equal(got, oldest) {
			t.Errorf("the oldest first: got %q, want %q", got, oldest)
		}
		if got, totals := list(core.RunQuery{From: hour, Agent: "other"}); len(got) != 0 || totals.Succeeded != 3 {
			t.Errorf("of another agent: got %q, totals %+v, want none, and the totals of all", got, totals)
		}
		if got, totals := list(core.RunQuery{From: time.Now().Add(time.Hour)}); !slices.Equal(got, all[:2]) || totals.Succeeded != 0 {
			t.Errorf("from now on: got %q, %+v, want %q", got, totals, all[:2])
		}
		failing := s.accept(t, ask(s.session(t).ID, "fail")).Run
		s.write(t, core.RunWrite{RunID: failing.ID, SessionID: failing.SessionID, Attempt: 1, End: &core.RunEnd{Status: core.RunFailed, Error: &core.RunError{Code: "model", Message: "out of order"}}})
		for code, want := range map[string]int{"model": 1, "timeout": 0} {
			if got, _ := list(core.RunQuery{From: hour, Error: code}); len(got) != want {
				t.Errorf("failed with %s: got %q, want %d", code, got, want)
			}
		}
		if page := must.Get(s.runs.ListAll(t.Context(), core.Tenant{Owner: "eve"}, core.RunQuery{From: hour}))(t); len(page.Items) != 0 || page.Totals != (core.RunTotals{}) {
			t.Errorf("another owner: got %+v, want nothing", page)
		}
		must.Get(repositories.NewPurges(s.Gorm).Session(t.Context(), first, false))(t)
		if got, _ := list(core.RunQuery{From: hour, Status: core.RunSucceeded}); !slices.Equal(got, []string{"second succeeded"}) {
			t.Errorf("purged: got %q, want those of the second session", got)
		}
	})
}

// Deliveries of all runs are listed by their state, the newest first.
func TestListAllDeliveries(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		session := must.Get(s.sessions.Create(t.Context(), core.Session{Owner: "ann", Agent: "assistant", Webhook: hook("here")}))(t)
		s.turns(t, session.ID, 3)
		deliveries := repositories.NewDeliveries(s.Gorm)
		must.Get2(s.sessions.Update(t.Context(), ann(), session.ID, core.SessionPatch{Title: new("reported")}))(t)
		var got []core.DeliveryID
		q := core.DeliveryQuery{State: core.DeliveryPending, PageQuery: core.PageQuery{Limit: 2}}
		for {
			page := must.Get(deliveries.ListAll(t.Context(), ann(), q))(t)
			for _, d := range page.Items {
				if got = append(got, d.ID); d.Title != "reported" {
					t.Errorf("got title %q, want the session's", d.Title)
				}
			}
			if page.NextCursor == nil {
				break
			}
			q.Cursor = *page.NextCursor
		}
		if len(got) != 3 || !slices.IsSortedFunc(got, func(a, b core.DeliveryID) int { return strings.Compare(string(b), string(a)) }) {
			t.Errorf("got %q, want three, the newest first", got)
		}
		for who, q := range map[string]core.DeliveryQuery{"eve": {}, "ann": {State: core.DeliveryFailed}} {
			compare.Equal(t, fmt.Sprintf("%s, %+v", who, q), 0, len(must.Get(deliveries.ListAll(t.Context(), core.Tenant{Owner: who}, q))(t).Items))
		}
	})
}
