package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"log/slog"
	"reflect"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/gorm"
)

// pipelinePool is a pool of PostgreSQL whose transactions send several statements in one round trip:
// BEGIN with the first statement, QueryBatch's with one another, and those of a DeferWrites handle with
// what comes after them, at the latest with COMMIT.
type pipelinePool struct {
	*sql.DB
	logger *slog.Logger
}

// GetDBConn returns the pool to gorm.
func (p *pipelinePool) GetDBConn() (*sql.DB, error) { return p.DB, nil }

// BeginTx takes a connection from the pool. Nobody sets options for a transaction.
func (p *pipelinePool) BeginTx(ctx context.Context, _ *sql.TxOptions) (gorm.ConnPool, error) {
	conn, err := p.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return &pipelinedTx{conn: conn, ctx: ctx, logger: p.logger, unsent: []unsentStatement{{sql: "BEGIN"}}}, nil
}

// unsentStatement is a statement of a transaction that was not sent yet.
type unsentStatement struct {
	sql  string
	args []any
	scan func(pgx.Rows) error // reads the rows; nil = there are none
}

// pipelinedTx is a transaction of a pipelinePool. Like every transaction it is used by one goroutine at
// a time.
type pipelinedTx struct {
	conn   *sql.Conn
	ctx    context.Context //nolint:containedctx // as in sql.Tx: it bounds the transaction
	logger *slog.Logger
	unsent []unsentStatement
	sent   bool  // BEGIN was
	failed error // of the statements that were sent with BEGIN: the transaction may not have begun
	done   bool
}

// ExecContext executes a statement, after the unsent ones.
func (t *pipelinedTx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	tag, err := t.send(ctx, unsentStatement{sql: query, args: args})
	return driver.RowsAffected(tag.RowsAffected()), err
}

// QueryContext executes a query, after the unsent statements.
func (t *pipelinedTx) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if _, err := t.send(ctx); err != nil {
		return nil, err
	}
	return t.conn.QueryContext(ctx, query, args...)
}

// QueryRowContext is QueryContext for one row.
func (t *pipelinedTx) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if _, err := t.send(ctx); err != nil {
		failed, cancel := context.WithCancel(ctx)
		cancel() // the only way to an sql.Row with an error
		return t.conn.QueryRowContext(failed, query, args...)
	}
	return t.conn.QueryRowContext(ctx, query, args...)
}

// PrepareContext prepares a statement, after the unsent ones.
func (t *pipelinedTx) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	if _, err := t.send(ctx); err != nil {
		return nil, err
	}
	return t.conn.PrepareContext(ctx, query)
}

// send sends the unsent statements with the last ones, in one round trip. It returns the result of the
// last one, or the first error; PostgreSQL executes nothing after that.
func (t *pipelinedTx) send(ctx context.Context, last ...unsentStatement) (tag pgconn.CommandTag, err error) {
	all := append(t.unsent, last...)
	t.unsent = nil
	switch {
	case t.done:
		return tag, sql.ErrTxDone
	case t.failed != nil:
		return tag, t.failed
	case len(all) == 0:
		return tag, nil
	}
	begins := !t.sent
	t.sent = true
	began := time.Now()
	err = t.conn.Raw(func(conn any) (err error) {
		tag, err = sendBatch(ctx, conn.(*stdlib.Conn).Conn(), all)
		return err
	})
	if begins {
		t.failed = err
	}
	if took := time.Since(began); took >= slowQuery {
		t.logger.WarnContext(ctx, "slow query", "sql", all[len(all)-1].sql, "statements", len(all), "dur", took)
	}
	return tag, err
}

func sendBatch(ctx context.Context, conn *pgx.Conn, all []unsentStatement) (tag pgconn.CommandTag, err error) {
	var batch pgx.Batch
	for _, s := range all {
		batch.Queue(s.sql, s.args...)
	}
	results := conn.SendBatch(ctx, &batch)
	defer func() {
		if closed := results.Close(); err == nil { // Close repeats the error
			err = closed
		}
	}()
	for _, s := range all {
		if s.scan == nil {
			tag, err = results.Exec()
		} else {
			var rows pgx.Rows
			if rows, err = results.Query(); err == nil {
				err = s.scan(rows)
			}
		}
		if err != nil {
			return tag, err
		}
	}
	return tag, nil
}

// Commit sends the unsent statements and commits the transaction.
func (t *pipelinedTx) Commit() error {
	if !t.sent && len(t.unsent) == 1 { // nothing but BEGIN
		return t.Rollback()
	}
	err := t.ctx.Err()
	if err == nil {
		var tag pgconn.CommandTag
		if tag, err = t.send(t.ctx, unsentStatement{sql: "COMMIT"}); err == nil && tag.String() != "COMMIT" {
			err = pgx.ErrTxCommitRollback // a statement had failed before
		}
	}
	if err != nil {
		_ = t.Rollback() // the connection is closed if it fails
		return err
	}
	t.done = true
	return t.conn.Close()
}

// rollbackTime bounds a rollback; a connection that takes longer is closed.
const rollbackTime = 5 * time.Second

// Rollback ends the transaction. After the end it does nothing.
func (t *pipelinedTx) Rollback() error {
	if t.done {
		return nil
	}
	t.unsent, t.failed = nil, nil
	var err error
	if t.sent {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), rollbackTime)
		defer cancel()
		if _, err = t.send(ctx, unsentStatement{sql: "ROLLBACK"}); err != nil {
			_ = t.conn.Raw(func(any) error { return driver.ErrBadConn }) // closes the connection
		}
	}
	t.done = true
	return errors.Join(err, t.conn.Close())
}

// deferredTx is the transaction of a DeferWrites handle.
type deferredTx struct{ *pipelinedTx }

// ExecContext adds the statement to the unsent ones.
func (t deferredTx) ExecContext(_ context.Context, query string, args ...any) (sql.Result, error) {
	t.unsent = append(t.unsent, unsentStatement{sql: query, args: args})
	return driver.RowsAffected(0), nil
}

// DeferWrites returns a handle to the transaction for writes whose results nobody needs: on PostgreSQL they
// are sent with the next statement of tx, at the latest with COMMIT, which then returns their error.
func DeferWrites(tx *gorm.DB) *gorm.DB {
	t, ok := tx.Statement.ConnPool.(*pipelinedTx)
	if !ok {
		return tx
	}
	later := tx.Session(&gorm.Session{NewDB: true, Context: tx.Statement.Context})
	later.Statement.ConnPool = deferredTx{t}
	return later
}

// ScanInto lets a dry run of an UPDATE with RETURNING put its row into dest, a pointer to a struct.
func ScanInto(dry *gorm.DB, dest any) *gorm.DB {
	dry.Statement.Dest, dry.Statement.ReflectValue = dest, reflect.ValueOf(dest).Elem()
	return dry
}

// QueryBatch executes statements that were built by dry runs in the transaction, in this order: on
// PostgreSQL in one round trip. The rows of each go where its dry run would have put them, or to the
// destination of ScanInto. It returns the first error; that a row was not found is none of them, but is
// in the statement.
func QueryBatch(tx *gorm.DB, queries ...*gorm.DB) error {
	var all []unsentStatement
	for _, q := range queries {
		if q.Error != nil {
			return q.Error
		}
		all = append(all, unsentStatement{sql: q.Statement.SQL.String(), args: q.Statement.Vars, scan: func(rows pgx.Rows) error {
			return scanRows(q, pgxRows{rows})
		}})
	}
	if t, ok := tx.Statement.ConnPool.(*pipelinedTx); ok {
		_, err := t.send(tx.Statement.Context, all...)
		return translate(tx, err)
	}
	for i, q := range queries {
		rows, err := tx.Statement.ConnPool.QueryContext(tx.Statement.Context, all[i].sql, all[i].args...)
		if err == nil {
			err = scanRows(q, rows)
		}
		if err != nil {
			return translate(tx, err)
		}
	}
	return nil
}

// translate translates an error as gorm does.
func translate(tx *gorm.DB, err error) error {
	if translator, ok := tx.Dialector.(gorm.ErrorTranslator); ok && err != nil {
		return translator.Translate(err)
	}
	return err
}

// scanRows reads the rows of a query and closes them.
func scanRows(q *gorm.DB, rows gorm.Rows) error {
	gorm.Scan(rows, q, 0)
	closed := rows.Close()
	if err := rows.Err(); err != nil { // that no row was found is not the reason
		q.Error = err
	}
	if q.Error == nil || errors.Is(q.Error, gorm.ErrRecordNotFound) {
		return closed
	}
	return q.Error
}

// pgxRows are rows as gorm takes them.
type pgxRows struct{ pgx.Rows }

// Columns returns the names of the columns.
func (r pgxRows) Columns() ([]string, error) {
	var names []string
	for _, f := range r.FieldDescriptions() {
		names = append(names, f.Name)
	}
	return names, nil
}

// ColumnTypes is not needed: all destinations are structs.
func (pgxRows) ColumnTypes() ([]*sql.ColumnType, error) { return nil, nil }

// Close reads the rest of the rows.
func (r pgxRows) Close() error {
	r.Rows.Close()
	return nil
}
