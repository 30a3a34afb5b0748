package repositories_test

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/tests/must"
)

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
