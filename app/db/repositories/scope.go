package repositories

import (
	"context"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// requireID returns ErrNotFound for an id that cannot exist, so that PostgreSQL never has
// to parse it as a UUID.
func requireID[T ~string](what string, id T) error {
	if !core.ValidID(id) || strings.ToLower(string(id)) != string(id) {
		return notFound(what, id)
	}
	return nil
}

// byID returns a handle for queries by the id. They fail with ErrNotFound if it cannot exist (requireID).
func byID[T ~string](ctx context.Context, db *gorm.DB, what string, id T) *gorm.DB {
	db = db.WithContext(ctx)
	_ = db.AddError(requireID(what, id)) // the error of each query
	return db
}

// visibleTo is the condition for visible sessions of the scope.
func visibleTo(tenant core.Tenant) clause.Expr {
	scope := inScope(tenant)
	scope.SQL += " AND " + visibleSQL
	return scope
}

// inScope is the condition for rows with an owner and a user to be in the scope.
func inScope(tenant core.Tenant) clause.Expr {
	if tenant.User == "" {
		return gorm.Expr("owner = ?", tenant.Owner)
	}
	return gorm.Expr("owner = ? AND user_id = ? AND user_id <> ''", tenant.Owner, tenant.User) // as an index of sessions has it
}

// withinSession is the condition for rows of sessions, such as messages, to be of one session of
// the scope.
func withinSession(tenant core.Tenant, id core.SessionID) clause.Expr {
	owned := ownedBy(tenant, id)
	return gorm.Expr("session_id = ? AND "+owned.SQL, append([]any{id}, owned.Vars...)...)
}

// withinLog is withinSession for messages that are in the session's log.
func withinLog(tenant core.Tenant, id core.SessionID) clause.Expr {
	within := withinSession(tenant, id)
	return gorm.Expr(within.SQL+" AND "+inLogOf, append(within.Vars, id)...)
}

// inLogOf is the condition for messages that are in their session's log.
const inLogOf = "seq <= (SELECT last_seq FROM sessions WHERE sessions.id = ?)"

// ownedBy is the condition for rows of the scope's owner: none if the session is
// outside the scope.
func ownedBy(tenant core.Tenant, id core.SessionID) clause.Expr {
	sql, args := "owner = ? AND EXISTS (SELECT 1 FROM sessions WHERE sessions.id = ? AND "+visibleSQL, []any{tenant.Owner, id}
	if tenant.User != "" {
		sql, args = sql+" AND sessions.user_id = ?", append(args, tenant.User)
	}
	return gorm.Expr(sql+")", args...)
}

// requireVisible returns ErrNotFound unless the session is in the scope. Lists check this
// only when they are empty: a row proves it.
func requireVisible(db *gorm.DB, tenant core.Tenant, id core.SessionID) error {
	_, err := takeRow[models.Session](db.Select("id").Where(visibleTo(tenant)).Where("id = ?", id), "session", id)
	return err
}

// longColumns are the columns of a table that may be long.
type longColumns struct {
	texts   []string
	jsons   []string
	related []string // SQL expressions for the bytes of rows that are read with each row
}

// largeJSON is the stored size in bytes from which the length of a JSON column is estimated
// on PostgreSQL: measuring it would decompress it.
const largeJSON = "65536"

// sumSQL returns an SQL expression for the bytes of the columns, or an upper bound.
func (w longColumns) sumSQL(db *gorm.DB) string {
	var terms []string
	for _, column := range w.texts {
		terms = append(terms, "COALESCE(octet_length("+column+"), 0)")
	}
	for _, column := range w.jsons {
		length := "octet_length(" + column + ")"
		if isPostgres(db) { // which compresses to a hundredth at best
			length = "CASE WHEN pg_column_size(" + column + ") > " + largeJSON + " THEN pg_column_size(" + column + ") * 100 ELSE octet_length(" + column + "::text) END"
		}
		terms = append(terms, "COALESCE("+length+", 0)")
	}
	for _, bytes := range w.related {
		terms = append(terms, "COALESCE("+bytes+", 0)")
	}
	return strings.Join(terms, " + ")
}

// fitRows returns how many of the first limit rows of an ordered list fit into that many
// bytes, at least 1. It measures the rows without reading them.
func fitRows(list *gorm.DB, w longColumns, limit int, bytes int64) (int, error) {
	if limit <= 1 {
		return limit, nil
	}
	var sizes []int64
	if err := list.Session(&gorm.Session{}).Select(w.sumSQL(list)).Limit(limit).Scan(&sizes).Error; err != nil {
		return 0, err
	}
	for i, size := range sizes {
		if bytes -= size; bytes < 0 && i > 0 {
			return i, nil
		}
	}
	return limit, nil
}
