package db

import (
	"errors"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/callbacks"
	"gorm.io/gorm/clause"
	sqlite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"bobbin/app/core"
)

// sqliteDialector makes gorm use modernc.org/sqlite, which is pure Go; gorm's own dialector
// needs cgo. The schema comes from migrations, so it does not alter tables.
type sqliteDialector struct {
	gorm.Dialector // nil: no Migrator and no default values

	queue *writeQueue
}

// Name is the dialect's name for gorm and the repositories.
func (*sqliteDialector) Name() string { return "sqlite" }

// Initialize registers the clauses that SQLite supports, including RETURNING.
func (d *sqliteDialector) Initialize(db *gorm.DB) error {
	callbacks.RegisterDefaultCallbacks(db, &callbacks.Config{
		CreateClauses: []string{"INSERT", "VALUES", "ON CONFLICT", "RETURNING"},
		UpdateClauses: []string{"UPDATE", "SET", "FROM", "WHERE", "RETURNING"},
		DeleteClauses: []string{"DELETE", "FROM", "WHERE", "RETURNING"},
	})
	db.ConnPool = d.queue
	// FOR UPDATE: SQLite has no row locks and needs none, see sqliteParams.
	db.ClauseBuilders["FOR"] = func(clause.Clause, clause.Builder) {}
	db.ClauseBuilders["LIMIT"] = writeLimit
	return nil
}

// writeLimit writes a limit as +?: SQLite plans a statement anew for each value of a plain LIMIT ?,
// so that keeping it prepared would be of no use.
func writeLimit(c clause.Clause, b clause.Builder) {
	if limit, ok := c.Expression.(clause.Limit); ok && limit.Limit != nil && *limit.Limit >= 0 {
		_, _ = b.WriteString("LIMIT +")
		b.AddVar(b, *limit.Limit)
	}
}

// BindVarTo writes the placeholder of a parameter.
func (*sqliteDialector) BindVarTo(w clause.Writer, _ *gorm.Statement, _ any) { _ = w.WriteByte('?') }

// QuoteTo writes a quoted name, which is that of a table or of a column of the schema.
func (*sqliteDialector) QuoteTo(w clause.Writer, name string) {
	_ = w.WriteByte('"')
	_, _ = w.WriteString(name)
	_ = w.WriteByte('"')
}

// Explain returns the statement for the log, without its values.
func (*sqliteDialector) Explain(stmt string, _ ...any) string { return stmt }

// Translate translates an error to one of core or of gorm.
func (*sqliteDialector) Translate(err error) error {
	if outage := Translate(err); errors.Is(outage, core.ErrNoDatabase) {
		return outage
	}
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code() {
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY:
		return fmt.Errorf("%w: %w", gorm.ErrDuplicatedKey, err)
	case sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY:
		return fmt.Errorf("%w: %w", gorm.ErrForeignKeyViolated, err)
	case sqlite3.SQLITE_CONSTRAINT_CHECK:
		return fmt.Errorf("%w: %w", gorm.ErrCheckConstraintViolated, err)
	}
	return err
}
