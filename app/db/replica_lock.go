package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
)

// ReplicaLock is a name that no other process connected to the same PostgreSQL has: an advisory
// lock on a separate connection. When the process dies the database releases it
// immediately; when its machine or the network fails, within half a minute. Not safe for
// concurrent use.
type ReplicaLock struct {
	pool *sql.DB   // of the one connection
	conn *sql.Conn // nil = no lock: SQLite has one process
}

// Holder is the process that has a name.
type Holder struct {
	Who     string    // its own description
	Address string    // as the database sees it; empty = this machine, or unknown
	Since   time.Time // when it connected
}

// ReplicaLockedError reports that another process has a name.
type ReplicaLockedError struct{ Holder Holder }

// Error names the process that has the name.
func (e *ReplicaLockedError) Error() string {
	if e.Holder.Since.IsZero() {
		return "another process is using it"
	}
	at := "this machine"
	if e.Holder.Address != "" {
		at = e.Holder.Address
	}
	return fmt.Sprintf("a process at %s has been using it since %s", at, e.Holder.Since.UTC().Format(time.RFC3339))
}

// programPrefix begins the application_name of connections that hold a name.
const programPrefix = "bobbin "

// keepaliveSQL lets the database notice within half a minute that the peer is gone.
const keepaliveSQL = "SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3"

// LockReplica locks the name for who, until Close. *NameTakenError when another process has
// it. It needs a dedicated connection: with a pooler that shares connections between
// transactions, names have no effect.
func (d *DB) LockReplica(ctx context.Context, name, who string) (*ReplicaLock, error) {
	if d.Dialect() != "postgres" {
		return &ReplicaLock{}, nil
	}
	cfg, err := postgresConfig(d.url)
	if err != nil {
		return nil, fmt.Errorf("lock the name %s: %w", name, err)
	}
	cfg.RuntimeParams["application_name"] = programPrefix + who
	pool := stdlib.OpenDB(*cfg)
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock the name %s: %w", name, err), pool.Close())
	}
	n := &ReplicaLock{pool: pool, conn: conn}
	h := fnv.New64a()
	_, _ = h.Write([]byte("bobbin replica " + name))         // never fails
	if err := n.tryLock(ctx, int64(h.Sum64())); err != nil { //nolint:gosec // any number will do
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

func (n *ReplicaLock) tryLock(ctx context.Context, key int64) error {
	if _, err := n.conn.ExecContext(ctx, keepaliveSQL); err != nil {
		return fmt.Errorf("set keepalive: %w", err)
	}
	var ok bool
	if err := n.conn.QueryRowContext(ctx, "SELECT pg_try_advisory_lock($1)", key).Scan(&ok); err != nil {
		return fmt.Errorf("lock a name: %w", err)
	}
	if ok {
		return nil
	}
	taken := &ReplicaLockedError{}
	err := n.conn.QueryRowContext(ctx, "SELECT a.application_name, COALESCE(host(a.client_addr), ''), COALESCE(a.backend_start, 'epoch') "+
		"FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1 "+
		"AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) "+
		"AND (l.classid::bigint << 32) | l.objid::bigint = $1", key).Scan(&taken.Holder.Who, &taken.Holder.Address, &taken.Holder.Since)
	if err != nil && !errors.Is(err, sql.ErrNoRows) { // it has just ended
		return fmt.Errorf("find the holder of a name: %w", err)
	}
	taken.Holder.Who = strings.TrimPrefix(taken.Holder.Who, programPrefix)
	return taken
}

// Others returns how many other processes hold names in the same database.
func (n *ReplicaLock) Others(ctx context.Context) (int, error) {
	if n.conn == nil {
		return 0, nil
	}
	var others int
	err := n.conn.QueryRowContext(ctx, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "+
		"AND application_name LIKE $1", programPrefix+"%").Scan(&others)
	if err != nil {
		return 0, fmt.Errorf("count the processes on the database: %w", err)
	}
	return others, nil
}

// Check reports whether the name is still held.
func (n *ReplicaLock) Check(ctx context.Context) error {
	if n.conn == nil {
		return nil
	}
	return n.conn.PingContext(ctx)
}

// Close releases the name.
func (n *ReplicaLock) Close() error {
	if n == nil || n.conn == nil {
		return nil
	}
	return errors.Join(n.conn.Close(), n.pool.Close())
}
