package repositories_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// day is a time of a day in January 2026, in another zone than UTC.
func day(n, hour int) time.Time {
	return time.Date(2026, 1, n, hour, 30, 0, 0, time.UTC).In(time.FixedZone("", 5*3600))
}

// book records calls of the owner's sessions: two of them, one of carol's.
func (s *store) bookUsage(t *testing.T) (first, second core.SessionID) {
	t.Helper()
	opened := func(user string) (core.SessionID, func(...core.ModelCall)) {
		session := must.Get(s.sessions.Create(t.Context(), core.Session{Owner: "ann", UserID: user, Agent: "assistant"}))(t)
		run := s.accept(t, ask(session.ID, "go")).Run
		return session.ID, func(calls ...core.ModelCall) {
			s.write(t, core.RunWrite{RunID: run.ID, SessionID: session.ID, Attempt: 1, ModelCalls: calls})
		}
	}
	first, one := opened("")
	second, two := opened("carol")
	one(
		core.ModelCall{Purpose: core.PurposeAnswer, Agent: "a", Model: "big", Usage: core.Usage{InputTokens: 100, OutputTokens: 10}, Cost: new(int64(7)), CreatedAt: day(1, 23)},
		core.ModelCall{Purpose: core.PurposeSummary, Agent: "a", Model: "small", Usage: core.Usage{InputTokens: 50, CacheReadTokens: 5, CacheWriteTokens: 4, ReasoningTokens: 3}, CreatedAt: day(2, 0)},
		core.ModelCall{Purpose: core.PurposeAnswer, Agent: "a", Model: "big", Error: "overloaded", Estimated: 99, CreatedAt: day(2, 1)},
	)
	two(
		core.ModelCall{Purpose: core.PurposeTitle, Agent: "b", Model: "small", Usage: core.Usage{InputTokens: 3, OutputTokens: 1}, Cost: new(int64(2)), CreatedAt: day(2, 5)},
		core.ModelCall{Purpose: core.PurposeAnswer, Agent: "b", Model: "mute", Estimated: 40, CreatedAt: day(3, 0)},
	)
	return first, second
}

// usageLines returns a line for each group of the report.
func usageLines(report core.UsageReport) (lines []string) {
	for _, r := range report.Items {
		lines = append(lines, fmt.Sprintf("%s %d %d+%d $%d %d", r.Key, r.Calls, r.InputTokens, r.OutputTokens, r.CostMicroUSD, r.UnpricedCalls))
	}
	return lines
}

func january() core.UsageQuery { return core.UsageQuery{From: day(1, 0), To: day(31, 0)} }

// Usage and cost per session, user, agent, model and day, the same on both databases.
func TestUsage(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		first, second := s.bookUsage(t)
		for by, want := range map[core.UsageGroup][]string{
			core.UsageBySession:  {string(second) + " 2 3+1 $2 1", string(first) + " 3 150+10 $7 1"},
			core.UsageByUser:     {" 3 150+10 $7 1", "carol 2 3+1 $2 1"},
			core.UsageByAgent:    {"a 3 150+10 $7 1", "b 2 3+1 $2 1"},
			core.UsageByModel:    {"big 2 100+10 $7 0", "mute 1 0+0 $0 1", "small 2 53+1 $2 1"},
			core.UsageByDayAgent: {"2026-01-03 b 1 0+0 $0 1", "2026-01-02 b 1 3+1 $2 0", "2026-01-02 a 2 50+0 $0 1", "2026-01-01 a 1 100+10 $7 0"},
			core.UsageByDay:      {"2026-01-03 1 0+0 $0 1", "2026-01-02 3 53+1 $2 1", "2026-01-01 1 100+10 $7 0"},
		} {
			for _, limit := range []int{0, 1, 2} {
				var got []string
				q := january()
				q.GroupBy, q.Limit = by, limit
				for {
					report, err := s.modelCalls.Usage(t.Context(), ann(), q)
					must.True(t, err == nil, "by %s: %v", by, err)
					wantTotal := core.UsageTotal{Calls: 5, InputTokens: 153, OutputTokens: 11, CacheReadTokens: 5, CacheWriteTokens: 4, ReasoningTokens: 3, CostMicroUSD: 9, UnpricedCalls: 2}
					compare.Equal(t, "by: total", []any{wantTotal, by}, []any{report.Total, report.GroupBy})
					got = append(got, usageLines(report)...)
					if report.NextCursor == nil {
						break
					}
					q.Cursor = *report.NextCursor
				}
				compare.Equal(t, fmt.Sprintf("by %s, %d a page", by, limit), want, got)
			}
		}
		q := january()
		q.GroupBy, q.Largest, q.Limit = core.UsageBySession, true, 1
		largest := must.Get(s.modelCalls.Usage(t.Context(), ann(), q))(t)
		compare.Equal(t, "the largest session", []string{string(first) + " 3 150+10 $7 1"}, usageLines(largest))
		compare.True(t, largest.NextCursor == nil && largest.Total.Calls == 5, "the largest session: got cursor %v and total %+v, want one page and the total of all", largest.NextCursor, largest.Total)
		total, err := s.modelCalls.SessionTotal(t.Context(), ann(), second)
		if want := (core.UsageTotal{Calls: 2, InputTokens: 3, OutputTokens: 1, CostMicroUSD: 2, UnpricedCalls: 1}); err != nil || total != want {
			t.Errorf("session: got %+v, error %v, want %+v", total, err, want)
		}
	})
}

// A session gets a generated title once, never over a user's decision.
func TestGiveTitle(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		calls := []core.ModelCall{{Purpose: core.PurposeTitle, Model: "m"}}
		fresh := s.session(t)
		events, err := s.sessions.GiveTitle(t.Context(), ann(), core.NewTitle{SessionID: fresh.ID, Title: "Bees", Calls: calls})
		if err != nil || len(events) != 1 || events[0].Type != core.EventSessionUpdated || events[0].Seq != 1 {
			t.Fatalf("got events %+v, error %v, want session.updated", events, err)
		}
		got := s.get(t, fresh.ID)
		compare.True(t, got.Title == "Bees" && got.TitledAt != nil && got.UpdatedAt.Equal(fresh.UpdatedAt), "got %+v, want the title, and no later activity", got)
		for what, title := range map[string]*string{"has one": nil, "set": new("Mine"), "set to nothing": new("")} {
			session := fresh
			if title != nil {
				session = s.session(t)
				must.Get2(s.sessions.Update(t.Context(), ann(), session.ID, core.SessionPatch{Title: title}))(t)
			}
			want := s.get(t, session.ID).Title
			events, err := s.sessions.GiveTitle(t.Context(), ann(), core.NewTitle{SessionID: session.ID, Title: "Wasps", Calls: calls})
			if got := s.get(t, session.ID).Title; err != nil || len(events) != 0 || got != want {
				t.Errorf("%s: got title %q, events %v, error %v, want %q as before", what, got, events, err, want)
			}
		}
		compare.Equal(t, "calls are booked: want all 4", 4, s.count(t, "SELECT COUNT(*) FROM model_calls WHERE purpose = 'title'"))
		wantNotFound(t, "another's session", compare.ErrorOf(s.sessions.GiveTitle(t.Context(), bob(), core.NewTitle{SessionID: fresh.ID, Title: "x"})))
		race(racers, func(i int) {
			if _, err := s.sessions.GiveTitle(t.Context(), ann(), core.NewTitle{SessionID: fresh.ID, Title: fmt.Sprint(i)}); err != nil {
				t.Errorf("title %d: %v", i, err)
			}
		})
	})
}

// A call without a session counts in the usage and the spending of its owner and user.
func TestCallsWithoutASession(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		for _, user := range []string{"", "carol", "carol"} {
			must.Do(t, s.modelCalls.RecordCall(t.Context(), core.ModelCall{
				ID: core.NewID[string](), Owner: "ann", User: user, Purpose: core.PurposeEmbedding, Model: "embed",
				Usage: core.Usage{InputTokens: 5}, Cost: new(int64(2)), CreatedAt: day(2, 3),
			}))
		}
		for by, want := range map[core.UsageGroup][]string{
			core.UsageBySession: {" 3 15+0 $6 0"},
			core.UsageByUser:    {" 1 5+0 $2 0", "carol 2 10+0 $4 0"},
			core.UsageByModel:   {"embed 3 15+0 $6 0"},
		} {
			q := january()
			q.GroupBy = by
			report, err := s.modelCalls.Usage(t.Context(), core.Tenant{Owner: "ann"}, q)
			if diff := cmp.Diff(want, usageLines(report)); err != nil || diff != "" {
				t.Errorf("by %s (-want +got), error %v:\n%s", by, err, diff)
			}
		}
		compare.Equal(t, "spent", (core.Spent{Tokens: 15, MicroUSD: 6}), must.Get(s.modelCalls.Spent(t.Context(), "ann", day(2, 0)))(t))
	})
}

// call is a call of a model that costs 7 tokens and $3.
func call(at time.Time) core.ModelCall {
	return core.ModelCall{Agent: "a", Model: "m", Usage: core.Usage{InputTokens: 5, OutputTokens: 2}, Cost: new(int64(3)), CreatedAt: at}
}

// Spans that do not begin or end with a day are exact, too: in every group the same as
// the sum of their calls.
func TestUsageOfPartsOfDays(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
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
			for _, by := range usageGroups() {
				q := core.UsageQuery{GroupBy: by, From: start.Add(time.Duration(span[0]) * time.Hour), To: start.Add(time.Duration(span[1]) * time.Hour)}
				got, err := s.modelCalls.Usage(t.Context(), ann(), q)
				var sum int64
				for _, row := range got.Items {
					sum += row.Calls
				}
				compare.True(t, err == nil && got.Total.Calls == want && sum == want && got.Total.InputTokens == 5*want, "hours %v by %s: got %+v, %v, want %d calls", span, by, got, err, want)
			}
		}
	})
}

// usageKeys returns the keys of all groups with their calls, read in pages of two.
func (s *store) usageKeys(t *testing.T, by core.UsageGroup) (keys []string) {
	t.Helper()
	q := january()
	q.GroupBy, q.Limit = by, 2
	for _, row := range all(t, func(cursor string) (core.Page[core.UsageRow], error) {
		q.Cursor = cursor
		report, err := s.modelCalls.Usage(t.Context(), ann(), q)
		return core.Page[core.UsageRow]{Items: report.Items, NextCursor: report.NextCursor}, err
	}) {
		keys = append(keys, fmt.Sprint(row.Key, " ", row.Calls))
	}
	return keys
}

// usageGroups returns all groups.
func usageGroups() []core.UsageGroup {
	return []core.UsageGroup{core.UsageBySession, core.UsageByUser, core.UsageByAgent, core.UsageByModel, core.UsageByDay, core.UsageByDayAgent}
}
