package db

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"bobbin/app/core"
)

// Translate says in core's words that PostgreSQL was not reached, broke the connection, or
// did not answer in time: another try may succeed. Every other error stays as it is. What
// comes through Gorm is translated already.
func Translate(err error) error {
	if err == nil || errors.Is(err, core.ErrNoDatabase) || !isAway(err) {
		return err
	}
	return &core.Error{Kind: core.ErrUnavailable, Code: "database_unavailable", Err: fmt.Errorf("%w: %w", core.ErrNoDatabase, err),
		Message: "the database cannot be reached; try again in a moment"}
}

func isAway(err error) bool {
	var told *pgconn.PgError
	if errors.As(err, &told) {
		return takesNothing(told.Code)
	}
	if errors.Is(err, context.Canceled) {
		return false
	}
	var network net.Error // a connection, or a time limit
	var connect *pgconn.ConnectError
	return errors.As(err, &network) || errors.As(err, &connect) || pgconn.SafeToRetry(err) ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// takesNothing reports whether PostgreSQL says by the code that it takes nothing now: class
// 08 is "connection exception", 57P01 to 57P03 shut-down, crash and start, 53300 too many
// connections.
func takesNothing(code string) bool {
	return strings.HasPrefix(code, "08") || slices.Contains([]string{"57P01", "57P02", "57P03", "53300"}, code)
}
