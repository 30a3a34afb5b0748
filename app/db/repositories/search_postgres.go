package repositories

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gorm.io/gorm"

	"bobbin/app/core/searchtext"
	"bobbin/app/db/models"
)

// postgresEntry is a row of search_entries with its words.
type postgresEntry struct {
	Owner     string
	SessionID string
	MessageID models.Ref
	CreatedAt time.Time `gorm:"autoCreateTime:false"`
	Words     string    // as text of a tsvector
}

// TableName is the table's name.
func (postgresEntry) TableName() string { return "search_entries" }

func postgresEntryOf(e entry, d searchtext.Document) postgresEntry {
	return postgresEntry{
		Owner: e.owner, SessionID: e.session, MessageID: e.message, CreatedAt: e.at,
		Words: tsvector(d, e.scopeWords()),
	}
}

// What a tsvector can hold: positions up to 16,383, at most 255 of a word, and
// 1 MiB in all.
const (
	maxPosition  = 16383
	maxPositions = 255
	maxVector    = 1<<20 - 64<<10
)

// wordInexact marks a text of which a tsvector cannot hold all positions: it has
// all words, and whether it has a phrase is for searchtext to say.
const wordInexact = "_x"

// tsvector returns the words as text of a tsvector.
func tsvector(d searchtext.Document, scope []string) string {
	at := make(map[string][]int, len(d.Words))
	exact := len(d.Words) < maxPosition
	size := 0
	for i, w := range d.Words {
		list, known := at[w]
		if !known {
			size += len(w) + 4
		}
		if size += 2; len(list) == maxPositions {
			exact = false
			continue
		}
		at[w] = append(list, i+1)
	}
	var b strings.Builder
	if exact = exact && size < maxVector; !exact {
		scope = append(slices.Clip(scope), wordInexact)
	}
	for w, list := range at {
		lexeme(&b, w)
		if exact {
			positions(&b, list)
		}
		b.WriteByte(' ')
	}
	for _, w := range slices.Concat(d.Parts, scope) {
		lexeme(&b, w)
		b.WriteByte(' ')
	}
	return b.String()
}

// lexeme writes a word. It has no quotation marks and no backslashes.
func lexeme(b *strings.Builder, w string) {
	b.WriteByte('\'')
	b.WriteString(w)
	b.WriteByte('\'')
}

// positions writes the places of a word.
func positions(b *strings.Builder, list []int) {
	between := byte(':')
	for _, n := range list {
		b.WriteByte(between)
		b.WriteString(strconv.Itoa(n))
		between = ','
	}
}

// postgresMatch returns the query as text of two tsqueries, narrowed to entries
// with the scope words: what an entry must have, and, if there are phrases, what
// it must be besides, unless it is inexact.
func postgresMatch(q searchtext.Query, scope []string) (must, exactly string) {
	var words, phrases []string
	for _, w := range scope {
		words = append(words, "'"+w+"'")
	}
	for _, t := range q.Terms {
		list := make([]string, len(t.Words))
		for i, w := range t.Words {
			list[i] = "'" + w + "'"
			if t.Prefix && i == len(t.Words)-1 {
				list[i] += ":*"
			}
		}
		switch {
		case len(list) == 1 && t.Not:
			words = append(words, "!"+list[0])
		case len(list) == 1:
			words = append(words, list[0])
		case t.Not:
			phrases = append(phrases, fmt.Sprintf("!(%s)", strings.Join(list, " <-> ")))
		default:
			words = append(words, list...)
			phrases = append(phrases, fmt.Sprintf("(%s)", strings.Join(list, " <-> ")))
		}
	}
	return strings.Join(words, " & "), strings.Join(phrases, " & ")
}

// matchPostgres returns the condition for entries e that the query finds.
func matchPostgres(q searchtext.Query, scope []string) (string, []any) {
	must, exactly := postgresMatch(q, scope)
	if exactly == "" {
		return "e.words @@ CAST(? AS tsquery)", []any{must}
	}
	return "(e.words @@ CAST(? AS tsquery) AND (e.words @@ CAST(? AS tsquery) OR e.words @@ CAST(? AS tsquery)))",
		[]any{must, exactly, "'" + wordInexact + "'"}
}

// How many of the newest entries are looked at before the index is asked: it knows
// no order, so that of a word that is everywhere it would give everything, to be
// sorted. More are looked at if the newest promise that the page will be full.
const (
	newestFirst = 1000
	newestMore  = 12_000
	promising   = 8 // this part of a page
)

// candidatesPostgres looks at the newest entries, and asks the index if these were
// not enough.
func (s *searching) candidatesPostgres(n int) ([]found, error) {
	rows, err := s.selectPostgres(n, newestFirst)
	if err == nil && len(rows) < n && len(rows)*promising >= n {
		rows, err = s.selectPostgres(n, newestMore)
	}
	if err != nil || len(rows) == n {
		return rows, err
	}
	return s.selectPostgres(n, 0)
}

// withoutJIT lets fn ask PostgreSQL without compiling its questions: that would
// take a quarter of a second for what takes milliseconds.
func withoutJIT(db *gorm.DB, fn func(*gorm.DB) error) error {
	if !isPostgres(db) {
		return fn(db)
	}
	return db.Transaction(func(tx *gorm.DB) error {
		if err := tx.Exec("SET LOCAL jit = off").Error; err != nil {
			return err
		}
		return fn(tx)
	})
}

// selectPostgres returns the next n entries that the query finds, among the newest
// ones only unless that is 0.
func (s *searching) selectPostgres(n, newest int) ([]found, error) {
	match, matched := matchPostgres(s.query, s.scopeWords())
	where, args := "e.message_id IS NOT NULL AND e.owner = ?", []any{s.scope.Owner}
	if s.q.SessionID != "" {
		where, args = where+" AND e.session_id = ?", append(args, s.q.SessionID)
	}
	if s.more {
		where, args = where+" AND (e.created_at, e.n) < (?, ?)", append(args, time.UnixMicro(s.from.N).UTC(), s.from.M)
	}
	if !s.q.After.IsZero() {
		where, args = where+" AND e.created_at >= ?", append(args, s.q.After.UTC().Truncate(time.Millisecond))
	}
	if !s.q.Before.IsZero() {
		where, args = where+" AND e.created_at < ?", append(args, s.q.Before.UTC())
	}
	// Only as many as are needed are joined with their messages, and of the newest
	// no more are looked at than are needed.
	const newestLast = " ORDER BY e.created_at DESC, e.n DESC LIMIT "
	from := "search_entries e WHERE " + where + " AND " + match
	if newest > 0 {
		// A number, no parameter: a plan for any number would sort all entries.
		from = "(SELECT * FROM search_entries e WHERE " + where + newestLast + strconv.Itoa(newest) + ") e WHERE " + match
	}
	allowed, more := s.allowed()
	args = slices.Concat(args, matched, []any{n}, more)
	sql := "WITH e AS MATERIALIZED (SELECT e.n, e.created_at, e.message_id FROM " + from + newestLast + `?)
		SELECT e.n, e.created_at AS entry_at, (` + allowed + ") AS allowed, " + foundColumns + `
		FROM e JOIN messages m ON m.id = e.message_id JOIN sessions s ON s.id = m.session_id ORDER BY e.created_at DESC, e.n DESC`
	var rows []found
	err := s.db.Raw(sql, args...).Scan(&rows).Error
	return rows, err
}
