package repositories

import (
	"context"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/db/models"
)

// fillBatch is how many texts one transaction indexes. SQLite lets nobody else
// write meanwhile: some ten milliseconds.
const fillBatch = 100

// Fill indexes some of what was stored before there was an index, and returns how
// many texts it looked at; done reports that nothing is left. Call it until then.
// Any number of processes may: they take turns. What a crash leaves is gone on with.
func (r *Search) Fill(ctx context.Context) (n int, done bool, err error) {
	err = inTx(ctx, r.db, func(tx *gorm.DB) error {
		var parts []models.SearchFill
		err := tx.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}).
			Order("part DESC").Limit(1).Find(&parts).Error // titles come first
		if err != nil || len(parts) == 0 {
			done = true
			return err
		}
		n, err = fill(tx, parts[0])
		return err
	})
	return n, done && err == nil, failure(err, "search", "")
}

// fill indexes the next texts of a part and notes how far it came.
func fill(tx *gorm.DB, part models.SearchFill) (int, error) {
	read := oldTitles
	if part.Part == "messages" {
		read = oldMessages
	}
	entries, last, n, err := read(tx, part.Through)
	if err != nil {
		return 0, err
	}
	if n == 0 {
		return 0, tx.Where("part = ?", part.Part).Delete(&models.SearchFill{}).Error
	}
	if err := index(tx, entries); err != nil {
		return 0, err
	}
	return n, tx.Model(&models.SearchFill{}).Where("part = ?", part.Part).UpdateColumn("through", last).Error
}

// oldTitles returns the entries of the next titles that have none, the last session
// looked at, and how many those were.
func oldTitles(tx *gorm.DB, through string) ([]entry, string, int, error) {
	var rows []models.Session
	err := tx.Where("id > ?", through).Order("id").Limit(fillBatch).Find(&rows).Error
	if err != nil || len(rows) == 0 {
		return nil, "", 0, err
	}
	var known []string
	err = tx.Model(&models.SearchEntry{}).Where("message_id IS NULL AND session_id IN ?", idsOf(rows, func(s models.Session) string { return s.ID })).
		Pluck("session_id", &known).Error
	entries := make([]entry, 0, len(rows))
	for _, s := range without(rows, known, func(s models.Session) string { return s.ID }) {
		entries = append(entries, titleEntry(s))
	}
	return entries, rows[len(rows)-1].ID, len(rows), err
}

// oldMessage is what the index needs of a message.
type oldMessage struct {
	models.Message
	UserID string
}

// oldMessages is oldTitles for messages.
func oldMessages(tx *gorm.DB, through string) ([]entry, string, int, error) {
	var rows []oldMessage
	err := tx.Raw(`SELECT m.id, m.session_id, m.owner, m.role, substr(m.content, 1, 262144) AS content, m.tool_calls, m.tool_name, m.created_at, s.user_id
		FROM messages m JOIN sessions s ON s.id = m.session_id WHERE m.id > ? ORDER BY m.id LIMIT ?`, through, fillBatch).Scan(&rows).Error
	if err != nil || len(rows) == 0 {
		return nil, "", 0, err
	}
	id := func(m oldMessage) string { return m.ID }
	var known []string
	err = tx.Model(&models.SearchEntry{}).Where("message_id IN ?", idsOf(rows, id)).Pluck("message_id", &known).Error
	if err != nil {
		return nil, "", 0, err
	}
	entries := make([]entry, 0, len(rows))
	for _, row := range without(rows, known, id) {
		m, err := row.Core()
		if err != nil {
			return nil, "", 0, err
		}
		entries = append(entries, messageEntry(m, row.UserID))
	}
	return entries, rows[len(rows)-1].ID, len(rows), nil
}

func idsOf[T any](rows []T, id func(T) string) []string {
	ids := make([]string, 0, len(rows))
	for _, r := range rows {
		ids = append(ids, id(r))
	}
	return ids
}

// without returns the rows that are not known.
func without[T any](rows []T, known []string, id func(T) string) []T {
	have := make(map[string]bool, len(known))
	for _, k := range known {
		have[k] = true
	}
	var rest []T
	for _, r := range rows {
		if !have[id(r)] {
			rest = append(rest, r)
		}
	}
	return rest
}
