package events_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"bobbin/app/core"
	"bobbin/app/events"
	"bobbin/tests/compare"
	"bobbin/tests/must"
	"bobbin/tests/process"
)

// startNATS starts a server that others operate and returns its URL, with the token.
func startNATS(t testing.TB, token string) string {
	t.Helper()
	s := serveNATS(t, "127.0.0.1", server.RANDOM_PORT, token)
	return "nats://" + token + "@" + s.Addr().String()
}

func serveNATS(t testing.TB, host string, port int, token string) *server.Server {
	t.Helper()
	s := must.Get(server.NewServer(&server.Options{Host: host, Port: port, Authorization: token, NoLog: true, NoSigs: true}))(t)
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	must.True(t, s.ReadyForConnections(patience), "the server does not start")
	return s
}

func dial(t testing.TB, url string, buffer int) *events.NATS {
	t.Helper()
	return open(t, events.NATSOptions{URL: url, Buffer: buffer})
}

// TestNATSComesBack: while the cluster is unavailable this process continues by itself; when it
// is back, subscribers learn that they may have missed something.
func TestNATSComesBack(t *testing.T) {
	t.Parallel()
	free := netip.MustParseAddrPort(process.FreeAddress(t))
	url := "nats://hush@" + free.String()
	bus := dial(t, url, 0) // nobody is there yet
	compare.True(t, bus.Check(t.Context()) != nil, "got no error, want to hear that the cluster cannot be reached")
	s := must.Get(bus.Subscribe("session.a"))(t)
	defer s.Close()
	must.Do(t, bus.Publish("session.a", []byte("alone")))
	compare.Equal(t, "in the same process: want it delivered", "alone", receive(t, s))
	serveNATS(t, free.Addr().String(), int(free.Port()), "hush")
	compare.Equal(t, "receiveAny(t, s): want the empty message that says that some may be lost", "", receiveAny(t, s))
	compare.Error(t, "check", nil, bus.Check(t.Context()))
	connect(t, dial(t, url, 0), bus, "session.a")
}

// TestClusterKeepsOthersOut: without the secret nothing is heard.
func TestClusterKeepsOthersOut(t *testing.T) {
	t.Parallel()
	a := replica(t, 0)
	stranger := open(t, events.NATSOptions{Cluster: &events.NATSCluster{Addr: "127.0.0.1:0", Peers: []string{a.ClusterAddr()}, Secret: "another-secret-here"}})
	b := replica(t, 0, a.ClusterAddr())
	connect(t, a, b, "session.a")
	heard := must.Get(stranger.Subscribe("session.a"))(t)
	// The stranger came before b, which has heard a by now.
	for range 20 {
		connect(t, a, b, "session.a")
	}
	if got, _ := rest(heard); len(got) > 0 {
		t.Errorf("got %q without the secret", got)
	}
}

// TestClusterTLS: with certificates on both sides the replicas hear each other; one
// without does not get in.
func TestClusterTLS(t *testing.T) {
	t.Parallel()
	files := certificates(t)
	cluster := func(peers ...string) *events.NATSCluster {
		return &events.NATSCluster{Addr: "127.0.0.1:0", Peers: peers, Secret: "hush-hush-hush-hush"}
	}
	a := open(t, events.NATSOptions{Cluster: cluster(), TLS: files})
	plain := open(t, events.NATSOptions{Cluster: cluster(a.ClusterAddr())})
	b := open(t, events.NATSOptions{Cluster: cluster(a.ClusterAddr()), TLS: files})
	heard := must.Get(plain.Subscribe("session.a"))(t)
	connect(t, a, b, "session.a")
	connect(t, b, a, "session.a")
	if got, _ := rest(heard); len(got) > 0 {
		t.Errorf("got %q without a certificate", got)
	}
}

// TestNATSFaults: errors say which setting to change.
func TestNATSFaults(t *testing.T) {
	t.Parallel()
	a := replica(t, 0)
	none := filepath.Join(t.TempDir(), "none.pem")
	empty := filepath.Join(t.TempDir(), "empty.pem")
	must.Do(t, os.WriteFile(empty, nil, 0o600))
	for name, test := range map[string]struct {
		options events.NATSOptions
		want    error
	}{
		"the address is taken": {events.NATSOptions{Cluster: &events.NATSCluster{Addr: a.ClusterAddr(), Secret: "s"}}, core.ErrUnavailable},
		"no authority":         {events.NATSOptions{URL: "nats://127.0.0.1:1", TLS: events.TLSFiles{CA: none}}, core.ErrInvalid},
		"an empty authority":   {events.NATSOptions{URL: "nats://127.0.0.1:1", TLS: events.TLSFiles{CA: empty}}, core.ErrInvalid},
		"no certificate":       {events.NATSOptions{URL: "nats://127.0.0.1:1", TLS: events.TLSFiles{Cert: none, Key: none}}, core.ErrInvalid},
	} {
		test.options.Logger = slog.New(slog.DiscardHandler)
		b, err := events.NewNATS(test.options)
		compare.Error(t, name, test.want, err)
		if b != nil {
			b.Close()
		}
	}
	compare.True(t, a.Publish("session.a", make([]byte, 2<<20)) != nil, "got no error for a message that no server takes")
}

// certificates returns files of a certificate for 127.0.0.1 that is its own authority.
func certificates(t *testing.T) events.TLSFiles {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	cert := must.Get(x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key))(t)
	private := must.Get(x509.MarshalPKCS8PrivateKey(key))(t)
	files := events.TLSFiles{Cert: filepath.Join(t.TempDir(), "cert.pem"), Key: filepath.Join(t.TempDir(), "key.pem")}
	files.CA = files.Cert
	for name, block := range map[string]*pem.Block{files.Cert: {Type: "CERTIFICATE", Bytes: cert}, files.Key: {Type: "PRIVATE KEY", Bytes: private}} {
		must.Do(t, os.WriteFile(name, pem.EncodeToMemory(block), 0o600))
	}
	return files
}
