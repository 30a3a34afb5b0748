package db

import (
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/migrations"
)

// The pools of one replica. PostgreSQL allows 100 connections by default, so three replicas
// fit beside other programs. The reserve is for work that must not wait for requests:
// heartbeats, sweeps and /readyz.
const (
	postgresMaxConns    = 25
	postgresReserve     = 3
	postgresConnLife    = time.Hour
	postgresConnIdle    = 5 * time.Minute
	postgresConnTimeout = 10 * time.Second
)

func openPostgres(url string) (backend, error) {
	cfg, err := postgresConfig(url)
	if err != nil {
		return backend{}, &core.Error{Kind: core.ErrInvalid, Err: err,
			Message: "the database URL is invalid; expected postgres://user:password@host:5432/name?sslmode=require"}
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = postgresConnTimeout
	}
	cfg.DialFunc = newDialer(cfg.ConnectTimeout).DialContext
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = "bobbin"
	}
	cfg.RuntimeParams["timezone"] = "UTC"
	dialector := func(pool *sql.DB) gorm.Dialector {
		return postgresDialector{postgres.Dialector{Config: &postgres.Config{Conn: pool}}}
	}
	pool, reserve := postgresPool(cfg, postgresMaxConns), postgresPool(cfg, postgresReserve)
	return backend{
		main:       dialector(pool),
		forReserve: dialector(reserve),
		pool:       pool,
		reserve:    reserve,
		migrations: migrations.Postgres(),
		writers:    2, // while one waits for the disk, the other one is executed
	}, nil
}

// IsUnverified reports whether the URL leads to a PostgreSQL on another machine without
// verification of the server (sslmode=verify-full or verify-ca).
func IsUnverified(url string) bool {
	if !strings.HasPrefix(url, "postgres") {
		return false
	}
	cfg, err := postgresConfig(url)
	if err != nil {
		return false // Open reports the error
	}
	if isUnverified(cfg.Host, cfg.TLSConfig) {
		return true
	}
	return slices.ContainsFunc(cfg.Fallbacks, func(f *pgconn.FallbackConfig) bool { return isUnverified(f.Host, f.TLSConfig) })
}

func isUnverified(host string, secure *tls.Config) bool {
	ip := net.ParseIP(host)
	if strings.HasPrefix(host, "/") || host == "localhost" || ip != nil && ip.IsLoopback() {
		return false
	}
	return secure == nil || secure.InsecureSkipVerify && secure.VerifyPeerCertificate == nil
}

func postgresPool(cfg *pgx.ConnConfig, conns int) *sql.DB {
	pool := stdlib.OpenDB(*cfg, stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
		// Otherwise times come in the local time zone.
		conn.TypeMap().RegisterType(&pgtype.Type{Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC}})
		// JIT compilation would take a quarter of a second for searches that take milliseconds.
		_, err := conn.Exec(ctx, "SET jit = off")
		return err
	}))
	pool.SetMaxOpenConns(conns)
	pool.SetMaxIdleConns(conns)
	pool.SetConnMaxLifetime(postgresConnLife)
	pool.SetConnMaxIdleTime(postgresConnIdle)
	return pool
}

// noDatabase is PostgreSQL's code for a database that does not exist.
const noDatabase = "3D000"

// unreachableError returns the error of a first connection for people: pgx repeats it on a
// line for every address that it tried.
func unreachableError(err error) error {
	var connect *pgconn.ConnectError
	if !errors.As(err, &connect) {
		return fmt.Errorf("open database: %w", err)
	}
	reason := err
	var refused *pgconn.PgError
	var network *net.OpError
	var name *net.DNSError
	switch {
	case errors.As(err, &refused) && refused.Code == noDatabase:
		return &core.Error{Kind: core.ErrUnavailable, Err: err, Message: "PostgreSQL is running, but " + refused.Message + "; create it, for example with: createdb " + connect.Config.Database}
	case errors.As(err, &refused):
		return &core.Error{Kind: core.ErrUnavailable, Err: err, Message: "PostgreSQL rejected the connection: " + refused.Message + "; check database.url"}
	case errors.As(err, &name):
		reason = fmt.Errorf("%s: %s", name.Name, name.Err)
	case errors.As(err, &network):
		reason = network
	}
	return &core.Error{Kind: core.ErrUnavailable, Err: err,
		Message: "PostgreSQL cannot be reached: " + reason.Error() + "; is it running, and is database.url correct?"}
}

// postgresDialector is gorm's, except for the log and for errors of an unavailable
// database.
type postgresDialector struct {
	postgres.Dialector
}

// Translate translates an error to one of core or of gorm.
func (d postgresDialector) Translate(err error) error {
	if outage := Translate(err); errors.Is(outage, core.ErrNoDatabase) {
		return outage
	}
	return d.Dialector.Translate(err)
}

// Explain returns the statement for the log, without its values.
func (postgresDialector) Explain(stmt string, _ ...any) string { return stmt }

// What happens to a statement whose context ends. Most statements finish before they are
// canceled, so a client that disconnects costs no connection.
const (
	cancelAfter = 50 * time.Millisecond // asks PostgreSQL to cancel the statement
	breakAfter  = time.Second           // closes the connection
)

// postgresConfig returns the connection settings for the database at url. Of several hosts
// it selects the one that accepts writes, unless the URL has target_session_attrs.
func postgresConfig(url string) (*pgx.ConnConfig, error) {
	cfg, err := pgx.ParseConfig(url) // its error does not show the password
	if err != nil {
		return nil, err
	}
	severalHosts := slices.ContainsFunc(cfg.Fallbacks, func(f *pgconn.FallbackConfig) bool { return f.Host != cfg.Host || f.Port != cfg.Port })
	if severalHosts && !strings.Contains(url, "target_session_attrs=") {
		cfg.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	cfg.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, CancelRequestDelay: cancelAfter, DeadlineDelay: breakAfter}
	}
	return cfg, nil
}

// When a connection to PostgreSQL without answers is closed. A network that drops all
// packets reports nothing, and TCP by itself retries for a quarter of an hour. All probes
// together take as long as sent data may stay unacknowledged.
const (
	keepaliveIdle     = 10 * time.Second // before the first probe
	keepaliveInterval = 5 * time.Second  // between probes
	keepaliveProbes   = 3
	maxUnanswered     = keepaliveIdle + keepaliveProbes*keepaliveInterval
)

func newDialer(timeout time.Duration) *net.Dialer {
	return &net.Dialer{
		Timeout:         timeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: keepaliveIdle, Interval: keepaliveInterval, Count: keepaliveProbes},
		ControlContext: func(_ context.Context, _, _ string, c syscall.RawConn) error {
			return limitUnanswered(c, maxUnanswered)
		},
	}
}
