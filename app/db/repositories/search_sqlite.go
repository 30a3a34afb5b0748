package repositories

import (
	"strings"
	"time"

	"bobbin/app/core/searchtext"
	"bobbin/app/db/models"
)

// sqliteEntry is a row of the view search_new: an entry with its words.
type sqliteEntry struct {
	Base      int64 // the n of the first entry of this millisecond
	Owner     string
	SessionID string
	MessageID models.Ref
	CreatedAt time.Time `gorm:"autoCreateTime:false"`
	Words     string
	Parts     string
	Scope     string
}

// TableName is the view's name.
func (sqliteEntry) TableName() string { return "search_new" }

func sqliteEntryOf(e entry, d searchtext.Document) sqliteEntry {
	return sqliteEntry{
		Base: firstOf(e.at), Owner: e.owner, SessionID: e.session, MessageID: e.message, CreatedAt: e.at,
		Words: strings.Join(d.Words, " "), Parts: strings.Join(d.Parts, " "), Scope: strings.Join(e.scopeWords(), " "),
	}
}

// Entries of one millisecond differ in the last entryBits of their n. The
// milliseconds that fit are those of the years 1831 to 2109.
const (
	entryBits = 20
	maxMillis = 1<<(63-entryBits) - 1
)

// firstOf returns the n of the first entry of the time's millisecond. A time that
// does not fit counts as the nearest that does.
func firstOf(t time.Time) int64 {
	return max(min(t.UnixMilli(), maxMillis), -maxMillis) << entryBits
}

// sqliteMatch returns the query for FTS5, narrowed to entries with the scope words.
func sqliteMatch(q searchtext.Query, scope []string) string {
	var all, none []string
	for _, w := range scope {
		all = append(all, `scope : "`+w+`"`)
	}
	for _, t := range q.Terms {
		// Letters, digits, marks and symbols: nothing that ends a quotation.
		term := `"` + strings.Join(t.Words, " ") + `"`
		if t.Prefix {
			term += " *"
		}
		columns := "words : "
		if len(t.Words) == 1 {
			columns = "{words parts} : "
		}
		if t.Not {
			none = append(none, columns+term)
			continue
		}
		all = append(all, columns+term)
	}
	match := "(" + strings.Join(all, " AND ") + ")"
	for _, n := range none {
		match += " NOT (" + n + ")"
	}
	return match
}

// candidatesSQLite goes through the index from its end. CROSS JOIN keeps SQLite to
// the order in which the tables are named.
func (s *searching) candidatesSQLite(n int) ([]found, error) {
	sql := `SELECT e.n, e.created_at AS entry_at, true AS allowed, ` + foundColumns + `
		FROM search_words CROSS JOIN search_entries e CROSS JOIN messages m CROSS JOIN sessions s
		WHERE search_words MATCH ? AND e.n = search_words.rowid AND m.id = e.message_id AND s.id = m.session_id AND `
	args := []any{sqliteMatch(s.query, s.scopeWords())}
	allowed, more := s.allowed()
	sql, args = sql+allowed, append(args, more...)
	if s.more {
		sql, args = sql+" AND search_words.rowid < ?", append(args, s.from.N)
	}
	if !s.q.After.IsZero() {
		sql, args = sql+" AND search_words.rowid >= ?", append(args, firstOf(s.q.After))
	}
	if !s.q.Before.IsZero() {
		sql, args = sql+" AND search_words.rowid < ?", append(args, firstOf(s.q.Before.Add(time.Millisecond)))
	}
	var rows []found
	err := s.db.Raw(sql+" ORDER BY search_words.rowid DESC LIMIT ?", append(args, n)...).Scan(&rows).Error
	return rows, err
}
