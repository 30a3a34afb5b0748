package repositories

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/core/searchtext"
	"bobbin/app/db/models"
)

// entry is a text on its way into the search index.
type entry struct {
	owner, session, user string
	message              models.Ref // empty = the title of the session
	role                 core.Role
	at                   time.Time
	text                 string
}

// messageEntry returns the entry of a message in a session of that user.
func messageEntry(m core.Message, user string) entry {
	return entry{
		owner: m.Owner, session: string(m.SessionID), user: user, message: models.Ref(m.ID),
		role: m.Role, at: m.CreatedAt, text: searchable(m),
	}
}

// titleEntry returns the entry of a session's title.
func titleEntry(s models.Session) entry {
	return entry{owner: s.Owner, session: s.ID, user: s.UserID, at: s.CreatedAt, text: s.Title}
}

// searchable returns the text of a message in which words are looked for: what was
// said, and what tools were asked.
func searchable(m core.Message) string {
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

// index writes the entries in one statement; those without words are left out.
func index(tx *gorm.DB, entries []entry) error {
	if isPostgres(tx) {
		return insert(tx, entriesOf(entries, postgresEntryOf))
	}
	return insert(tx, entriesOf(entries, sqliteEntryOf))
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

// The words that no text has, by which a search is narrowed: the databases then
// need to look at nothing else. Words of texts have no underscore.
const (
	wordOwner   = "_o"
	wordUser    = "_u"
	wordSession = "_s"
	wordRole    = "_r"
	wordMessage = "_m"
	wordTitle   = "_t"
)

// scopeWords are those of an entry.
func (e entry) scopeWords() []string {
	words := []string{hashed(wordOwner, e.owner), sessionWord(e.session)}
	if e.user != "" {
		words = append(words, hashed(wordUser, e.user))
	}
	if e.message == "" {
		return append(words, wordTitle)
	}
	return append(words, wordMessage, wordRole+string(e.role))
}

// hashed makes a word of a name that may hold anything.
func hashed(kind, name string) string {
	sum := sha256.Sum256([]byte(name))
	return kind + hex.EncodeToString(sum[:8])
}

func sessionWord(id string) string { return wordSession + strings.ReplaceAll(id, "-", "") }

// indexMessages brings messages of the journal's session into the index.
func (j *journal) indexMessages(messages []core.Message) error {
	entries := make([]entry, 0, len(messages))
	for _, m := range messages {
		entries = append(entries, messageEntry(m, j.session.UserID))
	}
	return index(j.tx, entries)
}

// indexLog brings all messages of the journal's session into the index.
func (j *journal) indexLog() error {
	for from := int64(0); ; {
		var rows []models.Message
		err := j.tx.Select("id, session_id, owner, seq, role, substr(content, 1, 262144) AS content, tool_calls, tool_name, created_at").
			Where("session_id = ? AND seq > ?", j.session.ID, from).Order("seq").Limit(fillBatch).Find(&rows).Error
		if err != nil || len(rows) == 0 {
			return err
		}
		messages, err := values(rows, models.Message.Core)
		if err != nil {
			return err
		}
		if err := j.indexMessages(messages); err != nil {
			return err
		}
		from = rows[len(rows)-1].Seq
	}
}

// indexTitle brings the title of the journal's session into the index.
func (j *journal) indexTitle() error {
	err := j.tx.Where("session_id = ? AND message_id IS NULL", j.session.ID).Delete(&models.SearchEntry{}).Error
	if err != nil {
		return err
	}
	return index(j.tx, []entry{titleEntry(j.session)})
}
