package repositories_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// growthVariable is the environment's number of sessions.
const growthVariable = "BOBBIN_TEST_GROWTH"

// mostRead bounds the rows that a statement may read, however long the history is: some
// pages of the largest size.
const mostRead = 1500

// mostReadOf returns how many rows the statements of a question may read: of some there
// is another bound.
func mostReadOf(name string) float64 {
	switch {
	case strings.HasPrefix(name, "usage by"):
		return 7000 // 31 days of 97 users and their sum, and as many before
	case name == "deliveries that wait, counted":
		return 20_000
	}
	return mostRead
}

// No query of the API, of a turn, of a sweep, of retention or of a limit reads rows in
// proportion to the stored history: every statement reads at most mostRead rows, of tables
// that have many times more.
func TestNothingReadsInProportionToHistory(t *testing.T) {
	t.Parallel()
	n := 2 * mostRead
	if text := os.Getenv(growthVariable); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := &bigHistory{store: open(d), n: n}
		h.load(t)
		for name, do := range h.questions(t) {
			began := time.Now()
			asked := h.recorded(t, func() {
				compare.Error(t, name, nil, do(t.Context()))
			})
			t.Logf("%-40s %8.1f ms, %d statements", name, float64(time.Since(began).Microseconds())/1000, len(asked))
			compare.True(t, len(asked) != 0, "%s: no statement was recorded", name)
			for _, q := range asked {
				h.wantBounded(t, name, q)
			}
		}
	})
}

// wantBounded checks the rows that a statement reads. PostgreSQL counts them; on SQLite no
// plan may scan a table or sort its result.
func (h *bigHistory) wantBounded(t *testing.T, name string, q statement) {
	t.Helper()
	if strings.HasPrefix(q.text, "INSERT INTO") && !strings.Contains(q.text, "SELECT") {
		return
	}
	if h.Dialect() == "sqlite" {
		plan := h.plan(t, q)
		for _, line := range strings.Split(plan, "\n") {
			if strings.Contains(line, "VIRTUAL TABLE") { // the parts of one row
				continue
			}
			walks := strings.Contains(line, " USING INDEX ") && strings.Contains(q.text, "LIMIT") && !strings.Contains(plan, "TEMP B-TREE")
			compare.True(t, !bigTables.MatchString(line) || walks || smallIndexes.MatchString(line), "%s looks through a table:\n%s\n%s", name, q.text, plan)
			if strings.Contains(line, " v ") && !strings.Contains(line, "(session_id=? AND message_id<?)") {
				t.Errorf("%s looks through all vectors, or sorts them:\n%s\n%s", name, q.text, plan)
			}
			if strings.Contains(line, "search_entries_message (message_id=?)") && strings.Contains(q.text, "message_id IS NULL") {
				t.Errorf("%s looks through the titles of all sessions:\n%s\n%s", name, q.text, plan)
			}
			if strings.HasPrefix(name, fewSessions) && strings.Contains(line, " sessions ") && !narrowIndexes.MatchString(line) {
				t.Errorf("%s looks through all sessions of an owner:\n%s\n%s", name, q.text, plan)
			}
		}
		return
	}
	var plans []struct{ Plan planNode }
	text := h.explain(t, "EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) ", q)
	if err := json.Unmarshal([]byte(text), &plans); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if read := plans[0].Plan.read(); read > mostReadOf(name) {
		t.Errorf("%s reads %.0f rows:\n%s\n%s", name, read, q.text, h.explain(t, "EXPLAIN (ANALYZE, TIMING OFF) ", q))
	}
}

// bigTables matches a line of a plan in which a table is looked through that grows with
// a history, by the names that it has in statements.
var bigTables = regexp.MustCompile(`SCAN (sessions|messages|m|l|runs|session_events|e|model_calls|idempotency_keys|idempotency_mentions|deliveries|blobs|blob_contents|blob_references|usage_days)\b`)

// narrowIndexes matches one in which sessions are read by their ids, or from an index of few.
var narrowIndexes = regexp.MustCompile(`INDEX (sqlite_autoindex_sessions_1|sessions_pinned|sessions_user_pinned)\b`)

// smallIndexes matches one in which an index of runs that have not ended is.
var smallIndexes = regexp.MustCompile(`INDEX (runs_leases|runs_queued|runs_unfinished|runs_one_active)\b`)

// planNode is a step of a plan that was carried out.
type planNode struct {
	Type    string     `json:"Node Type"`
	Rows    float64    `json:"Actual Rows"`
	Loops   float64    `json:"Actual Loops"`
	Removed float64    `json:"Rows Removed by Filter"`
	Recheck float64    `json:"Rows Removed by Index Recheck"`
	Plans   []planNode `json:"Plans"`
}

// read returns how many rows of tables the step read.
func (p planNode) read() float64 {
	sum := 0.0
	if strings.Contains(p.Type, "Scan") && !strings.HasPrefix(p.Type, "CTE") && !strings.HasPrefix(p.Type, "Subquery") && !strings.HasPrefix(p.Type, "WorkTable") {
		sum = (p.Rows + p.Removed + p.Recheck) * p.Loops
	}
	for _, child := range p.Plans {
		sum += child.read()
	}
	return sum
}

// bigHistory is the database of testdata/history.sql.
type bigHistory struct {
	*store

	n int // sessions
}

// idKind is how ids of a kind begin.
func idKind(kind string) string {
	return "019" + string("abcdef"[strings.Index("SMRCDB", kind)])
}

func numbered(kind string, n int) string {
	return fmt.Sprintf("%s0000-0000-7000-8000-%012x", idKind(kind), n)
}

func (h *bigHistory) sessionID(n int) core.SessionID { return core.SessionID(numbered("S", n)) }
func (h *bigHistory) long() core.SessionID           { return h.sessionID(h.n + 1) }

// turn is one of the long session.
func (h *bigHistory) turn(n int) (run core.RunID, question, answer core.MessageID) {
	message := 10*h.n + 2*n
	return core.RunID(numbered("R", 5*h.n+n)), core.MessageID(numbered("M", message-1)), core.MessageID(numbered("M", message))
}

// load has the database write the history.
func (h *bigHistory) load(t *testing.T) {
	t.Helper()
	text := must.Get(os.ReadFile("testdata/history.sql"))(t)
	for _, stmt := range strings.Split(string(text), ";\n") {
		if stmt = h.translated(stmt); stmt != "" {
			h.exec(t, stmt)
		}
	}
	if h.Dialect() == "postgres" { // which does so by itself; SQLite never has statistics
		h.exec(t, "ANALYZE")
	}
}

// translated puts into a statement what its placeholders stand for.
func (h *bigHistory) translated(stmt string) string {
	stmt = regexp.MustCompile(`(?m)^--.*\n`).ReplaceAllString(stmt, "")
	id, at, json, day, bytes := "CAST('%s0000-0000-7000-8000-' || lpad(to_hex(%s), 12, '0') AS uuid)", "(now() - (%s) * interval '1 second')",
		"CAST(%s AS json)", "to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD')", `'\x78'::bytea`
	if h.Dialect() == "sqlite" {
		id, at = "('%s0000-0000-7000-8000-' || printf('%%012x', %s))", "strftime('%%Y-%%m-%%d %%H:%%M:%%f+00:00', 'now', (-1 * (%s)) || ' seconds')"
		json, day, bytes = "%s", "substr(created_at, 1, 10)", "x'78'"
	}
	stmt = regexp.MustCompile(`ROWS\[([^\]]*)\]`).ReplaceAllString(stmt, "WITH RECURSIVE k (k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM k WHERE k < $1)")
	stmt = regexp.MustCompile(`\b([SMRCDBTJ])\[([^\]]*)\]`).ReplaceAllStringFunc(stmt, func(found string) string {
		kind, expr := found[:1], found[2:len(found)-1]
		switch kind {
		case "T":
			return fmt.Sprintf(at, expr)
		case "J":
			return fmt.Sprintf(json, expr)
		}
		return fmt.Sprintf(id, idKind(kind), expr)
	})
	stmt = strings.NewReplacer("DAY", day, "BYTES", bytes).Replace(stmt)
	return strings.TrimSpace(regexp.MustCompile(`\bN\b`).ReplaceAllString(stmt, strconv.Itoa(h.n)))
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
		must.True(t, err == nil, "record %s: %v", what, err)
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
	must.True(t, err == nil, "explain %s: %v", q.text, err)
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
