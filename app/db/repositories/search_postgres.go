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
	Seq       int64
	OnPath    bool
	Length    int
	Terms     []byte
	Words     string // as text of a tsvector
}

// TableName is the table's name.
func (postgresEntry) TableName() string { return "search_entries" }

func postgresEntryOf(e entry, d searchtext.Document) postgresEntry {
	return postgresEntry{
		Owner: e.owner, SessionID: e.session, MessageID: e.message, CreatedAt: e.at,
		Seq: e.seq, OnPath: e.onPath, Length: d.Length, Terms: d.Terms, Words: tsvectorText(d, e.scopeWords()),
	}
}

// The capacity of a tsvector: positions up to 16,383, at most 255 for each word, and 1 MiB
// in all.
const (
	maxPosition  = 16383
	maxPositions = 255
	maxVector    = 1<<20 - 64<<10
)

// wordInexact marks a text whose positions do not all fit a tsvector: it has all words, and
// searchtext checks phrases.
const wordInexact = "_x"

// tsvectorText returns the words as the text of a tsvector.
func tsvectorText(d searchtext.Document, scope []string) string {
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
		writeLexeme(&b, w)
		if exact {
			between := byte(':')
			for _, n := range list {
				b.WriteByte(between)
				b.WriteString(strconv.Itoa(n))
				between = ','
			}
		}
		b.WriteByte(' ')
	}
	for _, w := range slices.Concat(d.Parts, d.Stems, scope) {
		writeLexeme(&b, w)
		b.WriteByte(' ')
	}
	return b.String()
}

// writeLexeme writes a word. Words contain no quotation marks and no backslashes.
func writeLexeme(b *strings.Builder, w string) {
	b.WriteByte('\'')
	b.WriteString(w)
	b.WriteByte('\'')
}

// postgresMatch returns the query as the texts of two tsqueries, narrowed to entries with
// the scope words: one that every entry must match, and one for phrases, which inexact
// entries need not match.
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

// matchPostgres returns the condition for entries e that match the query.
func matchPostgres(q searchtext.Query, scope []string) (string, []any) {
	must, exactly := postgresMatch(q, scope)
	if exactly == "" {
		return "e.words @@ CAST(? AS tsquery)", []any{must}
	}
	placed := "e.words"
	if slices.ContainsFunc(q.Terms, func(t searchtext.Term) bool { return t.Prefix && len(t.Words) > 1 }) {
		// PostgreSQL finds no phrase if a word without a position, a part or a stem, has the prefix, too.
		placed = "ts_filter(e.words, '{d}')"
	}
	return "(e.words @@ CAST(? AS tsquery) AND (" + placed + " @@ CAST(? AS tsquery) OR e.words @@ CAST(? AS tsquery)))",
		[]any{must, exactly, "'" + wordInexact + "'"}
}

// How many of the newest entries are read before the index is used. The index has no order:
// for a frequent word it would return everything, to be sorted. More are read if the newest
// promise to fill the page.
const (
	newestFirst = 1000
	newestMore  = 12_000
	promising   = 8 // this part of a page
)

// entryInLog excludes entries of messages that are not in a log, which could fill a page
// during an import. Usually no session is busy.
const entryInLog = ` AND (e.session_id NOT IN (SELECT id FROM sessions WHERE busy <> '') OR
	EXISTS (SELECT 1 FROM messages l JOIN sessions b ON b.id = l.session_id WHERE l.id = e.message_id AND l.seq <= b.last_seq))`

// candidatesPostgres reads the newest entries, and uses the index if these are not enough.
func (s *messageSearch) candidatesPostgres(n int) ([]foundMessage, error) {
	rows, err := s.selectPostgres(n, newestFirst)
	if err == nil && len(rows) < n && len(rows)*promising >= n {
		rows, err = s.selectPostgres(n, newestMore)
	}
	if err != nil || len(rows) == n {
		return rows, err
	}
	return s.selectPostgres(n, 0)
}

// withoutJIT runs fn without JIT compilation on PostgreSQL, which would take a quarter of a
// second for queries that take milliseconds.
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

// selectPostgres returns the next n entries that match, with newest > 0 only among that
// many of the newest.
func (s *messageSearch) selectPostgres(n, newest int) ([]foundMessage, error) {
	match, matched := matchPostgres(s.query, s.scopeWords())
	where, args := "e.message_id IS NOT NULL AND e.owner = ?"+entryInLog, []any{s.scope.Owner}
	if s.q.SessionID != "" {
		where, args = where+" AND e.session_id = ?", append(args, s.q.SessionID)
	}
	if s.from.isSet() {
		where, args = where+" AND (e.created_at, e.n) < (?, ?)", append(args, time.UnixMicro(s.from.N).UTC(), s.from.M)
	}
	if !s.q.After.IsZero() {
		where, args = where+" AND e.created_at >= ?", append(args, s.q.After.UTC().Truncate(time.Millisecond))
	}
	if !s.q.Before.IsZero() {
		where, args = where+" AND e.created_at < ?", append(args, s.q.Before.UTC())
	}
	// Joins only as many messages as needed, and reads no more of the newest entries than
	// needed.
	const newestLast = " ORDER BY e.created_at DESC, e.n DESC LIMIT "
	// OFFSET 0 keeps the planner from walking all entries in order, to the last for words that occur nowhere.
	from := "(SELECT n, created_at, message_id FROM search_entries e WHERE " + where + " AND " + match + " OFFSET 0) e"
	if newest > 0 {
		// A literal, not a parameter: a plan for any number would sort all entries.
		from = "(SELECT * FROM search_entries e WHERE " + where + newestLast + strconv.Itoa(newest) + ") e WHERE " + match
	}
	allowed, more := s.allowedSQL()
	args = slices.Concat(args, matched, []any{n}, more)
	sql := "WITH e AS MATERIALIZED (SELECT e.n, e.created_at, e.message_id FROM " + from + newestLast + `?)
		SELECT e.n, e.created_at AS entry_at, (` + allowed + ") AS allowed, " + foundColumns + `
		FROM e JOIN messages m ON m.id = e.message_id JOIN sessions s ON s.id = m.session_id ORDER BY e.created_at DESC, e.n DESC`
	var rows []foundMessage
	err := s.db.Raw(sql, args...).Scan(&rows).Error
	return rows, err
}
