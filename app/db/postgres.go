package db

import (
	"time"

	"github.com/jackc/pgx/v5"
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

// postgresDialector is gorm's, but for what it tells the log.
type postgresDialector struct {
	postgres.Dialector
}

// Explain returns the statement for the log, without its values.
func (postgresDialector) Explain(stmt string, _ ...any) string { return stmt }
