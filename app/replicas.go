package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"bobbin/app/api/handlers"
	"bobbin/app/core/config"
	"bobbin/app/events"
)

// What joins this process to others on the same database.

// eventBuffer is how many events a listener may be behind before it is dropped
// and has to come back.
const eventBuffer = 1024

// bus carries events, in this process or between several.
type bus interface {
	events.Bus
	Close()
}

// openFeed opens the bus and the feed over it.
func (a *App) openFeed(ctx context.Context) error {
	n := a.cfg.NATS
	if !n.Shared() {
		a.bus = events.NewLocal(eventBuffer)
		a.feed = events.New(a.bus, a.repos.events, a.log)
		return nil
	}
	joined, err := events.NewNATS(natsOptions(n, a.log)) //nolint:contextcheck // it lives as long as the process
	if err != nil {
		return err
	}
	a.bus = joined
	a.feed = events.NewShared(a.bus, a.repos.events, a.repos.runs, a.log)
	if n.InTheClear() {
		a.log.WarnContext(ctx, "what replicas tell each other, answers among it, is not encrypted: set nats.tls_ca, nats.tls_cert and nats.tls_key, or keep nats.cluster_addr in a network that you trust",
			"cluster_addr", n.ClusterAddr)
	}
	a.log.InfoContext(ctx, "joined by nats", "own", n.Own(), "listens", joined.ClusterAddr(), "peers", n.Peers, "tls", n.TLSCert != "")
	return nil
}

// Joined says how this process finds the others on its database; empty if it works by
// itself.
func (a *App) Joined() string {
	n := a.cfg.NATS
	joined, ok := a.bus.(*events.NATS)
	switch {
	case !ok:
		return ""
	case n.Own():
		return fmt.Sprintf("joined by NATS of their own: this one listens on %s and looks for %s", joined.ClusterAddr(), strings.Join(n.Peers, ", "))
	default:
		return "joined by the NATS of nats.url"
	}
}

// serveOthers answers what other replicas ask, until ctx ends.
func (a *App) serveOthers(ctx context.Context) error {
	if !a.cfg.NATS.Shared() {
		return nil
	}
	return a.feed.Serve(ctx)
}

// natsOptions returns the settings as the bus takes them.
func natsOptions(n config.NATS, logger *slog.Logger) events.NATSOptions {
	o := events.NATSOptions{
		URL: n.URL.Reveal(), Buffer: eventBuffer, Logger: logger,
		TLS: events.TLSFiles{CA: n.TLSCA, Cert: n.TLSCert, Key: n.TLSKey},
	}
	if n.Own() {
		o.Cluster = &events.NATSCluster{Addr: n.ClusterAddr, Peers: n.Peers, Secret: n.Secret.Reveal()}
	}
	return o
}

// checks are what must be right for this process to be ready.
func (a *App) checks() []handlers.Check {
	checks := []handlers.Check{
		{Name: "database", Run: a.database.Ping},
		{Name: "migrations", Run: a.migrated},
	}
	if joined, ok := a.bus.(interface{ Check(context.Context) error }); ok {
		checks = append(checks, handlers.Check{Name: "nats", Run: joined.Check})
	}
	return checks
}

// migrated checks that the schema is the one this program knows.
func (a *App) migrated(ctx context.Context) error {
	status, err := a.database.MigrationStatus(ctx)
	if err != nil {
		return err
	}
	if status.Pending() {
		return errors.New("migrations are pending")
	}
	return nil
}
