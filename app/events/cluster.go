package events

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"golang.org/x/crypto/bcrypt"

	"bobbin/app/core"
)

// NATSCluster configures the replicas' own cluster: each replica has a server in its process.
type NATSCluster struct {
	Addr   string   // host:port on which this replica listens for the others; port 0 = any
	Peers  []string // host:port of other replicas, which announce the rest; may include this one
	Secret string   // shared by all replicas
}

// clusterUser is the user name that goes with the secret.
const clusterUser = "bobbin"

// peerReports is how many attempts, one a second, to reach a replica that is away make a line of the log.
const peerReports = 60

// Timeouts of the server in this process.
const (
	serverStart = 10 * time.Second
	authTime    = 5 * time.Second // to present the secret or a certificate
)

// startServer starts a server that accepts only this process and, with the secret, the other
// replicas.
func startServer(c NATSCluster, secure *tls.Config, login string, logger *slog.Logger) (*server.Server, error) {
	host, port, err := probeAddr(c.Addr)
	if err != nil {
		return nil, err
	}
	hash, err := bcrypt.GenerateFromPassword([]byte(login), bcrypt.MinCost) // it is random, so the minimal cost is enough; the server warns of plain text
	if err != nil {
		return nil, fmt.Errorf("nats server: %w", err)
	}
	o := &server.Options{
		ServerName: core.NewID[string](), NoSigs: true,
		// Without a client listener the server never starts routing (v2.15.2), so it has one,
		// on the loopback interface and with a random password.
		Host: "127.0.0.1", Port: server.RANDOM_PORT, Username: clusterUser, Password: string(hash),
		ConnectErrorReports: peerReports, ReconnectErrorReports: peerReports,
		Cluster: server.ClusterOpts{
			Name: "bobbin", Host: host, Port: port, Username: clusterUser, Password: c.Secret, NoAdvertise: true,
			PoolSize:    -1, // one connection to each: while several are negotiated, messages get lost
			AuthTimeout: authTime.Seconds(), TLSConfig: secure, TLSTimeout: authTime.Seconds(),
		},
	}
	for _, peer := range c.Peers {
		o.Routes = append(o.Routes, &url.URL{Scheme: "nats-route", User: url.UserPassword(clusterUser, c.Secret), Host: peer})
	}
	s, err := server.NewServer(o)
	if err != nil {
		return nil, fmt.Errorf("nats server: %w", err)
	}
	log := &serverLog{log: logger}
	s.SetLoggerV2(log, false, false, false)
	s.Start()
	if !s.ReadyForConnections(serverStart) {
		s.Shutdown()
		return nil, fmt.Errorf("nats server did not start: %v", log.fatal.Load())
	}
	return s, nil
}

// probeAddr returns host and port of an address after checking that this process can listen on
// it. The server's own error would not be useful.
func probeAddr(addr string) (host string, port int, err error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", addr)
	if err != nil {
		return "", 0, core.Errorf(core.ErrUnavailable, "cannot listen for other replicas on %s: %v; choose another nats.cluster_addr", addr, err)
	}
	if err := l.Close(); err != nil {
		return "", 0, err
	}
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, err
	}
	if port, err = strconv.Atoi(text); port == 0 {
		port = server.RANDOM_PORT
	}
	return host, port, err
}

// ClusterAddr returns the address where this process's server listens for the other replicas;
// empty if there is none.
func (n *NATS) ClusterAddr() string {
	if n.server == nil || n.server.ClusterAddr() == nil {
		return ""
	}
	return n.server.ClusterAddr().String()
}

// TLSFiles are PEM files; all empty = no TLS unless a URL requires it.
type TLSFiles struct {
	CA   string // signs the certificates of the other side; empty = the system's CAs
	Cert string // this side's certificate; the replicas' own cluster requires one on both sides
	Key  string // of Cert
}

// tlsConfig returns nil without files.
func (f TLSFiles) tlsConfig() (*tls.Config, error) {
	if f == (TLSFiles{}) {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAndVerifyClientCert}
	if f.CA != "" {
		pem, err := os.ReadFile(f.CA)
		if err != nil {
			return nil, core.Errorf(core.ErrInvalid, "nats.tls_ca: %v", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, core.Errorf(core.ErrInvalid, "nats.tls_ca: %s contains no certificate", f.CA)
		}
		c.ClientCAs = c.RootCAs
	}
	if f.Cert != "" {
		cert, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return nil, core.Errorf(core.ErrInvalid, "nats.tls_cert, nats.tls_key: %v", err)
		}
		c.Certificates = []tls.Certificate{cert}
	}
	return c, nil
}

// serverLog writes the server's messages to our log.
type serverLog struct {
	log   *slog.Logger
	fatal atomic.Value // of string; why the server gave up
}

func (l *serverLog) Noticef(format string, v ...any) { l.logServer(slog.LevelDebug, format, v) }
func (l *serverLog) Debugf(format string, v ...any)  { l.logServer(slog.LevelDebug, format, v) }
func (l *serverLog) Tracef(format string, v ...any)  { l.logServer(slog.LevelDebug, format, v) }
func (l *serverLog) Warnf(format string, v ...any)   { l.logServer(slog.LevelWarn, format, v) }
func (l *serverLog) Errorf(format string, v ...any)  { l.logServer(slog.LevelWarn, format, v) }

func (l *serverLog) Fatalf(format string, v ...any) {
	l.fatal.Store(fmt.Sprintf(format, v...))
	l.logServer(slog.LevelError, format, v)
}

func (l *serverLog) logServer(level slog.Level, format string, v []any) {
	ctx := context.Background()
	if l.log.Enabled(ctx, level) {
		l.log.Log(ctx, level, "nats server", "says", fmt.Sprintf(format, v...))
	}
}
