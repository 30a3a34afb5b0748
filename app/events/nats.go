package events

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// How a NATS bus deals with its server.
const (
	prefix       = "bobbin."       // of our subjects in a cluster that others use too
	flushTime    = time.Second     // for the server to know of a subscription
	reconnectGap = time.Second     // between tries to reach the server
	writeTime    = 2 * time.Second // a server that takes nothing for so long is left
)

// NATSOptions are what a NATS bus is made of: either URL or Cluster, and Logger.
type NATSOptions struct {
	URL     string       // of an existing cluster; several separated by commas
	Cluster *NATSCluster // the replicas' own
	TLS     TLSFiles
	Buffer  int // messages that a subscriber may be behind; 0 = 1,024
	Logger  *slog.Logger
}

// NATS is a Bus between processes over core subjects of NATS, with nothing stored.
// Subscribers of the process that publishes get everything without NATS, so its
// absence costs them nothing; those of other processes miss what is published while
// it lasts, and are told so by an empty message. Safe for concurrent use.
type NATS struct {
	local  *Local // delivers in this process
	conn   *nats.Conn
	server *server.Server // the replicas' own; nil = somebody else's
	log    *slog.Logger
	slow   atomic.Uint64

	mu       sync.Mutex
	subjects map[string]*interest // guarded by mu
}

// interest is a subject that is listened to in this process.
type interest struct {
	sub       *nats.Subscription
	listeners int
}

// NewNATS returns a bus over an existing cluster, or over one that the replicas make
// themselves: then it starts a server in this process. A cluster that cannot be
// reached is tried again for ever, and no error; Check tells. Errors say what to do.
func NewNATS(o NATSOptions) (*NATS, error) {
	n := &NATS{local: NewLocal(o.Buffer), log: o.Logger, subjects: map[string]*interest{}}
	options := []nats.Option{
		nats.Name("bobbin"), nats.NoEcho(), nats.MaxReconnects(-1), nats.ReconnectWait(reconnectGap),
		nats.RetryOnFailedConnect(true), nats.IgnoreAuthErrorAbort(), nats.ReconnectBufSize(-1), nats.FlusherTimeout(writeTime),
		nats.ConnectHandler(n.connected), nats.ReconnectHandler(n.connected), nats.DisconnectErrHandler(n.disconnected), nats.ErrorHandler(n.failed),
	}
	secure, err := o.TLS.config()
	if err != nil {
		return nil, err
	}
	if o.Cluster != nil {
		login := rand.Text()
		if n.server, err = startServer(*o.Cluster, secure, login, o.Logger); err != nil {
			return nil, err
		}
		options = append(options, nats.InProcessServer(n.server), nats.UserInfo(clusterUser, login))
	} else if secure != nil {
		options = append(options, nats.Secure(secure))
	}
	if n.conn, err = nats.Connect(o.URL, options...); err != nil {
		n.Close()
		return nil, fmt.Errorf("nats: %w", err)
	}
	return n, nil
}

// Publish hands data to the subscribers in this process and sends it to the others.
// While the cluster cannot be reached the others do not get it. It returns ErrClosed
// after Close.
func (n *NATS) Publish(subject string, data []byte) error {
	if err := n.local.Publish(subject, data); err != nil {
		return err
	}
	if !n.conn.IsConnected() {
		return nil
	}
	switch err := n.conn.Publish(prefix+subject, data); {
	case err == nil, errors.Is(err, nats.ErrReconnectBufExceeded):
		return nil
	case errors.Is(err, nats.ErrConnectionClosed):
		return ErrClosed
	default:
		return fmt.Errorf("publish %s: %w", subject, err)
	}
}

// Subscribe begins to listen. What others publish after it returned arrives, once
// their servers have heard of it, which takes some milliseconds. It returns ErrClosed
// after Close.
func (n *NATS) Subscribe(subject string) (Subscription, error) {
	local, err := n.local.Subscribe(subject)
	if err != nil {
		return nil, err
	}
	s := &natsSubscription{Subscription: local, bus: n, subject: subject}
	if err := n.listen(subject); err != nil {
		local.Close()
		return nil, err
	}
	if n.conn.IsConnected() {
		if err := n.conn.FlushTimeout(flushTime); err != nil {
			n.log.Warn("nats server does not answer", "err", err)
		}
	}
	return s, nil
}

// listen lets what others publish in, for one more listener.
func (n *NATS) listen(subject string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if i := n.subjects[subject]; i != nil {
		i.listeners++
		return nil
	}
	sub, err := n.conn.Subscribe(prefix+subject, func(m *nats.Msg) {
		_ = n.local.Publish(subject, m.Data) // it fails only after Close
	})
	if errors.Is(err, nats.ErrConnectionClosed) {
		return ErrClosed
	}
	if err != nil {
		return fmt.Errorf("subscribe to %s: %w", subject, err)
	}
	n.subjects[subject] = &interest{sub: sub, listeners: 1}
	return nil
}

// leave takes one listener out.
func (n *NATS) leave(subject string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := n.subjects[subject]
	if i == nil {
		return
	}
	if i.listeners--; i.listeners > 0 {
		return
	}
	delete(n.subjects, subject)
	if err := i.sub.Unsubscribe(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		n.log.Warn("nats subscription not ended", "subject", subject, "err", err)
	}
}

// Check reports whether the cluster can be reached.
func (n *NATS) Check(context.Context) error {
	if n.conn.IsConnected() {
		return nil
	}
	return errors.New("nats is not connected")
}

// NATSStats are figures of a NATS bus.
type NATSStats struct {
	Connected  bool
	Routes     int    // connections to other replicas, of their own cluster
	Reconnects uint64 // to the server
	Slow       uint64 // times that messages came faster than they were taken, and some were lost
	In, Out    uint64 // messages
}

// Stats returns the present figures.
func (n *NATS) Stats() NATSStats {
	s := n.conn.Stats()
	out := NATSStats{Connected: n.conn.IsConnected(), Reconnects: s.Reconnects, Slow: n.slow.Load(), In: s.InMsgs, Out: s.OutMsgs}
	if n.server != nil {
		out.Routes = n.server.NumRoutes()
	}
	return out
}

// Close sends what is under way, ends all subscriptions with ErrClosed and leaves the
// cluster. It may be called more than once.
func (n *NATS) Close() {
	n.local.Close()
	if n.conn != nil {
		if n.conn.IsConnected() {
			_ = n.conn.FlushTimeout(flushTime) // what the others miss they read from the store
		}
		n.conn.Close()
	}
	if n.server != nil {
		n.server.Shutdown()
		n.server.WaitForShutdown()
	}
}

// connected lets everybody look for what was missed while there was no connection.
func (n *NATS) connected(*nats.Conn) {
	n.log.Info("nats connected")
	n.local.interrupt()
}

func (n *NATS) disconnected(_ *nats.Conn, err error) {
	if err != nil {
		n.log.Warn("nats connection lost, trying again", "err", err)
	}
}

// failed is told of what goes wrong beside the calls: messages that were dropped
// because they came too fast, or a cluster that lets us in no more.
func (n *NATS) failed(_ *nats.Conn, _ *nats.Subscription, err error) {
	if errors.Is(err, nats.ErrSlowConsumer) {
		n.slow.Add(1)
	}
	n.log.Warn("nats failed", "err", err)
	n.local.interrupt()
}

// natsSubscription is a listener of a NATS bus.
type natsSubscription struct {
	Subscription // of the bus in this process

	bus     *NATS
	subject string
	once    sync.Once
}

func (s *natsSubscription) Close() {
	s.Subscription.Close()
	s.once.Do(func() { s.bus.leave(s.subject) })
}
