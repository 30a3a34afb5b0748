package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"bobbin/app/api/auth"
	"bobbin/app/api/handlers"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/datadir"
	"bobbin/app/db"
	"bobbin/app/events"
	"bobbin/app/wire"
)

// What must be right for this process to start and to be ready.

// readyChecks are what must be right for this process to be ready.
func (a *App) readyChecks() []handlers.Check {
	checks := []handlers.Check{
		{Name: "database", Run: a.checkDatabase},
		{Name: "migrations", Run: a.checkMigrations},
	}
	if joined, ok := a.Bus.(interface{ Check(context.Context) error }); ok {
		checks = append(checks, handlers.Check{Name: "nats", Run: joined.Check, Optional: true})
	}
	return checks
}

// minRoom is how many bytes the disk of a SQLite file must have: below it the next
// writes may fail.
const minRoom = 1 << 20

// checkDatabase checks that the database answers, takes writes and has room.
func (a *App) checkDatabase(ctx context.Context) error {
	if err := a.Database.Ping(ctx); err != nil {
		return err
	}
	if path, embedded := wire.SQLiteFile(a.Config); embedded {
		if free, _, known := datadir.Free(filepath.Dir(path)); known && free < minRoom {
			return core.Errorf(core.ErrUnavailable, "the disk of the database is full: make room")
		}
	}
	return a.Database.CheckWrites(ctx)
}

// checkMigrations checks that the schema is the one this program knows.
func (a *App) checkMigrations(ctx context.Context) error {
	status, err := a.Database.MigrationStatus(ctx)
	if err != nil {
		return err
	}
	if status.Pending() {
		return errors.New("migrations are pending")
	}
	return nil
}

// checkReach refuses an address that other machines reach while there is no key: nobody
// could call, and whoever set it expects that somebody can.
func (a *App) checkReach(ctx context.Context) error {
	if a.Config.Loopback() || len(a.Config.Auth.Keys) > 0 || a.Config.Auth.JWT.Enabled() {
		return nil
	}
	keys, err := a.Stores.APIKeys.List(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(keys, func(k core.APIKey) bool { return k.Valid(time.Now()) }) {
		return nil
	}
	return core.Errorf(core.ErrInvalid, "%s can be reached from other machines, and there are no API keys; make one with: bobbin keys create <name>, or listen on 127.0.0.1", a.Config.Addr)
}

// openTokenKeys prepares the keys of end users' tokens; nil = none are accepted. Those of a
// file must be good: it is a setting. A server may be down, and the start does not wait for it.
func openTokenKeys(ctx context.Context, j config.JWT, log *slog.Logger) (*auth.Keys, error) {
	if !j.Enabled() {
		return nil, nil
	}
	keys := wire.NewTokenKeys(j, log)
	if j.JWKSFile == "" {
		return keys, nil
	}
	if err := keys.Load(ctx); err != nil {
		return nil, core.Errorf(core.ErrInvalid, "auth.jwt.jwks_file: %s: %v; write the public keys of who signs the tokens there, as a JWKS", j.JWKSFile, err)
	}
	return keys, nil
}

// Joined says how this process finds the others on its database; empty if it works by
// itself.
func (a *App) Joined() string {
	n := a.Config.NATS
	joined, ok := a.Bus.(*events.NATS)
	switch {
	case !ok:
		return ""
	case n.Own():
		return fmt.Sprintf("joined by NATS of their own: this one listens on %s and looks for %s", joined.ClusterAddr(), strings.Join(n.Peers, ", "))
	default:
		return "joined by the NATS of nats.url"
	}
}

// explainFullDisk returns the error of a start; that a disk is full it says in words.
func explainFullDisk(err error) error {
	var shown *core.Error
	if !errors.Is(err, syscall.ENOSPC) && (!errors.As(err, &shown) || shown.Code != db.CodeDiskFull) {
		return err
	}
	return &core.Error{Kind: core.ErrUnavailable, Code: db.CodeDiskFull, Err: err,
		Message: "the disk of the data folder or of the database is full: make room and start again; nothing that was stored is lost"}
}
