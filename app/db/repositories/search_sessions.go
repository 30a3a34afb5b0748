package repositories

import (
	"strconv"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/core/searchtext"
	"bobbin/app/db/models"
)

// What is everywhere is found faster by looking into the newest sessions, one by
// one; everything else by asking the index for all sessions that have it.
const (
	newestSessions = 300
	commonNewest   = 20  // of the newestFirst entries, on PostgreSQL
	commonAtAll    = 500 // entries, on SQLite, whose index counts fast
)

// holding is a search for sessions that have a text in their title or in a message.
// A phrase in a message of which a tsvector cannot hold all positions counts as
// found on PostgreSQL if its words are there.
type holding struct {
	db    *gorm.DB // without conditions
	owner string
	match string // of search_entries e
	args  []any
}

// sessionsWith returns the first n sessions of the list that have the text.
func sessionsWith(list *gorm.DB, scope core.Scope, text string, n int) ([]models.Session, error) {
	query, err := searchtext.Parse(text)
	if err != nil {
		return nil, err
	}
	list = list.Model(&models.Session{}).Session(&gorm.Session{})
	h := holding{owner: scope.Owner, match: "search_words MATCH ?", args: []any{sqliteMatch(query, ownerWords(scope))}}
	if isPostgres(list) {
		h.match, h.args = matchPostgres(query, ownerWords(scope))
	}
	var rows []models.Session
	err = withoutJIT(list.Session(&gorm.Session{NewDB: true}), func(db *gorm.DB) (err error) {
		h.db = db
		rows, err = h.first(n, list)
		return err
	})
	return rows, err
}

// first is sessionsWith.
func (h holding) first(n int, list *gorm.DB) ([]models.Session, error) {
	common, err := h.common()
	if err != nil {
		return nil, err
	}
	var rows []models.Session
	if common {
		newest := list.Order(newestActivity).Limit(newestSessions)
		err := h.db.Table("(?) AS sessions", newest).Scopes(h.oneByOne).Order(newestActivity).Limit(n).Find(&rows).Error
		if err != nil || len(rows) == n {
			return rows, err
		}
	}
	rows = nil
	err = h.db.Table("(?) AS sessions", list).Scopes(h.atOnce).Order(newestActivity).Limit(n).Find(&rows).Error
	return rows, err
}

// common reports whether a good part of the newest entries has what is looked for.
func (h holding) common() (bool, error) {
	if !isPostgres(h.db) {
		return false, nil
	}
	var found int
	err := h.db.Raw(`SELECT COUNT(*) FROM (SELECT words FROM search_entries WHERE owner = ? ORDER BY created_at DESC, n DESC LIMIT `+
		strconv.Itoa(newestFirst)+`) e WHERE `+h.match, append([]any{h.owner}, h.args...)...).Scan(&found).Error
	return found >= commonNewest, err
}

// shown is the condition for entries e of messages m that may be found.
const shown = " AND (m.id IS NULL OR m.on_path AND m.deleted_at IS NULL)"

// atOnce narrows a list to the sessions of all entries found.
func (h holding) atOnce(list *gorm.DB) *gorm.DB {
	from := "search_words CROSS JOIN search_entries e LEFT JOIN messages m ON m.id = e.message_id WHERE e.n = search_words.rowid AND "
	if isPostgres(list) {
		from = "search_entries e LEFT JOIN messages m ON m.id = e.message_id WHERE "
	}
	return list.Where("id IN (SELECT e.session_id FROM "+from+h.match+" AND e.owner = ?"+shown+")", append(h.args[:len(h.args):len(h.args)], h.owner)...)
}

// oneByOne narrows a list on PostgreSQL to the sessions that have an entry of their
// own. IS TRUE keeps the planner from asking the index of all words for each.
func (h holding) oneByOne(list *gorm.DB) *gorm.DB {
	return list.Where("(SELECT true FROM search_entries e LEFT JOIN messages m ON m.id = e.message_id WHERE e.session_id = sessions.id AND ("+
		h.match+") IS TRUE"+shown+" LIMIT 1)", h.args...)
}
