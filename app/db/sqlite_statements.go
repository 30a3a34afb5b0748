package db

import (
	"context"
	"database/sql/driver"
	"slices"
	"strings"
	"unicode/utf8"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Bounds of the prepared statements that a connection keeps.
const (
	maxStatements     = 128
	maxStatementBytes = 16 << 10 // longer ones are long lists, which do not come again
)

// cachingConnector opens connections to SQLite that keep their prepared statements. Otherwise a
// fifth of the CPU of a turn is spent on parsing SQL.
type cachingConnector struct{ driver.Connector }

// Connect opens a connection.
func (c cachingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &cachingConn{sqliteConn: conn.(sqliteConn), statements: map[string]*statement{}}, nil
}

// sqliteConn is what connections of the driver are.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// cachingConn is a connection that keeps its prepared statements. Like every driver.Conn it is
// used by one goroutine at a time.
type cachingConn struct {
	sqliteConn

	statements map[string]*statement // by their SQL
}

// statement is a prepared statement.
type statement struct {
	sqliteStmt

	isBusy bool // somebody reads its rows
}

// sqliteStmt is what statements of the driver are.
type sqliteStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// ExecContext executes the query.
func (c *cachingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	s, err := c.prepareCached(ctx, query, args)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return c.sqliteConn.ExecContext(ctx, query, args)
	}
	result, err := s.ExecContext(ctx, args)
	if err != nil {
		c.dropStatement(query, s)
	}
	return result, err
}

// QueryContext executes the query.
func (c *cachingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := c.prepareCached(ctx, query, args)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return c.sqliteConn.QueryContext(ctx, query, args)
	}
	rows, err := s.QueryContext(ctx, args)
	if err != nil {
		c.dropStatement(query, s)
		return nil, err
	}
	s.isBusy = true
	return &cachedRows{Rows: rows, statement: s}, nil
}

// prepareCached returns the prepared statement of the query; nil = it is not kept, or is busy.
func (c *cachingConn) prepareCached(ctx context.Context, query string, args []driver.NamedValue) (*statement, error) {
	for _, a := range args { // PostgreSQL refuses some texts
		if text, ok := a.Value.(string); ok && (strings.IndexByte(text, 0) >= 0 || !utf8.ValidString(text)) {
			return nil, core.Errorf(core.ErrInvalid, models.UnstorableMessage)
		}
	}
	if s := c.statements[query]; s != nil {
		if s.isBusy {
			return nil, nil
		}
		return s, nil
	}
	verb, _, _ := strings.Cut(query, " ")
	if len(query) > maxStatementBytes || !slices.Contains([]string{"SELECT", "INSERT", "UPDATE", "DELETE", "WITH"}, verb) {
		return nil, nil
	}
	if len(c.statements) >= maxStatements {
		for old, s := range c.statements { // any one: what is used again comes back
			if !s.isBusy {
				c.dropStatement(old, s)
				break
			}
		}
	}
	prepared, err := c.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	s := &statement{sqliteStmt: prepared.(sqliteStmt)}
	c.statements[query] = s
	return s, nil
}

// dropStatement closes a statement, also after an error: the next one is prepared anew.
func (c *cachingConn) dropStatement(query string, s *statement) {
	delete(c.statements, query)
	_ = s.Close() // its error is that of its last execution, which is reported
}

// Close closes the connection and its statements.
func (c *cachingConn) Close() error {
	for query, s := range c.statements {
		c.dropStatement(query, s)
	}
	return c.sqliteConn.Close()
}

// cachedRows are the rows of a prepared statement, which is free when they are closed.
type cachedRows struct {
	driver.Rows

	statement *statement
}

// Close ends the reading.
func (r *cachedRows) Close() error {
	r.statement.isBusy = false
	return r.Rows.Close()
}
