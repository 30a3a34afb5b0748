package db

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"bobbin/app/core"
)

// ReplicaLock is a name that no other process connected to the same PostgreSQL has: an advisory
// lock on a separate connection. When the process dies the database releases it
// immediately; when its machine or the network fails, within half a minute. Not safe for
// concurrent use.
type ReplicaLock struct{ conn *pgx.Conn } // nil = no lock: SQLite has one process

// ReplicaLockedError reports that another process has a name.
type ReplicaLockedError struct {
	Who     string    // its own description
	Address string    // as the database sees it; empty = this machine, or unknown
	Since   time.Time // when it connected
}

// Error names the process that has the name.
func (e *ReplicaLockedError) Error() string {
	if e.Since.IsZero() {
		return "another process is using it"
	}
	return fmt.Sprintf("a process at %s has been using it since %s", cmp.Or(e.Address, "this machine"), e.Since.UTC().Format(time.RFC3339))
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
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("lock the name %s: %w", name, err)
	}
	n := &ReplicaLock{conn}
	h := fnv.New64a()
	_, _ = h.Write([]byte("bobbin replica " + name))         // never fails
	if err := n.tryLock(ctx, int64(h.Sum64())); err != nil { //nolint:gosec // any number will do
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

func (n *ReplicaLock) tryLock(ctx context.Context, key int64) error {
	if _, err := n.conn.Exec(ctx, keepaliveSQL); err != nil {
		return fmt.Errorf("set keepalive: %w", err)
	}
	var ok bool
	if err := n.conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1)", key).Scan(&ok); err != nil {
		return fmt.Errorf("lock a name: %w", err)
	}
	if ok {
		return nil
	}
	taken := &ReplicaLockedError{}
	err := n.conn.QueryRow(ctx, "SELECT a.application_name, COALESCE(host(a.client_addr), ''), COALESCE(a.backend_start, 'epoch') "+
		"FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1 "+
		"AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) "+
		"AND (l.classid::bigint << 32) | l.objid::bigint = $1", key).Scan(&taken.Who, &taken.Address, &taken.Since)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) { // it has just ended
		return fmt.Errorf("find the holder of a name: %w", err)
	}
	taken.Who = strings.TrimPrefix(taken.Who, programPrefix)
	return taken
}

// Others returns how many other processes hold names in the same database.
func (n *ReplicaLock) Others(ctx context.Context) (int, error) {
	if n.conn == nil {
		return 0, nil
	}
	var others int
	err := n.conn.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "+
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
	return n.conn.Ping(ctx)
}

// Close releases the name.
//
//nolint:contextcheck,nolintlint // it is released also when the caller's context has ended
func (n *ReplicaLock) Close() error {
	if n == nil || n.conn == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), nameTime)
	defer cancel()
	return n.conn.Close(ctx)
}

// The clocks of a replica's name.
const (
	nameEvery = 10 * time.Second       // it is looked at so often
	nameTime  = 5 * time.Second        // of one question to the database
	nameWait  = 2 * time.Second        // for the connection of a process that has just died
	namePoll  = 100 * time.Millisecond // while waiting
)

// ReplicaName is the name of this process's replica. It is the same after a restart, so
// that the restart immediately takes over the leases of the process before it. Not safe for
// concurrent use.
type ReplicaName struct {
	database *DB
	log      *slog.Logger
	name     string
	start    string       // tells this start of it from others
	held     *ReplicaLock // nil = another process has it
	warned   bool         // since it was held for the last time
}

// OpenReplicaName takes the name for this process. Worker says what the process is called
// in leases: the name, or another one if a living process has it, and what is this start's
// own, so that two processes never share a lease, whatever their settings say.
func OpenReplicaName(ctx context.Context, database *DB, log *slog.Logger, name string) (n *ReplicaName, worker string) {
	n = &ReplicaName{database: database, log: log, name: name, start: core.NewID[string]()}
	held, err := WaitForReplica(ctx, n.database, n.name, n.start)
	var taken *ReplicaLockedError
	switch {
	case err == nil:
		n.held = held
	case errors.As(err, &taken):
		n.warn(ctx, taken)
	default:
		n.log.WarnContext(ctx, "not known whether another process has this replica's name", "replica", n.name, "err", err)
	}
	if err != nil { // the leases of the other process are left alone
		name += "~" + n.start
	}
	return n, core.NewWorker(name, n.start)
}

// Name returns the replica's name.
func (n *ReplicaName) Name() string { return n.name }

// WarnOfOthers warns of other processes on the database, which this one has no way to
// reach.
func (n *ReplicaName) WarnOfOthers(ctx context.Context) {
	if n.held == nil {
		return // that was told
	}
	others, err := n.held.Others(ctx)
	switch {
	case err != nil:
		n.log.WarnContext(ctx, "not known whether there are other processes on this database", "err", err)
	case others > 0:
		n.log.WarnContext(ctx, "other processes run on this database, and nothing joins them: a reader at one of them sees what another one does only with a delay, and no text as it is written. "+
			"Set nats.cluster_addr, nats.peers and nats.secret, or nats.url, for all of them", "others", others)
	}
}

// WaitForReplica takes a replica's name. A process that has just died may seem to have it for
// a moment, for which WaitForName waits.
func WaitForReplica(ctx context.Context, database *DB, name, who string) (*ReplicaLock, error) {
	for until := time.Now().Add(nameWait); ; {
		try, cancel := context.WithTimeout(ctx, nameTime)
		held, err := database.LockReplica(try, name, who)
		cancel()
		var taken *ReplicaLockedError
		if !errors.As(err, &taken) || time.Now().After(until) {
			return held, err
		}
		select {
		case <-time.After(namePoll):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// warn tells once that another process has the name. One that seems to be this one is a
// connection that was lost, and that the database has not missed yet.
func (n *ReplicaName) warn(ctx context.Context, taken *ReplicaLockedError) {
	if n.warned || taken.Who == n.start {
		return
	}
	n.warned = true
	n.log.WarnContext(ctx, "two processes have the same replica name: give each its own replica.name, or data_dir. They do not share work, but neither takes its own over at once after a crash",
		"replica", n.name, "other_addr", taken.Address, "other_since", taken.Since)
}

// Keep holds the name, and takes it again when the connection is lost, until ctx ends.
func (n *ReplicaName) Keep(ctx context.Context) error {
	return core.Every(ctx, nameEvery, n.check)
}

// check takes the name again if it is no longer held.
func (n *ReplicaName) check(ctx context.Context) {
	if n.held != nil {
		check, cancel := context.WithTimeout(ctx, nameTime)
		defer cancel()
		if n.held.Check(check) == nil {
			return
		}
		_ = n.held.Close() // it is lost
		n.held = nil
	}
	try, cancel := context.WithTimeout(ctx, nameTime)
	defer cancel()
	held, err := n.database.LockReplica(try, n.name, n.start)
	var taken *ReplicaLockedError
	switch {
	case err == nil:
		n.held, n.warned = held, false
	case errors.As(err, &taken):
		n.warn(ctx, taken)
	}
}

// Release gives the name back.
func (n *ReplicaName) Release() error { return n.held.Close() }
