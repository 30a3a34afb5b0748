package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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

// readyChecks are what must be right for this process to be ready.
func (a *App) readyChecks() []handlers.Check {
	checks := []handlers.Check{{Name: "database", Run: a.checkDatabase}, {Name: "migrations", Run: func(ctx context.Context) error {
		status, err := a.Database.MigrationStatus(ctx)
		if err == nil && status.Pending() {
			err = errors.New("migrations are pending")
		}
		return err
	}}}
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

// Listen opens the configured address and writes it, and how the process was started, into
// the data folder; an error says what to do.
func (a *App) Listen(ctx context.Context, start datadir.StartOptions) (net.Listener, error) {
	if err := a.checkReach(ctx); err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", a.Config.Addr)
	if err != nil {
		return nil, core.Errorf(core.ErrUnavailable, "cannot listen on %s: %v; choose another address with --addr", a.Config.Addr, err)
	}
	// Before anybody is told that it is ready: the folder must say where.
	a.start = start
	if err := a.announce(l); err != nil {
		return nil, errors.Join(explainFullDisk(err), l.Close())
	}
	return l, nil
}

// announce writes where this process can be reached into the data folder.
func (a *App) announce(listener net.Listener) error {
	return a.folder.Announce(datadir.Server{URL: a.LocalURL(listener), PID: os.Getpid(), Token: a.token, Start: a.start})
}

// LocalURL returns the URL by which this machine reaches the listener. One of all
// addresses is reached by a loopback address: the one of the family that the settings
// name, as the listener's own address is [::] for 0.0.0.0 too.
func (a *App) LocalURL(listener net.Listener) string {
	tcp, ok := listener.Addr().(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return "http://" + listener.Addr().String()
	}
	host := "127.0.0.1"
	if strings.HasPrefix(a.Config.Addr, "[::") {
		host = "::1"
	}
	return "http://" + net.JoinHostPort(host, strconv.Itoa(tcp.Port))
}

// AuditStart notes in the audit log with which settings and which version a server
// starts, if they are others than the last time that this replica was started. An entry
// that cannot be stored is in the log of the server.
func (a *App) AuditStart(ctx context.Context) {
	if err := a.auditStart(ctx); err != nil {
		a.Logger.WarnContext(ctx, "start not noted in the audit log", "err", err)
	}
}

func (a *App) auditStart(ctx context.Context) error {
	audit := a.Stores.Audit
	target := "replica " + a.name.Name()
	var before core.StartDetails
	last, err := audit.Last(ctx, core.AuditConfigChanged, target)
	if err == nil {
		err = json.Unmarshal(last.Details, &before)
	}
	if err != nil && !errors.Is(err, core.ErrNotFound) {
		return err
	}
	now := core.StartDetails{Version: a.version, Settings: a.Config.Changed()}
	out := map[string]core.SettingChange{}
	for _, key := range slices.Concat(slices.Collect(maps.Keys(before.Settings)), slices.Collect(maps.Keys(now.Settings))) {
		if before.Settings[key] != now.Settings[key] {
			out[key] = core.SettingChange{From: before.Settings[key], To: now.Settings[key]}
		}
	}
	now.Changed = out
	if err == nil && now.Version == before.Version && len(now.Changed) == 0 {
		return nil
	}
	return audit.Add(ctx, core.AuditEntry{Actor: "server", Action: core.AuditConfigChanged, Target: target}, now)
}
