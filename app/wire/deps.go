// Package wire builds the parts of Bobbin: plain functions from settings and values to
// values, none of them half built. A server (package app), a replay (package eval) and the
// one-off commands (package ops) are made of the same parts.
package wire

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/datadir"
	"bobbin/app/core/llm"
	"bobbin/app/core/quota"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/app/events"
	"bobbin/app/runs"
	"bobbin/app/slack"
	"bobbin/app/telemetry"
)

// Deps are what the parts of a process share.
type Deps struct {
	Config      config.Config
	Logger      *slog.Logger
	Database    *db.DB
	Stores      Stores
	Search      core.SearchStore  // Stores.Search, or meaning beside it
	AgentSearch *core.AgentSearch // Search, as agents use it
	Searches    *quota.Quota      // places for searches at once
	Feed        *events.Feed
	Bus         events.Bus
	Counter     llm.TokenCounter
	Models      Models
	Budget      *runs.Budget
	Stored      *quota.Stored // nil = no limits
	Telemetry   *telemetry.Telemetry
	Labels      *Labels        // of metrics; nil where nobody reads them
	Slack       *slack.Clients // nil = Slack is off
	SlackPosts  *slack.Outbox  // likewise
	Worker      string         // names this process in leases
}

// Stores are the repositories over one database.
type Stores struct {
	Sessions           *repositories.Sessions
	Messages           *repositories.Messages
	Branches           *repositories.Branches
	Aliases            *repositories.Aliases
	SlackInbox         *repositories.SlackInbox
	SlackThreads       *repositories.SlackThreads
	SlackPosts         *repositories.SlackPosts
	SlackInstallations *repositories.SlackInstallations
	Webhooks           *repositories.OwnerWebhooks
	Summaries          *repositories.Summaries
	Standing           *repositories.StandingInstructions
	Setups             *repositories.PromptSetups
	Runs               *repositories.Runs
	Events             *repositories.Events
	Calibrations       *repositories.Calibrations
	ModelCalls         *repositories.ModelCalls
	Keys               *repositories.IdempotencyKeys
	Memories           *repositories.Memories
	Search             *repositories.Search
	MessageVectors     *repositories.MessageVectors
	Blobs              *repositories.Blobs
	Deliveries         *repositories.Deliveries
	APIKeys            *repositories.APIKeys
	Audit              *repositories.Audit
}

// NewStores returns the repositories over the database.
func NewStores(database *db.DB) Stores {
	g := database.Gorm
	return Stores{
		Sessions: repositories.NewSessions(g), Messages: repositories.NewMessages(g), Branches: repositories.NewBranches(g),
		Aliases: repositories.NewAliases(g), SlackInbox: repositories.NewSlackInbox(g), SlackThreads: repositories.NewSlackThreads(g), SlackPosts: repositories.NewSlackPosts(g), SlackInstallations: repositories.NewSlackInstallations(g), Webhooks: repositories.NewOwnerWebhooks(g), Summaries: repositories.NewSummaries(g),
		Standing: repositories.NewStandingInstructions(g), Setups: repositories.NewPromptSetups(g),
		Runs: repositories.NewRuns(g).WithReserve(database.Reserve), Events: repositories.NewEvents(g),
		Calibrations: repositories.NewCalibrations(g), ModelCalls: repositories.NewModelCalls(g),
		Keys: repositories.NewIdempotencyKeys(g), Memories: repositories.NewMemories(g), Search: repositories.NewSearch(g), MessageVectors: repositories.NewMessageVectors(g),
		Blobs: repositories.NewBlobs(g), Deliveries: repositories.NewDeliveries(g),
		APIKeys: repositories.NewAPIKeys(g), Audit: repositories.NewAudit(g),
	}
}

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
