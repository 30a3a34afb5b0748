package db

import (
	"database/sql"
	"errors"
	"fmt"
	"strconv"

	"gorm.io/gorm"
	"gorm.io/gorm/callbacks"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/migrator"
	"gorm.io/gorm/schema"
	sqlite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// sqliteDialector lets gorm speak to modernc.org/sqlite, which is pure Go. gorm's
// own dialector imports the driver in C; the schema comes from migrations, so
// that nothing here has to alter tables.
type sqliteDialector struct {
	pool *sql.DB
}

// Name is the name that gorm and the repositories know the dialect by.
func (*sqliteDialector) Name() string { return "sqlite" }

// Initialize sets up the clauses that SQLite understands, RETURNING among them.
func (d *sqliteDialector) Initialize(db *gorm.DB) error {
	callbacks.RegisterDefaultCallbacks(db, &callbacks.Config{
		CreateClauses: []string{"INSERT", "VALUES", "ON CONFLICT", "RETURNING"},
		UpdateClauses: []string{"UPDATE", "SET", "FROM", "WHERE", "RETURNING"},
		DeleteClauses: []string{"DELETE", "FROM", "WHERE", "RETURNING"},
	})
	db.ConnPool = newGate(d.pool)
	// FOR UPDATE: SQLite has no row locks and needs none, see sqliteParams.
	db.ClauseBuilders["FOR"] = func(clause.Clause, clause.Builder) {}
	db.ClauseBuilders["LIMIT"] = buildLimit
	return nil
}

// buildLimit writes LIMIT -1 for an OFFSET alone, as SQLite wants it.
func buildLimit(c clause.Clause, b clause.Builder) {
	limit, ok := c.Expression.(clause.Limit)
	if !ok {
		return
	}
	n := -1
	if limit.Limit != nil && *limit.Limit >= 0 {
		n = *limit.Limit
	}
	if n >= 0 || limit.Offset > 0 {
		_, _ = b.WriteString("LIMIT " + strconv.Itoa(n))
	}
	if limit.Offset > 0 {
		_, _ = b.WriteString(" OFFSET " + strconv.Itoa(limit.Offset))
	}
}

// Migrator is never used: the schema is made by SQL.
func (d *sqliteDialector) Migrator(db *gorm.DB) gorm.Migrator {
	return migrator.Migrator{Config: migrator.Config{DB: db, Dialector: d}}
}

// DataTypeOf is never used either; only a Migrator would ask.
func (*sqliteDialector) DataTypeOf(field *schema.Field) string { return string(field.DataType) }

// DefaultValueOf is what stands for a column's default in an INSERT.
func (*sqliteDialector) DefaultValueOf(*schema.Field) clause.Expression {
	return clause.Expr{SQL: "NULL"}
}

// BindVarTo writes the sign of a parameter.
func (*sqliteDialector) BindVarTo(w clause.Writer, _ *gorm.Statement, _ any) { _ = w.WriteByte('?') }

// QuoteTo writes a name in quotes, each part of a dotted one by itself.
func (*sqliteDialector) QuoteTo(w clause.Writer, name string) {
	_ = w.WriteByte('"')
	for _, c := range []byte(name) {
		switch c {
		case '.':
			_, _ = w.WriteString(`"."`)
		case '"':
			_, _ = w.WriteString(`""`)
		default:
			_ = w.WriteByte(c)
		}
	}
	_ = w.WriteByte('"')
}

// Explain returns the statement for the log, without its values.
func (*sqliteDialector) Explain(stmt string, _ ...any) string { return stmt }

// SavePoint begins a transaction inside a transaction.
func (*sqliteDialector) SavePoint(tx *gorm.DB, name string) error {
	return tx.Exec("SAVEPOINT " + name).Error
}

// RollbackTo undoes what happened since the save point.
func (*sqliteDialector) RollbackTo(tx *gorm.DB, name string) error {
	return tx.Exec("ROLLBACK TO SAVEPOINT " + name).Error
}

// Translate gives constraint errors the names that gorm has for them.
func (*sqliteDialector) Translate(err error) error {
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
