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

// NATSCluster is how the replicas make a cluster of their own: each has a server in
// its process.
type NATSCluster struct {
	Addr   string   // host:port where this one listens for the others; port 0 = any
	Peers  []string // host:port of others; they tell of the rest, and may be this one
	Secret string   // all have the same
}

// clusterUser is the name that goes with the secret.
const clusterUser = "bobbin"

// Times of the server in this process.
const (
	serverStart = 10 * time.Second
	authTime    = 5 * time.Second // to show the secret, or a certificate
)

// startServer starts a server that only this process and, with the secret, the other
// replicas can talk to.
func startServer(c NATSCluster, secure *tls.Config, login string, logger *slog.Logger) (*server.Server, error) {
	host, port, err := bindable(c.Addr)
	if err != nil {
		return nil, err
	}
	hash, err := bcrypt.GenerateFromPassword([]byte(login), bcrypt.MinCost) // random, so no guessing is slowed down; plain text it would warn of
	if err != nil {
		return nil, fmt.Errorf("nats server: %w", err)
	}
	o := &server.Options{
		ServerName: core.NewID[string](), NoSigs: true,
		// Without a listener for clients the server never begins to route (v2.15.2), so
		// it has one, for this machine and with a login that nobody knows.
		Host: "127.0.0.1", Port: server.RANDOM_PORT, Username: clusterUser, Password: string(hash),
		Cluster: server.ClusterOpts{
			Name: "bobbin", Host: host, Port: port, Username: clusterUser, Password: c.Secret, NoAdvertise: true,
			PoolSize:    -1, // one connection to each: while several are agreed on, messages get lost
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

// bindable returns host and port of an address that can be listened on. The server
// itself says nothing useful when it cannot.
func bindable(addr string) (host string, port int, err error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", addr)
	if err != nil {
		return "", 0, core.Errorf(core.ErrUnavailable, "cannot listen for the other replicas on %s: %v; choose another nats.cluster_addr", addr, err)
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

// ClusterAddr returns where the server of this process listens for the other
// replicas; empty if there is none.
func (n *NATS) ClusterAddr() string {
	if n.server == nil || n.server.ClusterAddr() == nil {
		return ""
	}
	return n.server.ClusterAddr().String()
}

// TLSFiles are PEM files; all empty = no TLS but what a URL asks for.
type TLSFiles struct {
	CA   string // who the other side must be certified by; empty = whom the machine trusts
	Cert string // our certificate; the replicas' own cluster asks for one on both sides
	Key  string // of Cert
}

// config returns nil without files.
func (f TLSFiles) config() (*tls.Config, error) {
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
			return nil, core.Errorf(core.ErrInvalid, "nats.tls_ca: there is no certificate in %s", f.CA)
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

// serverLog brings what the server says into our log.
type serverLog struct {
	log   *slog.Logger
	fatal atomic.Value // of string; why the server gave up
}

func (l *serverLog) Noticef(format string, v ...any) { l.say(slog.LevelDebug, format, v) }
func (l *serverLog) Debugf(format string, v ...any)  { l.say(slog.LevelDebug, format, v) }
func (l *serverLog) Tracef(format string, v ...any)  { l.say(slog.LevelDebug, format, v) }
func (l *serverLog) Warnf(format string, v ...any)   { l.say(slog.LevelWarn, format, v) }
func (l *serverLog) Errorf(format string, v ...any)  { l.say(slog.LevelWarn, format, v) }

func (l *serverLog) Fatalf(format string, v ...any) {
	l.fatal.Store(fmt.Sprintf(format, v...))
	l.say(slog.LevelError, format, v)
}

func (l *serverLog) say(level slog.Level, format string, v []any) {
	ctx := context.Background()
	if l.log.Enabled(ctx, level) {
		l.log.Log(ctx, level, "nats server", "says", fmt.Sprintf(format, v...))
	}
}
