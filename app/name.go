package app

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"bobbin/app/core"
	"bobbin/app/db"
)

// What this process is called in leases. The name of its replica is the same after a
// restart, so that the restart takes over at once what it had; each start adds something
// of its own, so that two processes never share a lease, whatever their settings say. A
// process whose replica's name is taken by a living one works under another name.

// The clocks of a replica's name.
const (
	nameEvery = 10 * time.Second       // it is looked at so often
	nameTime  = 5 * time.Second        // of one question to the database
	nameWait  = 2 * time.Second        // for the connection of a process that has just died
	namePoll  = 100 * time.Millisecond // while waiting
)

// replicaName is the name of this process's replica.
type replicaName struct {
	database *db.DB
	log      *slog.Logger
	name     string
	start    string   // tells this start of it from others
	held     *db.Name // nil = another process has it
	warned   bool     // since it was held for the last time
}

// nameProcess finds out what this process is called.
func (a *App) nameProcess(ctx context.Context) error {
	name := a.cfg.Replica.Name
	if name == "" {
		var err error
		if name, err = a.folder.Worker(); err != nil {
			return err
		}
	}
	a.name = &replicaName{database: a.database, log: a.log, name: name, start: core.NewID[string]()}
	if !a.name.wait(ctx) { // what the other one has is left alone
		name += "~" + a.name.start
	}
	a.worker = core.NewWorker(name, a.name.start)
	return nil
}

// wait takes the name and reports whether it did.
func (n *replicaName) wait(ctx context.Context) bool {
	held, err := holdName(ctx, n.database, n.name, n.start)
	var taken *db.NameTakenError
	switch {
	case err == nil:
		n.held = held
	case errors.As(err, &taken):
		n.warn(ctx, taken)
	default:
		n.log.WarnContext(ctx, "not known whether another process has this replica's name", "replica", n.name, "err", err)
	}
	return err == nil
}

// holdName takes a replica's name. A process that has just died may seem to have it for
// a moment: that is waited for.
func holdName(ctx context.Context, database *db.DB, name, who string) (*db.Name, error) {
	for until := time.Now().Add(nameWait); ; {
		try, cancel := context.WithTimeout(ctx, nameTime)
		held, err := database.HoldName(try, name, who)
		cancel()
		var taken *db.NameTakenError
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
func (n *replicaName) warn(ctx context.Context, taken *db.NameTakenError) {
	if n.warned || taken.Holder.Who == n.start {
		return
	}
	n.warned = true
	n.log.WarnContext(ctx, "two processes have the same replica name: give each its own replica.name, or data_dir. They do not share work, but neither takes its own over at once after a crash",
		"replica", n.name, "other_addr", taken.Holder.Address, "other_since", taken.Holder.Since)
}

// keep holds the name, and takes it again when the connection is lost, until ctx ends.
func (n *replicaName) keep(ctx context.Context) error {
	t := time.NewTicker(nameEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			n.look(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}

// look sees whether the name is still held.
func (n *replicaName) look(ctx context.Context) {
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
	held, err := n.database.HoldName(try, n.name, n.start)
	var taken *db.NameTakenError
	switch {
	case err == nil:
		n.held, n.warned = held, false
	case errors.As(err, &taken):
		n.warn(ctx, taken)
	}
}

// release gives the name back.
func (n *replicaName) release() error { return n.held.Close() }
