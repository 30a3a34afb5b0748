package db

import (
	"errors"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/callbacks"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/migrator"
	"gorm.io/gorm/schema"
	sqlite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"bobbin/app/core"
)

// sqliteDialector makes gorm use modernc.org/sqlite, which is pure Go; gorm's own dialector
// needs cgo. The schema comes from migrations, so it does not alter tables.
type sqliteDialector struct{ queue *writeQueue }

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
	return nil
}

// Migrator is never used: migrations create the schema.
func (d *sqliteDialector) Migrator(db *gorm.DB) gorm.Migrator {
	return migrator.Migrator{Config: migrator.Config{DB: db, Dialector: d}}
}

// DataTypeOf is never used either; only a Migrator calls it.
func (*sqliteDialector) DataTypeOf(field *schema.Field) string { return string(field.DataType) }

// DefaultValueOf is the expression for a column's default in an INSERT.
func (*sqliteDialector) DefaultValueOf(*schema.Field) clause.Expression {
	return clause.Expr{SQL: "NULL"}
}

// BindVarTo writes the placeholder of a parameter.
func (*sqliteDialector) BindVarTo(w clause.Writer, _ *gorm.Statement, _ any) { _ = w.WriteByte('?') }

// QuoteTo writes a quoted name, each part of a dotted name separately.
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
