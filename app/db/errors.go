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
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"bobbin/app/core"
)

// Codes of outages, for programs.
const (
	codeUnavailable = "database_unavailable"
	codeReadOnly    = "database_read_only"

	// CodeDiskFull is the code of errors of a database without disk space.
	CodeDiskFull = "disk_full"
)

// outageRetry is the retry interval for outages that need an operator.
const outageRetry = 5 * time.Second

// Translate translates errors of a database that was not reached, broke the connection, did
// not answer in time, is read-only or has no disk space into a core.ErrNoDatabase: a retry
// may succeed. Every other error stays as it is. Errors that come through Gorm are already
// translated.
func Translate(err error) error {
	if err == nil || errors.Is(err, core.ErrNoDatabase) {
		return err
	}
	code := outageCode(err)
	if code == "" {
		return err
	}
	shown := &core.Error{Kind: core.ErrUnavailable, Code: code, Err: fmt.Errorf("%w: %w", core.ErrNoDatabase, err)}
	switch code {
	case codeReadOnly:
		shown.Message, shown.RetryAfter = "the database is currently read-only, so nothing can be stored; try again later", outageRetry
	case CodeDiskFull:
		shown.Message, shown.RetryAfter = "the database's disk is full, so nothing can be stored; try again later", outageRetry
	default:
		shown.Message = "the database cannot be reached; try again in a moment"
		if errors.Is(err, context.DeadlineExceeded) { // a busy machine, or a writer that takes long
			shown.Message = "the database did not answer in time; try again in a moment"
		}
	}
	return shown
}

// outageCode returns the code of the outage that err reports, empty for any other error.
func outageCode(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		// Class 08 is "connection exception", 57P01 to 57P03 are shutdown, crash and start, 53300 too many connections,
		// 53200 out of memory, 57014 a statement canceled by an operator or statement_timeout,
		// 58030 a disk error; a standby after a failover answers with 25006.
		switch state := pg.Code; {
		case state == "25006":
			return codeReadOnly
		case state == "53100":
			return CodeDiskFull
		case strings.HasPrefix(state, "08"), slices.Contains([]string{"57P01", "57P02", "57P03", "53200", "53300", "57014", "58030"}, state):
			return codeUnavailable
		}
		return ""
	}
	var lite *sqlite.Error
	if errors.As(err, &lite) {
		switch lite.Code() {
		case sqlite3.SQLITE_READONLY_DBMOVED: // the file is not where it was
			return codeUnavailable
		case sqlite3.SQLITE_IOERR_SHMSIZE: // the index of the write-ahead log cannot grow
			return CodeDiskFull
		}
		switch lite.Code() & 0xff {
		case sqlite3.SQLITE_FULL:
			return CodeDiskFull
		case sqlite3.SQLITE_READONLY:
			return codeReadOnly
		case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN:
			return codeUnavailable
		}
		return ""
	}
	if errors.Is(err, context.Canceled) {
		return ""
	}
	var network net.Error // a connection, or a time limit
	var connect *pgconn.ConnectError
	if errors.As(err, &network) || errors.As(err, &connect) || pgconn.SafeToRetry(err) ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return codeUnavailable
	}
	return ""
}
