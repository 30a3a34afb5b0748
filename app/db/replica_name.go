package db

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"bobbin/app/core"
)

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
	if n.warned || taken.Holder.Who == n.start {
		return
	}
	n.warned = true
	n.log.WarnContext(ctx, "two processes have the same replica name: give each its own replica.name, or data_dir. They do not share work, but neither takes its own over at once after a crash",
		"replica", n.name, "other_addr", taken.Holder.Address, "other_since", taken.Holder.Since)
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
