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

// programPrefix begins the application_name of connections that hold a name. What follows tells
// the start of the process, as in its leases (core.NewWorker).
const programPrefix = "bobbin "

// The clocks of a replica's name.
const (
	nameEvery = 500 * time.Millisecond // it is looked at so often
	twinEvery = 10 * time.Second       // while another process has it
	nameTime  = 5 * time.Second        // of one question to the database
	nameWait  = 2 * time.Second        // for the connection of a process that has just died
	namePoll  = 100 * time.Millisecond // while waiting
)

// deadChecks is how often in a row the connection of a process is missing before it counts as dead. One
// that lives and only lost its connection has another one by then.
const deadChecks = 4

// ReplicaName is the name of this process's replica. It is the same after a restart, so
// that the restart immediately takes over the leases of the process before it. No other process
// connected to the same PostgreSQL has it: an advisory lock on a separate connection. When the process
// dies the database releases it immediately, and other replicas take over its runs; when its machine or
// the network fails, within half a minute. With a pooler that shares connections between transactions it
// has no effect. Not safe for concurrent use.
type ReplicaName struct {
	database *DB
	log      *slog.Logger
	name     string
	start    string         // tells this start of it from others
	conn     *pgx.Conn      // has the lock; nil = another process has it, or the database is SQLite, which has one process
	warned   bool           // since it was held for the last time
	missing  map[string]int // starts of processes whose connections this connection has seen: how often in a row it has missed them
}

// OpenReplicaName takes the name for this process. Worker says what the process is called
// in leases: the name, or another one if a living process has it, and what is this start's
// own, so that two processes never share a lease, whatever their settings say.
func OpenReplicaName(ctx context.Context, database *DB, log *slog.Logger, name string) (n *ReplicaName, worker string) {
	n = &ReplicaName{database: database, log: log, name: name, start: core.NewID[string]()}
	if err := n.waitForLock(ctx); err != nil { // the leases of the other process are left alone
		name += "~" + n.start
		if !n.warnOfTwin(ctx, err) {
			log.WarnContext(ctx, "not known whether another process has this replica's name", "replica", n.name, "err", err)
		}
	}
	return n, name + "/" + n.start
}

// CheckReplicaName returns a *ReplicaLockedError while another process has the name.
func CheckReplicaName(ctx context.Context, database *DB, name string) error {
	n := &ReplicaName{database: database, name: name, start: "check"}
	return errors.Join(n.waitForLock(ctx), n.Release())
}

// waitForLock is lock for a name that a process which has just died may seem to have for a moment.
func (n *ReplicaName) waitForLock(ctx context.Context) (err error) {
	_, _ = poll(ctx, namePoll, nameWait, func() (bool, error) {
		err = n.lock(ctx)
		_, isLocked := errors.AsType[*ReplicaLockedError](err)
		return !isLocked, nil
	})
	return err
}

// lock takes the name. *ReplicaLockedError when another process has it.
func (n *ReplicaName) lock(ctx context.Context) error {
	if n.database.Dialect() != "postgres" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, nameTime)
	defer cancel()
	cfg, err := postgresConfig(n.database.url)
	if err == nil {
		n.missing = map[string]int{}
		n.conn, err = pgx.ConnectConfig(ctx, cfg)
	}
	if err == nil {
		err = n.tryLock(ctx)
	}
	if err != nil {
		return errors.Join(err, n.Release())
	}
	return nil
}

func (n *ReplicaName) tryLock(ctx context.Context) error {
	// The database notices within half a minute that the peer is gone.
	if _, err := n.conn.Exec(ctx, "SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3"); err != nil {
		return err
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte("bobbin replica " + n.name)) // never fails
	key, ok := int64(h.Sum64()), false                 //nolint:gosec // any number will do
	if err := n.conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1)", key).Scan(&ok); err != nil || ok {
		// Other processes see then that this one lives. Behind a pooler, which gives connections numbers of its own, they
		// cannot: its connections to the database outlive those of its clients.
		_, hidden := n.conn.Exec(ctx, "SELECT set_config('application_name', $1, false) WHERE pg_backend_pid() = $2", programPrefix+n.start, int64(n.conn.PgConn().PID()))
		return errors.Join(err, hidden)
	}
	locked := &ReplicaLockedError{}
	err := n.conn.QueryRow(ctx, "SELECT a.application_name, COALESCE(host(a.client_addr), ''), COALESCE(a.backend_start, 'epoch') "+
		"FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1 "+
		"AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) "+
		"AND (l.classid::bigint << 32) | l.objid::bigint = $1", key).Scan(&locked.Who, &locked.Address, &locked.Since)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) { // it has just ended
		return err
	}
	locked.Who = strings.TrimPrefix(locked.Who, programPrefix)
	return locked
}

// endLeases ends the leases of processes that died while this connection was there: a database that restarts
// says nothing about them. It fails if the name is no longer held.
func (n *ReplicaName) endLeases(ctx context.Context) error {
	rows, _ := n.conn.Query(ctx, "SELECT substr(application_name, length($1) + 1) FROM pg_stat_activity WHERE datname = current_database() AND starts_with(application_name, $1)", programPrefix)
	present, err := pgx.CollectRows(rows, pgx.RowTo[string]) // also the error of Query
	for start := range n.missing {
		n.missing[start]++
	}
	for _, start := range present {
		n.missing[start] = 0
	}
	for start, checks := range n.missing {
		if err != nil || checks < deadChecks {
			continue
		}
		delete(n.missing, start)
		// Those of runs, which counts as a death of each, and of summaries. Rows that are locked are skipped: their leases expire.
		_, err = n.conn.Exec(ctx, "UPDATE runs SET lease_owner = '', lease_until = clock_timestamp(), deaths = deaths + 1 WHERE id IN "+
			"(SELECT id FROM runs WHERE status = 'running' AND right(lease_owner, length($1)) = $1 FOR UPDATE SKIP LOCKED)", "/"+start)
		if err == nil {
			_, err = n.conn.Exec(ctx, "UPDATE sessions SET summary_lease_owner = '', summary_lease_until = NULL, summary_lease_since = NULL WHERE id IN "+
				"(SELECT id FROM sessions WHERE summary_lease_until IS NOT NULL AND strpos(summary_lease_owner, $1) > 0 FOR UPDATE SKIP LOCKED)", "/"+start+"/")
		}
	}
	return err
}

// Name returns the replica's name.
func (n *ReplicaName) Name() string { return n.name }

// WarnOfOthers warns of other processes on the database, which this one has no way to
// reach.
func (n *ReplicaName) WarnOfOthers(ctx context.Context) {
	if n.conn == nil {
		return // OpenReplicaName has warned
	}
	var others int
	err := n.conn.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "+
		"AND application_name LIKE $1", programPrefix+"%").Scan(&others)
	switch {
	case err != nil:
		n.log.WarnContext(ctx, "not known whether there are other processes on this database", "err", err)
	case others > 0:
		n.log.WarnContext(ctx, "other processes run on this database, and nothing joins them: a reader at one of them sees what another one does only with a delay, and no text as it is written. "+
			"Set nats.cluster_addr, nats.peers and nats.secret, or nats.url, for all of them", "others", others)
	}
}

// warnOfTwin warns once that another process has the name, if that is the error. One that seems to be this one is a
// connection that was lost, and that the database has not missed yet.
func (n *ReplicaName) warnOfTwin(ctx context.Context, err error) bool {
	locked, ok := errors.AsType[*ReplicaLockedError](err)
	if !ok || n.warned || locked.Who == n.start {
		return ok
	}
	n.warned = true
	n.log.WarnContext(ctx, "two processes have the same replica name: give each its own replica.name, or data_dir. They do not share work, but neither takes its own over at once after a crash",
		"replica", n.name, "other_addr", locked.Address, "other_since", locked.Since)
	return true
}

// Keep holds the name, and takes it again when the connection is lost, until ctx ends. It ends the leases of
// processes that die meanwhile.
func (n *ReplicaName) Keep(ctx context.Context) error {
	return core.Repeat(ctx, nil, func(ctx context.Context) time.Duration {
		n.check(ctx)
		if n.warned {
			return twinEvery
		}
		return nameEvery
	})
}

// check takes the name again if it is no longer held.
func (n *ReplicaName) check(ctx context.Context) {
	if n.conn != nil {
		call, cancel := context.WithTimeout(ctx, nameTime)
		defer cancel()
		if n.endLeases(call) == nil {
			return
		}
		_ = n.Release() // it is lost
	}
	if err := n.lock(ctx); err == nil {
		n.warned = false
	} else {
		n.warnOfTwin(ctx, err)
	}
}

// Release gives the name back.
//
//nolint:contextcheck,nolintlint // it is released also when the caller's context has ended
func (n *ReplicaName) Release() error {
	if n.conn == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), nameTime)
	defer cancel()
	conn := n.conn
	n.conn = nil
	return conn.Close(ctx)
}
