package repositories_test

import (
	"bobbin/tests/must"
	"fmt"
	"strings"
	"testing"

	"gorm.io/gorm"
)

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
	pool := must.Get(s.Gorm.DB())(t)
	tx := must.Get(pool.BeginTx(t.Context(), nil))(t)
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
	columns := must.Get(rows.Columns())(t)
	var b strings.Builder
	for rows.Next() {
		cells := make([]any, len(columns))
		for i := range cells {
			cells[i] = new(any)
		}
		must.Do(t, rows.Scan(cells...))
		line := *cells[len(cells)-1].(*any) // the last column
		if raw, ok := line.([]byte); ok {
			line = string(raw)
		}
		fmt.Fprintln(&b, line)
	}
	must.Do(t, rows.Err())
	return b.String()
}
