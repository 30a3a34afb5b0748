package repositories

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gorm.io/gorm"

	"bobbin/app/core/searchtext"
)

// entryColumns are the columns of a searchEntry.
const entryColumns = "e.n, e.session_id, e.message_id, e.seq, e.created_at, e.length, e.terms"

// entrySQL returns the conditions of entries e that the words of the index do not contain.
func (s *messageSearch) entrySQL() (string, []any) {
	sql, args := "e.message_id IS NOT NULL AND e.owner = ?", []any{s.scope.Owner}
	if s.q.SessionID != "" {
		sql, args = sql+" AND e.session_id = ?", append(args, s.q.SessionID)
	}
	if !s.q.AllBranches {
		sql += " AND e.on_path"
	}
	if s.from.isSet() && isPostgres(s.db) {
		sql, args = sql+" AND (e.created_at, e.n) < (?, ?)", append(args, time.UnixMicro(s.from.N).UTC(), s.from.M)
	}
	if s.newest != "" {
		sql, args = sql+" AND e.message_id <= ?", append(args, s.newest)
	}
	if !s.q.After.IsZero() {
		sql, args = sql+" AND e.created_at >= ?", append(args, s.q.After.UTC().Truncate(time.Millisecond))
	}
	if !s.q.Before.IsZero() {
		sql, args = sql+" AND e.created_at < ?", append(args, s.q.Before.UTC())
	}
	return sql, args
}

// newestEntries returns the newest entries in the scope with what they must have.
func (s *messageSearch) newestEntries(limit int) ([]searchEntry, error) {
	byWords := s.q.Role != "" || len(s.must.Terms) > 0
	switch {
	case !isPostgres(s.db) && (s.q.SessionID == "" || byWords):
		return s.walkSQLite(s.matchMust(), limit)
	case s.q.SessionID == "" && (byWords || s.scope.User != "" || s.q.UserID != ""):
		return s.indexedPostgres(nil, limit)
	}
	where, args := s.entrySQL()
	if byWords {
		match, matched := matchPostgres(s.must, s.scopeWords())
		where, args = where+" AND "+match, append(args, matched...)
	}
	return s.readEntries("SELECT "+entryColumns+" FROM search_entries e WHERE "+where+" ORDER BY e.created_at DESC, e.n DESC LIMIT ?", append(args, limit))
}

// entriesWith returns the newest entries with all of the groups.
func (s *messageSearch) entriesWith(groups []searchtext.Group, limit int) ([]searchEntry, error) {
	if isPostgres(s.db) {
		return s.indexedPostgres(groups, limit)
	}
	match := s.matchMust()
	for _, g := range groups {
		group := `({words parts} : ("` + strings.Join(g.Words, `" OR "`) + `"))`
		if g.Term != nil {
			group = sqliteMatch(searchtext.Query{Terms: []searchtext.Term{*g.Term}}, nil)
		}
		match = group + " AND " + match
	}
	return s.walkSQLite(match, limit)
}

// readEntries reads entries within the budget, at least one, and sets isCut if there are more.
// It scans the rows itself: thousands of them.
func (s *messageSearch) readEntries(sql string, args []any) (entries []searchEntry, err error) {
	rows, err := s.db.Raw(sql, args...).Rows()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	s.isCut = false
	for size := 0; rows.Next(); {
		if s.isCut = size > s.budget; s.isCut {
			break
		}
		var e searchEntry
		if err := rows.Scan(&e.N, &e.SessionID, &e.MessageID, &e.Seq, &e.CreatedAt, &e.Length, &e.Terms); err != nil {
			return nil, err
		}
		size += len(e.Terms)
		entries = append(entries, e)
	}
	return entries, rows.Err()
}

// matchMust returns the query for FTS5 of what every entry must have.
func (s *messageSearch) matchMust() string {
	return sqliteMatch(coarseQuery(s.must), s.scopeWords())
}

// walkSQLite walks the index from its end.
func (s *messageSearch) walkSQLite(match string, limit int) ([]searchEntry, error) {
	where, args := s.entrySQL()
	args = append([]any{match}, args...)
	if s.from.isSet() {
		where, args = where+" AND search_words.rowid < ?", append(args, s.from.M)
	}
	if !s.q.After.IsZero() {
		where, args = where+" AND search_words.rowid >= ?", append(args, firstOf(s.q.After))
	}
	if !s.q.Before.IsZero() {
		where, args = where+" AND search_words.rowid < ?", append(args, firstOf(s.q.Before.Add(time.Millisecond)))
	}
	return s.readEntries("SELECT "+entryColumns+` FROM search_words CROSS JOIN search_entries e
		WHERE search_words MATCH ? AND e.n = search_words.rowid AND `+where+" ORDER BY search_words.rowid DESC LIMIT ?", append(args, limit))
}

// How many of the newest entries are read before the index is used. The index has no order:
// for a frequent word it would return everything, to be sorted. More are read if the newest
// promise enough.
const (
	newestFirst = 1000
	newestMore  = 12_000
)

// walkedPerEntry bounds how many of the newest entries are read, for each entry that is wanted, before
// the index is used. For rarer phrases the index is faster, up to about a million entries.
const walkedPerEntry = 30

// indexedPostgres returns the newest entries with what they must have and the groups. For
// phrases, prefixes, roles and users it reads the newest entries of all first: for frequent ones
// the index would return very many, to be checked and sorted. A word alone is known to be rare.
func (s *messageSearch) indexedPostgres(groups []searchtext.Group, limit int) ([]searchEntry, error) {
	where, args := s.entrySQL()
	match, matched := matchPostgres(s.must, s.scopeWords())
	probe := s.q.SessionID == "" && (len(groups) == 0 || len(s.must.Terms) > 0)
	for _, g := range groups {
		sql, more := "e.words @@ CAST(? AS tsquery)", []any{"'" + strings.Join(g.Words, "' | '") + "'"}
		if g.Term != nil {
			sql, more = matchPostgres(searchtext.Query{Terms: []searchtext.Term{*g.Term}}, nil)
		}
		match, matched = match+" AND "+sql, append(matched, more...)
		probe = probe || s.q.SessionID == "" && g.Term != nil
	}
	const last = " ORDER BY e.created_at DESC, e.n DESC LIMIT "
	bound := max(newestMore, walkedPerEntry*limit)
	for _, newest := range []int{newestFirst, bound} {
		if !probe {
			break
		}
		rows, err := s.readEntries("SELECT "+entryColumns+" FROM (SELECT * FROM search_entries e WHERE "+where+last+strconv.Itoa(newest)+") e WHERE "+
			match+last+"?", slices.Concat(args, matched, []any{limit}))
		if err != nil || len(rows) == limit || s.isCut {
			return rows, err
		}
		probe = len(rows)*(bound/newestFirst) >= limit // at this rate that many have enough
	}
	// OFFSET 0 keeps the planner from walking all entries in order.
	return s.readEntries("SELECT * FROM (SELECT "+entryColumns+" FROM search_entries e WHERE "+match+" AND "+where+" OFFSET 0) e"+last+"?",
		slices.Concat(matched, args, []any{limit}))
}

// window is a part of a session.
type window struct {
	session  string
	from, to int64
}

// windowsSQL returns the windows as a table w of a query, with their order n.
func windowsSQL(db *gorm.DB, windows []window) (string, []any) {
	value := "(?, ?, ?, %d)"
	if isPostgres(db) {
		value = "(CAST(? AS uuid), CAST(? AS bigint), CAST(? AS bigint), %d)"
	}
	args, rows := make([]any, 0, 3*len(windows)), make([]string, len(windows))
	for i, w := range windows {
		args, rows[i] = append(args, w.session, w.from, w.to), fmt.Sprintf(value, i)
	}
	return "WITH w (session_id, first, final, n) AS (VALUES " + strings.Join(rows, ", ") + ")", args
}

// windowMessagesSQL returns the windows w joined with their messages m, as a query reads from them. On PostgreSQL
// OFFSET 0 keeps the planner from reading all messages of the sessions, or of the table.
func windowMessagesSQL(db *gorm.DB) string {
	if isPostgres(db) {
		return "w CROSS JOIN LATERAL (SELECT * FROM messages WHERE messages.session_id = w.session_id AND seq BETWEEN w.first AND w.final OFFSET 0) m"
	}
	return "w CROSS JOIN messages m ON m.session_id = w.session_id AND m.seq BETWEEN w.first AND w.final"
}
