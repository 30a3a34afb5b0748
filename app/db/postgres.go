package db

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"

	"bobbin/app/core"
	"bobbin/migrations"
)

// The pool of one replica. PostgreSQL allows 100 connections unless told
// otherwise, so three replicas fit beside other programs.
const (
	postgresMaxConns    = 25
	postgresConnLife    = time.Hour
	postgresConnIdle    = 5 * time.Minute
	postgresConnTimeout = 10 * time.Second
)

func openPostgres(url string) (backend, error) {
	cfg, err := pgx.ParseConfig(url) // its error does not show the password
	if err != nil {
		return backend{}, &core.Error{Kind: core.ErrInvalid, Err: err,
			Message: "the database URL cannot be read; expected postgres://user:password@host:5432/name?sslmode=require"}
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = postgresConnTimeout
	}
	cfg.DialFunc = dialer(cfg.ConnectTimeout).DialContext
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = "bobbin"
	}
	cfg.RuntimeParams["timezone"] = "UTC"
	pool := stdlib.OpenDB(*cfg)
	pool.SetMaxOpenConns(postgresMaxConns)
	pool.SetMaxIdleConns(postgresMaxConns)
	pool.SetConnMaxLifetime(postgresConnLife)
	pool.SetConnMaxIdleTime(postgresConnIdle)
	return backend{
		dialector:  postgresDialector{postgres.Dialector{Config: &postgres.Config{Conn: pool}}},
		pool:       pool,
		migrations: migrations.Postgres(),
	}, nil
}

// unreachable returns the error of a first connection as it is told to people:
// pgx repeats it on a line for every address that it tried.
func unreachable(err error) error {
	var connect *pgconn.ConnectError
	if !errors.As(err, &connect) {
		return fmt.Errorf("open database: %w", err)
	}
	reason := err
	var told *pgconn.PgError
	var network *net.OpError
	var name *net.DNSError
	switch {
	case errors.As(err, &told):
		return &core.Error{Kind: core.ErrUnavailable, Err: err, Message: "PostgreSQL does not let Bobbin in: " + told.Message + "; look at database.url"}
	case errors.As(err, &name):
		reason = fmt.Errorf("%s: %s", name.Name, name.Err)
	case errors.As(err, &network):
		reason = network
	}
	return &core.Error{Kind: core.ErrUnavailable, Err: err,
		Message: "PostgreSQL cannot be reached: " + reason.Error() + "; does it run, and is database.url right?"}
}

// postgresDialector is gorm's, but for what it tells the log, and us when the database is
// away.
type postgresDialector struct {
	postgres.Dialector
}

// Translate says what an error is, in gorm's words or in ours.
func (d postgresDialector) Translate(err error) error {
	if away := Translate(err); errors.Is(away, core.ErrNoDatabase) {
		return away
	}
	return d.Dialector.Translate(err)
}

// Explain returns the statement for the log, without its values.
func (postgresDialector) Explain(stmt string, _ ...any) string { return stmt }
