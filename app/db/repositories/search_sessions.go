package repositories

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/core/searchtext"
	"bobbin/app/db/models"
)

// Frequent words are looked for in the newest sessions first, all others in the whole index.
const (
	newestSessions = 300
	commonNewest   = 5   // of the newestFirst entries, on PostgreSQL
	commonAtAll    = 500 // entries, on SQLite, whose index counts fast
)

// sessionSearch is a search for sessions with a text in their title or in a message. On
// PostgreSQL a phrase counts as found in a message whose positions do not all fit a
// tsvector if it has the words.
type sessionSearch struct {
	sessionList

	db       *gorm.DB // without conditions
	owner    string
	match    string // of search_entries e
	args     []any
	entrySQL string // condition for entries e of messages m
}

// sessionsWith returns the first sessions of the list that have the text, up to one more
// than the limit.
func (l sessionList) sessionsWith(list *gorm.DB, tenant core.Tenant, q core.SessionQuery) ([]sessionRow, error) {
	query, err := searchtext.Parse(q.Text)
	if err != nil {
		return nil, err
	}
	list = list.Model(&models.Session{}).Session(&gorm.Session{})
	h := sessionSearch{sessionList: l, owner: tenant.Owner, match: "search_words MATCH ?", entrySQL: visibleEntrySQL}
	scope := ownerWords(tenant)
	if q.TitlesOnly {
		scope, h.entrySQL = append(scope, wordTitle), " AND e.message_id IS NULL"
	}
	if isPostgres(list) {
		h.match, h.args = matchPostgres(query, scope)
	} else {
		h.args = []any{sqliteMatch(query, scope)}
	}
	h.db = list.Session(&gorm.Session{NewDB: true})
	common, err := h.isCommon()
	if err != nil {
		return nil, err
	}
	if common {
		rows, err := h.amongNewest(q.Limit+1, list)
		if err != nil || len(rows) > q.Limit {
			return rows, err
		}
	}
	return h.findIn(list, q.Limit+1, h.withIndexedEntry)
}

// findIn returns the first n sessions of a list narrowed to those that match.
func (h sessionSearch) findIn(list *gorm.DB, n int, narrow func(*gorm.DB) *gorm.DB) (rows []sessionRow, err error) {
	err = h.db.Table("(?) AS sessions", list).Scopes(narrow, selectSessions(h.withSummaries)).Order(h.newestFirstSQL()).Limit(n).Find(&rows).Error
	return rows, err
}

// amongNewest returns the first n of the newest sessions of the list that match.
func (h sessionSearch) amongNewest(n int, list *gorm.DB) ([]sessionRow, error) {
	newest := list.Order(h.newestFirstSQL()).Limit(newestSessions)
	if isPostgres(list) {
		// Each is checked for an entry of its own. IS TRUE keeps the planner from using the index of all words for each.
		return h.findIn(newest, n, func(list *gorm.DB) *gorm.DB {
			return list.Where("(SELECT true FROM search_entries e LEFT JOIN messages m ON m.id = e.message_id WHERE e.session_id = sessions.id AND ("+
				h.match+") IS TRUE"+h.entrySQL+" LIMIT 1)", h.args...)
		})
	}
	var ids []string
	if err := newest.Pluck("id", &ids).Error; err != nil || len(ids) == 0 {
		return nil, err
	}
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = `"` + sessionWord(id) + `"`
	}
	h.args = []any{"scope : (" + strings.Join(words, " OR ") + ") AND " + h.args[0].(string)}
	return h.findIn(list, n, h.withIndexedEntry)
}

// isCommon reports whether so many messages match that some of the newest sessions should have them.
func (h sessionSearch) isCommon() (bool, error) {
	var found int
	if !isPostgres(h.db) {
		err := h.db.Raw("SELECT COUNT(*) FROM (SELECT rowid FROM search_words WHERE "+h.match+" LIMIT "+strconv.Itoa(commonAtAll)+")", h.args...).Scan(&found).Error
		return found == commonAtAll, err
	}
	err := h.db.Raw(`SELECT COUNT(*) FROM (SELECT words FROM search_entries WHERE owner = ? AND message_id IS NOT NULL ORDER BY created_at DESC, n DESC LIMIT `+
		strconv.Itoa(newestFirst)+`) e WHERE `+h.match, append([]any{h.owner}, h.args...)...).Scan(&found).Error
	return found >= commonNewest, err
}

// visibleEntrySQL is the condition for entries e of messages m that may be found.
const visibleEntrySQL = " AND (m.id IS NULL OR m.on_path AND m.deleted_at IS NULL)"

// withIndexedEntry narrows a list to the sessions of all matching entries.
func (h sessionSearch) withIndexedEntry(list *gorm.DB) *gorm.DB {
	from := "search_words CROSS JOIN search_entries e LEFT JOIN messages m ON m.id = e.message_id WHERE e.n = search_words.rowid AND " + h.match + " AND e.owner = ?"
	if isPostgres(list) {
		// OFFSET 0 keeps the planner from reading all entries of one session after the other.
		from = "(SELECT e.session_id, e.message_id FROM search_entries e WHERE " + h.match + " AND e.owner = ? OFFSET 0) e LEFT JOIN messages m ON m.id = e.message_id WHERE true"
	}
	return list.Where("id IN (SELECT e.session_id FROM "+from+h.entrySQL+")", append(h.args[:len(h.args):len(h.args)], h.owner)...)
}

// maxExactSessions is how many sessions with a matching title, the newest, come first in a ranked list.
const maxExactSessions = 100

// listRanked returns a page of the sessions that a text finds, as a search of messages ranks them:
// first those whose titles have all words, the newest first, then the others in the order of the
// best of their messages. Like a search it is stable when messages are added.
func (r *Sessions) listRanked(ctx context.Context, tenant core.Tenant, q core.SessionQuery) (none core.Page[core.Session], err error) {
	limit, from, err := pageStart(q.Limit, q.Cursor, "sessions-relevance")
	if err != nil {
		return none, err
	}
	s := rankedSearch{
		messageSearch: messageSearch{scope: tenant, q: core.SearchQuery{Text: q.Text, UserID: q.UserID, Agent: q.Agent}, newest: cmp.Or(from.ID, core.NewID[string]())},
		bounds:        defaultBounds(), total: max(0, from.M),
	}
	if err := s.parseQuestion(); err != nil {
		return none, err
	}
	NewSearch(r.db).indexScope(ctx, tenant, "")
	list, err := filterSessions(r.db.WithContext(ctx).Where(visibleTo(tenant)).Where("NOT temporary"), tenant, q)
	if err != nil {
		return none, err
	}
	if !q.Archived {
		list = list.Where("archived_at IS NULL")
	}
	list = list.Model(&models.Session{}).Session(&gorm.Session{})
	s.db = r.db.WithContext(ctx)
	ids, err := s.rankSessions(list, q)
	if err != nil {
		return none, wrapError(err, "sessions of", tenant.Owner)
	}
	ids, next, err := pageInOrder(list, ids, indexAfter(from, ids, func(id string) string { return id }), limit)
	if err != nil {
		return none, wrapError(err, "sessions of", tenant.Owner)
	}
	var rows []sessionRow
	if err := list.Where("id IN ?", ids).Scopes(selectSessions(q.Summaries)).Find(&rows).Error; err != nil {
		return none, wrapError(err, "sessions of", tenant.Owner)
	}
	slices.SortFunc(rows, func(a, b sessionRow) int {
		return cmp.Compare(slices.Index(ids, string(a.ID)), slices.Index(ids, string(b.ID)))
	})
	var page core.Page[core.Session]
	page.Items = mapRows(rows, sessionRow.toCore)
	if next > 0 {
		page.NextCursor = position{List: "sessions-relevance", N: int64(next), ID: s.newest, M: s.total, Key: ids[len(ids)-1]}.encodeCursor()
	}
	return page, nil
}

// rankSessions returns the ids of the sessions that the question finds, in order, each once. Those
// of messages may be outside of the list.
func (s *rankedSearch) rankSessions(list *gorm.DB, q core.SessionQuery) (ids []string, err error) {
	known := map[string]bool{}
	add := func(id string) {
		if !known[id] {
			known[id] = true
			ids = append(ids, id)
		}
	}
	if _, err := searchtext.Parse(q.Text); err == nil { // else it is a question that is no exact query
		titled := q
		titled.TitlesOnly, titled.Limit, titled.Order = true, maxExactSessions, core.OrderByCreation // activity would move them between pages
		rows, err := sessionListOf(titled).sessionsWith(list.Where("id <= ?", s.newest), s.scope, titled)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			add(string(row.ID))
		}
	}
	results, err := s.rankEntries()
	if err == nil {
		results, err = s.allowedResults(results)
	}
	sessions := make(map[int64]string, len(s.documents))
	for _, d := range s.documents {
		sessions[d.ID] = d.Session
	}
	for _, found := range results {
		add(sessions[found.ID])
	}
	return ids, err
}

// pageInOrder returns the ids of the list's sessions among the given ones, in their order, from one of
// them on, and where the next page begins; 0 = there is none.
func pageInOrder(list *gorm.DB, ids []string, from, limit int) (page []string, next int, err error) {
	for from < len(ids) {
		part := ids[from:min(from+maxIDs, len(ids))]
		var found []string
		if err := list.Where("id IN ?", part).Pluck("id", &found).Error; err != nil {
			return nil, 0, err
		}
		listed := map[string]bool{}
		for _, id := range found {
			listed[id] = true
		}
		for i, id := range part {
			if listed[id] && len(page) == limit {
				return page, from + i, nil
			}
			if listed[id] {
				page = append(page, id)
			}
		}
		from += len(part)
	}
	return page, 0, nil
}
