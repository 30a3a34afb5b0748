package repositories

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/core/searchtext"
	"bobbin/app/db/commit"
	"bobbin/app/db/models"
)

// entry is a text for the search index.
type entry struct {
	models.SearchText

	user string
	role core.Role
	text string
}

// messageEntry returns the entry of a message in a session of that user.
func messageEntry(m core.Message, user string) entry {
	return entry{models.SearchText{
		Owner: m.Owner, SessionID: string(m.SessionID), MessageID: models.Ref(m.ID), CreatedAt: m.CreatedAt, Seq: m.Seq, OnPath: m.OnPath,
	}, user, m.Role, indexedText(m)}
}

// titleEntry returns the entry of a session's title.
func titleEntry(s models.Session) entry {
	return entry{models.SearchText{Owner: s.Owner, SessionID: string(s.ID), CreatedAt: s.CreatedAt, OnPath: true}, s.UserID, "", s.Title}
}

// indexedText returns the searchable text of a message: its content, and the arguments of
// tool calls.
func indexedText(m core.Message) string {
	if m.ToolName == core.ToolSearchHistory {
		return ""
	}
	text := m.Content
	for _, c := range m.ToolCalls {
		if c.Name == core.ToolSearchHistory {
			continue
		}
		if text != "" {
			text += "\n"
		}
		text += c.Name + " " + c.Arguments
	}
	return text
}

// indexEntries inserts the entries, without those that have no words.
func indexEntries(tx *gorm.DB, entries []entry) error {
	if isPostgres(tx) {
		return commit.Insert(tx, entriesOf(entries, postgresEntryOf))
	}
	return commit.Insert(tx, entriesOf(entries, sqliteEntryOf))
}

func entriesOf[T any](entries []entry, row func(entry, searchtext.Document) T) *[]T {
	rows := make([]T, 0, len(entries))
	for _, e := range entries {
		e.CreatedAt = e.CreatedAt.UTC().Truncate(time.Millisecond)
		if d := searchtext.Text(e.text); len(d.Words) > 0 {
			e.Length, e.Terms = d.Length, d.Terms
			rows = append(rows, row(e, d))
		}
	}
	return &rows
}

// Words that no text contains, as words of texts have no underscore. They narrow a search,
// so that the databases need not read anything else.
const (
	wordOwner   = "_o"
	wordUser    = "_u"
	wordSession = "_s"
	wordRole    = "_r"
	wordMessage = "_m"
	wordTitle   = "_t"
)

// scopeWords returns the narrowing words of an entry.
func (e entry) scopeWords() []string {
	words := []string{hashedWord(wordOwner, e.Owner)}
	if e.user != "" {
		words = append(words, hashedWord(wordUser, e.user))
	}
	if e.MessageID == "" {
		return append(words, wordTitle)
	}
	return append(words, wordMessage, wordRole+string(e.role))
}

// hashedWord encodes an arbitrary name as a word.
func hashedWord(kind, name string) string {
	sum := sha256.Sum256([]byte(name))
	return kind + hex.EncodeToString(sum[:8])
}

func sessionWord(id string) string { return wordSession + strings.ReplaceAll(id, "-", "") }

// lockIndex keeps the session from being indexed until the transaction ends, and returns up to which
// message it is indexed. Whoever changes what is indexed calls it before the entries: the indexer has written
// then what it read before, and reads the session again only after the commit.
func (stx *sessionTx) lockIndex() (through int64, err error) {
	var reader models.SessionReader
	err = stx.tx.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}).Where("session_id = ? AND reader = ?", stx.session.ID, models.ReaderSearch).Take(&reader).Error
	return reader.Seq, err
}

// indexTitle indexes the session's title.
func (stx *sessionTx) indexTitle() error {
	if stx.session.Temporary {
		return nil
	}
	if _, err := stx.lockIndex(); err != nil {
		return err
	}
	return replaceTitles(stx.tx, []core.SessionID{stx.session.ID}, []entry{titleEntry(stx.session)})
}

// replaceTitles deletes the entries of the sessions' titles, and inserts the given ones.
func replaceTitles(tx *gorm.DB, sessions []core.SessionID, entries []entry) error {
	if len(sessions) > 0 { // with = true SQLite does not look through the titles of all sessions
		if err := tx.Where("session_id IN ? AND (message_id IS NULL) = true", sessions).Delete(&models.SearchEntry{}).Error; err != nil {
			return err
		}
	}
	return indexEntries(tx, entries)
}

// sqliteEntry is a row of the view search_new: an entry with its words.
type sqliteEntry struct {
	models.SearchText

	Base  int64 // the n of the first entry of this millisecond
	Words string
	Parts string
	Scope string
}

// TableName is the view's name.
func (sqliteEntry) TableName() string { return "search_new" }

func sqliteEntryOf(e entry, d searchtext.Document) sqliteEntry {
	parts := slices.Concat(d.Parts, d.Stems)
	return sqliteEntry{e.SearchText, firstOf(e.CreatedAt), strings.Join(d.Words, " "), strings.Join(parts, " "), strings.Join(append(e.scopeWords(), sessionWord(e.SessionID)), " ")}
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
		term = columns + term
		if t.Whole != "" {
			term = `(` + term + ` OR {words parts} : "` + t.Whole + `")`
		}
		if t.Not {
			none = append(none, term)
			continue
		}
		all = append(all, term)
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

// postgresEntry is a row of search_entries with its words.
type postgresEntry struct {
	models.SearchText

	Words string // as text of a tsvector
}

// TableName is the table's name.
func (postgresEntry) TableName() string { return "search_entries" }

// The capacity of a tsvector: positions up to 16,383, at most 255 for each word, and 1 MiB
// in all.
const (
	maxPosition  = 16383
	maxPositions = 255
	maxVector    = 1<<20 - 64<<10
)

// wordInexact marks a text whose positions do not all fit a tsvector: it has all words. Of the phrases that a
// message must have, searchtext checks it; it ranks as if it had all phrases whose words it has.
const wordInexact = "_x"

func postgresEntryOf(e entry, d searchtext.Document) postgresEntry {
	scope := e.scopeWords()
	order := make([]int, len(d.Words)) // the positions of each word follow each other
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(strings.Compare(d.Words[a], d.Words[b]), cmp.Compare(a, b)) })
	isNew := func(i int) bool { return i == 0 || d.Words[order[i]] != d.Words[order[i-1]] }
	size, exact := 0, len(order) < maxPosition
	for i, first := 0, 0; i < len(order); i++ {
		if isNew(i) {
			first, size = i, size+len(d.Words[order[i]])+4
		}
		size, exact = size+2, exact && i-first < maxPositions
	}
	var b strings.Builder
	if exact = exact && size < maxVector; !exact {
		scope = append(slices.Clip(scope), wordInexact)
	}
	b.Grow(2 * size)
	for i, n := range order {
		between := byte(',')
		if isNew(i) {
			between = ':'
			writeLexeme(&b, d.Words[n])
		}
		if exact {
			b.WriteByte(between)
			b.WriteString(strconv.Itoa(n + 1))
		}
	}
	for _, w := range slices.Concat(d.Parts, d.Stems, scope) {
		writeLexeme(&b, w)
	}
	return postgresEntry{e.SearchText, b.String()}
}

// writeLexeme writes a word. Words contain no quotation marks and no backslashes.
func writeLexeme(b *strings.Builder, w string) {
	b.WriteString(" '")
	b.WriteString(w)
	b.WriteByte('\'')
}

// matchPostgres returns the condition for entries e that match the query.
func matchPostgres(q searchtext.Query, scope []string) (string, []any) {
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
		phrase := strings.Join(list, " <-> ")
		if t.Whole != "" {
			phrase += " | '" + t.Whole + "'"
			list = []string{fmt.Sprintf("(%s | '%s')", strings.Join(list, " & "), t.Whole)}
		}
		switch {
		case len(t.Words) == 1 && t.Not:
			words = append(words, "!"+list[0])
		case len(t.Words) == 1:
			words = append(words, list[0])
		case t.Not:
			phrases = append(phrases, fmt.Sprintf("!(%s)", phrase))
		default:
			words = append(words, list...)
			phrases = append(phrases, fmt.Sprintf("(%s)", phrase))
		}
	}
	must, exactly := strings.Join(words, " & "), strings.Join(phrases, " & ")
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
