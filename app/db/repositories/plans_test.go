package repositories_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/tests/dbtest"
)

// R7: the cost of a turn does not grow with its session. No statement of a turn may scan a
// whole table, although one session has nearly all of it and the database knows that.
func TestNoStatementOfATurnLooksThroughATable(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		session := s.session(t)
		s.turns(t, session.ID, 300)
		long := core.RunWrite{SessionID: session.ID, RunID: s.accept(t, ask(session.ID, "at length")).Run.ID, Attempt: 1}
		for range 3000 {
			long.Messages = append(long.Messages, answer("a long answer"))
		}
		long.End = &core.RunEnd{Status: core.RunSucceeded}
		s.write(t, long)
		cursor := s.log(t, session.ID)[3580]
		s.exec(t, "ANALYZE")

		seen := s.recorded(t, func() {
			run := s.accept(t, ask(session.ID, "one more")).Run
			if _, err := s.messages.GetMessagesAfter(t.Context(), ann(), session.ID, cursor.ID); err != nil {
				t.Error(err)
			}
			if _, err := s.messages.Pinned(t.Context(), ann(), session.ID); err != nil {
				t.Error(err)
			}
			if _, err := s.runs.Get(t.Context(), ann(), run.ID); err != nil {
				t.Error(err)
			}
			if _, err := s.events.After(t.Context(), session.ID, 4100, 100); err != nil {
				t.Error(err)
			}
			if _, err := s.events.Last(t.Context(), ann(), session.ID); err != nil {
				t.Error(err)
			}
			if _, err := s.events.LastOf(t.Context(), []core.SessionID{session.ID, core.NewID[core.SessionID]()}); err != nil {
				t.Error(err)
			}
			written := s.write(t, core.RunWrite{
				RunID: run.ID, SessionID: session.ID, Attempt: 1, Messages: []core.Message{answer("yes")},
				ModelCalls: []core.ModelCall{{Purpose: core.PurposeAnswer, Model: "m"}},
				End:        &core.RunEnd{Status: core.RunSucceeded},
			})
			if _, err := s.messages.Get(t.Context(), ann(), session.ID, written.Messages[0].ID); err != nil {
				t.Error(err)
			}
		})
		if len(seen) < 14 {
			t.Errorf("got %d statements recorded, want those of a turn", len(seen))
		}
		for _, q := range seen {
			if plan := s.plan(t, q); scans(plan) {
				t.Errorf("looks through a table:\n%s\n%s", q.text, plan)
			}
		}
	})
}

// statement is SQL with its values.
type statement struct {
	text   string
	values []any
}

// recorded returns the statements that f sends.
func (s *store) recorded(t *testing.T, f func()) []statement {
	t.Helper()
	var seen []statement
	record := func(tx *gorm.DB) {
		if tx.DryRun { // a part of another statement
			return
		}
		seen = append(seen, statement{tx.Statement.SQL.String(), append([]any(nil), tx.Statement.Vars...)})
	}
	c := s.Gorm.Callback()
	for what, err := range map[string]error{
		"query":  c.Query().After("gorm:query").Register("record", record),
		"row":    c.Row().After("gorm:row").Register("record", record),
		"raw":    c.Raw().After("gorm:raw").Register("record", record),
		"create": c.Create().After("gorm:create").Register("record", record),
		"update": c.Update().After("gorm:update").Register("record", record),
		"delete": c.Delete().After("gorm:delete").Register("record", record),
	} {
		if err != nil {
			t.Fatalf("record %s: %v", what, err)
		}
	}
	f()
	return seen
}

// plan returns how the database carries the statement out, after those that came
// before it in its transaction.
func (s *store) plan(t *testing.T, q statement, before ...statement) string {
	t.Helper()
	if s.Dialect() == "sqlite" {
		return s.explain(t, "EXPLAIN QUERY PLAN ", q, before...)
	}
	return s.explain(t, "EXPLAIN ", q, before...)
}

// explain is plan in the form that the words before the statement ask for.
func (s *store) explain(t *testing.T, words string, q statement, before ...statement) string {
	t.Helper()
	pool, err := s.Gorm.DB()
	if err != nil {
		t.Fatal(err)
	}
	tx, err := pool.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	for _, b := range before {
		if _, err := tx.ExecContext(t.Context(), b.text, b.values...); err != nil {
			t.Fatalf("%s: %v", b.text, err)
		}
	}
	rows, err := tx.QueryContext(t.Context(), words+q.text, q.values...)
	if err != nil {
		t.Fatalf("explain %s: %v", q.text, err)
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for rows.Next() {
		cells := make([]any, len(columns))
		for i := range cells {
			cells[i] = new(any)
		}
		if err := rows.Scan(cells...); err != nil {
			t.Fatal(err)
		}
		line := *cells[len(cells)-1].(*any) // the last column
		if raw, ok := line.([]byte); ok {
			line = string(raw)
		}
		fmt.Fprintln(&b, line)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// scans reports whether the plan reads all of a table that grows with a session.
func scans(plan string) bool {
	return regexp.MustCompile(`(?m)Seq Scan on (messages|runs|session_events|model_calls)|^\s*SCAN (messages|m|l|runs|session_events|model_calls)\b`).MatchString(plan)
}
