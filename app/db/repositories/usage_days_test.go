package repositories_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// call is a call of a model that costs 7 tokens and $3.
func call(at time.Time) core.ModelCall {
	return core.ModelCall{Agent: "a", Model: "m", Usage: core.Usage{InputTokens: 5, OutputTokens: 2}, Cost: new(int64(3)), CreatedAt: at}
}

// Concurrent usage of many sessions is complete in the sums of the day and of the sessions.
func TestUsageIsExactUnderConcurrency(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		const sessions, each = 12, 5
		var wait sync.WaitGroup
		for i := range sessions {
			id, user := s.session(t).ID, ""
			if i%2 == 0 {
				user = "carol"
			}
			run := s.accept(t, ask(id, "go")).Run
			wait.Go(func() {
				for range each {
					c := call(day(2, 9))
					c.User = user
					if _, err := s.runs.Write(t.Context(), core.RunWrite{RunID: run.ID, SessionID: id, Attempt: 1, ModelCalls: []core.ModelCall{c, c}}); err != nil {
						t.Errorf("write: %v", err)
					}
				}
				if got, err := s.modelCalls.SessionTotal(t.Context(), ann(), id); err != nil || got.Calls != 2*each || got.CostMicroUSD != 2*each*3 {
					t.Errorf("session: got %+v, %v", got, err)
				}
			})
		}
		wait.Wait()
		const calls = sessions * each * 2
		if got, err := s.modelCalls.Spent(t.Context(), "ann", day(2, 0)); err != nil || got != (core.Spent{Tokens: 7 * calls, MicroUSD: 3 * calls}) {
			t.Errorf("spent: got %+v, %v, want %d calls", got, err, calls)
		}
		for tenant, want := range map[core.Tenant]int64{ann(): calls, carol(): calls / 2} {
			q := january()
			q.GroupBy = core.UsageByDay
			got, err := s.modelCalls.Usage(t.Context(), tenant, q)
			if err != nil || got.Total.Calls != want || len(got.Items) != 1 || got.Items[0].Calls != want {
				t.Errorf("%v: got %+v, %v, want %d calls on one day", tenant, got, err, want)
			}
		}
	})
}

// Spans that do not begin or end with a day are exact, too: in every group the same as
// the sum of their calls.
func TestUsageOfPartsOfDays(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		run := s.accept(t, ask(id, "go")).Run
		start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
		var calls []core.ModelCall
		for hour := range 96 {
			calls = append(calls, call(start.Add(time.Duration(hour)*time.Hour)))
		}
		s.write(t, core.RunWrite{RunID: run.ID, SessionID: id, Attempt: 1, ModelCalls: calls})
		for _, span := range [][2]int{{0, 96}, {0, 24}, {3, 5}, {3, 24}, {3, 30}, {20, 80}, {24, 72}, {23, 25}, {0, 1}, {95, 200}} {
			want := int64(min(span[1], 96) - span[0])
			for _, by := range core.UsageGroups() {
				q := core.UsageQuery{GroupBy: by, From: start.Add(time.Duration(span[0]) * time.Hour), To: start.Add(time.Duration(span[1]) * time.Hour)}
				got, err := s.modelCalls.Usage(t.Context(), ann(), q)
				var sum int64
				for _, row := range got.Items {
					sum += row.Calls
				}
				if err != nil || got.Total.Calls != want || sum != want || got.Total.InputTokens != 5*want {
					t.Errorf("hours %v by %s: got %+v, %v, want %d calls", span, by, got, err, want)
				}
			}
		}
	})
}

// Usage by session is paged, sessions that were purged are together at the end, and
// their users are nobody.
func TestUsageAfterPurges(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		var ids []core.SessionID
		for i := range 6 {
			session := must.Get(s.sessions.Create(t.Context(), core.Session{Owner: "ann", UserID: fmt.Sprint("user ", i%2), Agent: "assistant"}))(t)
			run := s.accept(t, ask(session.ID, "go")).Run
			s.write(t, core.RunWrite{RunID: run.ID, SessionID: session.ID, Attempt: 1, ModelCalls: []core.ModelCall{call(day(2, 9))}, End: &core.RunEnd{Status: core.RunSucceeded}})
			ids = append(ids, session.ID)
		}
		purges := repositories.NewPurges(d.Gorm)
		for _, i := range []int{1, 2, 4} {
			must.Get(purges.Session(t.Context(), ids[i], false))(t)
		}
		want := []string{string(ids[5]) + " 1", string(ids[3]) + " 1", string(ids[0]) + " 1", " 3"}
		if got := s.usageKeys(t, core.UsageBySession); !cmp.Equal(got, want) {
			t.Errorf("by session: got %v, want %v", got, want)
		}
		if got, want := s.usageKeys(t, core.UsageByUser), []string{" 3", "user 0 1", "user 1 2"}; !cmp.Equal(got, want) {
			t.Errorf("by user: got %v, want %v", got, want)
		}
		gone, err := purges.User(t.Context(), "ann", "user 1")
		if err != nil || gone.Emptied["usage_days"] != 3 || gone.Emptied["model_calls"] != 2 {
			t.Errorf("purge: got %+v, %v", gone, err)
		}
		if got, want := s.usageKeys(t, core.UsageByUser), []string{" 5", "user 0 1"}; !cmp.Equal(got, want) {
			t.Errorf("by user: got %v, want %v", got, want)
		}
		if n := s.count(t, "SELECT COUNT(*) FROM usage_days WHERE user_id = 'user 1'"); n != 0 {
			t.Errorf("the user's name is still in %d rows", n)
		}
		if got, err := s.modelCalls.Spent(t.Context(), "ann", day(2, 0)); err != nil || got.MicroUSD != 6*3 {
			t.Errorf("spent: got %+v, %v, want that of 6 calls", got, err)
		}
	})
}

// usageKeys returns the keys of all groups with their calls, read in pages of two.
func (s *store) usageKeys(t *testing.T, by core.UsageGroup) (keys []string) {
	t.Helper()
	q := january()
	q.GroupBy, q.Limit = by, 2
	for {
		page := must.Get(s.modelCalls.Usage(t.Context(), ann(), q))(t)
		for _, row := range page.Items {
			keys = append(keys, fmt.Sprint(row.Key, " ", row.Calls))
		}
		if page.NextCursor == nil {
			return keys
		}
		q.Cursor = *page.NextCursor
	}
}
