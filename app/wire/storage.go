package wire

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"bobbin/app/core/config"
	"bobbin/app/core/datadir"
	"bobbin/app/core/quota"
	"bobbin/app/db"
	"bobbin/app/events"
)

// What operators are told about a connection to PostgreSQL that does not verify the server.
const (
	UnverifiedDatabase = "whoever is on the way can read and change all conversations"
	VerifyDatabase     = "add sslmode=verify-full to database.url, and sslrootcert= with the file of its authority, or system"
)

// Storage is an open database that this process may use.
type Storage struct {
	*db.DB

	lock *datadir.Lock // of a SQLite file; nil = PostgreSQL, which any number of processes share
}

// OpenStorage opens the database of the settings, locks its file if it is SQLite, and
// brings its schema up to date.
func OpenStorage(ctx context.Context, cfg config.Config, log *slog.Logger) (*Storage, error) {
	var opts []db.Option
	if cfg.Database.Durability == config.DurabilityNormal {
		opts = append(opts, db.WithoutSync)
	}
	url := cfg.Database.URL.Reveal()
	if db.IsUnverified(url) {
		log.WarnContext(ctx, "nothing proves that PostgreSQL answers: "+UnverifiedDatabase+"; "+VerifyDatabase)
	}
	database, err := db.Open(ctx, url, log, opts...)
	if err != nil {
		return nil, err
	}
	s := &Storage{DB: database}
	if path, embedded := SQLiteFile(cfg); embedded {
		s.lock, err = datadir.HoldDatabase(ctx, path)
	}
	if err == nil {
		err = database.Migrate(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close closes the database and unlocks its file.
func (s *Storage) Close() error { return errors.Join(s.DB.Close(), s.lock.Release()) }

// SQLiteFile returns the path of the database's file, and false if it is no SQLite file.
func SQLiteFile(cfg config.Config) (path string, embedded bool) {
	return strings.CutPrefix(cfg.Database.URL.Reveal(), "sqlite://")
}

// eventBuffer is how many events a listener may be behind before it is dropped
// and has to come back.
const eventBuffer = 1024

// EncryptNATS says how to encrypt what replicas tell each other.
const EncryptNATS = "set nats.tls_ca (for a cluster of their own nats.tls_cert and nats.tls_key, too), or keep it in a network that you trust"

// OpenBus opens the bus of the settings.
func OpenBus(ctx context.Context, n config.NATS, log *slog.Logger) (events.Bus, error) {
	if !n.Shared() {
		return events.NewLocal(eventBuffer), nil
	}
	o := events.NATSOptions{
		URL: n.URL.Reveal(), Buffer: eventBuffer, Logger: log,
		TLS: events.TLSFiles{CA: n.TLSCA, Cert: n.TLSCert, Key: n.TLSKey},
	}
	if n.Own() {
		o.Cluster = &events.NATSCluster{Addr: n.ClusterAddr, Peers: n.Peers, Secret: n.Secret.Reveal()}
	}
	joined, err := events.NewNATS(o) //nolint:contextcheck // it lives as long as the process
	if err != nil {
		return nil, err
	}
	if n.InTheClear() {
		log.WarnContext(ctx, "what replicas tell each other, answers among it, is not encrypted: "+EncryptNATS, "nats_url", n.URL, "cluster_addr", n.ClusterAddr)
	}
	log.InfoContext(ctx, "joined by nats", "own", n.Own(), "listens", joined.ClusterAddr(), "peers", n.Peers, "tls", n.TLSCert != "")
	return joined, nil
}

// NewFeed returns the feed over the bus, which keeps to a limit of memory; nil = no limit.
func NewFeed(n config.NATS, bus events.Bus, s Stores, memory *quota.Quota, log *slog.Logger) *events.Feed {
	feed := events.New(bus, s.Events, log)
	if n.Shared() {
		feed = events.NewShared(bus, s.Events, s.Runs, log)
	}
	if memory != nil {
		feed.Limit(memory)
	}
	return feed
}
