package repositories

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/core/searchtext"
	"bobbin/app/db/models"
)

// entry is a text for the search index.
type entry struct {
	owner, session, user string
	message              models.Ref // empty = the title of the session
	role                 core.Role
	at                   time.Time
	seq                  int64
	onPath               bool
	text                 string
}

// messageEntry returns the entry of a message in a session of that user.
func messageEntry(m core.Message, user string) entry {
	return entry{
		owner: m.Owner, session: string(m.SessionID), user: user, message: models.Ref(m.ID),
		role: m.Role, at: m.CreatedAt, seq: m.Seq, onPath: m.OnPath, text: indexedText(m),
	}
}

// titleEntry returns the entry of a session's title.
func titleEntry(s models.Session) entry {
	return entry{owner: s.Owner, session: s.ID, user: s.UserID, at: s.CreatedAt, onPath: true, text: s.Title}
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

// indexEntries inserts the entries in one statement, without those that have no words.
func indexEntries(tx *gorm.DB, entries []entry) error {
	if isPostgres(tx) {
		return insertRows(tx, entriesOf(entries, postgresEntryOf))
	}
	return insertRows(tx, entriesOf(entries, sqliteEntryOf))
}

func entriesOf[T any](entries []entry, row func(entry, searchtext.Document) T) *[]T {
	rows := make([]T, 0, len(entries))
	for _, e := range entries {
		e.at = e.at.UTC().Truncate(time.Millisecond)
		if d := searchtext.Text(e.text); len(d.Words) > 0 {
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
	words := []string{hashedWord(wordOwner, e.owner), sessionWord(e.session)}
	if e.user != "" {
		words = append(words, hashedWord(wordUser, e.user))
	}
	if e.message == "" {
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
	_, err := stx.lockIndex()
	if err == nil {
		err = stx.tx.Where("session_id = ? AND message_id IS NULL", stx.session.ID).Delete(&models.SearchEntry{}).Error
	}
	if err != nil {
		return err
	}
	return indexEntries(stx.tx, []entry{titleEntry(stx.session)})
}
