package wire

import (
	"context"
	"log/slog"

	"bobbin/app/core/config"
	"bobbin/app/core/quota"
	"bobbin/app/events"
)

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
