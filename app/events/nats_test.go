package events_test

import (
	"bytes"
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
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

// patience is how long a test waits for something that should happen immediately.
const patience = 2 * time.Minute

// closer is a bus that can be closed.
type closer interface {
	events.Bus
	Close()
}

// buses are the kinds of bus: each returns one for publishers and one for
// subscribers, whose buffers hold so many messages.
func buses() map[string]func(t *testing.T, buffer int) (publish, listen closer) {
	return map[string]func(t *testing.T, buffer int) (closer, closer){
		"local": func(_ *testing.T, buffer int) (closer, closer) {
			b := events.NewLocal(buffer)
			return b, b
		},
		"nats, one replica": func(t *testing.T, buffer int) (closer, closer) {
			b := replica(t, buffer)
			return b, b
		},
		"nats, two replicas": func(t *testing.T, buffer int) (closer, closer) {
			a := replica(t, buffer)
			return a, replica(t, buffer, a.ClusterAddr())
		},
		"nats, a cluster of others": func(t *testing.T, buffer int) (closer, closer) {
			url := startNATS(t, "hush")
			return dial(t, url, buffer), dial(t, url, buffer)
		},
	}
}

// replica starts a bus with a server of its own that knows the peers.
func replica(t testing.TB, buffer int, peers ...string) *events.NATS {
	t.Helper()
	return open(t, events.NATSOptions{Buffer: buffer, Cluster: &events.NATSCluster{Addr: "127.0.0.1:0", Peers: peers, Secret: "hush-hush-hush-hush"}})
}

func open(t testing.TB, o events.NATSOptions) *events.NATS {
	t.Helper()
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	b := must.Get(events.NewNATS(o))(t)
	t.Cleanup(b.Close)
	return b
}

// listener subscribes, and returns when what is published arrives.
func listener(t *testing.T, publish, listen events.Bus, subject string) *events.Subscription {
	t.Helper()
	s := must.Get(listen.Subscribe(subject))(t)
	t.Cleanup(s.Close)
	connect(t, publish, listen, subject)
	return s
}

// connect returns when what one bus publishes reaches the other.
func connect(t testing.TB, publish, listen events.Bus, subject string) {
	t.Helper()
	probe := must.Get(listen.Subscribe(subject))(t)
	defer probe.Close()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	late := time.After(patience)
	for {
		must.Do(t, publish.Publish(subject, []byte("probe")))
		select {
		case <-probe.Ready():
			if m, err := probe.Take(); err != nil {
				t.Fatal(err)
			} else if m != nil && len(m.Data()) > 0 { // the empty one is of the bus itself
				return
			}
		case <-again.C:
		case <-late:
			t.Fatal("nothing arrives")
		}
	}
}

// drain reads what was published before.
func drain(t *testing.T, publish events.Bus, subject string, subscriptions ...*events.Subscription) {
	t.Helper()
	mark := core.NewID[string]()
	must.Do(t, publish.Publish(subject, []byte(mark)))
	for _, s := range subscriptions {
		for receive(t, s) != mark {
		}
	}
}

// receive returns the next message that is not empty: a bus may say at any time that
// something may be lost.
func receive(t *testing.T, s *events.Subscription) string {
	t.Helper()
	for {
		if raw := receiveAny(t, s); raw != "" {
			return raw
		}
	}
}

// receiveAny returns the next message.
func receiveAny(t *testing.T, s *events.Subscription) string {
	t.Helper()
	late := time.After(patience)
	for {
		select {
		case <-s.Ready():
			m := must.Get(s.Take())(t)
			if m != nil {
				return string(m.Data())
			}
		case <-late:
			t.Fatal("no message came")
		}
	}
}

// rest takes what there still is, and returns why the subscription has ended, if it has.
func rest(s *events.Subscription) (messages []string, ended error) {
	for {
		m, err := s.Take()
		if m == nil {
			return messages, err
		}
		messages = append(messages, string(m.Data()))
	}
}

// onBuses runs a test on every kind of bus.
func onBuses(t *testing.T, buffer int, f func(t *testing.T, publish, listen closer)) {
	t.Helper()
	t.Parallel()
	for name, make := range buses() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			publish, listen := make(t, buffer)
			f(t, publish, listen)
		})
	}
}

// TestBusDeliversInOrder: all that one publisher says about a subject, to every
// subscriber of it, and nothing else.
func TestBusDeliversInOrder(t *testing.T) {
	onBuses(t, 0, func(t *testing.T, publish, listen closer) {
		first, second := listener(t, publish, listen, "session.a"), listener(t, publish, listen, "session.a")
		other := listener(t, publish, listen, "session.b")
		drain(t, publish, "session.a", first, second)
		for i := range 300 {
			must.Do(t, publish.Publish("session.a", fmt.Append(nil, i)))
		}
		drain(t, publish, "session.b", other) // nothing of a came before
		for i := range 300 {
			for _, s := range []*events.Subscription{first, second} {
				if got, want := receive(t, s), fmt.Sprint(i); got != want {
					t.Fatalf("got message %q, want %q", got, want)
				}
			}
		}
	})
}

// TestBusDropsTheSlow: a subscriber that does not read is dropped, the others continue.
func TestBusDropsTheSlow(t *testing.T) {
	const buffer = 64
	onBuses(t, buffer, func(t *testing.T, publish, listen closer) {
		slow, quick := listener(t, publish, listen, "session.a"), listener(t, publish, listen, "session.a")
		drain(t, publish, "session.a", slow, quick)
		for i := range buffer + 1 {
			must.Do(t, publish.Publish("session.a", fmt.Append(nil, i)))
			for receive(t, quick) != fmt.Sprint(i) {
			}
		}
		for i := range buffer {
			if got := receive(t, slow); got != fmt.Sprint(i) {
				t.Fatalf("got %q, want %d: what came before can be read", got, i)
			}
		}
		if got, err := rest(slow); len(got) > 0 || !errors.Is(err, events.ErrSlow) {
			t.Errorf("got %q and error %v, want the slow one dropped", got, err)
		}
		compare.Error(t, "compare.ErrorOf(rest(quick)): want the quick one to go on", nil, compare.ErrorOf(rest(quick)))
	})
}

// TestBusDropsWhoIsManyBytesBehind: a few large messages are as many small ones, and one
// is always taken.
func TestBusDropsWhoIsManyBytesBehind(t *testing.T) {
	onBuses(t, 0, func(t *testing.T, publish, listen closer) {
		slow, quick := listener(t, publish, listen, "session.a"), listener(t, publish, listen, "session.a")
		drain(t, publish, "session.a", slow, quick)
		large := make([]byte, 1<<20-1<<10) // NATS takes a MiB
		for i := range 9 {
			large[0] = byte('0' + i)
			must.Do(t, publish.Publish("session.a", bytes.Clone(large)))
			if got := receive(t, quick); got[0] != large[0] {
				t.Fatalf("got message %q, want %q", got[0], large[0])
			}
		}
		got, err := rest(slow)
		if len(slices.DeleteFunc(got, func(m string) bool { return m == "" })) != 8 || !errors.Is(err, events.ErrSlow) {
			t.Errorf("got %d messages and %v, want the eight that are not too much, and that it is dropped", len(got), err)
		}
	})
}
