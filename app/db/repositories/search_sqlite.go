package repositories

import (
	"fmt"
	"slices"
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
	Seq       int64
	OnPath    bool
	Length    int
	Terms     []byte
	Words     string
	Parts     string
	Scope     string
}

// TableName is the view's name.
func (sqliteEntry) TableName() string { return "search_new" }

func sqliteEntryOf(e entry, d searchtext.Document) sqliteEntry {
	return sqliteEntry{
		Base: firstOf(e.at), Owner: e.owner, SessionID: e.session, MessageID: e.message, CreatedAt: e.at,
		Seq: e.seq, OnPath: e.onPath, Length: d.Length, Terms: d.Terms,
		Words: strings.Join(d.Words, " "), Parts: strings.Join(slices.Concat(d.Parts, d.Stems), " "), Scope: strings.Join(e.scopeWords(), " "),
	}
}

// Entries of one millisecond differ in the last entryBits of their n. The remaining bits
// hold the milliseconds of the years 1831 to 2109.
const (
	entryBits = 20
	maxMillis = 1<<(63-entryBits) - 1
)

// firstOf returns the n of the first entry of the time's millisecond. A time out of range
// counts as the nearest one in range.
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

// maxIndexedPhrase is the longest phrase, in words, that FTS5 evaluates: it reads all
// positions of each word, which takes long in texts with thousands of them.
const maxIndexedPhrase = 6

// coarseQuery returns a query that finds what q finds, and sometimes more. It replaces a
// long phrase by its beginning and all its words. The caller checks the results with q.
func coarseQuery(q searchtext.Query) searchtext.Query {
	var out searchtext.Query
	known := map[string]bool{}
	add := func(t searchtext.Term) {
		if key := fmt.Sprint(t); !known[key] {
			known[key] = true
			out.Terms = append(out.Terms, t)
		}
	}
	for _, t := range q.Terms {
		n := len(t.Words)
		switch {
		case n <= maxIndexedPhrase:
			add(t)
		case !t.Not:
			add(searchtext.Term{Words: t.Words[:maxIndexedPhrase]})
			for i, w := range t.Words[maxIndexedPhrase:] {
				add(searchtext.Term{Words: []string{w}, Prefix: t.Prefix && maxIndexedPhrase+i == n-1})
			}
		}
	}
	return out
}
