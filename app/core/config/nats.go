package config

import (
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// NATS connects replicas: through an existing cluster (URL), or through one that the
// replicas make themselves (ClusterAddr, Peers, Secret). All empty = one process.
type NATS struct {
	URL         Secret   `key:"url" flag:"-"`    // of an existing cluster; several separated by commas
	Peers       []string `key:"peers"`           // host:port of other replicas, their ClusterAddr
	ClusterAddr string   `key:"cluster_addr"`    // host:port where this replica listens for the others
	Secret      Secret   `key:"secret" flag:"-"` // of the replicas' own cluster
	TLSCA       string   `key:"tls_ca"`          // PEM files
	TLSCert     string   `key:"tls_cert"`
	TLSKey      string   `key:"tls_key"`
}

// Replica is what tells this process from others on the same database.
type Replica struct {
	Name string `key:"name"` // empty = by the data folder
}

// Own reports whether the replicas make a cluster of their own.
func (n NATS) Own() bool { return n.ClusterAddr != "" }

// Shared reports whether there may be other replicas.
func (n NATS) Shared() bool { return n.Own() || !n.URL.Empty() }

// InTheClear reports whether replicas talk over a network without encryption.
func (n NATS) InTheClear() bool {
	if n.TLSCert != "" || n.TLSCA != "" {
		return false
	}
	if n.Own() {
		return !isLoopback(n.ClusterAddr)
	}
	for at := range strings.SplitSeq(n.URL.Reveal(), ",") {
		u, err := url.Parse(strings.TrimSpace(at))
		if err == nil && (u.Scheme == "nats" || u.Scheme == "ws") && !isThisMachine(u.Hostname()) {
			return true
		}
	}
	return false
}

func (c Config) validateReplicas(found *faults) {
	n := c.NATS
	found.checkKey(c.Replica.Name == "" || ValidKeyName(c.Replica.Name), "replica.name", "%q must be 1 to 64 letters, digits, and . _ @ -", c.Replica.Name)
	if n.Shared() && strings.HasPrefix(c.Database.URL.Reveal(), "sqlite:") {
		key := "nats.cluster_addr"
		if !n.URL.Empty() {
			key = "nats.url"
		}
		found.addFault(key, "it is for several processes, and SQLite has one; set database.url to a PostgreSQL, or remove it")
	}
	if !n.URL.Empty() {
		found.checkKey(!n.Own(), "nats.cluster_addr", "nats.url is set as well; choose one of them")
		// An address may hold a password or a token: no error repeats it.
		for _, at := range strings.Split(n.URL.Reveal(), ",") {
			u, err := url.Parse(strings.TrimSpace(at))
			ok := err == nil && u.Host != "" && isNATS(u.Scheme)
			found.checkKey(ok, "nats.url", "this is not an address; write for example nats://user:password@host:4222, special characters in the password as %%40")
		}
	}
	if n.Own() {
		found.checkKey(isHostPort(n.ClusterAddr, 0), "nats.cluster_addr", "%q is not host:port; write for example 0.0.0.0:6222", n.ClusterAddr)
		for _, peer := range n.Peers {
			found.checkKey(isHostPort(peer, 1) && !strings.HasPrefix(peer, ":"), "nats.peers", "%q is not host:port; write for example bobbin-1:6222", peer)
		}
		weakness := n.Secret.weakness()
		found.checkKey(weakness == "", "nats.secret", "it keeps others out of the cluster and %s: make one with: openssl rand -hex 32", weakness)
	} else {
		const without = "it is for the replicas' own cluster; set nats.cluster_addr (host:port), or remove it"
		found.checkKey(len(n.Peers) == 0, "nats.peers", without)
		found.checkKey(n.Secret.Empty(), "nats.secret", without)
	}
	found.checkKey((n.TLSCert == "") == (n.TLSKey == ""), "nats.tls_cert", "certificate and key belong together; set nats.tls_cert and nats.tls_key, or none")
	found.checkKey(n.Shared() || n.TLSCA == "" && n.TLSCert == "", "nats.tls_ca", "there is no NATS to talk to; set nats.url or nats.cluster_addr, or remove it")
	if n.Own() && n.TLSCA+n.TLSCert != "" {
		found.checkKey(n.TLSCA != "" && n.TLSCert != "", "nats.tls_ca", "replicas show certificates to each other; set nats.tls_ca, nats.tls_cert and nats.tls_key")
	}
}

// isHostPort reports whether s is host:port with a port from least on.
func isHostPort(s string, least int) bool {
	_, port, err := net.SplitHostPort(s)
	n, bad := strconv.Atoi(port)
	return err == nil && bad == nil && n >= least && n <= 65535
}

// isNATS reports whether URLs of the scheme lead to NATS.
func isNATS(scheme string) bool { return slices.Contains([]string{"nats", "tls", "ws", "wss"}, scheme) }
