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

	"bobbin/app/core"
)

// Settings of the NATS connection.
const (
	prefix       = "bobbin."       // of our subjects, as others may use the cluster too
	flushTime    = time.Second     // for the server to register a subscription
	reconnectGap = time.Second     // between attempts to reach the server
	writeTime    = 2 * time.Second // a server that accepts nothing for so long is disconnected
)

// NATSOptions configure a NATS bus: either URL or Cluster, and Logger.
type NATSOptions struct {
	URL     string       // of an existing cluster; comma-separated if several
	Cluster *NATSCluster // the replicas' own
	TLS     TLSFiles
	Buffer  int // messages that a subscriber may be behind; 0 = 1,024
	Logger  *slog.Logger
}

// NATS is a Bus between processes over core subjects of NATS; nothing is stored. Subscribers in
// the publishing process get everything without NATS, so its absence costs them nothing.
// Subscribers in other processes miss what is published during an outage, and are notified of
// that by an empty message. Safe for concurrent use.
type NATS struct {
	local  *Local // delivers in this process
	conn   *nats.Conn
	server *server.Server // the replicas' own; nil = an external one
	log    *slog.Logger
	slow   atomic.Uint64

	mu       sync.Mutex
	subjects map[string]*interest // guarded by mu
}

// interest is a subject with subscribers in this process.
type interest struct {
	sub       *nats.Subscription
	listeners int
}

// NewNATS returns a bus over an existing cluster, or over the replicas' own cluster, for which
// it starts a server in this process. An unreachable cluster is not an error: the bus retries
// forever, and Check reports the state. Errors say what to do.
func NewNATS(o NATSOptions) (*NATS, error) {
	n := &NATS{local: NewLocal(o.Buffer), log: o.Logger, subjects: map[string]*interest{}}
	options := []nats.Option{
		nats.Name("bobbin"), nats.NoEcho(), nats.MaxReconnects(-1), nats.ReconnectWait(reconnectGap),
		nats.RetryOnFailedConnect(true), nats.IgnoreAuthErrorAbort(), nats.ReconnectBufSize(-1), nats.FlusherTimeout(writeTime),
		nats.ConnectHandler(n.handleConnect), nats.ReconnectHandler(n.handleConnect),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { // also of a cluster that no longer accepts this process
			if errors.Is(err, nats.ErrSlowConsumer) { // messages were dropped because they arrived too fast
				n.slow.Add(1)
			}
			n.log.Warn("nats error", "err", err)
			n.local.signalLoss()
		}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				n.log.Warn("nats connection lost, reconnecting", "err", err)
			}
		}),
	}
	secure, err := o.TLS.tlsConfig()
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

// Publish hands data to the subscribers in this process and sends it to the others. While the
// cluster cannot be reached, the others do not get it. It returns ErrClosed after Close.
func (n *NATS) Publish(subject string, data []byte) error {
	if err := n.local.Publish(subject, data); err != nil {
		return err
	}
	return n.sendBytes(subject, data)
}

// PublishEvent is Publish for an event. Other processes get it without its data if these are
// larger than maxWire and the store has them.
func (n *NATS) PublishEvent(subject string, e core.Event) error {
	if err := n.local.PublishEvent(subject, e); err != nil || !n.conn.IsConnected() {
		return err
	}
	data, err := encode(e)
	if err != nil {
		return err
	}
	return n.sendBytes(subject, data)
}

// sendBytes sends data to the other processes, if they can be reached.
func (n *NATS) sendBytes(subject string, data []byte) error {
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

// Subscribe subscribes to a subject. Messages of other processes arrive as soon as their
// servers know of the subscription, some milliseconds after it returned. It returns ErrClosed
// after Close.
func (n *NATS) Subscribe(subject string) (*Subscription, error) {
	s, err := n.local.Subscribe(subject)
	if err != nil {
		return nil, err
	}
	if err := n.addListener(subject); err != nil {
		s.Close()
		return nil, err
	}
	s.closed = sync.OnceFunc(func() { n.removeListener(subject) })
	if n.conn.IsConnected() {
		if err := n.conn.FlushTimeout(flushTime); err != nil {
			n.log.Warn("nats server does not answer", "err", err)
		}
	}
	return s, nil
}

// addListener subscribes to the messages of other processes for one more listener.
func (n *NATS) addListener(subject string) error {
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

// removeListener undoes addListener.
func (n *NATS) removeListener(subject string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := n.subjects[subject]
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
	return core.Errorf(core.ErrUnavailable, "not connected: events of other replicas arrive some seconds late")
}

// Stats returns the current statistics.
func (n *NATS) Stats() core.NATSStats {
	s := n.conn.Stats()
	out := core.NATSStats{Connected: n.conn.IsConnected(), Reconnects: s.Reconnects, Slow: n.slow.Load(), In: s.InMsgs, Out: s.OutMsgs}
	if n.server != nil {
		out.Routes = n.server.NumRoutes()
	}
	return out
}

// Close sends buffered messages, ends all subscriptions with ErrClosed, and leaves the cluster.
// It may be called more than once.
func (n *NATS) Close() {
	n.local.Close()
	if n.conn != nil {
		if n.conn.IsConnected() {
			_ = n.conn.FlushTimeout(flushTime) // the others read from the store what they miss
		}
		n.conn.Close()
	}
	if n.server != nil {
		n.server.Shutdown()
		n.server.WaitForShutdown()
	}
}

// handleConnect has all subscribers check for what they missed while disconnected.
func (n *NATS) handleConnect(*nats.Conn) {
	n.log.Info("nats connected")
	n.local.signalLoss()
}
