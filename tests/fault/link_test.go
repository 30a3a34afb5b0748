package fault_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bobbin/app/client"
	"bobbin/tests/must"
	"bobbin/tests/process"
)

// linkState is what a link does with what goes through it.
type linkState int

const (
	linkOpen    linkState = iota
	linkCut               // connections are broken, new ones too
	linkStalled           // connections stay, and nothing comes through
)

// link is a TCP proxy that can be broken. Safe for concurrent use.
type link struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	state linkState             // guarded by mu
	moved chan struct{}         // closed when the state changes; guarded by mu
	pairs map[net.Conn]net.Conn // accepted → dialed, nil = not yet; guarded by mu
	down  bool                  // closed for good; guarded by mu

	wait sync.WaitGroup
}

// newLink listens on loopback and passes on to the target.
func newLink(t *testing.T, target string) *link {
	t.Helper()
	l := must.Get(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	k := &link{listener: l, target: target, moved: make(chan struct{}), pairs: map[net.Conn]net.Conn{}}
	k.wait.Go(k.accept)
	t.Cleanup(k.close)
	return k
}

// addr is where to connect to get to the target.
func (k *link) addr() string { return k.listener.Addr().String() }

// set changes what the link does from now on.
func (k *link) set(s linkState) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.state = s
	close(k.moved)
	k.moved = make(chan struct{})
	if s == linkCut {
		k.breakAll()
	}
}

// breakAll resets all connections; the caller holds mu.
func (k *link) breakAll() {
	for in, out := range k.pairs {
		for _, c := range []net.Conn{in, out} {
			if tcp, ok := c.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0) // no farewell
				_ = tcp.Close()
			}
		}
	}
}

// close ends the link and waits for its goroutines.
func (k *link) close() {
	_ = k.listener.Close()
	k.mu.Lock()
	k.down = true
	k.mu.Unlock()
	k.set(linkCut)
	k.wait.Wait()
}

func (k *link) accept() {
	for {
		in, err := k.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		k.wait.Go(func() { k.serve(in) })
	}
}

// serve carries one connection.
func (k *link) serve(in net.Conn) {
	defer func() { _ = in.Close() }()
	if !k.enter(in) {
		return
	}
	defer k.leave(in)
	if !k.pass() {
		return
	}
	out, err := net.Dial("tcp", k.target) //nolint:noctx // close breaks it
	if err != nil {
		return
	}
	defer func() { _ = out.Close() }()
	if !k.join(in, out) {
		return
	}
	var back sync.WaitGroup
	back.Go(func() { k.carry(in, out) })
	k.carry(out, in)
	back.Wait()
}

func (k *link) enter(in net.Conn) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pairs[in] = nil
	return k.state != linkCut
}

func (k *link) join(in, out net.Conn) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pairs[in] = out
	return k.state != linkCut
}

func (k *link) leave(in net.Conn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.pairs, in)
}

// pass returns when the link is not stalled, and reports whether it carries.
func (k *link) pass() bool {
	for {
		k.mu.Lock()
		state, moved := k.state, k.moved
		k.mu.Unlock()
		if state != linkStalled {
			return state == linkOpen
		}
		<-moved
	}
}

// carry copies until either side ends, which ends both.
func (k *link) carry(to, from net.Conn) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if !k.pass() {
				return
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// road leads clients to the replicas as a load balancer does that knows nothing: to any
// that is up. Connections on it break at random. Safe for concurrent use.
type road struct {
	replicas []*replica
	calm     atomic.Bool // nothing breaks any more
	broken   atomic.Int64
}

// traveler is how the connections of one client live.
type traveler struct {
	road  *road
	share float64       // of connections that break by themselves
	life  time.Duration // of these, at most
}

// client returns a client of the API on the road.
func (v traveler) client(t *testing.T) *client.Client {
	t.Helper()
	return must.Get(client.New(client.Options{URL: "http://localhost", HTTP: v.http()}))(t)
}

// http returns a client whose every request has a connection of its own.
func (v traveler) http() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: v.dial, DisableKeepAlives: true}}
}

// dial connects to a replica that is up, as soon as there is one.
func (v traveler) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	for {
		for _, n := range shared.Perm(len(v.road.replicas)) {
			r := v.road.replicas[n]
			addr := r.Door.Addr()
			if addr == "" {
				continue
			}
			if conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr); err == nil {
				return v.mortal(conn), nil
			}
		}
		if !process.Pause(ctx, 20*time.Millisecond) {
			return nil, context.Cause(ctx)
		}
	}
}

// mortal lets some connections break.
func (v traveler) mortal(conn net.Conn) net.Conn {
	if v.road.calm.Load() || shared.Float64() >= v.share {
		return conn
	}
	m := &mortalConn{Conn: conn}
	m.end = time.AfterFunc(randomDelay(v.life), func() {
		if v.road.calm.Load() {
			return
		}
		v.road.broken.Add(1)
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Close()
	})
	return m
}

// mortalConn is a connection that breaks after a while.
type mortalConn struct {
	net.Conn

	end  *time.Timer
	once sync.Once
}

func (m *mortalConn) Close() error {
	m.once.Do(func() { m.end.Stop() })
	return m.Conn.Close()
}
