package api_test

import (
	"strings"
	"testing"
	"time"

	"bobbin/app/api"
	"bobbin/app/core"
	"bobbin/tests/apitest"
)

// Usage is asked for in whole days of UTC unless the caller says otherwise.
func TestUsage(t *testing.T) {
	t.Parallel()
	date := func(text string) time.Time {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	for query, want := range map[string]core.UsageQuery{
		"from=2026-01-01&to=2026-02-01":                                      {GroupBy: core.UsageByDay, From: date("2026-01-01T00:00:00Z"), To: date("2026-02-01T00:00:00Z")},
		"group_by=session&to=2026-02-01T12:00:00%2B01:00&limit=7&cursor=abc": {GroupBy: core.UsageBySession, From: date("2026-01-02T11:00:00Z"), To: date("2026-02-01T11:00:00Z"), PageQuery: core.PageQuery{Limit: 7, Cursor: "abc"}},
		"group_by=user&from=2026-01-01T00:00:00Z&to=2026-01-01T00:00:00.5Z":  {GroupBy: core.UsageByUser, From: date("2026-01-01T00:00:00Z"), To: date("2026-01-01T00:00:00.5Z")},
	} {
		backend := apitest.New()
		opts, _ := options(backend)
		w := do(api.New(opts), request("GET", "/api/v1/usage?"+query, ""))
		calls := backend.Calls()
		if w.Code != 200 || len(calls) != 1 || calls[0].Method != "Usage.Usage" || calls[0].Args[0] != want {
			t.Errorf("%s: got %d and %+v, want %+v", query, w.Code, calls, want)
		}
	}
	backend := apitest.New()
	opts, _ := options(backend)
	do(api.New(opts), request("GET", "/api/v1/usage", ""))
	q, ok := backend.Calls()[0].Args[0].(core.UsageQuery)
	if !ok || q.To.Sub(q.From) != 30*24*time.Hour || q.To.Before(time.Now()) || !q.To.Equal(q.To.Truncate(24*time.Hour)) {
		t.Errorf("got %+v without parameters, want the last 30 days", q)
	}
}

func TestUsageFaults(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"group_by=hour":                 "must be session, user, agent, model or day",
		"from=yesterday":                "must be a day such as 2026-01-31",
		"from=0000-01-01":               "must be a day such as 2026-01-31",
		"to=2026-13-01":                 "must be a day such as 2026-01-31",
		"from=2026-02-01&to=2026-01-01": "must be after from",
		"from=2026-02-01&to=2026-02-01": "must be after from",
		"group=day":                     "group_by",
		"limit=0":                       "must be a whole number from 1 to 200",
	} {
		opts, _ := options(apitest.New())
		w := do(api.New(opts), request("GET", "/api/v1/usage?"+query, ""))
		if w.Code != 422 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: got %d %s, want 422 with %q", query, w.Code, w.Body, want)
		}
	}
}
