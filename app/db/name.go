package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// Name is a name that this process has, and no other that is connected to the same
// PostgreSQL: an advisory lock on a connection of its own. When the process dies the
// database lets go of it at once; when its machine or the network does, within half a
// minute. It is not safe for concurrent use.
type Name struct {
	pool *sql.DB   // of the one connection
	conn *sql.Conn // nil = nothing to hold: SQLite has one process
}

// Holder is who has a name.
type Holder struct {
	Who     string    // as it said when it took the name
	Address string    // as the database sees it; empty = this machine, or not told
	Since   time.Time // when it connected
}

// NameTakenError says that another process has a name.
type NameTakenError struct{ Holder Holder }

// Error says who has the name.
func (e *NameTakenError) Error() string {
	if e.Holder.Since.IsZero() {
		return "another process has it"
	}
	at := "this machine"
	if e.Holder.Address != "" {
		at = e.Holder.Address
	}
	return fmt.Sprintf("a process at %s has it since %s", at, e.Holder.Since.UTC().Format(time.RFC3339))
}

// programPrefix begins the application_name of connections that hold a name.
const programPrefix = "bobbin "

// keepalive lets the database notice within half a minute that the other end is gone.
const keepalive = "SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3"

// HoldName takes the name for who, until Close. *NameTakenError when another process has
// it. It needs a connection that is the database's own: behind a pooler that shares
// connections between transactions names mean nothing.
func (d *DB) HoldName(ctx context.Context, name, who string) (*Name, error) {
	if d.Dialect() != "postgres" {
		return &Name{}, nil
	}
	cfg, err := pgx.ParseConfig(d.url)
	if err != nil {
		return nil, fmt.Errorf("take the name %s: %w", name, err)
	}
	cfg.RuntimeParams["application_name"] = programPrefix + who
	pool := stdlib.OpenDB(*cfg)
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("take the name %s: %w", name, err), pool.Close())
	}
	n := &Name{pool: pool, conn: conn}
	if err := n.take(ctx, nameKey(name)); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

// nameKey is the number that stands for a name among the database's advisory locks.
func nameKey(name string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte("bobbin replica " + name)) // never fails
	return int64(h.Sum64())                          //nolint:gosec // any number will do
}

func (n *Name) take(ctx context.Context, key int64) error {
	if _, err := n.conn.ExecContext(ctx, keepalive); err != nil {
		return fmt.Errorf("set keepalive: %w", err)
	}
	var ok bool
	if err := n.conn.QueryRowContext(ctx, "SELECT pg_try_advisory_lock($1)", key).Scan(&ok); err != nil {
		return fmt.Errorf("lock a name: %w", err)
	}
	if ok {
		return nil
	}
	taken := &NameTakenError{}
	err := n.conn.QueryRowContext(ctx, "SELECT a.application_name, COALESCE(host(a.client_addr), ''), COALESCE(a.backend_start, 'epoch') "+
		"FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1 "+
		"AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) "+
		"AND (l.classid::bigint << 32) | l.objid::bigint = $1", key).Scan(&taken.Holder.Who, &taken.Holder.Address, &taken.Holder.Since)
	if err != nil && !errors.Is(err, sql.ErrNoRows) { // it has just left
		return fmt.Errorf("look who has a name: %w", err)
	}
	taken.Holder.Who = strings.TrimPrefix(taken.Holder.Who, programPrefix)
	return taken
}

// Check reports whether the name is still held.
func (n *Name) Check(ctx context.Context) error {
	if n.conn == nil {
		return nil
	}
	return n.conn.PingContext(ctx)
}

// Close gives the name back.
func (n *Name) Close() error {
	if n == nil || n.conn == nil {
		return nil
	}
	return errors.Join(n.conn.Close(), n.pool.Close())
}
